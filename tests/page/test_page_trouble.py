"""The page while its API is gone, slow or answers something else."""

from itertools import pairwise

import pytest
from fastapi.responses import PlainTextResponse

from tests.page.browser import Browser
from tests.page.scenes import Scene, status
from tests.page.stage import staged
from tests.page.test_page import LIVE, LOOK, SHOWN, shown
from tests.service.lab import eventually


def test_an_api_that_is_gone_is_told_with_the_age_and_never_shown_as_live(browser: Browser) -> None:
    with staged(Scene.of(status())) as stage, browser.page() as page:
        page.open(stage.url)
        page.wait(f"{SHOWN} && {LIVE}")
        stage.stop()
        page.wait("document.body.dataset.standing === 'gone'")
        assert page.text(".pulse") == "no connection"
        page.wait(f"{LOOK} === 'grayscale(1)'")
        assert page.run("document.querySelector('#feed-command').disabled")
        page.wait("/What you see is ([2-9]|[1-9][0-9]+) s old/.test(document.querySelector('.notice').innerText)")
        assert page.run("document.title").startswith("?")
        stage.start()
        page.click(".notice button")
        page.wait(LIVE)
        assert page.text(".notice") == ""
        page.wait(f"['none', 'grayscale(0)'].includes({LOOK})")


@pytest.mark.by_turns
def test_it_waits_longer_after_each_failure(browser: Browser) -> None:
    with shown(browser, Scene.of(status())) as (stage, page):
        page.wait(LIVE)
        stage.answer = PlainTextResponse("<h1>Bad gateway</h1>", 200)  # something else answers in its place
        page.wait("document.body.dataset.standing === 'gone'")
        stage.asked_at.clear()
        # a second while all is well; then 1, 2, 4 and more, within a fifth, and a busy machine may shorten one
        eventually("it waits longer", lambda: any(b - a > 3 for a, b in pairwise(stage.asked_at)))
        assert "the API answered 200" in page.text(".notice").replace("The", "the")


@pytest.mark.by_turns
def test_a_slow_api_is_told(browser: Browser) -> None:
    with shown(browser, Scene.of(status())) as (stage, page):
        page.wait(LIVE)
        stage.delay_s = 3.3
        page.wait("document.body.dataset.standing === 'slow'")
        assert "The API is slow." in page.text(".notice")
        assert page.run("document.querySelector('main').classList.contains('old')")
        stage.delay_s = 0.0
        page.wait(LIVE)
