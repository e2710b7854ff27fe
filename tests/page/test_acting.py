"""Operators act on the page: each command is asked about first, sent as it was confirmed, and its result is shown."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime

import pytest

from consumer.serve.api.message_models import MessageContent, MessageLine, MessageListing
from tests.page import acts, scenes
from tests.page.browser import Browser, Page
from tests.page.scenes import Scene, status
from tests.page.stage import Stage, failure, staged, summary_of
from tests.page.test_page import AXE, LIVE, PHONE, SHOWN
from tests.service.lab import eventually

CONFIRM, SHEET = "document.getElementById('confirm').open", "document.getElementById('sheet').open"
MESSAGES = "document.querySelectorAll('.messages tbody tr').length"


@contextmanager
def shown(
    browser: Browser, scene: Scene, *size: int, before: Callable[[Stage], None] = lambda _: None, **look: bool
) -> Iterator[tuple[Stage, Page]]:
    """The page with a scene, live; afterwards nothing has complained but of refusals, which these tests make."""
    with staged(scene) as stage, browser.page(*size, **look) as page:
        before(stage)
        page.open(stage.url)
        page.wait(f"{SHOWN} && {LIVE}")
        yield stage, page
        assert [one for one in page.complaints() if "Failed to load resource" not in one] == []


def fill(page: Page, field: str, text: str) -> None:
    """Type into a field."""
    page.run(f"document.getElementById('{field}').focus()")
    page.type(text)


def press(page: Page, text: str, where: str = "main") -> None:
    """Click the button with this text."""
    page.run(
        f"[...document.querySelectorAll('{where} button')].find(b => b.textContent === {text!r})"
        ".setAttribute('data-pressed', '')"
    )
    page.click(f"{where} button[data-pressed]")
    page.run("document.querySelectorAll('[data-pressed]').forEach(b => b.removeAttribute('data-pressed'))")


def test_a_message_is_looked_at_and_replayed(browser: Browser) -> None:
    with shown(browser, Scene.of(acts.quarantined()), before=acts.quarantine_of) as (stage, page):
        page.wait(f"{MESSAGES} === 4")
        assert "3 held, 1 superseded, 1 discarded" in page.text(".quarantine .lead")
        page.click(".messages tbody tr button")
        page.wait(f"{SHEET} && document.querySelector('.content pre') !== null")
        assert '"note": "far too long"' in page.text(".content pre")
        page.click(".content summary")
        page.wait("document.querySelectorAll('.content pre')[1].offsetHeight > 0")
        assert page.text(".content details pre").startswith("000000  7b 22 69 64 22")
        press(page, "Replay…", "#sheet")
        page.wait(CONFIRM)
        page.click("#confirm-yes")
        page.wait("document.getElementById('confirm-result').childElementCount === 1")
        assert "replayed" in page.text("#confirm-result")
        assert ("POST", "/orders/quarantine/replay", {"messages": ["cdc-orders/1/88120"]}) in stage.sent
        page.click("#confirm-no")
        page.wait(f"!{CONFIRM} && !{SHEET} && {MESSAGES} === 3")
        page.click(".quarantine .tick input")
        page.wait(f"{MESSAGES} === 5")


def test_messages_are_discarded_with_a_reason_once_the_id_is_typed(browser: Browser) -> None:
    with shown(browser, Scene.of(acts.quarantined()), before=acts.quarantine_of) as (stage, page):
        page.wait(f"{MESSAGES} === 4")
        press(page, "Discard all…")
        page.wait(CONFIRM)
        for field, text in (("confirm-reason", "test data"), ("confirm-typed", "order")):
            fill(page, field, text)
            assert page.run("document.getElementById('confirm-yes').disabled")
        fill(page, "confirm-typed", "s")
        page.press("Enter")
        page.wait("document.getElementById('confirm-result').childElementCount === 4")
        assert ("POST", "/orders/quarantine/discard", {"all": True, "reason": "test data"}) in stage.sent
        page.click("#confirm-no")
        page.wait("document.querySelector('.quarantine').innerText.includes('No message waits for a decision')")


@pytest.mark.parametrize("size", [(1280, 900), PHONE], ids=str)
def test_a_hostile_message_stays_text(browser: Browser, size: tuple[int, int]) -> None:
    def hostile(stage: Stage) -> None:
        acts.quarantine_of(stage, about=acts.HOSTILE, reason=acts.HOSTILE + scenes.LONG)
        stage.answers["GET /orders/quarantine/cdc-orders/1/88120"] = acts.content(acts.aside(88_120), acts.HOSTILE)

    with shown(browser, Scene.of(acts.quarantined()), *size, before=hostile) as (_, page):
        page.wait(f"{MESSAGES} === 4")
        page.click(".messages tbody tr button")
        page.wait(f"{SHEET} && document.querySelector('.content pre') !== null")
        text = page.text("#sheet")
        assert scenes.SCRIPT in text
        assert "\u202e" not in page.text("body")
        assert "\\u202eevil" in text
        assert page.run("document.querySelectorAll('main img, dialog img, main script, dialog script').length") == 0
        assert page.run("document.title").endswith("ticdc-reconciler")
        assert page.run("document.documentElement.scrollWidth") <= size[0]


def test_a_changefeed_is_created_after_a_check(browser: Browser) -> None:
    with shown(browser, Scene.of(status())) as (stage, page):
        stage.answers["POST /check"] = acts.checked(ok=False)
        page.click("#new-changefeed")
        page.wait(SHEET)
        assert page.run("document.activeElement.id") == "new-id"
        values = {"id": "refunds", "servers": "127.0.0.1:9092", "topics": "a, b", "address": "db:5432", "database": "w"}
        for name, text in (values | {"user": "u", "password": "p@ss/word"}).items():
            fill(page, f"new-{name}", text)
        assert page.run("document.getElementById('new-create').disabled")
        press(page, "Check", "#sheet")
        page.wait("document.querySelector('.findings')?.innerText.includes('The check fails')")
        assert "connection refused" in page.text(".findings")
        assert page.text("#new-create") == "Create all the same"
        fill(page, "new-servers", ",127.0.0.1:9093")
        page.wait("document.getElementById('new-create').disabled")  # what was checked is not what stands there now
        stage.answers["POST /check"] = acts.checked()
        press(page, "Check", "#sheet")
        page.wait("document.querySelector('.findings')?.innerText.includes('The check passes')")
        stage.answers["POST "] = failure(409, "changefeed 'refunds' exists", "change it, or delete it first")
        page.click("#new-create")
        page.wait("document.querySelector('.refusal')?.innerText.includes('exists')")
        stage.scene.feeds["refunds"] = status("refunds")
        stage.answers["POST "] = summary_of(stage.scene.feeds["refunds"])
        page.click("#new-create")
        page.wait("document.getElementById('feed-title')?.textContent === 'refunds'")
        assert not page.run(SHEET)
        body = stage.sent[-1][2]
        assert stage.sent[-1][:2] == ("POST", "")
        assert body == {
            "changefeed": "refunds",
            "source": {"bootstrap-servers": "127.0.0.1:9092,127.0.0.1:9093", "topics": ["a", "b"]},
            "target": {"uri": "postgresql://u:p%40ss%2Fword@db:5432/w", "consistency": "snapshot"},
            "redis": {"uri": ""},
        }
        assert "p@ss" not in page.run("document.documentElement.outerHTML")


def test_the_form_goes_on_as_text(browser: Browser) -> None:
    with shown(browser, Scene.of(status())) as (stage, page):
        stage.answers["POST /check"] = acts.checked()
        page.click("#new-changefeed")
        for name, text in {"id": "x", "servers": "h:1", "topics": "~cdc_.*", "user": "u", "password": "secret"}.items():
            fill(page, f"new-{name}", text)
        press(page, "TOML", "#sheet")
        page.wait("document.getElementById('new-text') !== null")
        text = page.run("document.getElementById('new-text').value")
        assert 'topics = ["~cdc_.*"]' in text
        assert "u:***@" in text
        assert "secret" not in text
        press(page, "Check", "#sheet")
        page.wait("document.querySelector('.findings') !== null")
        assert stage.sent[-1] == ("POST", "/check", text)
        page.press("Escape")
        page.wait(f"!{SHEET}")
        assert page.run("document.getElementById('sheet-body').childElementCount") == 0


def test_settings_show_what_changes_before_it_is_saved(browser: Browser) -> None:
    with shown(browser, Scene.of(status())) as (stage, page):
        acts.config_of(stage)
        page.click("#feed-settings")
        page.wait("document.getElementById('settings-text') !== null")
        assert page.run("document.getElementById('settings-save').disabled")
        fill(page, "settings-text", "# more\n")
        press(page, "Show what changes", "#sheet")
        page.wait("document.querySelector('.difference') !== null")
        assert page.text(".findings h3") == "3 keys change; the changefeed is restarted"
        assert page.text(".difference dd").split()[1:] == ["before:", "4", "+", "after:", "8"]
        page.click("#settings-save")
        page.wait(f"!{SHEET}")
        assert stage.sent[-1] == ("PUT", "/orders", {"limits": {"writers": 8}})


def test_a_refused_change_stays_in_the_editor(browser: Browser) -> None:
    with shown(browser, Scene.of(status())) as (stage, page):
        acts.config_of(stage)
        stage.answers["POST /orders/preview"] = failure(
            409, "source.topics can't be changed", "create another changefeed"
        )
        page.click("#feed-settings")
        page.wait("document.getElementById('settings-text') !== null")
        press(page, "Show what changes", "#sheet")
        page.wait("document.querySelector('.refusal')?.innerText.includes('create another changefeed')")
        assert page.run("document.getElementById('settings-text').value") == acts.CONFIG


def test_delete_with_its_progress(browser: Browser) -> None:
    with shown(browser, Scene.of(status("a"), status("b"))) as (stage, page):
        stage.answers["DELETE /a"] = failure(409, "its window did not end within 20 s", "try again")
        page.click("#feed-delete")
        page.wait(CONFIRM)
        page.click("#confirm-option")
        fill(page, "confirm-typed", "a")
        page.click("#confirm-yes")
        page.wait("document.getElementById('confirm-fault').textContent.includes('did not end')")
        stage.answers["DELETE /a"] = lambda _: stage.scene.feeds.pop("a") and failure(200, "", "")
        page.click("#confirm-yes")
        page.wait(f"!{CONFIRM} && document.getElementById('feed-title')?.textContent === 'b'")
        assert stage.sent[-1][:2] == ("DELETE", "/a?delete_progress=true&confirm=a")


def test_a_topic_is_retired_once_its_name_is_typed(browser: Browser) -> None:
    with shown(browser, Scene.of(scenes.stalled())) as (stage, page):
        stage.answers["POST /orders/topics/cdc-orders/retire"] = failure(200, "", "")
        stage.answers["POST /orders/topics/cdc-old/return"] = failure(200, "", "")
        stage.scene.feeds["orders"] = scenes.stalled().model_copy(update={"retired_topics": ["cdc-old"]})
        page.wait(f"{LIVE} && document.querySelectorAll('.topics tbody tr').length === 2")
        page.click(".topics tbody button.decide")
        page.wait(CONFIRM)
        assert page.run("document.getElementById('confirm-yes').disabled")
        fill(page, "confirm-typed", "cdc-orders")
        page.click("#confirm-yes")
        page.wait(f"!{CONFIRM}")
        page.click(".topics tbody tr:last-child button.decide")
        page.wait(CONFIRM)
        page.click("#confirm-yes")
        page.wait(f"!{CONFIRM}")
        assert [one[1] for one in stage.sent] == ["/orders/topics/cdc-orders/retire", "/orders/topics/cdc-old/return"]


@pytest.mark.by_turns
@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
def test_dialogs_are_accessible_by_axe(browser: Browser, dark: bool) -> None:
    with shown(browser, Scene.of(acts.quarantined()), before=acts.quarantine_of, dark=dark, reduced=True) as (
        stage,
        page,
    ):
        acts.config_of(stage)
        stage.answers["POST /check"] = acts.checked(ok=False)
        page.wait(f"{MESSAGES} === 4")
        page.run(browser.tools.axe.read_text() + ";true")
        assert page.run(AXE) == []
        page.click(".messages tbody tr button")
        page.wait(f"{SHEET} && document.querySelector('.content pre') !== null")
        assert page.run(AXE) == []
        press(page, "Discard…", "#sheet")
        page.wait(CONFIRM)
        assert page.run(AXE) == []
        page.press("Escape")
        page.press("Escape")
        page.wait(f"!{SHEET} && {LIVE}")
        page.click("#feed-settings")
        page.wait("document.getElementById('settings-text') !== null")
        press(page, "Show what changes", "#sheet")
        page.wait("document.querySelector('.difference') !== null")
        assert page.run(AXE) == []
        page.press("Escape")
        page.wait(f"!{SHEET} && {LIVE} && !document.getElementById('new-changefeed').disabled")
        page.click("#new-changefeed")
        for name in ("id", "servers", "topics", "address", "database"):
            fill(page, f"new-{name}", "x:1")
        press(page, "Check", "#sheet")
        page.wait("document.querySelector('.findings') !== null")
        assert page.run(AXE) == []


def looked_at(stage: Stage) -> None:
    """Let the stage hold three messages of a topic, one of which can't be decoded."""
    common = {"topic": "cdc-orders", "partition": 1, "part": 0, "timestamp": int(scenes.NOW * 1000), "error": None}
    row = {"type": "DELETE", "commit_ts": scenes.tso(scenes.NOW), "commit_time": "", "database": "shop"}
    items = [
        {**common, **row, "offset": 7, "table": "orders", "content": "id=77 note=x"},
        {**common, **row, "offset": 8, "table": acts.HOSTILE, "content": acts.HOSTILE},
        {**common, "offset": 9, "type": "?", "commit_ts": None, "commit_time": None, "database": None, "table": None}
        | {"content": "", "error": acts.HOSTILE},
    ]
    place = "/orders/topics/cdc-orders/messages"
    listing = MessageListing(items=[MessageLine.model_validate(one) for one in items], read=3, is_whole=False)
    whole = acts.content(acts.aside(7), acts.HOSTILE).model_dump()
    found = MessageContent.model_validate({name: whole[name] for name in MessageContent.model_fields})
    stage.answers |= {f"GET {place}": listing, f"GET {place}/1/9": found, f"GET {place}/1/7": found}


