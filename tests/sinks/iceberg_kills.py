"""Ends a process by SIGKILL between any two things that a commit into Iceberg does."""

import multiprocessing
import os
import signal
from collections.abc import Callable
from typing import Any

from pyiceberg.serializers import ToOutputFile

from consumer.storage.warehouse import WarehouseStore
from sinks.iceberg.files import LakeFiles
from sinks.iceberg.session import LakeSession
from sinks.iceberg.sqlite_catalog import SqliteCatalog
from sinks.iceberg.table import LakeTable
from tests.service.local import LocalFeed

PLACES: tuple[tuple[type, str], ...] = (
    (LakeSession, "run"),
    (SqliteCatalog, "begin_to_write"),
    (LakeSession, "commit"),
    (LakeSession, "_move"),
    (LakeTable, "_replace"),
    (LakeTable, "_data_files"),
    (LakeFiles, "new_output"),
    (LakeFiles, "sync"),
    (WarehouseStore, "write"),
    (WarehouseStore, "read"),
    (ToOutputFile, "table_metadata"),
)
"""Each counts twice: before it and behind it."""
FORKS = multiprocessing.get_context("forkserver")  # what reads Arrow here has threads, which no fork would have
FORKS.set_forkserver_preload(["tests.sinks.iceberg_kills"])


class Clock:
    """Counts the places that a process passes, and kills it at one of them."""

    def __init__(self, last: int) -> None:
        self.left = last

    def tick(self) -> None:
        self.left -= 1
        if self.left == 0:
            os.kill(os.getpid(), signal.SIGKILL)

    def watch(self, function: Callable[..., Any]) -> Callable[..., Any]:
        def watched(*arguments: Any, **named: Any) -> Any:
            self.tick()
            found = function(*arguments, **named)
            self.tick()
            return found

        return watched


def _once(feed: LocalFeed) -> object:
    return feed.once()


def _applied(feed: LocalFeed, last: int, act: Callable[[LocalFeed], object]) -> None:
    clock = Clock(last)
    for place, name in PLACES:
        function = clock.watch(getattr(place, name))
        setattr(place, name, staticmethod(function) if place is ToOutputFile else function)
    act(feed)


def ends(feed: LocalFeed, last: int, act: Callable[[LocalFeed], object] = _once) -> bool:
    """Let another process apply what there is, or do `act`; False if it was killed at place `last`, before it had."""
    process = FORKS.Process(target=_applied, args=(feed, last, act))
    process.start()
    process.join(120)
    assert process.exitcode in (0, -signal.SIGKILL)
    return process.exitcode == 0
