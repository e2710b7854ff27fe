"""What SIGTERM and SIGINT do for a while; afterwards they do what they did before."""

import signal
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from types import FrameType

ENDING = (signal.SIGTERM, signal.SIGINT)


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
