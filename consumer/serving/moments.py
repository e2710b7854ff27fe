"""The wall clock, for people and charts only: nothing is decided by it."""

import time


def now() -> float:
    """Seconds since 1970, to the millisecond."""
    return round(time.time(), 3)