@pytest.mark.parametrize("size", [(1280, 900), PHONE], ids=["desktop", "phone"])
def test_messages_are_looked_for(browser: Browser, size: tuple[int, int]) -> None:
    with shown(browser, Scene.of(status()), *size, before=looked_at, reduced=True) as (stage, page):
        press(page, "Messages…")
        page.wait(f"{SHEET} && document.querySelectorAll('.looked tbody tr').length === 3")
        assert "unreadable" in page.text(".looked")
        assert page.run("document.title !== 'owned'")
        fill(page, "look-table", "shop.*")
        fill(page, "look-key", "77")
        fill(page, "look-since", "2026-11-25 07:30")
        page.press("Enter")
        asked = f"&table=shop.*&key=77&since={int(datetime(2026, 11, 25, 7, 30, tzinfo=UTC).timestamp() * 1000) << 18}"
        eventually("it was asked for", lambda: any(one[1].endswith(asked) for one in stage.asked))
        page.wait("document.querySelector('.looked') !== null")
        page.run(browser.tools.axe.read_text() + ";true")
        assert page.run(AXE) == []
        page.click(".looked tbody tr button")
        page.wait("document.querySelector('.content pre') !== null")
        assert "owned" in page.text(".content pre")
        assert page.run("document.title !== 'owned'")
        assert page.run(AXE) == []
        assert page.run("document.documentElement.scrollWidth <= innerWidth")
        press(page, "Back to the list", "#sheet")
        fill(page, "look-since", "x")
        page.press("Enter")
        page.wait("document.querySelector('#sheet .fault')?.textContent.includes('has to be a time')")
