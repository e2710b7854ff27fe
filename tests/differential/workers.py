"""A process for each kind of target, so that all of them play while the next scripts are recorded."""

import logging
import multiprocessing
from collections.abc import Iterator, Sequence
from concurrent.futures import Future, ProcessPoolExecutor
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from multiprocessing.util import Finalize
from pathlib import Path

import structlog

from tests.differential.playing import Place, Verdict
from tests.differential.recording import Recording

_places: list[Place] = []
"""In a worker: its target."""


@dataclass(frozen=True, slots=True)
class Worker:
    """A target in a process of its own."""

    kind: str
    pool: ProcessPoolExecutor

    def play(self, recording: Recording, consistency: str) -> Verdict:
        """As `Place.play`."""
        return self.pool.submit(_play, recording, consistency).result()

    def play_all(self, recordings: Sequence[Recording], consistencies: Sequence[str]) -> "Future[list[Verdict]]":
        """Begin with some scripts, each in the consistency that stands beside it."""
        return self.pool.submit(_play_all, recordings, consistencies)


@contextmanager
def workers(kinds: Sequence[str], directory: Path) -> Iterator[list[Worker]]:
    """A worker for each kind, with its server below the directory; all have ended at the end."""
    with ExitStack() as stack:
        context = multiprocessing.get_context("spawn")  # a fork would share the threads and connections of this process
        yield [
            Worker(kind, stack.enter_context(ProcessPoolExecutor(1, context, _begin, (kind, directory / kind))))
            for kind in kinds
        ]


def _begin(kind: str, directory: Path) -> None:
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(logging.CRITICAL))
    stack = ExitStack()
    Finalize(None, stack.close, exitpriority=10)
    _places.append(Place(kind, directory, stack))


def _play(recording: Recording, consistency: str) -> Verdict:
    return _places[0].play(recording, consistency)


def _play_all(recordings: Sequence[Recording], consistencies: Sequence[str]) -> list[Verdict]:
    return [_play(one, consistency) for one, consistency in zip(recordings, consistencies, strict=True)]
