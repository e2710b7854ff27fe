"""What others do to the target while we write: real deadlocks, no free connection, a server that takes no writes."""

import threading
from collections.abc import Iterator
from contextlib import ExitStack, closing, contextmanager
from dataclasses import replace
from typing import Any

import psycopg
import pymysql
import pytest
from structlog.testing import capture_logs

from ordering.errors import TargetUnreachableError
from tests.bench.measure import mysql_connection
from tests.embedded import MariaDbServer, PostgresServer
from tests.service.cells import MariaDbCells
from tests.service.competing import Competitor
from tests.service.lab import DEADLINE_S, Feed, eventually
from tests.service.messages import begun, insert, update, watermarks
from tests.service.postgres_cells import PostgresCells

pytestmark = [pytest.mark.service, pytest.mark.kafka]
PATIENT = {"retry-seconds": 60}
ROWS, MIDDLE = 60, 30


@pytest.mark.by_turns
@pytest.mark.parametrize("kind", ["mariadb", "postgres"])
@pytest.mark.parametrize("consistency", ["snapshot", pytest.param("transaction", marks=pytest.mark.soak)])
def test_a_real_deadlock_with_another_writer(request: pytest.FixtureRequest, kind: str, consistency: str) -> None:
    feed: Feed = request.getfixturevalue(f"{kind}_feed")
    if kind == "postgres":
        uri = request.getfixturevalue("own_database")
        feed = replace(feed, uri=uri, cells=PostgresCells(uri), settings={})
        feed.cells.run("public", f"ALTER DATABASE {uri.rsplit('/', 1)[1]} SET deadlock_timeout = '3s'")
    feed.with_(limits=PATIENT, target={"consistency": consistency})
    feed.send(begun("d.other"))
    feed.send(begun())
    feed.send([insert("d.other", 4, n % 3, id=n, v=0, s="x") for n in range(2, 600)])
    feed.send([insert("d.t", 4, n % 3, id=n, v=4, s="x") for n in range(2, ROWS)])
    feed.send(watermarks(5))
    feed.once()
    feed.send([update("d.t", 8, {"v": 4}, n % 3, id=n, v=8, s="y") for n in range(2, ROWS)])
    feed.send(watermarks(9))
    competitor = Competitor(feed.uri, MIDDLE)
    competitor.start()
    with capture_logs() as logs:
        feed.once()
    competitor.join()
    told = [line for line in logs if line["event"] == "trying again"]
    assert [line["kind"] for line in told] == ["TargetBusyError"]
    assert "eadlock" in told[0]["error"]
    rows = feed.cells.tables(["d"])["d.t"][1]
    assert len(rows) == ROWS - 1
    assert {int(row["v"]) for row in rows if int(row["id"]) > 1} == {8}
    if kind == "postgres":
        feed.cells.close()


@pytest.fixture(scope="module")
def few(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, str]]:
    """URIs of servers that take few connections; MariaDB's for a user who is as unprivileged as can be."""
    with ExitStack() as stack:
        mariadb = MariaDbServer(tmp_path_factory.mktemp("few"), flush_at_commit=2, extra={"max-connections": "10"})
        postgres = PostgresServer(
            tmp_path_factory.mktemp("few-pg"),
            extra={"max_connections": "8", "superuser_reserved_connections": "0", "max_wal_senders": "0"},
        )
        uris = {"mariadb": stack.enter_context(mariadb).uri, "postgres": stack.enter_context(postgres).uri}
        with closing(mysql_connection(uris["mariadb"])) as line, line.cursor() as cursor:
            cursor.execute("CREATE USER app@'%' IDENTIFIED BY 'app'")
            cursor.execute("GRANT ALL ON *.* TO app@'%'")
            for right in ("SUPER", "READ_ONLY ADMIN", "CONNECTION ADMIN"):
                cursor.execute(f"REVOKE {right} ON *.* FROM app@'%'")
        yield uris | {"mariadb as app": uris["mariadb"].replace("root:root", "app:app")}


def _begun(sqlite_feed: Feed, few: dict[str, str], kind: str) -> tuple[Feed, Any]:
    """A feed into one of them with one row, and one more to come."""
    name = "mariadb as app" if kind == "mariadb" else kind
    cells: Any = (MariaDbCells if kind == "mariadb" else PostgresCells)(few[kind])
    feed = replace(sqlite_feed, uri=few[name], cells=cells, settings={})
    feed.send(begun())
    feed.once()
    feed.send([insert("d.t", 8, id=9, v=8, s="x"), *watermarks(9)])
    return feed, cells


@contextmanager
def _full(uri: str) -> Iterator[None]:
    """All connections that the server has are in use."""
    with ExitStack() as stack:
        try:
            while True:
                other: Any = psycopg.connect(uri) if uri.startswith("postgresql") else mysql_connection(uri)
                stack.enter_context(closing(other))
        except (pymysql.err.OperationalError, psycopg.OperationalError) as error:
            refusal = str(error)
        assert "too many" in refusal.lower()
        yield


@contextmanager
def _until_it_was_met(state: Any) -> Iterator[None]:
    """In this state until the block has met it and tries again."""
    entered, left = threading.Event(), threading.Event()

    def tried_again() -> bool:
        return left.is_set() or any(line["event"] == "trying again" for line in logs)

    def hold() -> None:
        with state:
            entered.set()
            eventually("it is tried again", tried_again)

    thread = threading.Thread(target=hold)
    with capture_logs() as logs:
        thread.start()
        try:
            assert entered.wait(DEADLINE_S)
            yield
        finally:
            left.set()
            thread.join()
    assert [line for line in logs if line["event"] == "trying again"]


@pytest.mark.by_turns
@pytest.mark.parametrize("kind", ["mariadb", "postgres"])
def test_no_connection_is_free_for_a_while(sqlite_feed: Feed, few: dict[str, str], kind: str) -> None:
    feed, cells = _begun(sqlite_feed, few, kind)
    with _full(feed.uri):
        error = feed.failing(TargetUnreachableError)
    assert error.exit_code == 4
    assert "too many" in str(error).lower()
    with _until_it_was_met(_full(feed.uri)):
        feed.with_(limits=PATIENT).once()
    assert sorted(int(row["id"]) for row in cells.tables(["d"])["d.t"][1]) == [1, 9]
    cells.drop({"d"})
    cells.close()


def test_a_mariadb_that_takes_no_writes_for_a_while(sqlite_feed: Feed, few: dict[str, str]) -> None:
    feed, cells = _begun(sqlite_feed, few, "mariadb")

    @contextmanager
    def read_only() -> Iterator[None]:
        with closing(mysql_connection(few["mariadb"])) as line, line.cursor() as cursor:
            cursor.execute("SET GLOBAL read_only = 1")
            yield
            cursor.execute("SET GLOBAL read_only = 0")

    with read_only():
        error = feed.failing(TargetUnreachableError)
    assert (error.exit_code, "read-only" in error.fact) == (4, True)
    with _until_it_was_met(read_only()):
        feed.with_(limits=PATIENT).once()
    assert sorted(int(row["id"]) for row in cells.tables(["d"])["d.t"][1]) == [1, 9]
    cells.drop({"d"})
    cells.close()
