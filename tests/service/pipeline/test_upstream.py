"""Messages that hold the handle key only: the row is read from the upstream, a real TiDB, as of its commitTs."""

import json
from collections.abc import Iterator
from typing import Any

import pymysql
import pytest

from consumer.demo.fake_ticdc.changefeed import Message
from consumer.operate.check import findings
from ordering.errors import BodyMissingError, InputError, SourceError
from tests.embedded import TidbServer
from tests.service.lab import Feed
from tests.service.messages import TOPIC, encoded, row_value, value_of

pytestmark = pytest.mark.service

TYPES = """CREATE TABLE {}.ty (id BIGINT UNSIGNED, k VARBINARY(8), f FLOAT, d DOUBLE, de DECIMAL(20,5), b BIT(40),
  e ENUM('a','b'), bi BINARY(4), bl BLOB, j JSON, y YEAR, z INT(5) UNSIGNED ZEROFILL, dt DATETIME(3),
  ts TIMESTAMP(6) NULL, ti TIME(2), c CHAR(5), v VARCHAR(20), virt INT AS (y + 1) VIRTUAL, kept INT AS (y + 2) STORED,
  `50%s` INT DEFAULT 50, PRIMARY KEY (id, k))"""
SENT = {
    "id": "18446744073709551615", "k": "\x00\xffk", "f": "123456780000000000000", "d": "0.000000125", "de": "1.50000",
    "b": "5", "e": "2", "bi": "ab\x00\x00", "bl": "\x00\xff\x80", "j": '{"a": 1, "b": [1, 2.5]}', "y": "0",
    "z": "7", "dt": "2026-01-02 03:04:05.678", "ts": "2026-01-02 11:04:05.678901", "ti": "-838:59:59.00", "c": "x",
    "v": "é😀'\\", "kept": "2",
    "50%s": "50",
}  # fmt: skip
"""What TiCDC would send of the row that the test inserts, with the server's time zone +08:00."""


Key = dict[str, str]


class Origin:
    """A database in a TiDB, and the messages about it as a changefeed with `handle-key-only` sends large ones."""

    def __init__(self, server: TidbServer, database: str) -> None:
        self.database = database
        self._connection = pymysql.connect(
            host="127.0.0.1", port=server.port, user="root", autocommit=True, charset="utf8mb4"
        )
        self.collect(2020)
        self.run(f"CREATE DATABASE {database}")

    def collect(self, year: int) -> None:
        """Say that garbage was collected up to a year: a cluster's collector does so, and a lone server has none."""
        self.run(f"REPLACE INTO mysql.tidb VALUES ('tikv_gc_safe_point', '{year}0101-00:00:00.000 +0000', '')")

    def run(self, statement: str) -> int:
        """Execute; the commitTs."""
        with self._connection.cursor() as cursor:
            cursor.execute(statement)
            cursor.execute("SELECT JSON_EXTRACT(@@tidb_last_txn_info, '$.commit_ts')")
            return int((cursor.fetchone() or ("0",))[0])

    def clock(self) -> int:
        """The TSO of now."""
        with self._connection.cursor() as cursor:
            cursor.execute("BEGIN")
            cursor.execute("SELECT @@tidb_current_ts")
            found = int((cursor.fetchone() or ("0",))[0])
            cursor.execute("COMMIT")
        return found

    def close(self) -> None:
        self.collect(2020)
        self.run(f"DROP DATABASE {self.database}")
        self._connection.close()

    def message(
        self, kind: str, table: str, ts: int, key: dict[str, str], old: dict[str, str] | None = None
    ) -> Message:
        value = row_value(kind, f"{self.database}.{table}", ts, key, old, tuple(key))
        return Message(TOPIC, 0, encoded({**value, "_tidb": {"commitTs": ts, "onlyHandleKey": True}}))

    def create(self, sql: str, table: str) -> Message:
        self.run(sql.format(self.database))
        value = value_of("CREATE", f"{self.database}.{table}", self.clock(), isDdl=True)
        return Message(TOPIC, 0, encoded({**value, "sql": sql.replace("{}.", "")}))

    def watermarks(self) -> list[Message]:
        """Watermarks above everything so far."""
        value = encoded({**value_of("TIDB_WATERMARK", "", 0), "_tidb": {"watermarkTs": self.clock() + 100}})
        return [Message(TOPIC, partition, value) for partition in range(3)]


