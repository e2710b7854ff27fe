"""Messages that can't be used: exit code 3 at their position, and nothing around them is applied (R8)."""

from collections.abc import Callable
from typing import Any

import pytest

from consumer.demo.fake_ticdc.changefeed import Message
from ordering.errors import InputError
from tests.service.lab import Feed, body
from tests.service.messages import (
    TOPIC,
    at,
    encoded,
    insert,
    lz4,
    row_value,
    snappy,
    update,
    value_of,
    watermark,
    watermarks,
)

pytestmark = pytest.mark.service
ROW = row_value("INSERT", "d.t", at(2), {"id": 2, "v": 2, "s": "x"})
COLUMNS = "id INT PRIMARY KEY, v INT, s VARCHAR(10)"


def without(value: dict[str, Any], *names: str) -> bytes:
    return encoded({key: inner for key, inner in value.items() if key not in names})


BAD: dict[str, tuple[bytes | None, str]] = {
    "not-json": (b"hello", "not valid JSON"),
    "truncated": (encoded(ROW)[:-40], "not valid JSON"),
    "lz4-header-only": (b"\x04\x22\x4d\x18\x60\x40\x82", "can't be decompressed"),
    "lz4-truncated": (lz4(encoded(ROW))[:-20], "can't be decompressed"),
    "lz4-bomb": (lz4(encoded({**ROW, "sql": " " * (1 << 20)})), "limits.message-bytes"),
    "lz4-of-garbage": (lz4(b"hello" * 30), "not valid JSON"),
    "lz4-of-lz4": (lz4(lz4(encoded(ROW))), "not valid JSON"),
    "snappy-truncated": (snappy(encoded(ROW))[:-5], "can't be decompressed"),
    "snappy-bomb": (snappy(encoded({**ROW, "sql": " " * (1 << 20)})), "limits.message-bytes"),
    "snappy-that-claims-4-gib": (b"\xff\xff\xff\xff\x0f" + b"x" * 20, "limits.message-bytes"),
    "snappy-without-end-of-its-length": (b"\xff\xff", "can't be decompressed"),
    "not-utf8": (encoded(ROW).replace(b'"x"', b'"\xff"'), "can't be read"),
    "a-list": (b"[1, 2]", "not Canal-JSON"),
    "a-number": (b"42", "not Canal-JSON"),
    "another-object": (b'{"hello": "world"}', "not Canal-JSON"),
    "text-for-commit-ts": (encoded({**ROW, "_tidb": {"commitTs": "7"}}), "not Canal-JSON"),
    "empty": (b"", "0 bytes"),
    "tombstone": (None, "tombstone"),
    "without-extension": (without(ROW, "_tidb"), "TiDB extension"),
    "without-commit-ts": (encoded({**ROW, "_tidb": {}}), "commitTs"),
    "unknown-type": (encoded({**ROW, "type": "UPSERT"}), "UPSERT"),
    "handle-key-only": (encoded({**ROW, "_tidb": {"commitTs": at(2), "onlyHandleKey": True}}), "handle key only"),
    "no-row": (encoded({**ROW, "data": None}), "exactly one row"),
    "two-rows": (encoded({**ROW, "data": ROW["data"] * 2}), "exactly one row"),
    "update-without-old": (encoded({**ROW, "type": "UPDATE"}), "`old`"),
    "row-without-its-key": (encoded({**ROW, "data": [{"v": "2", "s": "x"}]}), "handle key"),
    "null-key": (encoded({**ROW, "data": [{"id": None, "v": "2", "s": "x"}]}), "handle key"),
    "number-for-a-value": (encoded({**ROW, "data": [{"id": 2, "v": "2", "s": "x"}]}), "handle key"),
    "number-for-another-value": (encoded({**ROW, "data": [{"id": "2", "v": 2, "s": "x"}]}), "can't be read"),
    "watermark-without-ts": (without(value_of("TIDB_WATERMARK", "", 0)), "watermarkTs"),
    "ddl-without-ts": (encoded(value_of("QUERY", "d.t", 0, isDdl=True, sql="CREATE TABLE `x` (`id` INT)")), "commitTs"),
}


