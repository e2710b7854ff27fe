"""What a commit writes of the progress of a changefeed with 10,000 partitions, and what comes back of it."""

import sqlite3
from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import orjson
import pytest

from ordering.errors import ConfigError, TargetError
from ordering.events import Partition
from ordering.progress import FORMAT, PartitionProgress, Progress, TopicProgress
from ordering.timestamps import CheckpointTs, ResolvedTs
from sinks.bookkeeping.progress_rows import Lease, Stored
from sinks.registry import open_target
from sinks.rows.spool import Spool
from sinks.rows.values import ValueRules
from sinks.steps import Observer, Step
from sinks.target import Target

TS = 460_000_000_000_000_000
MOST_BYTES = 2048
"""Of SQL with its values that a commit inside a window may send, all statements together."""


def progress_of(partitions: int, ts: int = TS) -> Progress:
    """A progress as large as a real one."""
    topics = {f"topic-{n:04}": TopicProgress(f"{n:022}") for n in range(partitions // 10)}
    at = PartitionProgress(10**9, 10**9 + 7, ResolvedTs(ts), 10**9 + 5, ResolvedTs(ts), 12)
    some = {Partition(topic, n): at for topic in topics for n in range(10)}
    return replace(Progress.first(CheckpointTs(ts), "3:digest", "ledger"), partitions=some, topics=topics)


class Leader:
    """A connection that leads, and what it sends."""

    def __init__(self, directory: Path, first: Progress) -> None:
        target = open_target(f"sqlite:///{directory}", ValueRules())
        target.connect()
        self.target, self.sent = target, 0
        self.lease = Lease("f", target.claim("f", first).epoch)
        target.session.db.connection.set_trace_callback(self._count)

    def _count(self, sql: str) -> None:
        self.sent += len(sql)

    def apply(self, progress: Progress, observe: Observer = lambda _: None) -> int:
        """Commit it, look that it is what is stored, and return the bytes that were sent for the commit."""
        self.sent = 0
        with Spool() as nothing:
            self.target.apply(nothing, progress, self.lease, observe)
        sent = self.sent
        assert stored(self.target).progress == progress
        return sent


def stored(target: Target) -> Stored:
    found = target.stored("f")
    assert found is not None
    return found


def raw(directory: Path, select: str) -> tuple[object, ...]:
    with closing(sqlite3.connect(directory / "ticdc_reconciler.sqlite")) as connection:
        row: tuple[object, ...] = connection.execute(select).fetchone()
        return row


def change(directory: Path, statement: str) -> None:
    with closing(sqlite3.connect(directory / "ticdc_reconciler.sqlite")) as connection, connection:
        connection.execute(statement)


LARGE, MEDIUM = progress_of(10_000), progress_of(200)


def inside(start: Progress, commits: int) -> Iterator[Progress]:
    """What the commits of a window of `transaction` consistency save."""
    for n in range(1, commits + 1):
        yield start.at(CheckpointTs(start.checkpoint_ts + n), counts=start.counts.plus(rows_written=n))


def test_commits_inside_a_window_save_what_moved(tmp_path: Path) -> None:
    leader = Leader(tmp_path, LARGE)
    whole = leader.apply(LARGE)
    assert whole > 1_000_000
    kept, *others = [leader.apply(progress) for progress in inside(LARGE, 5)]
    assert whole < kept < whole + MOST_BYTES  # once a window
    assert max(others) < MOST_BYTES
    (row,) = raw(tmp_path, "SELECT length(offsets) + length(state) FROM checkpoint")
    assert int(str(row)) < MOST_BYTES  # what a server writes that writes rows again
    end = progress_of(10_000, TS + 5)
    assert leader.apply(end) > 1_000_000
    ts, offsets, state = raw(tmp_path, "SELECT checkpoint_ts, offsets, state FROM checkpoint")
    assert (ts, orjson.loads(str(offsets)), orjson.loads(str(state))) == (TS + 5, end.offsets(), end.state())
    leader.target.close()


def test_a_small_progress_is_saved_in_whole_as_earlier_versions_read_it(tmp_path: Path) -> None:
    small = progress_of(20)
    leader = Leader(tmp_path, small)
    for progress in inside(small, 3):
        leader.apply(progress)
        ts, offsets, state = raw(tmp_path, "SELECT checkpoint_ts, offsets, state FROM checkpoint")
        assert ts == progress.checkpoint_ts
        assert orjson.loads(str(offsets)) == small.offsets()
        assert orjson.loads(str(state))["format"] == 1
    assert raw(tmp_path, "SELECT count(*) FROM window_start") == (0,)
    leader.target.close()


def test_another_leader_goes_on_in_the_middle_of_a_window(tmp_path: Path) -> None:
    reached, *_, last = inside(MEDIUM, 3)
    for some in ((MEDIUM, reached), inside(reached, 3), inside(last, 2)):
        leader = Leader(tmp_path, MEDIUM)
        for progress in some:
            leader.apply(progress)
        leader.target.close()


def test_after_a_rollback_the_start_is_kept_anew(tmp_path: Path) -> None:
    leader = Leader(tmp_path, MEDIUM)
    first, second, third = inside(MEDIUM, 3)
    leader.apply(MEDIUM)

    def fails(step: Step) -> None:
        if step is Step.PROGRESS_WRITTEN:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        leader.apply(first, fails)  # the start was kept in what is rolled back
    assert stored(leader.target).progress == MEDIUM
    for progress in (second, third):
        leader.apply(progress)
    leader.target.close()


@pytest.mark.parametrize("harm", ["DELETE FROM window_start", "UPDATE window_start SET offsets = '{}'",
                                  "UPDATE window_start SET digest = 'another'"])  # fmt: skip
def test_a_start_that_is_gone_or_another_s_is_an_error(tmp_path: Path, harm: str) -> None:
    leader = Leader(tmp_path, MEDIUM)
    for progress in inside(MEDIUM, 2):
        leader.apply(progress)
    change(tmp_path, harm)
    with pytest.raises(TargetError, match="window_start does not hold"):
        leader.target.stored("f")
    leader.target.close()


def test_an_earlier_version_refuses_what_moved_inside_a_window(tmp_path: Path) -> None:
    leader = Leader(tmp_path, MEDIUM)
    for progress in inside(MEDIUM, 2):
        leader.apply(progress)
    leader.target.close()
    (state,) = raw(tmp_path, "SELECT state FROM checkpoint")
    found = orjson.loads(str(state))
    assert found["format"] == 2 <= FORMAT
    later = orjson.dumps({**found, "format": FORMAT + 1}).decode()
    change(tmp_path, f"UPDATE checkpoint SET state = '{later}'")
    again = open_target(f"sqlite:///{tmp_path}", ValueRules())
    with pytest.raises(ConfigError, match="later version"):
        again.stored("f")
    again.close()
