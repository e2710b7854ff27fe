"""The page in a real Chromium, before an API that says what tests want: what it shows, how it takes trouble."""

import json
import time
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from consumer.serve.api.models import Drifted
from tests.page import scenes
from tests.page.browser import Browser, Page
from tests.page.scenes import Scene, status
from tests.page.stage import Stage, staged
from tests.service.lab import eventually

PHONE = (360, 740)
SHOWN = "document.querySelector('.plot path.line') !== null"
LIVE = "document.body.dataset.standing === 'live'"
ROWS = "document.querySelectorAll('.partitions tbody tr').length"
LOOK = "getComputedStyle(document.querySelector('main')).filter"
FOCUS = "(document.activeElement.id || document.activeElement.textContent).trim()"


@contextmanager
def shown(
    browser: Browser, scene: Scene, width: int = 1280, height: int = 900, **look: bool
) -> Iterator[tuple[Stage, Page]]:
    """The page with a scene, fully drawn; afterwards nothing has complained."""
    with staged(scene) as stage, browser.page(width, height, **look) as page:
        page.open(stage.url)
        page.wait(SHOWN)
        yield stage, page
        assert page.complaints() == []


def figure(page: Page, name: str) -> str:
    return str(page.run(f"document.querySelector('[data-figure={json.dumps(name)}] b').textContent"))


def state_words(page: Page) -> dict[str, str]:
    rows = "[...document.querySelectorAll('.changefeeds tbody tr')]"
    return dict(page.run(f"{rows}.map(r => [r.cells[0].textContent, r.querySelector('.badge').textContent])"))


def test_states_in_words_worst_first_and_figures(browser: Browser) -> None:
    feeds = [
        status("calm"),
        status("resting", state="stopped"),
        status("waiting", state="pending", leads=False),
        status("beginning", state="pending", leads=False, leader=None),
        scenes.stalled("stuck"),
        scenes.failed("broken"),
        status("trying", state="warning", error=scenes.failed().error.model_copy(update={"retry_in_seconds": 3.0})),
    ]
    with shown(browser, Scene.of(*feeds)) as (_, page):
        assert list(state_words(page).items()) == [
            ("broken", "failed"),
            ("stuck", "stalled"),
            ("trying", "trying again"),
            ("beginning", "starting"),
            ("resting", "paused"),
            ("waiting", "standing by"),
            ("calm", "running"),
        ]
        icons = page.run("[...document.querySelectorAll('.changefeeds .badge svg')].map(s => s.innerHTML)")
        assert len(set(icons)) == len(icons)  # never by colour alone
        assert page.text(".verdict") == "3 of 7 changefeeds need you."
        assert "offsets 88120 to 90455 are gone" in page.text(".advice")
        assert "reconciler progress rewind" in page.text(".advice code")
        page.click("a[href='#/calm']")
        page.wait("document.querySelector('#feed-title')?.textContent === 'calm'")
        names = ("Behind now", "Held", "Applied", "Duplicates", "Quarantined", "Drifted")
        assert {name: figure(page, name) for name in names} == {
            "Behind now": "1.2 s", "Held": "236", "Applied": "48,112,907", "Duplicates": "96,412", "Quarantined": "0",
            "Drifted": "0",
        }  # fmt: skip
        assert page.run("document.body.innerText").count("470619258565427200") == 1  # a TSO, beyond 2^53, exact


def test_a_stalled_partition_shows_within_two_seconds(browser: Browser) -> None:
    """Unless the machine is busy with something else, three times."""
    assert any(seconds_until_a_stall_shows(browser) < 2 for _ in range(3))


def seconds_until_a_stall_shows(browser: Browser) -> float:
    with shown(browser, Scene.of(status())) as (stage, page):
        page.wait(LIVE)
        assert page.text(".verdict") == "The changefeed is healthy."
        stage.scene.feeds["orders"] = scenes.stalled()
        begun = time.monotonic()
        page.wait("document.querySelector('.verdict').classList.contains('stalled')")
        page.wait("document.querySelector('.partitions tbody tr')?.innerText.includes('stalled')")
        took = time.monotonic() - begun
        assert page.text(".partitions tbody th") == "cdc-orders / 2"
        assert page.text(".partitions .lead").startswith("cdc-orders partition 2 holds back the rest")
    return took


