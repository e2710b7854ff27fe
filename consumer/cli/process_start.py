"""When this process began: loading the program is part of what a start takes."""

import os
import time
from pathlib import Path

_START_FIELD = 19
"""Of /proc/PID/stat, counted from the first field behind the name in brackets: starttime, in ticks since boot."""


def process_start() -> float:
    """`time.monotonic()` as it was when the process was made; now, where the system does not tell."""
    now = time.monotonic()
    try:
        ticks = int(Path("/proc/self/stat").read_text().rpartition(")")[2].split()[_START_FIELD])
        age = time.clock_gettime(time.CLOCK_BOOTTIME) - ticks / os.sysconf("SC_CLK_TCK")
    except (OSError, ValueError, IndexError, AttributeError):
        return now
    return now - max(0.0, age)
