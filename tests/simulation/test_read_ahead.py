"""A backlog is read a window ahead of what is written: what comes of it is what would come without."""

from dataclasses import dataclass, field, fields, replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from consumer.pipeline.round import Round
from consumer.pipeline.session import Session
from consumer.source.window_ahead import WindowAhead
from ordering.errors import InputError, LeadershipLostError
from ordering.events import Partition, TableName
from ordering.progress import Counts, PartitionProgress, Progress
from sinks.ddl.parse.statement import read_statement
from sinks.steps import Step
from tests.simulation.faults import Crash
from tests.simulation.memory import execute
from tests.simulation.script import CREATE, Script
from tests.simulation.world import SMALL, config_of

KEYS = 40


def backlog(consistency: str = "snapshot", *, ahead: bool = True) -> Script:
    """A table, and 40 rows of it that wait, of which a window holds some; each row is written twice."""
    tuning = replace(SMALL, reads_ahead=ahead)
    script = Script(config_of(consistency, window_rows=24), partitions=2, tuning=tuning)
    script.jobs.buckets, script.jobs.tasks = 2, 2
    script.ddl(1, CREATE)
    script.mark(2)
    script.run()
    for at in range(2 * KEYS):
        key = at % KEYS
        old = {"type": "UPDATE", "old": [{"id": str(key), "v": f"v{key}"}]} if at >= KEYS else {}
        script.row(10 + at, key, f"v{at}", p=at % 2, **old)
        if at % 4 == 3:
            script.mark(10 + at)
    return script


def rounds(session: Session) -> None:
    while Round(session).run():
        pass


def expected() -> dict[str, str]:
    return {str(key): f"v{key + KEYS}" for key in range(KEYS)}


def test_a_backlog_is_read_ahead_and_comes_out_the_same() -> None:
    script, plain = backlog(), backlog(ahead=False)
    stored = script.run()
    assert script.jobs.ahead["taken"] == script.jobs.ahead["begun"] >= 3
    same = {name: getattr(stored, name) for name in ("ledger", "ledger_key", "ledger_terms")}
    assert replace(plain.run(), **same) == stored
    assert script.rows() == plain.rows() == expected()
    assert plain.jobs.ahead == {}


@pytest.mark.parametrize("step", Step)
def test_dying_while_a_window_is_read_ahead_changes_nothing_in_the_end(step: Step) -> None:
    script, left = backlog(), [step] * 3

    def die(at: Step) -> None:
        if at in left and script.jobs.ahead["begun"]:
            left.remove(at)
            raise Crash(at)

    script.restarted(die)
    while True:
        try:
            script.run()
            break
        except Crash:
            script.restarted(die)
    assert (script.rows(), script.stored.checkpoint_ts) == (expected(), 10 + 2 * KEYS - 1)
    assert script.stored.counts.events == 2 * KEYS


def test_nothing_is_read_ahead_where_all_that_waits_fits_a_window() -> None:
    script = backlog()
    script.config = script.source.config = config_of(window_rows=1_000_000)
    script.restarted()
    script.run()
    assert (script.rows(), script.jobs.ahead) == (expected(), {})


@pytest.mark.parametrize("consistency", ["transaction", "row"])
def test_only_a_snapshot_is_read_ahead(consistency: str) -> None:
    script = backlog(consistency)
    script.run()
    assert (script.rows(), script.jobs.ahead) == (expected(), {})


def test_what_follows_on_a_ddl_is_not_read_before_it() -> None:
    script = backlog()
    script.ddl(100, "ALTER TABLE `t` ADD COLUMN `w` INT")
    for at in range(KEYS):
        script.row(101 + at, at, data=[{"id": str(at), "v": "z", "w": "1"}])
        script.mark(101 + at)
    found = {}

    def observe(step: Step) -> None:
        found.setdefault(step, []).append(script.session.ahead is not None)

    script.restarted(observe)
    script.run()
    assert any(found[Step.COMMITTED])
    assert not any(found[Step.DDL_RECORDED])
    assert script.rows() == dict.fromkeys(expected(), "z")


@pytest.mark.parametrize("once", [True, False])
def test_what_is_wrong_with_a_message_is_told_once_all_before_it_is_applied(*, once: bool) -> None:
    found = []
    for script in (backlog(), backlog(ahead=False)):
        script.log.held[Partition("t", 1)][30] = b"{"
        with pytest.raises(InputError) as error:
            script.run(once=once)
        found.append((str(error.value), script.stored.checkpoint_ts))
        script.session.end()
    assert found[0] == found[1]
    assert "offset=30" in found[0][0]


