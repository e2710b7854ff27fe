"""What an operation may take for granted of a changefeed: that it runs, and whose name it has."""

import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from consumer.serve import operations as doing
from consumer.serve.api.errors import ConflictError, RequestError
from consumer.serve.changefeed import Feed
from consumer.serve.fleet import Fleet
from consumer.serve.metrics import FleetCollector
from consumer.serve.operations import Operations
from consumer.serve.status import status_of
from ordering.errors import ConfigError
from tests.service.lab import eventually
from tests.serving.test_serving_rules import TEXT

CHANGE = {"limits": {"window-rows": 5000}}


class Runs:
    """Runs whose first one does not end before it may, though it was asked to stop."""

    def __init__(self) -> None:
        self.may_end, self.files = threading.Event(), list[str]()

    def one(self, feed: Feed, stopping: threading.Event) -> None:
        self.files.append(feed.path.name)
        (self.may_end if len(self.files) == 1 else stopping).wait(30)


@pytest.fixture
def runs(monkeypatch: pytest.MonkeyPatch) -> Iterator[Runs]:
    found = Runs()

    def one_run(feed: Feed, stopping: threading.Event) -> None:
        found.one(feed, stopping)

    monkeypatch.setattr(Feed, "_one_run", one_run)
    yield found
    found.may_end.set()


@pytest.fixture
def running(fleet: Fleet, folder: Path, runs: Runs, monkeypatch: pytest.MonkeyPatch) -> Feed:
    """A changefeed that runs; whoever wants it to stop gives up soon."""
    monkeypatch.setattr(doing, "STOP_S", 0.05)
    (folder / "x.toml").write_text(TEXT.replace("/tmp/x", str(folder / "target")))
    feed = fleet.add(folder / "x.toml")
    feed.start()
    eventually("it runs", lambda: bool(runs.files))
    return feed


@pytest.fixture
def paused(fleet: Fleet, running: Feed) -> Feed:
    """A changefeed that was paused, while its last window still ends."""
    Operations(fleet).pause(running)
    assert (running.is_running, running.goes_on, running.state) == (True, False, "stopped")
    return running


def test_one_that_still_ends_is_not_resumed_before_it_has(fleet: Fleet, paused: Feed, runs: Runs) -> None:
    with pytest.raises(ConflictError, match="did not end"):
        Operations(fleet).resume(paused)
    assert fleet.settings.paused == [paused.name], "it stays paused, also across a restart"
    runs.may_end.set()
    eventually("it has ended", lambda: not paused.is_running)
    Operations(fleet).resume(paused)
    eventually("it runs again", lambda: len(runs.files) == 2)
    assert (paused.goes_on, fleet.settings.paused) == (True, [])


