"""Disks of our own machine that are full: nothing half is left, and a run goes on once there is room.

A limit on a file's size stands for the disk's: the system refuses the write in the same place.
"""

import os
import random
import resource
import tempfile
import threading
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import psutil
import pytest

from ordering.errors import LocalDiskError, ReconcilerError, WorkerLostError
from sinks.steps import Step
from tests.service.lab import Feed
from tests.service.messages import begun, insert, watermarks

pytestmark = pytest.mark.service
ROWS, WIDTH = 150, 40_000
ROOM = 64 << 10
"""Bytes a file may have while the disk is full."""


class Disk:
    """The disk as a process finds it, and, unless it is `alone`, as those find it that it has started."""

    def __init__(self, pid: int, *, alone: bool = False) -> None:
        self._process, self._alone = psutil.Process(pid), alone
        self._before = resource.prlimit(pid, resource.RLIMIT_FSIZE)

    def fill(self) -> None:
        self._limit(ROOM)

    def free(self) -> None:
        self._limit(self._before[0])

    def _limit(self, size: int) -> None:
        started = [] if self._alone else self._process.children(recursive=True)
        for process in (self._process, *started):
            with suppress(ProcessLookupError):  # it has ended
                resource.prlimit(process.pid, resource.RLIMIT_FSIZE, (size, self._before[1]))


def _begun(feed: Feed) -> int:
    """A table, and behind the checkpoint more rows than are kept in memory, which no compression makes small."""
    feed.send(begun(columns="id INT PRIMARY KEY, v INT, s LONGTEXT"))
    before = feed.once().checkpoint_ts
    chance = random.Random(1)
    texts = [chance.randbytes(WIDTH // 2).hex() for _ in range(ROWS)]
    feed.send([insert("d.t", 8, n % 3, id=n + 10, v=8, s=text) for n, text in enumerate(texts)])
    feed.send(watermarks(9))
    return before


def _full(disk: Disk, feed: Feed, kind: type[ReconcilerError]) -> ReconcilerError:
    """How a run ends that finds the disk full."""
    try:
        with pytest.raises(kind) as caught:
            feed.once(_at(Step.PLANNED, disk.fill))
    finally:
        disk.free()
    return caught.value


def _at(step: Step, do: Callable[[], None]) -> Callable[[Step], None]:
    def observe(now: Step) -> None:
        if now is step:
            do()

    return observe


def _goes_on(disk: Disk, feed: Feed) -> None:
    """The disk is full, then it is not, and the same run ends well."""
    timers: list[threading.Timer] = []

    def fill_for_a_while() -> None:
        if not timers:
            disk.fill()
            timers.append(threading.Timer(1.5, disk.free))
            timers[0].start()

    try:
        feed.with_(limits={"retry-seconds": 60}).once(_at(Step.PLANNED, fill_for_a_while))
    finally:
        timers[0].join()
    rows = feed.cells.tables(["d"])["d.t"][1]
    assert len(rows) == ROWS + 1
    assert all(len(row["s"]) == WIDTH for row in rows if int(row["v"]) == 8)


@pytest.mark.by_turns
@pytest.mark.kafka  # where what may pass is tried again
def test_no_room_for_the_rows_of_a_window(feed: Feed, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    before, disk = _begun(feed), Disk(os.getpid(), alone=True)
    error = _full(disk, feed, LocalDiskError)
    assert str(tmp_path) in error.where
    assert "TMPDIR" in error.hint
    assert feed.checkpoint() == before
    assert len(feed.cells.tables(["d"])["d.t"][1]) == 1
    assert not list(tmp_path.rglob("spool-*"))
    _goes_on(disk, feed)


@pytest.mark.by_turns
@pytest.mark.spark
def test_no_room_for_spark_s_shuffle(sqlite_feed: Feed) -> None:
    feed = sqlite_feed.by_tasks()
    before = _begun(feed)
    disk = Disk(int(feed.spark._jvm.java.lang.ProcessHandle.current().pid()))  # type: ignore[union-attr]
    error = _full(disk, feed, WorkerLostError)
    assert "File too large" in error.fact
    assert feed.checkpoint() == before
    assert len(feed.cells.tables(["d"])["d.t"][1]) == 1
    _goes_on(disk, feed)
