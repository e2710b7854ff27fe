"""Bounds the memory of a process while librdkafka reads: it unpacks whatever a batch says, and only then gives it out.

The limit is on data (RLIMIT_DATA), above what the process has when the reading begins. `spark.executor.pyspark.memory`
bounds addresses, of which threads reserve much that they never use, and holds while rows are ordered and written too.
"""

import resource
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

_STATM = Path("/proc/self/statm")
_DATA = 5
"""Which of its numbers is the size of data and stack, in pages."""
_READING = 640 << 20
"""What reading takes besides one large message: fetched answers of brokers, and what the task keeps of them."""
_COPIES = 4
"""Of a large message: packed, unpacked, and on its way through the codec."""


def allowance(message_bytes: int) -> int:
    """Bytes that a task's reading may take; `message_bytes`: the largest message."""
    return _READING + _COPIES * message_bytes


@contextmanager
def memory_allowed(more: int | None) -> Iterator[None]:
    """Let this process allocate so many bytes more; None: any number. Beyond them it ends, or meets a MemoryError."""
    if more is None or not _STATM.exists():
        yield
        return
    before = resource.getrlimit(resource.RLIMIT_DATA)
    used = int(_STATM.read_text().split()[_DATA]) * resource.getpagesize()
    limits = [limit for limit in (used + more, *before) if limit != resource.RLIM_INFINITY]
    resource.setrlimit(resource.RLIMIT_DATA, (min(limits), before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_DATA, before)