@pytest.mark.by_turns
def test_a_state_that_gets_better_for_a_moment_does_not_flap(browser: Browser) -> None:
    badge = "document.querySelector('.feed-head .badge').textContent"
    with shown(browser, Scene.of(scenes.stalled())) as (stage, page):
        page.wait(f"{LIVE} && {badge} === 'stalled'")
        found = page.run(
            "import('/page/steady.js').then(({steady, LASTS_S}) => [['stalled', 0], ['running', 1], ['stalled', 2],"
            "['running', 3], ['running', 2.9 + LASTS_S], ['running', 3 + LASTS_S], ['retrying', 20], ['starting', 21],"
            "['failed', 22], ['running', 23], ['paused', 24], ['running', 25]]"
            ".map(([state, at]) => steady('x', state, at)))"
        )
        assert found == [
            "stalled", "stalled", "stalled", "stalled", "stalled", "running", "retrying", "retrying", "failed",
            "running", "paused", "running",
        ]  # fmt: skip
        stage.scene.feeds["orders"] = status()
        page.wait(f"{badge} === 'running'")


@pytest.mark.by_turns
def test_the_flow_marks_what_holds_back(browser: Browser) -> None:
    with shown(browser, Scene.of(scenes.many())) as (stage, page):
        assert page.run("document.querySelectorAll('.flow .bars rect').length") == 32
        assert page.run("document.querySelector('.flow rect').getAttribute('class')") == "stalled"
        text = page.text(".flow")
        assert (
            "cdc-warehouse-region-12 / 41 stalled for 1 min 35 s" in text
        )  # the other one holds back, but has not stood still for long
        assert "and 968 more" in text
        assert "20 topics" in text
        stage.scene.feeds["warehouse"] = status("warehouse", held_events=7)
        page.wait("document.querySelector('.flow').innerText.includes('7 unread')")
        page.wait("document.querySelector('.flow').innerText.includes('is behind the others')")


def test_where_all_partitions_stand_alike_none_holds_back(browser: Browser) -> None:
    alike = [scenes.partition("cdc-orders", i, scenes.NOW - 1.2, holds_back=True) for i in range(3)]
    with shown(browser, Scene.of(status(source=scenes.source(alike)))) as (_, page):
        page.wait("document.querySelectorAll('.partitions tbody tr').length === 3")
        assert page.text(".partitions .lead") == "No partition holds the others back."
        assert "holds back" not in page.text("main")
        assert "none is behind the others" in page.text(".flow")


def test_the_foot_names_the_version(browser: Browser) -> None:
    with shown(browser, Scene.of(status())) as (_, page):
        page.wait("document.getElementById('version').textContent === 'ticdc-reconciler 1.2.3'")


def test_a_failed_changefeed_shows_what_was_known_and_how_old_that_is(browser: Browser) -> None:
    with shown(browser, Scene.of(scenes.failed())) as (stage, page):
        assert figure(page, "Held") == "10,000"
        assert "as of 5 min ago" in page.text("[data-figure=Held] small")
        assert "as of 5 min ago" in page.text("[data-figure='Behind watermark'] small")
        assert figure(page, "Events per second") == "\u2013"
        lead = page.text(".partitions .lead")
        assert lead.startswith("As of 5 min ago: cdc-billing partition 1 holds back the rest")
        assert "as of 5 min ago; not asked while it does not run" in page.text(".instances")
        stage.scene.feeds["billing"] = scenes.unseen()
        page.wait("document.querySelector('.instances').innerText.includes('not asked yet')")
        assert figure(page, "Held") == "\u2013"
        assert page.text(".partitions .lead").startswith("Nothing is known of the partitions")


