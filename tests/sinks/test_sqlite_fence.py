"""SQLite's databases are files: a leader that was stopped and goes on later makes and removes none."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from ordering.errors import LeadershipLostError, TargetBusyError
from ordering.events import DdlEvent, Position
from ordering.progress import Progress
from ordering.timestamps import CheckpointTs, CommitTs
from sinks.bookkeeping.progress_rows import Lease
from sinks.registry import open_target
from sinks.rows.values import ValueRules
from sinks.steps import Observer, Step
from sinks.target import Target

PROGRESS = Progress.first(CheckpointTs(0), "", "")
CREATE, DROP = "CREATE DATABASE `d`", "DROP DATABASE `d`"


class Leader:
    """An instance that leads from now on."""

    def __init__(self, directory: Path) -> None:
        self.target: Target = open_target(f"sqlite:///{directory}", ValueRules())
        self.target.connect()
        self.lease = Lease("f", self.target.claim("f", PROGRESS).epoch)

    def ddl(self, ts: int, sql: str, observe: Observer = lambda _: None) -> None:
        event = DdlEvent(Position("t", 0, ts), CommitTs(ts), "QUERY", "d", "", sql)
        self.target.execute_ddl(event, PROGRESS, self.lease, observe)


@pytest.fixture
def leader(tmp_path: Path) -> Iterator[Leader]:
    found = Leader(tmp_path)
    yield found
    found.target.close()


def overtaken(leader: Leader, directory: Path, ts: int, sql: str, then: str) -> None:
    """The leader stops behind its intent; its successor does that statement and the next one; the leader goes on."""

    def stopped(step: Step) -> None:
        if step is Step.DDL_RECORDED:
            successor = Leader(directory)
            successor.ddl(ts, sql)
            successor.ddl(ts + 1, then)
            if then == CREATE:
                successor.ddl(ts + 2, "CREATE TABLE `d`.`t` (`id` INT PRIMARY KEY)")
            successor.target.close()

    with pytest.raises((LeadershipLostError, TargetBusyError)):
        leader.ddl(ts, sql, stopped)
    leader.target.close()
    leader.target.connect()
    with pytest.raises(LeadershipLostError):  # also when it tries again
        leader.ddl(ts, sql)


def test_a_former_leader_removes_no_database_of_its_successor(leader: Leader, tmp_path: Path) -> None:
    leader.ddl(1, CREATE)
    overtaken(leader, tmp_path, 2, DROP, CREATE)
    again = Leader(tmp_path)
    assert [table.table for table in again.target.catalog().tables] == ["t"]
    again.target.close()


def test_a_former_leader_makes_no_database_that_its_successor_has_dropped(leader: Leader, tmp_path: Path) -> None:
    overtaken(leader, tmp_path, 1, CREATE, DROP)
    assert not (tmp_path / "d.sqlite").exists()


def test_what_a_crash_left_beside_a_database_goes_with_it(leader: Leader, tmp_path: Path) -> None:
    leader.ddl(1, CREATE)
    (tmp_path / "d.sqlite-journal").write_bytes(b"")
    leader.ddl(2, DROP)
    assert not list(tmp_path.glob("d.sqlite*"))
    leader.ddl(3, CREATE)
    assert (tmp_path / "d.sqlite").exists()