@pytest.fixture
def origin(tidb_server: TidbServer, database_prefix: str) -> Iterator[Origin]:
    found = Origin(tidb_server, database_prefix)
    yield found
    found.close()


@pytest.fixture
def plain(sqlite_feed: Feed, origin: Origin) -> Feed:
    """A feed whose target has the database already."""
    sqlite_feed.make_database(origin.database, "CREATE TABLE other (id INT PRIMARY KEY)")
    return sqlite_feed


@pytest.fixture
def fed(plain: Feed, tidb_server: TidbServer) -> Feed:
    """A feed that may ask the upstream."""
    return plain.with_(source={"upstream": {"uri": tidb_server.uri}, "time-zone": "+08:00"})


def rows(feed: Feed, origin: Origin, table: str = "t") -> list[dict[str, Any]]:
    return feed.cells.tables([origin.database])[f"{origin.database}.{table}"][1]


def test_values_are_what_ticdc_sends(fed: Feed, origin: Origin) -> None:
    """Compared with the same row as a whole message, in the target."""
    created = origin.create(TYPES, "ty")
    ts = origin.run(
        f"INSERT INTO {origin.database}.ty (id, k, f, d, de, b, e, bi, bl, j, y, z, dt, ts, ti, c, v) VALUES"
        " (18446744073709551615, 0x00ff6b, 1.2345678e20, 1.25e-7, 1.5, 5, 'b', 'ab', 0x00ff80,"
        ' \'{"b": [1, 2.5], "a": 1}\','
        " 0, 7, '2026-01-02 03:04:05.678', '2026-01-02 03:04:05.678901', '-838:59:59', 'x', 'é😀''\\\\')"
    )
    key = {"id": SENT["id"], "k": SENT["k"]}
    fed.send([created, origin.message("INSERT", "ty", ts, key), *origin.watermarks()])
    fed.once()
    (fetched,) = rows(fed, origin, "ty")
    whole = row_value("UPDATE", f"{origin.database}.ty", ts + 5, SENT, SENT, ("id", "k"))
    fed.send([Message(TOPIC, 0, encoded(whole)), *origin.watermarks()])
    fed.once()
    assert rows(fed, origin, "ty") == [fetched]
    assert fetched["v"] == SENT["v"]


@pytest.mark.parametrize(
    ("name", "value"),
    [("tidb_enable_external_ts_read", "ON"), ("sql_mode", "'PAD_CHAR_TO_FULL_LENGTH'"), ("sql_select_limit", "1")],
)
def test_whatever_the_upstream_is_set_to(fed: Feed, origin: Origin, name: str, value: str) -> None:
    """A read of the past comes before `tidb_snapshot` there; a limit cuts answers off, columns too."""
    created = origin.create("CREATE TABLE {}.t (id INT PRIMARY KEY, c CHAR(5))", "t")
    first = origin.run(f"INSERT INTO {origin.database}.t VALUES (1, 'x'), (2, 'y')")
    past = origin.clock()
    then = origin.run(f"UPDATE {origin.database}.t SET c = 'z' WHERE id = 1")
    sent = [origin.message("INSERT", "t", first, {"id": str(key)}) for key in (1, 2)]
    fed.send([created, *sent, origin.message("UPDATE", "t", then, {"id": "1"}, {"id": "1"}), *origin.watermarks()])
    origin.run(f"SET GLOBAL tidb_external_ts = {past}")
    origin.run(f"SET GLOBAL {name} = {value}")
    try:
        fed.once()
    finally:
        origin.run(f"SET GLOBAL {name} = {'OFF' if value == 'ON' else 'DEFAULT'}")
    assert sorted((row["id"], row["c"]) for row in rows(fed, origin)) == [(1, "z"), (2, "y")]


