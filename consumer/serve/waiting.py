"""Who waits for a changefeed's target to hold what he wrote: one look at the target answers all of them.

A look answers only those who asked before it began, so nobody is told of a state from before his question: after the
progress was deleted or rewound, say. Without waiters nothing is asked of the target.
"""

import asyncio
import heapq
import threading
from dataclasses import dataclass, field
from functools import partial

from consumer.config.model import Config
from consumer.library.wait import Look, TargetLooks, Waited, check_there, check_tso
from consumer.serve.api.errors import NotFoundError
from ordering.errors import ConfigError, ReconcilerError


@dataclass(order=True)
class _Waiter:
    tso: int
    number: int
    """The look that was the last to begin when he asked: one after it answers him."""
    answer: "asyncio.Future[int]" = field(compare=False)
    is_gone: bool = field(default=False, compare=False)


class Waiters:
    """Those of one changefeed. `wait` belongs to the event loop; the other methods may be called from any thread."""

    def __init__(self, config: Config) -> None:
        self._config = config
        self._lock = threading.Lock()
        self._heap: list[_Waiter] = []
        """Who left stays in it until half of it has left."""
        self._waiting = 0
        self._looks: TargetLooks | None = None
        self._round = 0
        """Which `_looks` it is: an earlier one may still tell something."""
        self._last: Look | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._ended: ReconcilerError | None = None

    async def wait(self, tso: int, timeout_s: float) -> Waited:
        """Wait until the target covers `tso`. Raises ConfigError for what is no TSO, and what `end` was given."""
        check_tso(tso)
        waiter = self._added(tso)
        try:
            async with asyncio.timeout(timeout_s):
                return Waited(self._config.changefeed, tso, await waiter.answer)
        except TimeoutError:
            return Waited(self._config.changefeed, tso, self._known(waiter))
        finally:
            self._left(waiter)

    def told(self, checkpoint_ts: int) -> None:
        """The run here has come so far: where that is waited for, the target is asked now."""
        with self._lock:
            if self._looks is not None and self._heap and self._heap[0].tso <= checkpoint_ts:
                self._looks.hurry()

    def end(self, error: ReconcilerError) -> None:
        """Tell all who wait that there is nothing to wait for, and whoever asks from now on."""
        with self._lock:
            self._ended = error
            waiting = self._emptied()
            self._stop_looking()
        self._answer(waiting, error)

    def _added(self, tso: int) -> _Waiter:
        with self._lock:
            if self._ended is not None:
                raise self._ended
            self._loop = asyncio.get_running_loop()
            looks = self._looking()
            waiter = _Waiter(tso, looks.begun, self._loop.create_future())
            heapq.heappush(self._heap, waiter)
            self._waiting += 1
            looks.hurry()
            return waiter

    def _looking(self) -> TargetLooks:
        if self._looks is None:
            self._round += 1
            self._last = None
            self._looks = TargetLooks(self._config, partial(self._seen, self._round))
            self._looks.start()
        return self._looks

    def _stop_looking(self) -> None:
        looks, self._looks = self._looks, None
        if looks is not None:
            looks.stop()

    def _known(self, waiter: _Waiter) -> int:
        """What a look that began after he asked has found."""
        with self._lock:
            last = self._last
        return 0 if last is None or last.number <= waiter.number else last.checkpoint_ts or 0

    def _left(self, waiter: _Waiter) -> None:
        """One is answered, has no more time, or has gone."""
        with self._lock:
            waiter.is_gone = True
            self._waiting -= 1
            if not self._waiting:
                self._heap.clear()
                self._stop_looking()
            elif self._waiting < len(self._heap) // 2:
                self._heap = [one for one in self._heap if not one.is_gone]
                heapq.heapify(self._heap)

    def _seen(self, number: int, look: Look) -> None:
        """What a look has found; in its thread. One that failed may be followed by one that does not."""
        with self._lock:
            if number != self._round or self._looks is None or look.error is not None:
                return
            before, self._last = None if self._last is None else self._last.checkpoint_ts, look
            try:
                check_there(self._config.changefeed, before, look.checkpoint_ts)
                answer: int | ReconcilerError = look.checkpoint_ts or 0
                answered = self._covered(look)
            except ConfigError as gone:
                answer, answered = NotFoundError(gone.fact, where=gone.where, hint=gone.hint), self._emptied()
        self._answer(answered, answer)

    def _emptied(self) -> list[_Waiter]:
        waiting, self._heap = self._heap, []
        return waiting

    def _covered(self, look: Look) -> list[_Waiter]:
        covered: list[_Waiter] = []
        later: list[_Waiter] = []
        while self._heap and self._heap[0].tso <= (look.checkpoint_ts or 0):
            one = heapq.heappop(self._heap)
            (covered if one.number < look.number else later).append(one)
        for one in later:
            heapq.heappush(self._heap, one)
        return covered

    def _answer(self, waiting: list[_Waiter], answer: int | ReconcilerError) -> None:
        if waiting and self._loop is not None and not self._loop.is_closed():
            self._loop.call_soon_threadsafe(_settle, waiting, answer)


def _settle(waiting: list[_Waiter], answer: int | ReconcilerError) -> None:
    for one in waiting:
        if one.answer.done():
            continue
        if isinstance(answer, int):
            one.answer.set_result(answer)
        else:
            one.answer.set_exception(answer)
