"""Whatever becomes of the target in mid-way: all is applied in the end, once."""

import resource
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from dataclasses import replace
from pathlib import Path
from urllib.parse import urlsplit, urlunsplit

import psycopg
import pymysql
import pytest

from ordering.errors import TargetBusyError, TargetError, TargetUnreachableError
from sinks.mysql import connection as mysql_connection
from sinks.postgres import connection as postgres_connection
from sinks.steps import Step
from sinks.uri import parse_target_uri
from tests.bench.measure import mysql_connection as connected
from tests.embedded import MariaDbServer
from tests.service.cells import MariaDbCells, differences, oracle
from tests.service.lab import Feed, is_row, recorded
from tests.service.messages import begun, insert, update, watermarks
from tests.service.proxy import Proxy

pytestmark = [pytest.mark.service, pytest.mark.kafka]
RECORDING = "split.index-value.raw"
PATIENT = {"retry-seconds": 60, "window-rows": 20}


@contextmanager
def through(feed: Feed) -> Iterator[tuple[Feed, Proxy]]:
    """The feed, with a proxy before its target."""
    place = urlsplit(feed.uri)
    with Proxy(place.hostname or "", place.port or 0) as proxy:
        login = place.netloc.rpartition("@")[0]
        uri = urlunsplit(place._replace(netloc=f"{login}@127.0.0.1:{proxy.port}"))
        yield replace(feed, uri=uri, settings={}).with_(limits=PATIENT), proxy


def each(*numbers: int) -> Callable[[bytes], bool]:
    """Whether this is one of these COMMITs, counted from 1."""
    seen = 0

    def loses(sent: bytes) -> bool:
        nonlocal seen
        seen += b"COMMIT" in sent
        return b"COMMIT" in sent and seen in numbers

    return loses


def applied_once(feed: Feed) -> None:
    """Send the recording, run, and compare."""
    messages = recorded(RECORDING)
    feed.send(messages)
    counts = feed.once().counts
    assert differences(oracle("split"), feed.cells) == []
    assert counts.events == sum(map(is_row, messages))


@pytest.mark.by_turns
@pytest.mark.parametrize("kind", ["mariadb", "postgres"])
@pytest.mark.parametrize("consistency", ["snapshot", "transaction"])
def test_the_answer_of_a_commit_is_lost(request: pytest.FixtureRequest, kind: str, consistency: str) -> None:
    with through(request.getfixturevalue(f"{kind}_feed")) as (feed, proxy):
        proxy.loses = each(2, 4, 5, 7)
        applied_once(feed.with_(target={"consistency": consistency}))
        assert proxy.lost == 4


@pytest.mark.parametrize("kind", ["mariadb", "postgres"])
def test_the_line_is_cut_in_mid_transaction(request: pytest.FixtureRequest, kind: str) -> None:
    with through(request.getfixturevalue(f"{kind}_feed")) as (feed, proxy):
        left = [Step.APPLY_BEGUN, Step.ROWS_WRITTEN, Step.PROGRESS_WRITTEN]

        def cut(step: Step) -> None:
            if left and step is left[0]:
                left.pop(0)
                proxy.cut()

        messages = recorded(RECORDING)
        feed.send(messages)
        counts = feed.once(cut).counts
        assert not left
        assert differences(oracle("split"), feed.cells) == []
        assert counts.events == sum(map(is_row, messages))


def test_the_server_is_killed_in_mid_transaction(sqlite_feed: Feed, tmp_path: Path) -> None:
    with MariaDbServer(tmp_path / "mariadb") as server:
        feed = replace(sqlite_feed, uri=server.uri, cells=MariaDbCells(server.uri), settings={}).with_(limits=PATIENT)
        left = [Step.ROWS_WRITTEN]

        def kill(step: Step) -> None:
            if left and step is left[0]:
                left.pop()
                server.kill()
                threading.Thread(target=server.start).start()

        messages = recorded(RECORDING)
        feed.send(messages)
        counts = feed.once(kill).counts
        fresh = MariaDbCells(server.uri)
        assert differences(oracle("split"), fresh) == []
        assert counts.events == sum(map(is_row, messages))
        fresh.close()


@contextmanager
def holding(seconds: float, release: Callable[[], None]) -> Iterator[None]:
    """Let go of something after a while, in the background."""
    timer = threading.Timer(seconds, release)
    timer.start()
    try:
        yield
    finally:
        timer.join()