@pytest.mark.parametrize("case", sorted(BAD))
def test_bad_messages(sqlite_feed: Feed, case: str) -> None:
    feed = sqlite_feed
    value, fact = BAD[case]
    feed.with_(limits={"message-bytes": "64KiB"}).make_database("d", f"CREATE TABLE t ({COLUMNS})")
    feed.send([insert("d.t", 1, 1, id=1, v=1, s="x")])
    feed.send_raw(1, value)
    feed.send([insert("d.t", 3, 1, id=3, v=3, s="x"), *watermarks(4)])
    error = feed.failing(InputError)
    assert error.exit_code == 3
    assert fact in error.fact
    assert f"topic={feed.topic} partition=1 offset=1" in str(error).splitlines()[0]
    assert feed.cells.tables(["d"])["d.t"][1] == []
    assert feed.checkpoint() == 0


def test_a_ddl_that_nobody_can_read_stops_in_its_place(sqlite_feed: Feed) -> None:
    feed = sqlite_feed
    feed.make_database("d", f"CREATE TABLE t ({COLUMNS})")
    feed.send([insert("d.t", 1, 1, id=1, v=1, s="x")])
    feed.send_raw(1, encoded(value_of("QUERY", "d.t", at(2), isDdl=True, sql="DROP TABLE")))
    feed.send([insert("d.t", 3, 1, id=3, v=3, s="x"), *watermarks(4)])
    error = feed.failing(InputError)
    assert f"topic={feed.topic} partition=1 offset=1" in str(error).splitlines()[0]
    assert "ddl skip" in error.hint
    assert [row["id"] for row in feed.cells.tables(["d"])["d.t"][1]] == [1]
    assert feed.checkpoint() == at(2)


def test_the_extension_that_is_lacking_is_named(sqlite_feed: Feed) -> None:
    sqlite_feed.make_topic()
    sqlite_feed.send_raw(0, without(ROW, "_tidb"))
    assert "enable-tidb-extension=true" in sqlite_feed.failing(InputError).hint


def test_a_bad_message_behind_the_last_watermark_is_found_too(feed: Feed) -> None:
    feed.make_database("d", f"CREATE TABLE t ({COLUMNS})")
    feed.send([insert("d.t", 1, id=1, v=1, s="x"), *watermarks(4)])
    feed.send_raw(2, b"hello")
    assert f"topic={feed.topic} partition=2 offset=1" in str(feed.failing(InputError))
    assert feed.cells.tables(["d"])["d.t"][1] == []


TWINS: dict[str, Callable[[dict[str, Any]], dict[str, Any]]] = {
    "another-clock": lambda v: {**v, "ts": 1},
    "another-order-of-types": lambda v: {**v, "mysqlType": dict(reversed(v["mysqlType"].items()))},
    "another-order-of-columns": lambda v: {**v, "data": [dict(reversed(v["data"][0].items()))]},
    "another-order-of-keys": lambda v: dict(reversed(v.items())),
    "compressed-and-another-order-of-columns": lambda v: {**v, "data": [dict(reversed(v["data"][0].items()))]},
    "a-claim-check": lambda v: {**v, "_tidb": {**v["_tidb"], "claimCheckLocation": "file:///x"}},
}


@pytest.mark.parametrize("case", sorted(TWINS))
def test_the_same_content_spelled_differently_is_a_duplicate(sqlite_feed: Feed, case: str) -> None:
    feed = sqlite_feed
    feed.make_database("d", f"CREATE TABLE t ({COLUMNS})")
    first = insert("d.t", 1, 1, id=1, v=1, s="x")
    twin = encoded(TWINS[case](body(first)))
    feed.send([first, first._replace(value=lz4(twin) if case.startswith("compressed") else twin), *watermarks(2)])
    outcome = feed.once()
    assert outcome.counts.duplicates_proven == 1
    assert [row["s"] for row in feed.cells.tables(["d"])["d.t"][1]] == ["x"]


