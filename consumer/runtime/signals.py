"""What SIGTERM and SIGINT do for a while, and the stop that they ask for; afterwards they do what they did before."""

import signal
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from types import FrameType

ENDING = (signal.SIGTERM, signal.SIGINT)


class Stopped(BaseException):  # SIGTERM or SIGINT
    """Somebody asked us to stop; what was not committed is rolled back.

    As KeyboardInterrupt it is no Exception: a signal cuts through libraries that make an error of their own of those.
    """


class StopRequest(threading.Event):
    """An event that a signal handler may set: it may have come while this very thread holds the event's own lock."""

    def __init__(self) -> None:
        super().__init__()
        self._is_asked = False

    def ask(self) -> None:
        """Set it from a signal handler; who waits in another thread learns it when it looks next."""
        self._is_asked = True

    def is_set(self) -> bool:
        """Whether somebody asked."""
        return self._is_asked or super().is_set()

    def wait(self, timeout: float | None = None) -> bool:
        """Wait until somebody asks, or for so many seconds."""
        return self._is_asked or super().wait(timeout)


@contextmanager
def handled(
    handler: Callable[[int, FrameType | None], object], numbers: Sequence[signal.Signals] = ENDING
) -> Iterator[None]:
    """Meanwhile these signals call the handler; only in a process's main thread."""
    before = {number: signal.signal(number, handler) for number in numbers}
    try:
        yield
    finally:
        for number, former in before.items():
            signal.signal(number, former)


@contextmanager
def left_alone(*numbers: signal.Signals) -> Iterator[None]:
    """Whatever a library sets meanwhile, these signals do afterwards what they did before; in any thread."""
    before = {number: signal.getsignal(number) for number in numbers}
    try:
        yield
    finally:
        if threading.current_thread() is threading.main_thread():
            for number, former in before.items():
                if former is not None:  # set by something other than Python: nothing here can set it again
                    signal.signal(number, former)


@contextmanager
def stopped_by_signals(asked: StopRequest) -> Iterator[None]:
    """Meanwhile the first of these signals asks for the stop and raises Stopped; those after it change nothing."""

    def stop(_number: int, _frame: FrameType | None) -> None:
        first = not asked.is_set()
        asked.ask()
        if first:
            raise Stopped

    with handled(stop):
        yield
