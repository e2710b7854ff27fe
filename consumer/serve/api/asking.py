"""Requests that wait for a changefeed's servers: each in a thread of its own, few at once, and not for ever.

A target or a Kafka that takes connections and never answers holds whoever asks it. In one of the threads that all
requests share it would be the API of every changefeed that stands still, and nobody could pause the one that is to
blame. Such a thread can't be ended from outside: the request is answered without it, and there may be only so many.
"""

import asyncio
import contextvars
import threading
from collections.abc import Callable
from concurrent.futures import Future
from typing import TypeVar

from consumer.serve.api.errors import BusyError, NoAnswerError

MOST_AT_ONCE = 8
MOST_HELD = 32
"""Threads at once, with those that a server still holds although their requests were answered."""
ANSWER_S = 60.0
ORDER_S = 300.0
"""What changes something may wait for the end of a window first, or apply many messages."""
T = TypeVar("T")


class ServerRequests:
    """What is asked about one changefeed, or of servers that none has yet. `ask` belongs to the event loop."""

    def __init__(self, answer_s: float = ANSWER_S) -> None:
        self._answer_s = answer_s
        self._awaited = 0
        self._threads: list[threading.Thread] = []

    async def ask(self, where: str, work: Callable[[], T]) -> T:
        """What `work` finds, or raises; it runs in a thread. Raises BusyError, NoAnswerError."""
        self._threads = [thread for thread in self._threads if thread.is_alive()]
        if self._awaited >= MOST_AT_ONCE or len(self._threads) >= MOST_HELD:
            hint = "look whether its target and Kafka answer; try again later"
            raise BusyError("as many requests wait for its servers as may at once", where=where, hint=hint)
        done: Future[T] = Future()
        self._threads.append(_begun(work, done))
        answer = asyncio.wrap_future(done)
        answer.add_done_callback(_heed)
        self._awaited += 1
        try:
            await asyncio.wait((answer,), timeout=self._answer_s)
        finally:
            self._awaited -= 1
        if answer.done():
            return answer.result()
        hint = "what was asked for may still be done; look at the status, and whether target and Kafka answer"
        raise NoAnswerError(f"no server answered within {self._answer_s:g} s", where=where, hint=hint)


def _heed(answer: "asyncio.Future[T]") -> None:
    """Nobody waits any more for what fails later: asyncio need not tell of it."""
    if not answer.cancelled():
        answer.exception()


def _begun(work: Callable[[], T], done: "Future[T]") -> threading.Thread:
    context = contextvars.copy_context()

    def run() -> None:
        try:
            done.set_result(context.run(work))
        except Exception as error:  # noqa: BLE001 whoever asked gets it
            done.set_exception(error)

    thread = threading.Thread(target=run, name="asking", daemon=True)
    thread.start()
    return thread