def test_a_target_that_has_drifted_is_told(browser: Browser) -> None:
    drift = [Drifted(table="shop.orders", missing=3, unexpected=1)]
    with shown(browser, Scene.of(status(drift=drift))) as (_, page):
        page.wait("document.querySelector('#feed-title') !== null")
        assert figure(page, "Drifted") == "4"
        assert "shop.orders: 3 missing, 1 unexpected" in page.text(".advice")
        assert "reconciler verify" in page.text(".advice code")


def test_a_thousand_partitions_are_sorted_limited_and_filtered(browser: Browser) -> None:
    with shown(browser, Scene.of(scenes.many())) as (_, page):
        assert page.run(ROWS) == 10
        assert page.text(".partitions tbody tr").startswith("cdc-warehouse-region-12 / 41")
        page.run("document.getElementById('filter').focus()")
        page.type("region-07 3")
        page.wait("document.querySelector('.search').innerText.includes('14 of 1,000 partitions')")
        page.wait("document.querySelector('.partitions tbody').innerText.includes('region-07')")
        assert page.run(FOCUS) == "filter"
        page.run("document.getElementById('filter').oninput({target: {value: ''}})")
        page.wait("document.querySelector('.partitions > button') !== null")
        page.click(".partitions > button")
        page.wait(f"{ROWS} === 1000")
        busy = page.run(
            "new Promise(done => { const t = performance.now();"
            "document.getElementById('filter').oninput({target: {value: 'cdc'}});"
            "requestAnimationFrame(() => requestAnimationFrame(() => done(performance.now() - t))); })"
        )
        assert busy < 2000  # all of them drawn again: 40 ms on a quiet machine
        page.click(".partitions > button")
        page.wait(f"{ROWS} === 10")


def test_hostile_names_stay_text_and_break_nothing(browser: Browser) -> None:
    for size in ((1280, 900), PHONE):
        with shown(browser, Scene.of(scenes.hostile()), *size) as (_, page):
            assert page.run("document.title").endswith("ticdc-reconciler")
            assert page.run("document.querySelectorAll('main img, main script').length") == 0
            text = page.text("main")
            for hostile in (scenes.SCRIPT, scenes.TURNED.strip("\u202e"), scenes.LONG):
                assert hostile in text
            assert page.run("document.documentElement.scrollWidth") <= size[0]
            assert page.run("[...document.querySelectorAll('bdi')].length") > 8


@pytest.mark.by_turns
@pytest.mark.parametrize("size", [PHONE, (768, 900), (1280, 900)], ids=str)
def test_nothing_overflows_or_overlaps(browser: Browser, size: tuple[int, int]) -> None:
    scene = Scene.of(scenes.failed(), scenes.stalled(), status("customers-of-the-western-region-archive"))
    with shown(browser, scene, *size) as (_, page):
        assert page.run("document.documentElement.scrollWidth") <= size[0]
        beyond = page.run(
            "[...document.querySelectorAll('main *')].filter(e => !e.closest('.unseen,thead,svg,.as-table') &&"
            f"e.getBoundingClientRect().right > {size[0]} + 1).map(e => e.outerHTML.slice(0, 80))"
        )
        assert beyond == []
        cut = page.run(
            "[...document.querySelectorAll('main td, main th, main dd, main dt, main button, main p')].filter(e =>"
            "!e.closest('.unseen,thead') && e.scrollWidth > e.clientWidth + 1 && e.clientWidth > 0)"
            ".map(e => e.outerHTML.slice(0, 80))"
        )
        assert cut == []


AXE = (
    "axe.run(document, {resultTypes: ['violations']})"
    ".then(r => r.violations.map(v => v.id + ': ' + v.nodes.map(n => n.html)))"
)


@pytest.mark.by_turns
@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
def test_accessible_by_axe(browser: Browser, dark: bool) -> None:
    scene = Scene.of(scenes.failed(), scenes.stalled(), status("paused", state="stopped"), scenes.many(40))
    with shown(browser, scene, dark=dark, reduced=True) as (_, page):
        page.run(browser.tools.axe.read_text() + ";true")
        for name in ("billing", "orders", "paused", "warehouse"):
            page.run(f"location.hash = '#/{name}'")
            page.wait(f"document.getElementById('feed-title')?.textContent === '{name}' && {SHOWN}")
            assert page.run(AXE) == []


