"""A real TiDB that ran a recording's script, a target that got its messages, and what `verify` says of both."""

import sqlite3
from collections.abc import Callable, Iterable
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from uuid import uuid4

import psycopg
import pymysql
from pymysql.constants import CLIENT

from consumer.verify.report import VerifyOutcome
from consumer.verify.run import Verification, VerifyOptions
from tests.embedded import TidbServer
from tests.service.cells import VECTORS, MariaDbCells, SqliteCells
from tests.service.lab import recorded
from tests.service.local import LocalFeed
from tests.service.postgres_cells import PostgresCells

Readable = SqliteCells | MariaDbCells | PostgresCells


def run_script(server: TidbServer, name: str) -> None:
    """Execute the script of a recording."""
    with connected(server) as connection, connection.cursor() as cursor:
        cursor.execute("SET time_zone = '+00:00'")
        cursor.execute((VECTORS / f"{name}.sql").read_text())
        while cursor.nextset():
            pass


def connected(server: TidbServer) -> "pymysql.Connection[Any]":
    """A session; a lone server has no collector of garbage, and no snapshot is read without word from one."""
    found = pymysql.connect(
        host="127.0.0.1",
        port=server.port,
        user="root",
        autocommit=True,
        charset="utf8mb4",
        client_flag=CLIENT.MULTI_STATEMENTS,
    )
    with found.cursor() as cursor:
        cursor.execute("REPLACE INTO mysql.tidb VALUES ('tikv_gc_safe_point', '20200101-00:00:00.000 +0000', '')")
    return found


@dataclass
class Verified:
    """A changefeed's target and its verification."""

    feed: LocalFeed

    @property
    def cells(self) -> Readable:
        return self.feed.cells

    def verify(self, **options: Any) -> VerifyOutcome:
        return Verification(self.feed.config, VerifyOptions(**options)).run()

    def lines(self, **options: Any) -> list[str]:
        """What differs, as people read it."""
        return [line for line in self.verify(**options).lines() if not line.startswith(("equal", "DIFFERENT:"))]

    def repaired(self, **options: Any) -> str:
        """Mend the target by what `--fix-sql` writes; the file."""
        path = self.feed.directory / f"{uuid4().hex}.sql"
        self.verify(fix_sql=path, **options)
        text = path.read_text()
        if isinstance(self.cells, SqliteCells):
            with closing(sqlite3.connect(":memory:", isolation_level=None)) as connection:
                connection.executescript(text)
        elif isinstance(self.cells, PostgresCells):
            with psycopg.connect(self.feed.uri, autocommit=True) as session:
                session.execute(text.encode())
        else:
            with closing(MariaDbCells(self.feed.uri)) as other:
                for statement in filter(lambda line: not line.startswith("--"), text.splitlines()):
                    other.query(statement)
        return text


def feed_of(uri: str, cells: Readable, place: Path) -> LocalFeed:
    """A changefeed without Kafka and Spark."""
    return LocalFeed.into(uri, cells, place)


def landed(feed: LocalFeed, recording: str, databases: Iterable[str]) -> Verified:
    """A target once a recording was applied; only its databases are looked at."""
    feed.send(recorded(recording))
    feed.apply()
    feed.with_(filter={"rules": ["`{}`.*".format(d.replace("`", "``")) for d in databases]})
    return Verified(feed)


def statement_runner(cells: Readable, database: str) -> Callable[[str], None]:
    """Executes statements in a database of the target."""
    return lambda statement: cells.run(database, statement)
