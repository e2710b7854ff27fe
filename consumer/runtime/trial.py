"""Reads a text that may be slow to read in a process of its own first, within limits of time and memory.

A parser that takes twice as long with each word of a text would hold our process with all its changefeeds: Python's
regular expressions can't be interrupted, and no other thread gets its turn in time. A process can be ended. What else
is wrong with a text is not said here: reading it again says so.
"""

import os
import resource
import subprocess
import sys
from collections import OrderedDict
from collections.abc import Callable
from hashlib import sha256

from consumer.runtime.secrets import visible

LIMIT_S = 30.0
"""Of a processor's time, which a busy machine does not shorten."""
_MOST_WAITED = 10
"""So many times as long it may take by the clock."""
MOST_MEMORY = 2 << 30
_OUT_OF_MEMORY = 9
_KEPT = 64
_KEPT_VERDICTS: OrderedDict[tuple[str, bytes], bool] = OrderedDict()


def is_read_in_time(module: str, text: str) -> bool:
    """Whether `python -m MODULE`, which calls `read_stdin`, ends within the limits; remembered for the next who asks.

    A statement is looked at again in each round until its turn comes.
    """
    told = text.encode(errors="surrogatepass")
    asked = module, sha256(told).digest()
    if asked not in _KEPT_VERDICTS:
        _KEPT_VERDICTS[asked] = _ends(module, told)
        if len(_KEPT_VERDICTS) > _KEPT:
            _KEPT_VERDICTS.popitem(last=False)
    return _KEPT_VERDICTS[asked]


def _ends(module: str, text: bytes) -> bool:
    command = [sys.executable, "-m", module, f"{LIMIT_S:.0f}"]
    longest = _MOST_WAITED * LIMIT_S
    try:
        done = subprocess.run(  # noqa: S603 ourselves
            command, input=text, env=visible(os.environ), capture_output=True, timeout=longest, check=False
        )
    except subprocess.TimeoutExpired:
        return False
    return done.returncode >= 0 and done.returncode != _OUT_OF_MEMORY


def read_stdin(read: Callable[[str], object]) -> None:
    """Read the text on stdin within `MOST_MEMORY` and the seconds that the command line says, behind all others.

    How that ends otherwise does not matter.
    """
    os.nice(10)
    resource.setrlimit(resource.RLIMIT_CPU, (int(sys.argv[1]),) * 2)
    resource.setrlimit(resource.RLIMIT_DATA, (MOST_MEMORY, MOST_MEMORY))
    try:
        read(sys.stdin.buffer.read().decode(errors="surrogatepass"))
    except MemoryError:
        sys.exit(_OUT_OF_MEMORY)
