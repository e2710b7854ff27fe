"""An attempt of a writing task that gets lost on its way, is done again elsewhere, and goes on behind that."""

import threading
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, fields, replace

from consumer.tasks.order import OrderTask, Record
from consumer.tasks.write import WriteTask
from ordering.rows.net_effect import KeyChange
from sinks.rows.chunk import Chunk
from sinks.target import Target
from tests.simulation.faults import Crash

_PATIENCE_S = 180.0


class Zombie:
    """Runs a task in a thread of its own up to its n-th chunk, and then not before it is told to go on.

    One of both threads waits for the other all the time, so that a history stays a function of its seed.
    """

    def __init__(self, task: WriteTask, records: list[Record], chunks: int) -> None:
        """With `chunks` 0 it stands still before it has taken its part over."""
        self._left, self._gave_up = chunks, False
        self._paused, self._going = threading.Event(), threading.Event()
        order = _Slow(**{f.name: getattr(task.order, f.name) for f in fields(OrderTask)}, pause=self._pause)
        self._task = replace(task, order=order, opener=self._opened(task.opener))
        self._thread = threading.Thread(target=self._run, args=(records,), daemon=True)
        self._thread.start()
        assert self._paused.wait(_PATIENCE_S)

    def _run(self, records: list[Record]) -> None:
        try:
            list(self._task(iter(records)))
        except Crash:
            return
        finally:
            self._paused.set()

    def _opened(self, opener: Callable[[], Target]) -> Callable[[], Target]:
        def late() -> Target:
            self._pause()
            return opener()

        return late

    def _pause(self) -> None:
        self._left -= 1
        if self._left < 0 and not self._going.is_set():
            self._paused.set()
            if not self._going.wait(_PATIENCE_S):  # of a test that has ended without it, and of nobody else's now
                self._gave_up = True
                raise Crash("an attempt that nobody has told to go on")

    def go_on(self) -> None:
        """Let it run to its end, whatever that is."""
        assert not self._gave_up
        self._going.set()
        self._thread.join(_PATIENCE_S)
        assert not self._thread.is_alive()


@dataclass(frozen=True, slots=True)
class _Slow(OrderTask):
    """Pauses before each chunk."""

    pause: Callable[[], None] = lambda: None

    def chunks(self, halves: list[KeyChange], names: Mapping[str, tuple[str, ...]]) -> Iterator[Chunk]:
        for chunk in OrderTask.chunks(self, halves, names):
            self.pause()
            yield chunk
