"""Writes down, in the target itself, who saved which progress: proof that never two leaders wrote.

A trigger on our progress table adds a line for every update of a changefeed's row, in the transaction that makes it.
The row is locked by then, so the lines are in the order of the commits.
"""

import sqlite3
from abc import ABC, abstractmethod
from collections.abc import Sequence
from contextlib import closing
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from urllib.parse import urlsplit

import psycopg

from tests.bench.measure import mysql_connection

Line = tuple[int, int, int]
"""Epoch, checkpoint, connection (0 where the target knows none)."""


@dataclass(frozen=True)
class Verdict:
    """What the lines tell; `wrong` names the first two that can't follow each other."""

    lines: int
    leaders: int
    wrong: str = ""


def judged(lines: Sequence[Line]) -> Verdict:
    """Epochs and checkpoints only rise, and all that is saved under one epoch comes over one connection."""
    owners: dict[int, int] = {}
    for number, (before, after) in enumerate(pairwise([*lines[:1], *lines])):
        back = after[0] < before[0] or after[1] < before[1]
        if back or owners.setdefault(after[0], after[2]) != after[2]:
            return Verdict(len(lines), len(owners), f"line {number}: {before} then {after}")
    return Verdict(len(lines), len(owners))


class Audit(ABC):
    """The trigger on one changefeed's row."""

    def __init__(self, uri: str, changefeed: str) -> None:
        self._uri, self._changefeed = uri, changefeed
        self._table = f"audit_{changefeed.replace('-', '_')}"

    @abstractmethod
    def begin(self) -> None:
        """Make the trigger; the progress table is there."""

    @abstractmethod
    def epoch(self) -> int:
        """The epoch now."""

    @abstractmethod
    def lines(self) -> list[Line]:
        """All lines, in the order of the commits."""

    @abstractmethod
    def end(self) -> None:
        """Leave nothing behind."""


class MysqlAudit(Audit):
    """In the progress database, which a test may write to."""

    def _run(self, *statements: str) -> list[tuple[int, ...]]:
        with closing(mysql_connection(self._uri)) as connection, connection.cursor() as cursor:
            for statement in statements:
                cursor.execute(statement)
            return list(cursor.fetchall())

    def begin(self) -> None:
        """See `Audit.begin`."""
        table = f"ticdc_reconciler.{self._table}"
        self._run(
            f"CREATE TABLE {table} (id INT AUTO_INCREMENT PRIMARY KEY, epoch BIGINT, ts BIGINT, connection BIGINT)",
            f"CREATE TRIGGER {table} AFTER UPDATE ON ticdc_reconciler.checkpoint FOR EACH ROW"
            f" IF NEW.changefeed = '{self._changefeed}' THEN"
            f" INSERT INTO {table} VALUES (NULL, NEW.epoch, NEW.checkpoint_ts, CONNECTION_ID()); END IF",
        )

    def epoch(self) -> int:
        """See `Audit.epoch`."""
        found = self._run(f"SELECT epoch FROM ticdc_reconciler.checkpoint WHERE changefeed = '{self._changefeed}'")
        return int(found[0][0]) if found else 0

    def lines(self) -> list[Line]:
        """See `Audit.lines`."""
        found = self._run(f"SELECT epoch, ts, connection FROM ticdc_reconciler.{self._table} ORDER BY id")
        return [(int(epoch), int(ts), int(connection)) for epoch, ts, connection in found]

    def end(self) -> None:
        """See `Audit.end`."""
        table = f"ticdc_reconciler.{self._table}"
        self._run(f"DROP TRIGGER {table}", f"DROP TABLE {table}")


class PostgresAudit(Audit):
    """In the progress schema; the trigger fires always, also where the session silences others."""

    def _run(self, statement: str) -> list[tuple[int, ...]]:
        with psycopg.connect(self._uri, autocommit=True) as connection:
            cursor = connection.execute(statement.encode())
            return cursor.fetchall() if cursor.description else []

    def begin(self) -> None:
        """See `Audit.begin`."""
        name = f"ticdc_reconciler.{self._table}"
        self._run(f"CREATE TABLE {name} (id bigserial, epoch bigint, ts bigint, connection bigint)")
        self._run(
            f"CREATE FUNCTION {name}() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN"
            f" INSERT INTO {name} (epoch, ts, connection) VALUES (NEW.epoch, NEW.checkpoint_ts, pg_backend_pid());"
            " RETURN NULL; END $$"
        )
        self._run(
            f"CREATE TRIGGER {self._table} AFTER UPDATE ON ticdc_reconciler.checkpoint FOR EACH ROW"
            f" WHEN (NEW.changefeed = '{self._changefeed}') EXECUTE FUNCTION {name}()"
        )
        self._run(f"ALTER TABLE ticdc_reconciler.checkpoint ENABLE ALWAYS TRIGGER {self._table}")

    def epoch(self) -> int:
        """See `Audit.epoch`."""
        found = self._run(f"SELECT epoch FROM ticdc_reconciler.checkpoint WHERE changefeed = '{self._changefeed}'")
        return int(found[0][0]) if found else 0

    def lines(self) -> list[Line]:
        """See `Audit.lines`."""
        found = self._run(f"SELECT epoch, ts, connection FROM ticdc_reconciler.{self._table} ORDER BY id")
        return [(int(epoch), int(ts), int(connection)) for epoch, ts, connection in found]

    def end(self) -> None:
        """See `Audit.end`."""
        self._run(f"DROP FUNCTION ticdc_reconciler.{self._table} CASCADE")
        self._run(f"DROP TABLE ticdc_reconciler.{self._table}")


class SqliteAudit(Audit):
    """In the progress file. SQLite knows no connections: epochs and checkpoints have to do."""

    def _run(self, statement: str) -> list[tuple[int, ...]]:
        file = Path(urlsplit(self._uri).path[1:]) / "ticdc_reconciler.sqlite"
        with closing(sqlite3.connect(file, timeout=30, isolation_level=None)) as connection:
            return connection.execute(statement).fetchall()

    def begin(self) -> None:
        """See `Audit.begin`."""
        self._run(f"CREATE TABLE {self._table} (id INTEGER PRIMARY KEY, epoch INT, ts INT)")
        self._run(
            f"CREATE TRIGGER {self._table}_t AFTER UPDATE ON checkpoint WHEN NEW.changefeed = '{self._changefeed}'"
            f" BEGIN INSERT INTO {self._table} VALUES (NULL, NEW.epoch, NEW.checkpoint_ts); END"
        )

    def epoch(self) -> int:
        """See `Audit.epoch`."""
        found = self._run(f"SELECT epoch FROM checkpoint WHERE changefeed = '{self._changefeed}'")
        return int(found[0][0]) if found else 0

    def lines(self) -> list[Line]:
        """See `Audit.lines`."""
        found = self._run(f"SELECT epoch, ts FROM {self._table} ORDER BY id")
        return [(epoch, ts, 0) for epoch, ts in found]

    def end(self) -> None:
        """See `Audit.end`."""
        self._run(f"DROP TRIGGER {self._table}_t")
        self._run(f"DROP TABLE {self._table}")


def audit_of(uri: str, changefeed: str) -> Audit:
    """The audit of a target's URI."""
    kinds: dict[str, type[Audit]] = {"sqlite": SqliteAudit, "postgresql": PostgresAudit}
    return kinds.get(uri.partition(":")[0], MysqlAudit)(uri, changefeed)