def test_a_resume_waits_for_the_end(fleet: Fleet, paused: Feed, runs: Runs, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(doing, "STOP_S", 30.0)
    threading.Timer(0.1, runs.may_end.set).start()
    Operations(fleet).resume(paused)
    eventually("it runs again", lambda: len(runs.files) == 2)


def test_a_change_does_not_start_one_that_is_paused_and_still_ends(
    fleet: Fleet, paused: Feed, runs: Runs, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(doing, "STOP_S", 30.0)
    threading.Timer(0.1, runs.may_end.set).start()
    assert not Operations(fleet).change(paused, CHANGE).restarted
    assert (paused.is_running, paused.state, len(runs.files)) == (False, "stopped", 1)


@pytest.fixture
def set_aside(fleet: Fleet, running: Feed) -> Feed:
    """A changefeed that a change has asked to stop, which gave up waiting for that."""
    with pytest.raises(ConflictError, match="did not end"):
        Operations(fleet).change(running, CHANGE)
    return running


def test_a_change_that_is_tried_again_starts_what_it_has_stopped(fleet: Fleet, set_aside: Feed, runs: Runs) -> None:
    with pytest.raises(ConflictError, match="did not end"):
        Operations(fleet).change(set_aside, CHANGE)
    runs.may_end.set()
    eventually("it has ended", lambda: not set_aside.is_running)
    assert Operations(fleet).preview(set_aside, set_aside.path.read_text() + "\n[limits]\nwindow-rows = 9\n").restarts
    assert Operations(fleet).change(set_aside, CHANGE).restarted
    eventually("it runs again", lambda: len(runs.files) == 2)
    assert set_aside.goes_on


@pytest.mark.parametrize("how", ["paused", "failed"])
def test_a_change_that_is_tried_again_starts_none_that_waits_for_a_person(
    fleet: Fleet, set_aside: Feed, runs: Runs, how: str
) -> None:
    if how == "paused":
        Operations(fleet).pause(set_aside)
    runs.may_end.set()
    eventually("it has ended", lambda: not set_aside.is_running)
    if how == "failed":
        set_aside.fail(RequestError("broken", where="x"))
    assert not Operations(fleet).change(set_aside, CHANGE).restarted
    assert (set_aside.is_running, len(runs.files)) == (False, 1)


@pytest.mark.parametrize("names", [("a.toml", "orders.toml"), ("z.toml", "orders.toml")])
def test_a_broken_file_takes_no_healthy_changefeed_out(
    fleet: Fleet, folder: Path, runs: Runs, names: tuple[str, str]
) -> None:
    """The broken file is called as the other's changefeed; it is met before it, and after it."""
    good, broken = names
    text = TEXT.replace("/tmp/x", str(folder / "target"))
    (folder / good).write_text(text.replace('"x"', '"orders"', 1))
    (folder / broken).write_text('changefeed = "orders"\n[source\n')
    fleet.open()
    assert {name: feed.path.name for name, feed in fleet.feeds.items()} == {"orders": good, "orders.toml": broken}
    eventually("the healthy one runs", lambda: runs.files == [good])
    assert fleet.feed("orders.toml").state == "failed"
    (folder / broken).write_text(text.replace('"x"', '"other"', 1))
    Operations(fleet).resume(fleet.feed("orders.toml"))
    assert set(fleet.feeds) == {"orders", "other"}


@pytest.fixture
def doubled(fleet: Fleet, folder: Path, runs: Runs) -> tuple[Feed, Feed]:
    """A changefeed that runs, and a file that has its id, too, with other rules."""
    text = TEXT.replace("/tmp/x", str(folder / "target"))
    (folder / "a.toml").write_text(text)
    (folder / "b.toml").write_text(text + '\n[filter]\nrules = ["other.*"]\n')
    fleet.open()
    eventually("the first one runs", lambda: runs.files == ["a.toml"])
    return fleet.feed("x"), fleet.feed("b")


def test_what_is_done_with_a_file_is_not_done_to_the_changefeed_whose_id_it_has(
    fleet: Fleet, doubled: tuple[Feed, Feed], runs: Runs
) -> None:
    real, other = doubled
    before = other.path.read_text()
    with pytest.raises(ConflictError, match="which is another file's"):
        Operations(fleet).change(other, CHANGE)
    assert other.path.read_text() == before
    with pytest.raises(ConfigError, match="two files hold"):
        Operations(fleet).resume(other)
    with pytest.raises(ConflictError, match="which is another file's"):
        Operations(fleet).delete(other, progress=True)
    with pytest.raises(ConflictError, match="which is another file's"), Operations(fleet).stopped(other):
        pass
    assert (fleet.feeds, real.goes_on, runs.files) == ({"x": real, "b": other}, True, ["a.toml"])
    Operations(fleet).delete(other, progress=False)
    assert (fleet.feeds, real.goes_on) == ({"x": real}, True)


def test_a_file_with_the_id_of_another_tells_of_itself(fleet: Fleet, doubled: tuple[Feed, Feed]) -> None:
    """Not of the other one: the page did to that what it was told to do to this one."""
    real, other = doubled
    with pytest.raises(ConfigError, match="two files hold"):
        Operations(fleet).resume(other)
    assert [status_of(feed).changefeed for feed in doubled] == ["x", "b"]
    assert (other.knowing, other.waiters, real.knowing is not None) == (None, None, True)
    states = next(one for one in FleetCollector(fleet).collect() if one.name.endswith("changefeed_state"))
    assert {sample.labels["changefeed"] for sample in states.samples} == {"x", "b"}
    assert status_of(other).error is not None


def test_a_file_with_the_id_of_another_takes_no_third_ones_place(fleet: Fleet, folder: Path, runs: Runs) -> None:
    text = TEXT.replace("/tmp/x", str(folder / "target"))
    for name, key in (("a", "x"), ("orders", "x"), ("z", "orders")):
        (folder / f"{name}.toml").write_text(text.replace('"x"', f'"{key}"', 1))
    fleet.open()
    placed = {name: feed.path.name for name, feed in fleet.feeds.items()}
    assert placed == {"x": "a.toml", "orders": "z.toml", "orders.toml": "orders.toml"}
    eventually("both healthy ones run", lambda: sorted(runs.files) == ["a.toml", "z.toml"])


def test_one_that_made_room_while_its_file_was_read_takes_no_place(
    fleet: Fleet, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = TEXT.replace("/tmp/x", str(folder / "target"))
    (folder / "orders.toml").write_text('changefeed = "orders"\n[source\n')
    broken = fleet.add(folder / "orders.toml")
    (folder / "orders.toml").write_text(text.replace('"x"', '"other"', 1))
    (folder / "z.toml").write_text(text.replace('"x"', '"orders"', 1))
    load, begun = Feed.load, list[Feed]()

    def loaded(feed: Feed) -> None:
        if feed is broken and not begun:
            begun.append(fleet.add(folder / "z.toml"))
        load(feed)

    monkeypatch.setattr(Feed, "load", loaded)
    fleet.reload(broken)
    assert fleet.feeds == {"orders": begun[0], "other": broken}


def test_a_change_that_the_files_library_can_not_do_is_refused(fleet: Fleet, folder: Path) -> None:
    """It fails where all dotted keys of a table go; that is an answer, not a crash."""
    before = "limits.writers = 3\nlimits.window-rows = 500\n" + TEXT.replace("/tmp/x", str(folder / "target"))
    (folder / "x.toml").write_text(before)
    feed = fleet.add(folder / "x.toml")
    with pytest.raises(RequestError, match="can't be written as TOML"):
        Operations(fleet).change(feed, {"limits": {"writers": None, "window-rows": None}})
    assert (folder / "x.toml").read_text() == before
