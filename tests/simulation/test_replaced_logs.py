"""Logs that are replaced while a window is read, and grow beyond its ends: nothing of it is committed (R8, R12)."""

from collections.abc import Callable, Mapping
from typing import Any

import pytest

from ordering.errors import InputError
from ordering.events import Partition
from sinks.steps import Step
from tests.simulation.faults import Crash
from tests.simulation.jobs import LocalJobs
from tests.simulation.log import FakeLog
from tests.simulation.script import CREATE, Script
from tests.simulation.world import BY_TASKS, SMALL, config_of

ONE, TWO = Partition("t", 0), Partition("t", 1)
CONSISTENCIES = ("snapshot", "transaction", "row")


def begun(consistency: str = "snapshot", *, window_rows: int = 1_000_000) -> Script:
    """Two rows, applied at 9; tasks read and order in parallel."""
    tuning = BY_TASKS if consistency == "row" else SMALL
    made = Script(config_of(consistency, window_rows), partitions=2, tuning=tuning)
    made.jobs.buckets = made.jobs.tasks = 3
    made.ddl(1, CREATE)
    made.row(5, 1)
    made.row(6, 2, p=1)
    made.mark(9)
    assert made.run().checkpoint_ts == 9
    return made


def once(step: Step, act: Callable[[], object]) -> Callable[[Step], None]:
    """Do something at a step, the first time."""
    left = [act]

    def observe(now: Step) -> None:
        if now is step and left:
            left.pop()()

    return observe


def promised(script: Script, rows: int = 10) -> None:
    """Rows up to 30."""
    for key in range(rows):
        script.row(20, 10 + key, p=key % 2)
    script.mark(30)


def grown(script: Script, first: int = 100, rows: int = 30) -> None:
    """More than was there: the log ends behind each range's stop again."""
    for key in range(rows):
        script.row(40, first + key, p=key % 2)
    script.mark(50)


def refused(script: Script, words: str) -> None:
    """Whatever is tried, nothing more is applied."""
    for _ in range(2):
        with pytest.raises(InputError, match=words) as caught:
            script.run()
        assert "topic=t" in str(caught.value)
        assert script.stored.checkpoint_ts == 9
        assert script.rows() == {"1": "x", "2": "x"}
        script.restarted()


@pytest.mark.parametrize("consistency", CONSISTENCIES)
@pytest.mark.parametrize("lost", [1, 3, 6])
def test_an_end_that_is_lost_before_a_range_is_read(consistency: str, lost: int) -> None:
    script = begun(consistency)
    promised(script)

    def lose() -> None:
        script.log.elect(TWO, lost=lost)
        grown(script)

    script.restarted(once(Step.PLANNED, lose))
    refused(script, "lost its end")


@pytest.mark.parametrize("consistency", CONSISTENCIES)
def test_a_topic_that_is_made_anew_before_a_range_is_read(consistency: str) -> None:
    script = begun(consistency)
    promised(script)

    def made_anew() -> None:
        script.log.make_anew("t")
        grown(script)

    script.restarted(once(Step.PLANNED, made_anew))
    refused(script, "deleted and created again")


@pytest.mark.parametrize("consistency", CONSISTENCIES)
def test_a_log_that_is_replaced_before_segments_are_read(consistency: str) -> None:
    script = begun(consistency)
    for number in range(3):
        script.ddl(20 + 10 * number, f"ALTER TABLE `t` ADD COLUMN `c{number}` INT")
        for key in range(4):
            script.row(21 + 10 * number, 10 + 4 * number + key, p=1)
    script.mark(60)

    def lose() -> None:
        script.log.elect(TWO, lost=3)
        grown(script)

    script.restarted(once(Step.PLANNED, lose))
    refused(script, "lost its end")


@pytest.mark.parametrize("what", ["end", "topic"])
def test_a_log_that_is_replaced_before_a_window_is_read_ahead(what: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The driver has had the offer of the next window; its tasks read what has taken its place."""
    script = Script(config_of(window_rows=24), partitions=2, tuning=SMALL)
    script.jobs.buckets = script.jobs.tasks = 2
    script.ddl(1, CREATE)
    script.mark(2)
    script.run()
    for key in range(120):
        script.row(10 + key, key, p=key % 2)
        if key % 4 == 3:
            script.mark(10 + key)
    made, left = LocalJobs.job, [True]

    def replaced(jobs: LocalJobs, *arguments: Any) -> Any:
        if script.jobs.ahead["taken"] == 1 and left:
            left.pop()
            if what == "topic":
                script.log.make_anew("t")
            else:
                script.log.elect(TWO, lost=len(script.log.held[TWO]) - script.at(1) - 2)
            grown(script, first=1_000, rows=400)
        return made(jobs, *arguments)

    monkeypatch.setattr(LocalJobs, "job", replaced)
    with pytest.raises(InputError, match=r"lost its end|created again"):
        script.run()
    assert not left
    reached = script.stored.checkpoint_ts
    assert 10 < reached < 129
    assert script.rows() == {str(key): "x" for key in range(120) if 10 + key <= reached}


def test_a_window_that_a_crash_left_is_not_done_again_from_another_log() -> None:
    """In `row` it is recorded with its offsets, and with the leaders that named them."""
    script = begun("row")
    promised(script)

    def die() -> None:
        raise Crash(Step.WINDOW_RECORDED)

    script.restarted(once(Step.WINDOW_RECORDED, die))
    with pytest.raises(Crash):
        script.run()
    assert script.stored.window is not None
    script.log.elect(TWO, lost=4)
    grown(script)
    script.restarted()
    refused(script, "lost its end")


def test_leaders_that_change_and_lose_nothing_are_no_error() -> None:
    script = begun()
    for number in range(3):
        script.row(20 + 10 * number, 10 + number, p=1)
        script.mark(25 + 10 * number)

        def elect(first: int = 200 + 100 * number, ts: int = 26 + 10 * number) -> None:
            script.log.elect(TWO)
            script.row(ts, first, p=1)

        script.restarted(once(Step.PLANNED, elect))
        script.run()
    script.mark(60)
    assert script.run().checkpoint_ts == 60
    assert {"10", "11", "12", "200", "300", "400"} <= script.rows().keys()


def test_who_lost_what_no_range_was_promised_is_no_error() -> None:
    script = begun()
    promised(script)

    def elect() -> None:
        grown(script)
        script.log.elect(TWO, lost=9)

    script.restarted(once(Step.PLANNED, elect))
    assert script.run().checkpoint_ts == 30
    assert len(script.rows()) >= 12


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[Mapping[Partition, int]]:
    """What the leaders are asked of epochs, from now on."""
    found: list[Mapping[Partition, int]] = []
    told = FakeLog.epoch_ends

    def counted(log: FakeLog, epochs: Mapping[Partition, int]) -> Any:
        found.extend([epochs] * bool(epochs))
        return told(log, epochs)

    monkeypatch.setattr(FakeLog, "epoch_ends", counted)
    return found


def test_nobody_is_asked_where_the_messages_tell(asked: list[Mapping[Partition, int]]) -> None:
    script = begun()
    for number in range(5):
        script.row(20 + 10 * number, 10 + number, p=1)
        script.mark(25 + 10 * number)
        assert script.run().checkpoint_ts == 25 + 10 * number
    assert asked == []


def test_of_a_range_that_ends_in_a_transaction_s_mark_the_leader_is_asked(
    asked: list[Mapping[Partition, int]],
) -> None:
    script = begun()
    promised(script)
    script.log.begin(TWO)
    script.log.commit_open(TWO)
    assert script.run().checkpoint_ts == 30
    assert asked == [{TWO: 0}]
