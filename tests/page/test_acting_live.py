"""Operators act on the page before a real `reconciler serve`: what they do is in the target and in the file."""

import tomllib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

from consumer.embedded import KafkaBroker
from tests.page.browser import Browser, Page
from tests.page.test_acting import CONFIRM, MESSAGES, SHEET, fill, press
from tests.page.test_page_live import BADGE, LIVE
from tests.service.lab import Feed, eventually
from tests.service.messages import at, begun, ddl, encoded, insert, row_value, watermarks
from tests.serving.lab import TOKEN, Serving, feed_into

pytestmark = [pytest.mark.service, pytest.mark.spark]
COLUMNS = "id INT PRIMARY KEY, v INT NOT NULL, s VARCHAR(10)"
WIDER = (
    "ALTER TABLE t RENAME TO o; CREATE TABLE t (id INT PRIMARY KEY, v INT, s VARCHAR(10), x INT);"
    " INSERT INTO t SELECT * FROM o; DROP TABLE o"
)
OLD = "old"


class Desk(NamedTuple):
    """An operator's place: the page, the server behind it, and the changefeed that the page makes."""

    page: Page
    serving: Serving
    feed: Feed

    @property
    def old_topic(self) -> str:
        return f"{self.feed.topic}.{OLD}"

    @property
    def file(self) -> Path:
        return self.serving.folder / f"{self.feed.name}.toml"

    def shows(self, word: str) -> None:
        """Wait until the page says in which state it is."""
        self.page.wait(f"{LIVE} && {BADGE} === {word!r}")

    def answer(self, **fields: str) -> None:
        """Fill in what the open question asks for, and confirm."""
        self.page.wait(CONFIRM)
        for name, text in fields.items():
            fill(self.page, f"confirm-{name}", text)
        self.page.click("#confirm-yes")

    def until(self, click: Callable[[], None], opened: str) -> None:
        """Click until something has opened: on a busy machine the page is slow for moments, and takes no orders."""

        def is_open() -> bool:
            if self.page.run(opened):
                return True
            click()
            return False

        eventually(opened, is_open, pause_s=1)

    def carried_out(self) -> None:
        self.page.wait(f"!{CONFIRM}")

    def rows(self) -> list[tuple[int, int | None]]:
        _, found = self.feed.cells.tables(["d"]).get("d.t", ([], []))
        return sorted((row["id"], row["v"]) for row in found)

    def holds(self, *rows: tuple[int, int | None]) -> None:
        """Wait until the target has these rows."""
        eventually(f"the rows are {rows}", lambda: self.rows() == list(rows))


@pytest.fixture
def desk(browser: Browser, kafka_broker: KafkaBroker, topic_name: str, tmp_path: Path) -> Iterator[Desk]:
    folder = tmp_path / "changefeeds"
    folder.mkdir()
    (folder / "_serve.toml").write_text('[spark]\nmaster = "local[2]"\n')
    feed = feed_into(tmp_path, kafka_broker.bootstrap, topic_name)
    feed.send([*begun(columns=COLUMNS), *(one._replace(topic=OLD) for one in watermarks(3))])
    with Serving(folder) as serving, browser.page() as page:
        page.open(serving.url)
        page.wait("document.querySelector('form.sign-in') !== null")
        page.type(TOKEN)
        page.press("Enter")
        page.wait(f"{LIVE} && document.querySelector('.verdict')?.innerText.includes('no changefeed yet')")
        yield Desk(page, serving, feed)


def create(desk: Desk) -> None:
    """By the form; at first with a topic that is not there, which the check finds, and the settings then correct."""
    page, feed = desk.page, desk.feed
    press(page, "New changefeed…")
    page.wait(SHEET)
    page.run(
        "(() => { const kind = document.getElementById('new-kind'); kind.value = 'sqlite';"
        " kind.dispatchEvent(new Event('change', {bubbles: true})); })()"
    )
    values = {"id": feed.name, "servers": feed.bootstrap, "topics": "nope", "path": str(feed.cells.directory)}
    for name, text in values.items():
        fill(page, f"new-{name}", text)
    page.click(".tick input")
    press(page, "Check", "#sheet")
    page.wait("document.querySelector('.findings')?.innerText.includes('The check fails')")
    assert "topic missing: nope" in page.text(".findings")
    page.click("#new-create")
    page.wait(f"!{SHEET} && document.getElementById('feed-title')?.textContent === {feed.name!r}")
    desk.shows("failed")


