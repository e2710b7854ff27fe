"""Attempts of writing tasks on real servers: one that got lost and still runs is ended, whatever it was doing."""

from collections.abc import Iterator
from dataclasses import dataclass, replace

import pytest

from ordering.errors import LeadershipLostError, TargetUnreachableError
from ordering.events import DdlEvent, Position, RowOp, TableName
from ordering.progress import Progress
from ordering.timestamps import CheckpointTs, CommitTs
from sinks.bookkeeping.progress_rows import Lease
from sinks.bookkeeping.write_permits import Attempt, Phase
from sinks.registry import open_target
from sinks.rows.chunk import Chunk
from sinks.rows.spool import Spool
from sinks.rows.values import ValueRules
from sinks.target import Target

pytestmark = pytest.mark.service

FIRST = Progress.first(CheckpointTs(0), "", "")


@dataclass
class Stage:
    """A leader with a table of its own, and a phase in which tasks may write."""

    leader: Target
    lease: Lease
    table: TableName
    phase: Phase

    def opened(self) -> Target:
        target = self.leader.opener()()
        target.assume(self.leader.catalog())
        return target

    def chunk(self, *rows: tuple[int, str]) -> Chunk:
        schema = self.leader.catalog().tables[self.table]
        payload = self.leader.encoder.encode(schema.columns, [[str(number), text] for number, text in rows])
        return Chunk(self.table, RowOp.WRITE, ("id", "v"), len(rows), payload, plain_insert=True)

    def lost(self) -> Target:
        """An attempt that stands still with a row written and not committed."""
        target = self.opened()
        target.take_over(Attempt(self.phase, 0, 1))
        target.session.db.begin()
        target.session.books.permits.locked(self.phase.changefeed, 0)
        with Spool() as spool:
            spool.add(self.chunk((1, "lost"), (2, "lost")))
            target.write_groups(spool)
        return target


@pytest.fixture(params=["mariadb", "tidb", "postgres"])
def stage(request: pytest.FixtureRequest, database_prefix: str) -> Iterator[Stage]:
    leader = open_target(request.getfixturevalue(f"{request.param}_server").uri, ValueRules())
    leader.connect()
    name = f"{database_prefix}changefeed"
    lease = Lease(name, leader.claim(name, FIRST).epoch)
    table = TableName(f"{database_prefix}d", "t")
    drop = f"DROP DATABASE `{table.database}`"
    ddls = [f"CREATE DATABASE `{table.database}`", "CREATE TABLE `t` (`id` INT PRIMARY KEY, `v` VARCHAR(9))"]
    for number, sql in enumerate([*ddls, drop]):
        if sql == drop:
            phase = Phase(name, "phase", 1)
            leader.save(FIRST, lease, phase)
            yield Stage(leader, lease, table, phase)
            leader.close()
            lease = Lease(name, leader.claim(name, FIRST).epoch)
        ddl = DdlEvent(Position("t", 0, number), CommitTs(number + 1), "QUERY", table.database, "", sql)
        leader.execute_ddl(ddl, FIRST, lease, lambda _: None)
    leader.close()


def test_a_retry_ends_the_attempt_that_was_lost_in_its_transaction(stage: Stage) -> None:
    lost = stage.lost()
    retry, attempt = stage.opened(), Attempt(stage.phase, 0, 2)
    assert retry.take_over(attempt)
    assert retry.write_part(attempt, [stage.chunk((1, "retry"), (3, "retry"))]).rows == 2
    with pytest.raises(TargetUnreachableError):
        lost.session.db.commit()
    lost.close()
    with pytest.raises(LeadershipLostError):
        stage.opened().take_over(Attempt(stage.phase, 0, 1))
    retry.close()


def test_a_new_leader_ends_what_the_last_one_s_tasks_still_write(stage: Stage) -> None:
    lost = stage.lost()
    leader = stage.opened()
    leader.connect()
    assert leader.claim(stage.lease.changefeed, FIRST).epoch == stage.lease.epoch + 1
    with pytest.raises(TargetUnreachableError):
        lost.session.db.commit()
    with pytest.raises(LeadershipLostError, match="its phase is over"):
        stage.opened().take_over(Attempt(stage.phase, 0, 2))
    with pytest.raises((LeadershipLostError, TargetUnreachableError)):
        stage.leader.save(FIRST, stage.lease, stage.phase)
    leader.close()


def test_a_new_leader_that_ended_writers_goes_on_beside_the_next_ones(stage: Stage) -> None:
    lost, leader, name = stage.lost(), stage.opened(), stage.lease.changefeed
    leader.connect()
    lease, phase = Lease(name, leader.claim(name, FIRST).epoch), replace(stage.phase, name="next")
    leader.save(FIRST, lease, phase)
    task = stage.opened()
    assert not task.take_over(Attempt(phase, 0, 1))
    leader.save(FIRST, lease)
    for target in (lost, task, leader):
        target.close()


def test_a_phase_that_ends_shuts_out_who_comes_late(stage: Stage) -> None:
    late, attempt = stage.opened(), Attempt(stage.phase, 0, 1)
    late.take_over(attempt)
    stage.leader.save(FIRST, stage.lease, replace(stage.phase, name="next"))
    with pytest.raises(LeadershipLostError):
        late.write_part(attempt, [stage.chunk((1, "late"))])
    late.close()
