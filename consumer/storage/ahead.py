"""Work of a reading task that goes on while its rows are used: the store and the compiled core need no Python lock."""

from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor

from consumer.codec.joined_run import JoinedRun
from consumer.storage.layout import RowFile
from ordering.events import Partition

MOST_AHEAD = 128 << 20
"""Bytes of a file that is read before it is asked for; TiCDC's files hold 64 MiB by default."""
Runs = Iterator[tuple[Partition, JoinedRun]]


def made_ahead(runs: Runs) -> Runs:
    """The same runs; the next one is made while the one before is used. Raises what making one raises."""
    with ThreadPoolExecutor(1, "run-ahead") as pool:
        coming = pool.submit(next, runs, None)
        while (one := coming.result()) is not None:
            coming = pool.submit(next, runs, None)
            yield one


class FilesAhead:
    """Reads files one after the other, and each next one while the one before is used."""

    def __init__(self, read: Callable[[str], bytes]) -> None:
        self._read, self._coming = read, dict[str, Future[bytes]]()
        self._pool = ThreadPoolExecutor(1, "file-ahead")

    def content(self, file: RowFile, following: RowFile | None) -> bytes:
        """A file's content; `following`: what is asked for next. Raises what reading this file raises."""
        coming = self._coming.pop(file.path, None)
        content = self._read(file.path) if coming is None else coming.result()
        if following is not None and following.size <= MOST_AHEAD:
            self._coming[following.path] = self._pool.submit(self._read, following.path)
        return content

    def close(self) -> None:
        """Wait for what is still being read; nobody asks for it any more."""
        self._pool.shutdown(cancel_futures=True)
        self._coming.clear()
