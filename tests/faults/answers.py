"""What is told of what was applied, checked against what was sent: the audit table, those who wait, the view `applied`.

Each commit inserts one row: commit `n` the row `n`, at `at(n)`. So a line of the audit table is right if it tells of as
many rows as there are commits in its range, and an answer is right if the rows up to it are there just after it.
"""

import sqlite3
import threading
import time
from abc import ABC, abstractmethod
from bisect import bisect_right
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Self
from urllib.parse import urlsplit

import psycopg

from consumer.demo.fake_ticdc.changefeed import Message
from consumer.demo.invariant_reader import again, reading
from tests.bench.measure import mysql_connection
from tests.service.messages import at, ddl

DATABASE = "told"
_LOOK_S = 0.02
Line = Mapping[str, Any]
Ask = Callable[[int], bool]
"""Waits for a commitTs; whether it was covered."""


def wrong_lines(lines: Sequence[Line], commits: Sequence[int], low: int, high: int) -> list[str]:
    """What is wrong with the audit table's lines, the oldest first. Each commit up to C belongs to just one of them.

    `commits`: the commitTs of all, rising. `low`: up to where each has to have a line. `high`: C after the lines were
    read. In `transaction` consistency a line stands for a second, and a crash leaves its commits to the next commit's.
    """
    found, upto, epoch = [], 0, 0
    for line in lines:
        above, to = int(line["above_ts"]), int(line["checkpoint_ts"])
        if not upto <= above < to <= high or line["epoch"] < epoch:
            found.append(f"out of order, behind {upto} of epoch {epoch}, before C {high}: {line}")
        if missing := _between(commits, upto, above):
            found.append(f"{missing} commits in no line before {line}")
        if line["rows"] != (rows := _between(commits, above, to)):
            found.append(f"{rows} commits in {line}")
        upto, epoch = to, line["epoch"]
    if missing := _between(commits, upto, low):
        found.append(f"{missing} commits up to C {low} in no line; the last one ends at {upto}")
    return found


def _between(commits: Sequence[int], above: int, upto: int) -> int:
    return max(0, bisect_right(commits, upto) - bisect_right(commits, above))


def made() -> list[Message]:
    """The table, before the first commit."""
    return [
        ddl(f"{DATABASE}.", -2, f"CREATE DATABASE `{DATABASE}`", kind="QUERY"),
        ddl(f"{DATABASE}.t", -1, "CREATE TABLE `t` (id INT PRIMARY KEY, v INT, s VARCHAR(10))"),
    ]


class Reader(ABC):
    """The rows of a target, and its view, by a connection of its own."""

    @abstractmethod
    def rows(self, number: int) -> int:
        """How many rows up to this one are there."""

    @abstractmethod
    def applied(self, changefeed: str) -> int:
        """What the view says; 0 where there is none."""


class _Sqlite(Reader):
    def __init__(self, uri: str) -> None:
        self._place = Path(urlsplit(uri).path[1:])

    @again
    def _one(self, name: str, sql: str, parameter: object) -> int:
        file = self._place / f"{name}.sqlite"
        if not file.exists():
            return 0
        try:
            with reading(file) as database:
                row = database.execute(sql, (parameter,)).fetchone()
        except sqlite3.OperationalError as error:
            if "no such table" in str(error):
                return 0
            raise
        return int(row[0]) if row else 0

    def rows(self, number: int) -> int:
        """See `Reader.rows`."""
        return self._one(DATABASE, "SELECT COUNT(*) FROM t WHERE id <= ?", number)

    def applied(self, changefeed: str) -> int:
        """See `Reader.applied`."""
        return self._one("ticdc_reconciler", "SELECT checkpoint_ts FROM applied WHERE changefeed = ?", changefeed)


