"""`row` consistency: tasks write a window in two phases, and what a crash leaves is done again before all else."""

from collections.abc import Callable
from dataclasses import replace

import pytest

from consumer.pipeline.round import Round
from ordering.errors import LeadershipLostError
from ordering.events import RowOp
from sinks.bookkeeping.write_permits import Attempt, Phase
from sinks.rows.chunk import Chunk
from sinks.steps import Step
from tests.simulation.faults import Crash
from tests.simulation.memory import TextEncoder
from tests.simulation.script import CREATE, Script
from tests.simulation.world import BY_TASKS, CHANGEFEED, config_of

UNIQUE = CREATE.replace(",PRIMARY", ",UNIQUE `u`(`v`),PRIMARY")
ROW = config_of("row")


def dying_at(wanted: Step) -> Callable[[Step], None]:
    def die(step: Step) -> None:
        if step is wanted:
            raise Crash

    return die


def torn(script: Script, step: Step) -> None:
    """Die at a step."""
    script.restarted(dying_at(step))
    with pytest.raises(Crash):
        script.run()


def begun(sql: str = CREATE) -> Script:
    """One table, with row 1 in it; checkpoint 9."""
    script = Script(ROW, tuning=BY_TASKS)
    script.ddl(1, sql)
    script.row(5, 1, "a")
    script.mark(9)
    assert script.run().checkpoint_ts == 9
    return script


def steps_of(script: Script) -> list[Step]:
    steps: list[Step] = []
    script.restarted(steps.append)
    script.run()
    return [step for step in steps if step in {Step.WINDOW_RECORDED, Step.DELETES_DONE, Step.WRITES_DONE}]


def test_a_window_of_inserts_alone_has_one_phase() -> None:
    script = begun()
    script.row(12, 2)
    script.mark(15)
    assert steps_of(script) == [Step.WINDOW_RECORDED, Step.WRITES_DONE]
    assert script.rows() == {"1": "a", "2": "x"}


def test_deletes_come_first_where_a_row_goes_or_where_the_table_has_another_unique_key() -> None:
    gone, unique = begun(), begun(UNIQUE)
    gone.delete(12, 1)
    unique.row(12, 2)
    for script in (gone, unique):
        script.mark(15)
        assert steps_of(script) == [Step.WINDOW_RECORDED, Step.DELETES_DONE, Step.WRITES_DONE]
    assert gone.rows() == {}
    assert unique.rows() == {"1": "a", "2": "x"}


def test_a_window_without_rows_is_not_recorded() -> None:
    script = begun()
    script.mark(15)
    assert steps_of(script) == []
    assert script.stored.checkpoint_ts == 15


@pytest.mark.parametrize("limit", [1, 1_000_000])
@pytest.mark.parametrize("step", [Step.WINDOW_RECORDED, Step.DELETES_DONE, Step.WRITES_DONE])
def test_exactly_the_window_that_was_begun_is_done_again(step: Step, limit: int) -> None:
    script = begun(UNIQUE)
    for number in range(2, 9):
        script.row(10 + number, number, f"v{number}")
    script.row(19, 1, "v2", type="UPDATE", old=[{"v": "a"}])
    script.row(19, 2, "a", type="UPDATE", old=[{"v": "v2"}])
    script.mark(20)
    torn(script, step)
    assert script.stored.window is not None
    assert (script.stored.checkpoint_ts, script.stored.window.high) == (9, 20)
    script.row(22, 1, "b", type="UPDATE", old=[{"v": "v2"}])
    script.mark(30)
    script.config = script.source.config = config_of("row", window_rows=limit)
    script.restarted()
    assert Round(script.session).run()
    assert (script.stored.checkpoint_ts, script.stored.window) == (20, None)
    assert script.rows() == {"1": "v2", "2": "a", **{str(n): f"v{n}" for n in range(3, 9)}}
    assert script.run().checkpoint_ts == 30
    assert script.rows()["1"] == "b"
    assert script.stored.counts.events == 11