def test_the_row_as_of_its_commit_not_as_it_is_now(fed: Feed, origin: Origin) -> None:
    created = origin.create("CREATE TABLE {}.t (id INT PRIMARY KEY, v INT, s TEXT)", "t")
    first = origin.run(f"INSERT INTO {origin.database}.t VALUES (1, 1, 'first'), (2, 1, 'two')")
    then = origin.run(f"UPDATE {origin.database}.t SET s = 'then' WHERE id = 1")
    moved = origin.run(f"UPDATE {origin.database}.t SET id = 3 WHERE id = 2")
    ticks = origin.watermarks()
    origin.run(f"UPDATE {origin.database}.t SET s = 'later'")
    origin.run(f"ALTER TABLE {origin.database}.t DROP COLUMN v")
    fed.send([
        created,
        *(origin.message("INSERT", "t", first, {"id": key}) for key in "12"),
        origin.message("UPDATE", "t", then, {"id": "1"}, {"id": "1"}),
        origin.message("UPDATE", "t", moved, {"id": "3"}, {"id": "2"}),
        *ticks,
    ])  # fmt: skip
    fed.once()
    assert rows(fed, origin) == [{"id": 1, "v": 1, "s": "then"}, {"id": 3, "v": 1, "s": "two"}]


def test_a_delete_and_a_row_that_is_replaced_need_no_upstream(plain: Feed, origin: Origin) -> None:
    created = origin.create("CREATE TABLE {}.t (id INT PRIMARY KEY, s TEXT)", "t")
    ts = origin.run(f"INSERT INTO {origin.database}.t VALUES (1, 'x')")
    whole = row_value("UPDATE", f"{origin.database}.t", ts + 9, {"id": 1, "s": "whole"}, {"id": 1, "s": "x"})
    plain.send([
        created,
        *(origin.message("INSERT", "t", ts, {"id": key}) for key in "12"),
        origin.message("DELETE", "t", ts + 9, {"id": "2"}),
        Message(TOPIC, 0, encoded(whole)),
        *origin.watermarks(),
    ])  # fmt: skip
    plain.once()
    assert rows(plain, origin) == [{"id": 1, "s": "whole"}]


@pytest.mark.parametrize("case", ["collected", "no-such-row", "no-such-table", "out-of-reach", "wrong-password"])
def test_a_row_that_cannot_be_had(fed: Feed, origin: Origin, tidb_server: TidbServer, case: str) -> None:
    created = origin.create("CREATE TABLE {}.t (id INT PRIMARY KEY, s TEXT)", "t")
    ts = origin.run(f"INSERT INTO {origin.database}.t VALUES (1, 'x')")
    key = {"id": "7" if case == "no-such-row" else "1"}
    expected: dict[str, tuple[type[Exception], str]] = {
        "collected": (InputError, "garbage-collected"),
        "no-such-row": (InputError, "no such row"),
        "no-such-table": (InputError, "can't show"),
        "out-of-reach": (BodyMissingError, "out of reach"),
        "wrong-password": (SourceError, "refuses us"),
    }
    uris = {"out-of-reach": "tidb://root@127.0.0.1:1", "wrong-password": tidb_server.uri.replace("@", ":s3cret@")}
    fed.with_(source={"upstream": {"uri": uris.get(case, tidb_server.uri)}})
    value = json.loads(created.value)
    if case == "no-such-table":
        created = created._replace(value=encoded({**value, "table": "u", "sql": "CREATE TABLE u (id INT PRIMARY KEY)"}))
    if case == "collected":
        origin.collect(2100)
    table = "u" if case == "no-such-table" else "t"
    fed.send([created, origin.message("INSERT", table, ts, key), *origin.watermarks()])
    error = fed.failing()
    kind, fact = expected[case]
    assert (type(error), error.exit_code) == (kind, 3)
    assert fact in error.fact
    assert f"topic={fed.topic} partition=0 offset=1" in str(error).splitlines()[0]
    assert "s3cret" not in str(error)
    assert rows(fed, origin, table) == []


def test_check_tries_the_upstream(fed: Feed) -> None:
    fed.make_topic()
    assert [f.error for f in findings(fed.config) if f.subject == "upstream"] == [None]
    fed.with_(source={"upstream": {"uri": "tidb://root@127.0.0.1:1"}})
    (found,) = [f for f in findings(fed.config) if f.subject == "upstream"]
    assert "127.0.0.1:1" in str(found.error)