def test_everything_by_keyboard(browser: Browser) -> None:
    with shown(browser, Scene.of(status("a"), status("b"))) as (stage, page):
        seen = []
        for _ in range(17):
            page.press("Tab")
            seen.append(page.run(FOCUS))
        assert seen == [
            "Skip to the changefeeds",
            "new-changefeed",
            "a",
            "b",
            "feed-command",
            "feed-settings",
            "feed-delete",
            "5 min",
            "15 min",
            "1 h",
            "6 h",
            "1 d",
            "7 d",
            "30 d",
            "\u2212",
            "plots",
            "The same as a table",
        ]
        page.run("document.querySelector('#feed-command').focus()")
        page.press("Enter")
        page.wait("document.getElementById('confirm').open")
        assert "Pause \u2068a\u2069?" in page.text("#confirm")
        assert page.run(FOCUS) == "confirm-no"
        page.press("Escape")
        page.wait("!document.getElementById('confirm').open")
        assert [one for one in stage.asked if one[0] == "POST"] == []


def test_pause_and_resume_after_a_question(browser: Browser) -> None:
    with shown(browser, Scene.of(status())) as (stage, page):
        page.wait(LIVE)
        for verb, word in (("pause", "paused"), ("resume", "running")):
            page.click("#feed-command")
            page.wait("document.getElementById('confirm').open")
            page.click("#confirm-yes")
            page.wait(f"document.querySelector('.feed-head .badge').textContent === '{word}'")
            assert ("POST", f"/api/v2/changefeeds/orders/{verb}", "") in stage.asked
            page.wait("!document.getElementById('confirm').open")


def test_a_ddl_is_decided_about_with_a_reason_once_the_id_is_typed(browser: Browser) -> None:
    feed = scenes.failed().model_copy(update={"ddl_history": [scenes.ddl("DROP VIEW `v`", "failed", table="v")]})
    with shown(browser, Scene.of(feed)) as (stage, page):
        page.wait(LIVE)
        page.click(".ddls button")
        page.wait("document.getElementById('confirm').open")
        assert page.text("#confirm-title") == "Leave this DDL of \u2068shop.v\u2069 out?"
        assert page.run(FOCUS) == "confirm-reason"
        page.type("not needed here")
        page.run("document.getElementById('confirm-typed').focus()")
        page.type("billin")
        assert page.run("document.getElementById('confirm-yes').disabled")
        page.type("g")
        page.click("#confirm-yes")
        page.wait("!document.getElementById('confirm').open")
        assert stage.decided == [("billing", scenes.tso(scenes.NOW - 5000), "skip", "not needed here")]


@pytest.mark.parametrize("state", ["skip", "take"])
def test_a_ddl_that_is_decided_is_not_to_be_decided_again(browser: Browser, state: str) -> None:
    feed = scenes.failed().model_copy(update={"ddl_history": [scenes.ddl("DROP VIEW `v`", state, table="v")]})
    with shown(browser, Scene.of(feed)) as (_, page):
        page.wait(LIVE)
        assert "This DDL is decided, as DDL history shows. Press Resume." in page.text(".advice")
        assert "Leave out, or Done by hand" not in page.text(".advice")


def test_a_ddl_that_the_checkpoint_has_passed_is_not_to_be_decided(browser: Browser) -> None:
    """It failed before the progress was reset; what stops the changefeed now is something else."""
    old = scenes.ddl("DROP VIEW `v`", "failed", table="v", commit_ts=scenes.tso(scenes.NOW - 5121))
    with shown(browser, Scene.of(scenes.failed().model_copy(update={"ddl_history": [old]}))) as (_, page):
        page.wait(LIVE)
        assert "Leave out, or Done by hand" not in page.text(".advice")
        assert page.run("document.querySelector('.ddls button') === null")