@pytest.mark.parametrize("consistency", ["snapshot", "transaction"])
def test_a_window_that_was_begun_is_ended_before_another_consistency_counts(consistency: str) -> None:
    script = begun()
    script.row(12, 2)
    script.row(13, 2, "y", type="UPDATE", old=[{"v": "x"}])
    script.mark(15)
    torn(script, Step.WRITES_DONE)
    script.config = script.source.config = config_of(consistency)
    script.restarted()
    assert Round(script.session).run()
    assert (script.stored.checkpoint_ts, script.stored.window) == (15, None)
    assert script.rows() == {"1": "a", "2": "y"}


def test_what_a_lost_attempt_wrote_is_deleted_before_it_is_inserted_again() -> None:
    """A chunk is a transaction, and inserts of a table with another unique key replace nothing."""
    script = begun(UNIQUE)
    script.tuning = replace(BY_TASKS, chunk_rows=1)
    for number in range(2, 30):
        script.row(10 + number, number, f"v{number}")
    script.mark(50)
    script.faults.rates, script.faults.left = {"attempt lost": 1.0}, 100
    script.restarted()
    assert script.run().checkpoint_ts == 50
    assert "attempt lost" in script.faults.happened
    assert script.rows() == {"1": "a", **{str(n): f"v{n}" for n in range(2, 30)}}


def attempt_of(script: Script, number: int) -> tuple[Attempt, Chunk]:
    """An attempt that may write now, and a row for it."""
    lease = script.session.lease
    name, _ = script.disk.permits.get((CHANGEFEED, 0), ("", 0))
    phase = Phase(CHANGEFEED, name or "phase", 1)
    if not name:
        script.session.target.save(script.stored, lease, phase)
    table = next(iter(script.disk.tables))
    payload = TextEncoder().encode(script.disk.tables[table].schema(table).columns, [["7", "zombie"]])
    return Attempt(phase, 0, number), Chunk(table, RowOp.WRITE, ("id", "v"), 1, payload)


def test_only_the_latest_attempt_writes() -> None:
    script = begun()
    lost, chunk = attempt_of(script, 4)
    retry = replace(lost, number=5)
    one, other = script.session.target.opener()(), script.session.target.opener()()
    assert not one.take_over(lost)
    assert other.take_over(retry)
    with pytest.raises(LeadershipLostError, match="another one does"):
        one.write_part(lost, [chunk])
    with pytest.raises(LeadershipLostError):
        one.take_over(lost)
    assert other.write_part(retry, [chunk]).rows == 1


def test_nobody_writes_behind_the_end_of_a_phase_or_under_a_new_leader() -> None:
    script = begun()
    lost, chunk = attempt_of(script, 4)
    target = script.session.target.opener()()
    target.take_over(lost)
    script.session.target.save(script.stored, script.session.lease)
    with pytest.raises(LeadershipLostError):
        target.write_part(lost, [chunk])
    lost, chunk = attempt_of(script, 4)
    target.take_over(lost)
    old = script.session
    script.restarted()
    with pytest.raises(LeadershipLostError):
        target.write_part(lost, [chunk])
    with pytest.raises(LeadershipLostError, match="has a new leader"):
        old.target.save(script.stored, old.lease, lost.phase)
    assert script.rows() == {"1": "a"}


def test_an_attempt_of_a_phase_that_is_over_takes_no_part_of_the_next() -> None:
    """It was lost before it took its part over, and its number is as high as any of the next phase."""
    script = begun()
    lost, chunk = attempt_of(script, 4)
    phase = replace(lost.phase, name="next")
    script.session.target.save(script.stored, script.session.lease, phase)
    late, task = script.session.target.opener()(), script.session.target.opener()()
    with pytest.raises(LeadershipLostError, match="its phase is over"):
        late.take_over(lost)
    assert not task.take_over(replace(lost, phase=phase))
    with pytest.raises(LeadershipLostError, match="its phase is over"):
        late.write_part(lost, [chunk])
    assert task.write_part(replace(lost, phase=phase), [chunk]).rows == 1