class _Server(Reader):
    def __init__(self, uri: str) -> None:
        self._is_postgres = uri.startswith("postgres")
        self._connection: Any = psycopg.connect(uri, autocommit=True) if self._is_postgres else mysql_connection(uri)

    def _one(self, sql: str, parameter: object) -> int:
        try:
            with self._connection.cursor() as cursor:
                cursor.execute(sql, (parameter,))
                row = cursor.fetchone()
        except Exception as error:
            if any(told in str(error) for told in ("does not exist", "doesn't exist", "Unknown database")):
                return 0
            raise
        return int(row[0]) if row else 0

    def rows(self, number: int) -> int:
        """See `Reader.rows`."""
        return self._one(f"SELECT COUNT(*) FROM {DATABASE}.t WHERE id <= %s", number)

    def applied(self, changefeed: str) -> int:
        """See `Reader.applied`."""
        return self._one("SELECT checkpoint_ts FROM ticdc_reconciler.applied WHERE changefeed = %s", changefeed)


def reader_of(uri: str) -> Reader:
    """A reader of a target."""
    return _Sqlite(uri) if uri.startswith("sqlite") else _Server(uri)


class Told:
    """Those who wait, each in a thread: for a commit that is yet to come, then for the next one.

    `number`: the latest commit that was sent. `asks`: by their kind, each used by one thread at a time.
    """

    def __init__(self, uri: str, changefeed: str, number: Callable[[], int], asks: Mapping[str, Sequence[Ask]]) -> None:
        self._uri, self._changefeed, self._number = uri, changefeed, number
        self.answers: Counter[str] = Counter()
        self.again: Counter[str] = Counter()
        """How often one asked again: it was not covered in time, or who was asked has died."""
        self.early: list[str] = []
        self.most = 0
        """The latest commit that somebody waits for."""
        self._stopping, self._over = threading.Event(), threading.Event()
        self._failures: list[BaseException] = []
        waits = [(kind, ask, ahead) for kind, some in asks.items() for ahead, ask in enumerate(some)]
        self._threads = [threading.Thread(target=self._guarded, args=one, daemon=True) for one in waits]
        self._threads.append(threading.Thread(target=self._guarded, args=("view", None, 0), daemon=True))

    def __enter__(self) -> Self:
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stopping.set()
        self._over.set()

    def finish(self, seconds: float) -> None:
        """Let each get its last answer; all that they wait for has been sent. Raises what one has raised."""
        self._stopping.set()
        until = time.monotonic() + seconds
        for thread in self._threads:
            thread.join(max(0.0, until - time.monotonic()))
        if self._failures:
            raise self._failures[0]
        waiting = sum(thread.is_alive() for thread in self._threads)
        if waiting:
            raise AssertionError(f"{waiting} were never told: {self.most}, {self.answers}, {self.again}")

    def stop_asking(self) -> int:
        """Nobody asks for a new commit any more; the latest one that was asked for."""
        self._stopping.set()
        return self.most

    def _guarded(self, kind: str, ask: Ask | None, ahead: int) -> None:
        try:
            reader = reader_of(self._uri)
            while not self._stopping.is_set():
                self._view(reader) if ask is None else self._wait(kind, ask, self._number() + 1 + 7 * ahead, reader)
        except BaseException as error:  # noqa: BLE001 raised again in `finish`
            self._failures.append(error)

    def _wait(self, kind: str, ask: Ask, number: int, reader: Reader) -> None:
        self.most = max(self.most, number)
        while not ask(at(number)):
            self.again[kind] += 1
            if self._over.is_set():
                return
        self._check(kind, number, reader)

    def _view(self, reader: Reader) -> None:
        """Read the view first, and the rows afterwards."""
        time.sleep(_LOOK_S)
        if (found := reader.applied(self._changefeed)) >= at(1):
            self._check("view", (found - at(0)) >> 18, reader)

    def _check(self, kind: str, number: int, reader: Reader) -> None:
        self.answers[kind] += 1
        sent = min(number, self._number())
        if (there := reader.rows(sent)) != sent:
            self.early.append(f"{kind}: {number} was covered, and {there} of {sent} rows were there")