@pytest.mark.parametrize("places", [(1, 1), (0, 2)])
@pytest.mark.parametrize("kind", ["insert", "update"])
def test_one_identity_with_two_contents(feed: Feed, kind: str, places: tuple[int, int]) -> None:
    feed.make_database("d", f"CREATE TABLE t ({COLUMNS})")
    if kind == "insert":
        pair = [insert("d.t", 1, place, id=1, v=1, s=text) for place, text in zip(places, "ab", strict=True)]
    else:
        pair = [update("d.t", 1, {"v": 0}, place, id=1, v=1, s=text) for place, text in zip(places, "ab", strict=True)]
    feed.send([*pair, *watermarks(2)])
    error = feed.failing(InputError)
    assert error.exit_code == 3
    for place, offset in zip(places, (0, 1) if places[0] == places[1] else (0, 0), strict=True):
        assert f"topic={feed.topic} partition={place} offset={offset}" in error.where
    assert feed.cells.tables(["d"])["d.t"][1] == []
    assert feed.checkpoint() == 0


@pytest.mark.kafka
def test_offsets_that_retention_deleted(sqlite_feed: Feed) -> None:
    feed = sqlite_feed
    feed.make_database("d", f"CREATE TABLE t ({COLUMNS})")
    feed.send([insert("d.t", 1, 1, id=1, v=1, s="x"), *watermarks(2)])
    feed.once()
    feed.send([insert("d.t", n, 1, id=n, v=1, s="x") for n in range(3, 8)])
    feed.delete_records(1, 4)
    feed.send(watermarks(9))
    error = feed.failing(InputError)
    assert error.exit_code == 3
    assert f"topic={feed.topic} partition=1 offset=2" in str(error)
    assert "retention" in str(error)
    assert len(feed.cells.tables(["d"])["d.t"][1]) == 1


@pytest.mark.kafka
def test_a_log_that_begins_after_start_ts(sqlite_feed: Feed) -> None:
    feed = sqlite_feed
    feed.send([Message(TOPIC, 0, insert("d.t", 5, id=1, v=1, s="x").value), *watermarks(5), *watermarks(9)])
    feed.delete_records(0, 2)
    error = feed.with_(source={"start-ts": at(3)}).failing(InputError)
    assert "start-ts" in error.fact
    assert f"topic={feed.topic} partition=0 offset=2" in str(error)


@pytest.mark.kafka
def test_a_partition_without_watermark_holds_everything_back(feed: Feed) -> None:
    feed.make_database("d", f"CREATE TABLE t ({COLUMNS})")
    feed.send([insert("d.t", 1, id=1, v=1, s="x"), watermark(2, 0), watermark(2, 2)])
    outcome = feed.once()
    assert (outcome.counts.events, outcome.checkpoint_ts) == (0, 0)
    assert feed.cells.tables(["d"])["d.t"][1] == []
    assert feed.status()["source"]["held_back_by"] == [f"topic={feed.topic} partition=1"]
    feed.send([watermark(1, 1)])
    assert feed.once().checkpoint_ts == at(1)


def test_an_empty_topic(sqlite_feed: Feed) -> None:
    sqlite_feed.make_topic()
    outcome = sqlite_feed.once()
    assert (outcome.counts.windows, outcome.checkpoint_ts) == (0, 0)


def test_a_missing_topic(sqlite_feed: Feed) -> None:
    error = sqlite_feed.failing(InputError)
    assert error.exit_code == 3
    assert sqlite_feed.topic in error.fact
    assert sqlite_feed.bootstrap in error.where