def test_what_kafka_refuses_ahead_is_asked_again() -> None:
    script = backlog()

    def observe(step: Step) -> None:
        script.faults.rates, script.faults.left = {"kafka hiccup": float(step is Step.REDUCED)}, 1

    script.restarted(observe)
    assert script.run().checkpoint_ts == 10 + 2 * KEYS - 1
    assert "kafka hiccup" in script.faults.happened
    assert script.rows() == expected()


def test_who_is_replaced_while_it_writes_leaves_nothing_running() -> None:
    script, old = backlog(), []

    def replaced(step: Step) -> None:
        if step is Step.REDUCED and not old:
            old.append(script.session)
            script.restarted()

    session = script.restarted(replaced)
    with pytest.raises(LeadershipLostError):
        rounds(session)
    assert script.jobs.ahead == {"begun": 1}
    session.end()
    assert script.jobs.ahead == {"begun": 1, "dropped": 1}
    assert script.run().checkpoint_ts == 10 + 2 * KEYS - 1
    assert script.rows() == expected()


def test_what_was_planned_from_another_progress_is_dropped() -> None:
    script = backlog()

    def observe(step: Step) -> None:
        session = script.session
        if step is Step.PUBLISHED and session.ahead is not None:
            session.progress = replace(session.progress, time_zone="+08:00")

    script.restarted(observe)
    script.run()
    assert script.jobs.ahead["dropped"] == 1
    assert script.rows() == expected()


def test_what_was_read_with_other_handle_keys_is_dropped() -> None:
    script = backlog()

    def observe(step: Step) -> None:
        if step is Step.PROBED and script.session.ahead is not None and TableName("d", "o") not in script.disk.tables:
            execute(script.disk, read_statement(CREATE.replace("`t`", "`o`")), "d")
            script.session.target.forget_catalog()

    script.restarted(observe)
    script.run()
    assert script.jobs.ahead["dropped"] == 1
    assert script.rows() == expected()


@dataclass
class Nothing:
    """Stands for what `follows` does not look at."""

    window: Any = None
    ended: list[int] = field(default_factory=list)


_PARTITION = Partition("t", 0)
_OTHER: dict[str, st.SearchStrategy[Any]] = {
    "checkpoint_ts": st.sampled_from([7, 8]),
    "base_ts": st.sampled_from([7, 8]),
    "start_ts": st.sampled_from([1, 2]),
    "partitions": st.sampled_from([{_PARTITION: PartitionProgress(*at)} for at in ((0, 3), (1, 3), (1, 4))]),
    "topics": st.just({}),
    "executed": st.sampled_from([frozenset(), frozenset(["a"])]),
    "filter_digest": st.sampled_from(["", "f"]),
    "ledger": st.sampled_from(["", "l"]),
    "ledger_key": st.sampled_from(["", "k"]),
    "ledger_terms": st.sampled_from([(), ((1, "x"),)]),
    "window": st.none(),
    "loading_ts": st.sampled_from([0, 5]),
    "time_zone": st.sampled_from(["", "UTC"]),
    "counts": st.builds(Counts, events=st.integers(0, 2), rows_written=st.integers(0, 2)),
    "drift": st.sampled_from([{}, {TableName("d", "t"): (1, 0)}]),
}
_PROGRESS = st.fixed_dictionaries(_OTHER).map(lambda values: Progress(**values))


@given(_PROGRESS, _PROGRESS, st.sampled_from([None, {_PARTITION: 5}]), st.sampled_from([None, {_PARTITION: 5}]))
def test_it_follows_on_the_progress_that_it_was_planned_from_and_on_no_other(
    expected: Progress, found: Progress, caps: dict[Partition, int] | None, now: dict[Partition, int] | None
) -> None:
    ahead = WindowAhead(expected, caps, None, 0.0, Nothing(), None)  # type: ignore[arg-type]
    names = [one.name for one in fields(Progress) if one.name not in ("counts", "drift")]
    same = all(getattr(expected, name) == getattr(found, name) for name in names) and caps == now
    assert ahead.follows(found, now) is same
    assert ahead.follows(replace(expected, counts=Counts(events=99), drift={}), caps)
