"""Only the last leader writes; what a leader could not finish the next one does."""

import pytest

from consumer.pipeline.round import Round
from ordering.errors import LeadershipLostError, TargetUnreachableError
from sinks.leadership import EpochsAlone
from sinks.steps import Step
from sinks.target import _writer
from tests.simulation.faults import Crash
from tests.simulation.script import CREATE, Script
from tests.simulation.world import BY_TASKS, config_of


@pytest.fixture
def script() -> Script:
    script = Script()
    script.ddl(1, CREATE)
    script.mark(1)
    script.run()
    script.row(5, 1)
    script.mark(9)
    return script


def test_a_leader_that_was_replaced_writes_nothing_more(script: Script) -> None:
    old, new = script.session, script.restarted()
    with pytest.raises(LeadershipLostError):
        Round(old).run()
    assert script.rows() == {}
    assert Round(new).run()
    assert script.rows() == {"1": "x"}


def test_a_leader_that_was_replaced_executes_no_ddl(script: Script) -> None:
    script.run()
    script.ddl(12, "DROP TABLE `d`.`t`")
    script.mark(15)
    old = script.session

    def replaced(step: Step) -> None:
        if step is Step.COMMITTED:
            script.restarted()

    old.observe = replaced
    with pytest.raises(LeadershipLostError):
        Round(old).run()
    assert script.rows() == {"1": "x"}
    script.run()
    assert not script.disk.tables


def test_a_commit_whose_answer_got_lost_is_not_done_again(script: Script) -> None:
    script.faults.rates, script.faults.left = {"answer of a commit lost": 1.0}, 1
    with pytest.raises(TargetUnreachableError):
        Round(script.session).run()
    assert script.rows() == {"1": "x"}
    before = script.stored
    script.restarted()
    assert not Round(script.session).run()
    assert script.stored == before


STEPS = [
    ("row" if step in {Step.WINDOW_RECORDED, Step.DELETES_DONE, Step.WRITES_DONE} else "snapshot", step)
    for step in Step
]


@pytest.mark.parametrize(("consistency", "step"), [*STEPS, ("row", Step.COMMITTED)])
def test_dying_at_any_step_changes_nothing_in_the_end(consistency: str, step: Step) -> None:
    whole, torn = (Script(config_of(consistency), tuning=BY_TASKS) for _ in range(2))
    for script in (whole, torn):
        script.ddl(1, CREATE)
        script.row(5, 1)
        script.ddl(6, "ALTER TABLE `t` ADD COLUMN `w` INT")
        script.row(7, 2, data=[{"id": "2", "v": "y", "w": "1"}])
        script.delete(8, 1, data=[{"id": "1", "v": "x", "w": None}])
        script.mark(9)
    died = []

    def die(at: Step) -> None:
        if at is step and len(died) < 3:
            died.append(at)
            raise Crash(at)

    rounds = 0
    torn.restarted(die)
    while rounds < 20:
        rounds += 1
        try:
            torn.run()
            break
        except Crash:
            torn.restarted(die)
    whole.run()
    assert died
    assert torn.disk.tables == whole.disk.tables
    assert torn.stored.checkpoint_ts == whole.stored.checkpoint_ts == 9
    assert torn.stored.partitions == whole.stored.partitions


def test_a_unit_that_failed_leaves_no_transaction_open(script: Script) -> None:
    def die(step: Step) -> None:
        if step is Step.ROWS_WRITTEN:
            raise Crash

    session = script.restarted(die)
    with pytest.raises(Crash):
        Round(session).run()
    session.observe = lambda _: None
    assert Round(session).run()
    assert script.rows() == {"1": "x"}


def test_who_is_overtaken_between_its_look_and_the_lock_does_not_lead_again(
    script: Script, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It lost its connection and claims again; meanwhile another instance has become the leader, rightly."""
    old = script.session

    def overtaken(leadership: EpochsAlone, changefeed: str) -> None:
        del leadership, changefeed
        monkeypatch.undo()
        script.restarted()

    monkeypatch.setattr(EpochsAlone, "take", overtaken)
    with pytest.raises(LeadershipLostError):
        old.target.claim(old.lease.changefeed, old.progress, old.lease)
    assert script.session is not old
    assert Round(script.session).run()
    assert script.rows() == {"1": "x"}


def test_a_new_leader_ends_what_tasks_of_the_last_one_still_write(
    script: Script, monkeypatch: pytest.MonkeyPatch
) -> None:
    """They hold locks of rows, for which its own tasks would wait."""
    changefeed = script.session.lease.changefeed
    script.disk.permits = {(changefeed, part): ("a phase", 1) for part in range(2)}
    ended: list[str] = []
    monkeypatch.setattr(EpochsAlone, "fence", lambda _, holder: ended.append(holder))
    script.restarted()
    assert ended[-2:] == [_writer(changefeed, part) for part in range(2)]
    assert script.disk.permits == {}