def change(desk: Desk, old: str, new: str) -> str:
    """Edit the settings; what the page says would change."""
    page = desk.page
    desk.until(lambda: page.click("#feed-settings"), SHEET)
    page.wait("document.getElementById('settings-text') !== null")
    page.run(
        "(() => { const text = document.getElementById('settings-text');"
        f" text.value = text.value.replace({old!r}, {new!r});"
        " text.dispatchEvent(new Event('input', {bubbles: true})); })()"
    )
    press(page, "Show what changes", "#sheet")
    page.wait("document.querySelector('.difference') !== null")
    said = page.text(".findings")
    page.click("#settings-save")
    page.wait(f"!{SHEET}")
    return said


def command(desk: Desk) -> None:
    """Pause or resume, whatever the button offers."""
    desk.until(lambda: desk.page.click("#feed-command"), CONFIRM)
    desk.answer()
    desk.carried_out()


def corrects_the_topics(desk: Desk) -> None:
    said = change(desk, 'topics = ["nope"]', f'topics = ["{desk.feed.topic}", "{desk.old_topic}"]')
    assert "source.topics" in said
    command(desk)
    desk.holds((1, 1))
    desk.shows("running")


def edits_with_a_difference(desk: Desk) -> None:
    said = change(desk, "[quarantine]", "[limits]\nwriters = 3\n\n[quarantine]")
    assert said.split()[:6] == ["1", "key", "changes;", "the", "changefeed", "is"]
    assert tomllib.loads(desk.file.read_text())["limits"] == {"writers": 3}


def retires_and_returns(desk: Desk) -> None:
    page, button = desk.page, f".topics button[aria-label$='{desk.old_topic}'].decide"
    desk.shows("running")
    desk.until(lambda: page.click(button), CONFIRM)
    desk.answer(typed=desk.old_topic)
    desk.carried_out()
    desk.feed.send([insert("d.t", 4, 1, id=2, v=2, s="two"), *watermarks(4)])
    desk.holds((1, 1), (2, 2))
    desk.shows("running")
    page.wait(f"document.querySelector(\"{button}\")?.textContent === 'Let it count…'")
    desk.until(lambda: page.click(button), CONFIRM)
    desk.answer()
    desk.carried_out()
    page.wait(f"document.querySelector(\"{button}\")?.textContent === 'Retire…'")


def send(desk: Desk, number: int, *messages: object) -> None:
    """Messages, and the watermark of this number everywhere."""
    old = [one._replace(topic=OLD) for one in watermarks(number)]
    desk.feed.send([*messages, *watermarks(number), *old])  # type: ignore[list-item]


def decides_about_ddls(desk: Desk) -> None:
    page, first = desk.page, ddl("d.t", 5, "ALTER TABLE `t` ADD COLUMN `s` BIGINT", kind="ALTER")
    send(desk, 5, first)
    desk.shows("failed")
    page.wait("document.querySelector('.ddls button') !== null")
    desk.until(lambda: press(page, "Leave out…", ".ddls"), CONFIRM)
    desk.answer(reason="s is there", typed=desk.feed.name)
    desk.carried_out()
    command(desk)
    desk.serving.reached(desk.feed.name, at(5))
    desk.shows("running")
    desk.feed.cells.run("d", "ALTER TABLE t ADD COLUMN x INT")
    send(desk, 6, ddl("d.t", 6, "ALTER TABLE `t` ADD COLUMN `x` INT, ADD COLUMN `s` INT", kind="ALTER"))
    desk.shows("failed")
    desk.until(lambda: press(page, "Done by hand…", ".ddls"), CONFIRM)
    desk.answer(reason="made", typed=desk.feed.name)
    desk.carried_out()
    command(desk)
    desk.serving.reached(desk.feed.name, at(6))
    desk.shows("running")
    log = desk.serving.ask("GET", f"/{desk.feed.name}/ddls", params={"limit": 2})["items"]
    assert [(one["state"], one["reason"]) for one in log] == [("done", "made"), ("skipped", "s is there")]


