"""Chunks, one by one or several at once, and what is kept of them."""

from collections.abc import Callable, Iterator
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from contextlib import contextmanager
from dataclasses import dataclass, field
from queue import SimpleQueue

from consumer.verify.narrow import Found, Narrowing
from consumer.verify.pacing import Bar, Pace
from consumer.verify.report import VerifyOutcome
from consumer.verify.resume_file import ResumeState
from consumer.verify.sides import Side
from ordering.errors import DifferencesError
from sinks.compare.digests import Selection, Span

MOST_DIFFERENCES = 1_000_000
_AHEAD = 2
"""Chunks that wait for each reader."""


@dataclass(slots=True)
class Work:
    """A chunk that is to be compared: the number of its table, its span as each side calls it."""

    at: int
    spans: tuple[Span, Span]


@dataclass(slots=True)
class Results:
    """What chunks came to, in their order, whichever was done first."""

    outcome: VerifyOutcome
    state: ResumeState
    bar: Bar
    _found: dict[tuple[int, int], Found] = field(default_factory=dict)
    _differing: int = 0

    def keep(self, work: Work, number: int, found: Found) -> None:
        """Take a chunk that was compared, and note that it is done."""
        self.take(work, number, found)
        self.state.done(self.outcome.tables[work.at].comparison.name, work.spans[0], found)

    def take(self, work: Work, number: int, found: Found) -> None:
        """Take a chunk. Raises DifferencesError where more differs than memory is for."""
        self._found[(work.at, number)] = found
        self._differing += len(found.differences)
        if self._differing > MOST_DIFFERENCES:
            hint = "load what differs again from a dump; --tables narrows the comparison to single tables"
            raise DifferencesError(f"target and upstream differ in more than {MOST_DIFFERENCES:,} rows", hint=hint)
        self.bar.add(found.rows, str(self.outcome.tables[work.at].comparison.name))

    def tell(self) -> None:
        """Add all of it to the outcome."""
        for (at, _), found in sorted(self._found.items(), key=lambda item: item[0]):
            table = self.outcome.tables[at]
            table.rows += found.rows
            table.chunks += 1
            table.differences += found.differences


Keep = Callable[[Found], None]


@dataclass(slots=True)
class Comparer:
    """Compares chunks, each by the readers of one number on both sides."""

    outcome: VerifyOutcome
    left: Side
    right: Side
    pace: Pace

    def chunk(self, work: Work, number: int) -> Found:
        """Compare one chunk. Raises ReconcilerError."""
        comparison = self.outcome.tables[work.at].comparison
        readers = self.left.readers[number], self.right.readers[number]
        sides = (
            Selection(readers[0], comparison.left, comparison.pairs, comparison.keys, 0),
            Selection(readers[1], comparison.right, comparison.pairs, comparison.keys, 1),
        )
        found = Narrowing(comparison, sides, work.spans, self._ask, self.pace).found()
        self.pace(found.rows)
        return found

    def _ask(self, side: int, call: Callable[[], object]) -> object:
        return (self.right if side else self.left).ask(call)

    @contextmanager
    def one_by_one(self) -> Iterator[Callable[[Work, Keep], None]]:
        """In this thread, by the first readers."""
        yield lambda work, keep: keep(self.chunk(work, 0))

    @contextmanager
    def at_once(self, readers: int) -> Iterator[Callable[[Work, Keep], None]]:
        """In so many threads; only so many chunks wait. What one raises ends all."""
        free: SimpleQueue[int] = SimpleQueue()
        for number in range(readers):
            free.put(number)
        waiting: dict[Future[Found], Keep] = {}

        def compare(work: Work) -> Found:
            number = free.get()
            try:
                return self.chunk(work, number)
            finally:
                free.put(number)

        def collect(most: int) -> None:
            while len(waiting) > most:
                done, _ = wait(waiting, return_when=FIRST_COMPLETED)
                for one in done:
                    waiting.pop(one)(one.result())

        pool = ThreadPoolExecutor(readers, "verify")

        def submit(work: Work, keep: Keep) -> None:
            waiting[pool.submit(compare, work)] = keep
            collect(_AHEAD * readers)

        try:
            yield submit
            collect(0)
        finally:
            pool.shutdown(wait=True, cancel_futures=True)