@pytest.mark.by_turns
@pytest.mark.parametrize("kind", ["mariadb", "postgres"])
def test_a_competing_writer_holds_a_row(
    request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    feed: Feed = request.getfixturevalue(f"{kind}_feed").with_(limits=PATIENT)
    monkeypatch.setattr(mysql_connection, "_LOCK_WAIT_S", 1)
    monkeypatch.setitem(postgres_connection._SESSION, "lock_timeout", "1000")
    feed.send(begun())
    feed.once()
    other = connected(feed.uri) if kind == "mariadb" else psycopg.connect(feed.uri)
    with closing(other), other.cursor() as cursor:
        if kind == "mariadb":
            other.begin()  # type: ignore[union-attr]
        cursor.execute("SELECT * FROM d.t FOR UPDATE")
        began = time.monotonic()
        feed.send([update("d.t", 8, {"v": 1}, id=1, v=8, s="one"), *watermarks(9)])
        with holding(2.5, other.rollback):
            feed.once()
        assert time.monotonic() - began > 2.5
    assert {(row["id"], row["v"]) for row in feed.cells.tables(["d"])["d.t"][1]} == {(1, 8)}


def test_a_target_that_is_read_only_for_a_while(postgres_feed: Feed, own_database: str) -> None:
    name = own_database.rpartition("/")[2].partition("?")[0]
    feed = replace(postgres_feed, uri=own_database, settings={}).with_(limits=PATIENT)
    feed.send(begun())
    feed.once()
    feed.send([insert("d.t", 8, id=9, v=8, s="x"), *watermarks(9)])

    def mode(read_only: str) -> None:
        with psycopg.connect(postgres_feed.uri, autocommit=True) as admin:
            admin.execute(f"ALTER DATABASE {name} SET default_transaction_read_only = {read_only}".encode())

    mode("on")
    impatient = replace(feed, settings={}).with_(limits={"retry-seconds": 0.1})
    error = impatient.failing(TargetUnreachableError)
    assert (error.exit_code, "read-only" in error.fact) == (4, True)
    with holding(2, lambda: mode("off")):
        feed.once()
    with psycopg.connect(own_database) as connection:
        assert connection.execute("SELECT v FROM d.t WHERE id = 9").fetchall() == [(8,)]


def test_a_disk_that_is_full_leaves_nothing_half(sqlite_feed: Feed) -> None:
    """The limit on a file's size stands for the disk's: the system refuses the write in the same place."""
    feed = sqlite_feed
    feed.send(begun())
    before = feed.once().checkpoint_ts
    feed.send([insert("d.t", 8, number % 3, id=number + 10, v=8, s="x" * 4000) for number in range(100)])
    feed.send(watermarks(9))
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)

    def fill(step: Step) -> None:
        if step is Step.APPLY_BEGUN:
            resource.setrlimit(resource.RLIMIT_FSIZE, (64 << 10, limits[1]))

    try:
        with pytest.raises(TargetError) as caught:
            feed.once(fill)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    assert caught.value.exit_code == 4
    assert feed.checkpoint() == before
    assert len(feed.cells.tables(["d"])["d.t"][1]) == 1
    feed.once()
    assert len(feed.cells.tables(["d"])["d.t"][1]) == 101


MYSQL = {
    1040: TargetUnreachableError,  # too many connections
    1053: TargetUnreachableError,  # server shutdown
    1205: TargetBusyError,  # lock wait timeout
    1213: TargetBusyError,  # deadlock
    1836: TargetUnreachableError,  # read-only mode: a failover goes on
    2006: TargetUnreachableError,  # gone away
    2013: TargetUnreachableError,  # lost connection
    9007: TargetBusyError,  # TiDB: write conflict
    1021: TargetError,  # disk full
    1045: TargetError,  # access denied
    1062: TargetError,  # duplicate entry
    1146: TargetError,  # no such table
}


@pytest.mark.parametrize("code", sorted(MYSQL))
def test_mysql_s_codes_say_who_must_act(mariadb_server: MariaDbServer, code: int) -> None:
    with closing(mysql_connection.MysqlConnection(parse_target_uri(mariadb_server.uri))) as connection:
        found = connection._as_error(pymysql.err.OperationalError(code, "said the server"))
    assert type(found) is MYSQL[code]
    assert str(code) in found.fact