def decides_about_messages(desk: Desk) -> None:
    page, bad = desk.page, encoded(row_value("INSERT", "d.t", at(7), {"id": 3, "v": None, "s": "bad"}))
    desk.feed.send_raw(1, bad)
    send(desk, 7)
    page.wait(f"{MESSAGES} === 1", 60)
    desk.until(lambda: page.click(".messages tbody tr button"), SHEET)
    page.wait(f"{SHEET} && document.querySelector('.content pre') !== null")
    assert '"bad"' in page.text(".content pre")
    desk.until(lambda: press(page, "Replay…", "#sheet"), CONFIRM)
    assert "held" in became(desk)
    page.press("Escape")
    desk.feed.cells.run("d", WIDER)
    page.wait(f"!{SHEET} && {LIVE}")
    desk.until(lambda: press(page, "Replay all…"), CONFIRM)
    assert "replayed" in became(desk)
    desk.holds((1, 1), (2, 2), (3, None))
    desk.feed.send_raw(1, b'{"id":0,"database":"d","table":"t","type":"INS')
    send(desk, 8)
    page.wait(f"{MESSAGES} === 1", 60)
    desk.until(lambda: press(page, "Discard all…"), CONFIRM)
    assert "discarded" in became(desk, reason="cut off", typed=desk.feed.name)
    page.wait("document.querySelector('.quarantine').innerText.includes('No message waits for a decision')")
    found = desk.serving.ask("GET", f"/{desk.feed.name}/quarantine")["items"]
    assert sorted((one["state"], one["note"]) for one in found) == [("discarded", "cut off"), ("replayed", "")]


def became(desk: Desk, **fields: str) -> str:
    """What became of the one message that was decided about."""
    desk.answer(**fields)
    desk.page.wait("document.getElementById('confirm-result').childElementCount === 1")
    found = desk.page.text("#confirm-result")
    desk.page.click("#confirm-no")
    return found


def looks_for_messages(desk: Desk) -> None:
    page, topic = desk.page, desk.feed.topic
    desk.until(lambda: page.click(f".topics button[aria-label='Messages of {topic}']"), SHEET)
    page.wait(f"{SHEET} && document.querySelectorAll('.looked tbody tr').length > 3")
    assert "unreadable" in page.text(".looked")
    fill(page, "look-table", "d.t")
    fill(page, "look-key", "2")
    page.press("Enter")
    page.wait("document.querySelectorAll('.looked tbody tr').length === 2")  # what can't be decoded may be about it too
    page.run(
        "[...document.querySelectorAll('.looked tbody tr')].find(row => row.innerText.includes('insert'))"
        ".querySelector('button').setAttribute('data-pressed', '')"
    )
    page.click("button[data-pressed]")
    page.wait("document.querySelector('.content pre') !== null")
    assert '"two"' in page.text(".content pre")
    page.press("Escape")
    page.wait(f"!{SHEET}")


def deletes_with_its_progress(desk: Desk) -> None:
    page, feed = desk.page, desk.feed
    desk.until(lambda: page.click("#feed-delete"), CONFIRM)
    page.click("#confirm-option")
    desk.answer(typed=feed.name)
    desk.carried_out()
    page.wait("document.querySelector('.verdict')?.innerText.includes('no changefeed yet')")
    assert not desk.file.exists()
    assert not feed.reached(1)
    assert desk.rows() == [(1, 1), (2, 2), (3, None)]


@pytest.mark.by_turns(9)
def test_all_that_operators_do(desk: Desk) -> None:
    create(desk)
    corrects_the_topics(desk)
    edits_with_a_difference(desk)
    retires_and_returns(desk)
    decides_about_ddls(desk)
    decides_about_messages(desk)
    looks_for_messages(desk)
    deletes_with_its_progress(desk)
    assert [one for one in desk.page.complaints() if "Failed to load resource" not in one] == []