def test_charts_are_read_by_key_by_pointer_and_as_a_table(browser: Browser) -> None:
    with shown(browser, Scene.of(status())) as (_, page):
        page.run("document.getElementById('plots').focus()")
        page.press("Home")
        page.wait("document.getElementById('plots').ariaValueNow === '0'")
        for _ in range(5):
            page.press("ArrowRight")  # faster than it is drawn
        page.wait("document.getElementById('plots').ariaValueNow === '5'")
        said = page.run("document.getElementById('plots').ariaValueText")
        assert "events/s" in said
        assert "behind now" in said
        assert page.text(".reading").split()[0] in said
        page.press("Escape")
        page.wait("document.querySelector('.reading').textContent.startsWith('Touch')")
        page.run("document.querySelector('.plot').scrollIntoView({block: 'center'}); true")
        top = page.run("document.querySelector('.plot svg').getBoundingClientRect().y")
        page.call("Input.dispatchMouseEvent", type="mouseMoved", x=640, y=top + 50)
        page.wait("document.querySelector('.plot .cursor') !== null")
        page.click(".as-table summary")
        page.wait("document.querySelectorAll('.as-table tbody tr').length === 60")


def test_charts_zoom_out_to_thirty_days(browser: Browser) -> None:
    chosen = "document.querySelector('.ranges [aria-pressed=true]').textContent"
    with shown(browser, Scene.of(status())) as (stage, page):
        stage.scene.history["orders"] = [*scenes.samples(86_400 * 20, 900.0), *stage.scene.history["orders"]]
        page.run("document.getElementById('plots').focus()")
        for _ in range(8):
            page.call("Input.dispatchKeyEvent", type="keyDown", key="-", text="-")
        page.wait(f"{chosen} === '30 d'")
        page.wait("[...document.querySelectorAll('.plot .grid text')].some(t => t.textContent.startsWith('11-'))")
        wanted = "/orders/history?step=900"
        eventually("it asks for them", lambda: any(path.endswith(wanted) for _, path, _ in list(stage.asked)))
        page.wait("(document.querySelector('.plot path.line').getAttribute('d').match(/L/g) ?? []).length > 80")
        page.click(".ranges button:first-child")
        page.wait(f"{chosen} === '7 d'")


def test_the_token_is_asked_for_kept_in_this_tab_and_never_in_an_address(browser: Browser) -> None:
    with staged(Scene.of(status())) as stage, browser.page() as page:
        stage.token = "the-token-of-this-server"
        page.open(stage.url)
        page.wait("document.querySelector('form.sign-in') !== null")
        assert "orders" not in page.text()
        assert page.text("#sign-in-fault") == ""
        page.type("wrong-token")
        page.press("Enter")
        page.wait("document.getElementById('sign-in-fault').textContent.includes('The token is wrong.')")
        page.run("document.getElementById('token').focus()")
        page.type(stage.token)
        page.press("Enter")
        page.wait(SHOWN)
        assert page.run("Object.entries(sessionStorage)") == [["reconciler-token", stage.token]]
        assert page.run(FOCUS) == "main"  # the next Tab leads to the first changefeed, not to the foot
        assert page.run("[localStorage.length, document.cookie]") == [0, ""]
        assert stage.token not in page.run("location.href + document.documentElement.outerHTML")
        assert all(stage.token not in path for _, path, _ in stage.asked)
        page.click("#sign-out")
        page.wait("document.querySelector('form.sign-in') !== null")
        assert page.run("sessionStorage.length") == 0


def test_reduced_motion_and_the_colour_scheme_are_obeyed(browser: Browser) -> None:
    animations = "document.getAnimations().length"
    ground = "getComputedStyle(document.body).backgroundColor"
    with shown(browser, Scene.of(status()), reduced=True) as (_, page):
        page.wait(LIVE)
        assert page.run(animations) == 0
        light = page.run(ground)
        page.look(dark=True)
        page.wait(f"{ground} !== '{light}'")
        page.wait(f"{animations} > 0")
