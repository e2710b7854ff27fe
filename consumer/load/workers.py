"""Writes files in parallel: each worker is a process with a connection of its own, for reading them is Python's work.

A worker ends with the process that started it, however that ended. After a temporary error it tries again, from the
place in the file that the target has recorded.
"""

import multiprocessing
import os
import signal
import threading
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass
from multiprocessing.connection import wait as wait_for
from multiprocessing.synchronize import Event
from typing import Any

from consumer.load.write_file import FileLoad, FileWork, Observe
from consumer.runtime import logs
from consumer.runtime.retry import Patience, retried
from ordering.errors import WorkerLostError
from sinks.bookkeeping.load_files import Mark
from sinks.target import Target

_LOOK_S = 0.2


@dataclass(frozen=True, slots=True)
class Order:
    """A file to be written, by whom and for how long it is tried."""

    work: FileWork
    mark: Mark
    opener: Callable[[], Target]
    retry_s: float
    observe: Observe


Told = Callable[[int], bool]


def write_file(order: Order, target: Target, tell: Told) -> bool:
    """Write one file; whether it is whole. Raises ReconcilerError."""
    patience, stopping = Patience(order.retry_s), threading.Event()

    def told(rows: int) -> bool:
        patience.succeeded()
        return tell(rows)

    def write() -> bool:
        return FileLoad(order.work, order.mark, target, order.observe).run(told)

    return retried(write, patience, stopping, lambda _: target.close())


def one_by_one(orders: Iterable[Order], target: Target, tell: Told) -> Iterator[bool]:
    """Write files, and yield for each that is over whether it is whole. Raises ReconcilerError."""
    for order in orders:
        yield write_file(order, target, tell)
        if not tell(0):
            return


class _Worker:
    """What a worker's process keeps."""

    rows: Any = None
    stopping: Event | None = None
    target: Target | None = None


def _begin(rows: Any, stopping: Event) -> None:
    """Make a new process a worker."""
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, signal.SIG_IGN)  # the one who started it says when to stop
    logs.set_up(json=False, verbose=False)
    _Worker.rows, _Worker.stopping = rows, stopping
    parent = multiprocessing.parent_process()
    if parent is not None:
        threading.Thread(target=_end_with, args=(parent.sentinel,), daemon=True).start()


def _end_with(sentinel: int) -> None:
    wait_for([sentinel])
    os._exit(1)


def _work(order: Order) -> bool:
    """Write a file in a worker; one that was handed out before the stop is not begun after it."""
    if _Worker.stopping is not None and _Worker.stopping.is_set():
        return False
    if _Worker.target is None:
        _Worker.target = order.opener()
    return write_file(order, _Worker.target, _tell)


def _tell(rows: int) -> bool:
    _Worker.rows.put(rows)
    return _Worker.stopping is None or not _Worker.stopping.is_set()


@dataclass(frozen=True, slots=True)
class Workers:
    """So many processes; `tell` is told of rows as they are written, and says whether to go on."""

    count: int
    tell: Told

    def run(self, orders: Iterable[Order]) -> Iterator[bool]:
        """Write files, and yield for each that is over whether it is whole. Raises ReconcilerError."""
        spawning = multiprocessing.get_context("spawn")
        rows, stopping = spawning.SimpleQueue(), spawning.Event()
        with ProcessPoolExecutor(self.count, spawning, _begin, (rows, stopping)) as pool:
            try:
                yield from self._results([pool.submit(_work, order) for order in orders], rows, stopping)
            except BrokenProcessPool as error:
                hint = "if memory ran out, use fewer --workers; run again to continue"
                raise WorkerLostError("a process that wrote rows died", hint=hint) from error
            finally:
                stopping.set()
                pool.shutdown(cancel_futures=True)

    def _results(self, futures: list["Future[bool]"], rows: Any, stopping: Event) -> Iterator[bool]:
        waiting = set(futures)
        while waiting:
            done, waiting = wait(waiting, _LOOK_S, FIRST_COMPLETED)
            while not rows.empty():
                if not self.tell(rows.get()):
                    stopping.set()
            for future in done:
                yield future.result()
            if stopping.is_set():
                waiting = {future for future in waiting if not future.cancel()}
            elif not self.tell(0):
                stopping.set()
