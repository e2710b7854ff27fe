"""TiCDC's own messages end as TiCDC's upstream ended: every recording, target and consistency, cell by cell.

Run again, nothing changes; sent a second time and run again, nothing changes either and every repetition is counted.
"""

from itertools import product

import pytest

from consumer.embedded import RedisServer
from sinks.mysql import writer
from tests.service.cells import differences, oracle
from tests.service.lab import Feed, databases_of, is_row, recorded

pytestmark = pytest.mark.service

EVERYWHERE = (
    "iv.index-value.raw", "iv.index-value.split", "split.index-value.raw", "split.index-value.split",
    "split.table.raw", "split.table.split", "unique-swaps.index-value.raw", "unique-moves-250.index-value.split",
    "odd-keys.index-value.raw", "ddl-basic.table",
)  # fmt: skip
"""Run into both targets in both consistencies."""

ACROSS = (
    "split.ts.raw", "split.columns.raw", "split.default.split", "split.content-compatible.raw",
    "split.only-updated-columns.raw", "split.delete-only-handle-key.split", "split.index-value.restarts",
    "split.lz4.split", "split.snappy.split",
    "ddl-basic.no-watermark-before-ddl", "ddl-basic.restarts", "ddl-defaults.index-value", "types.table",
    "types.content-compatible", "types.only-updated-columns", "types.delete-only-handle-key",
    "keys.index-value.raw", "keys.index-value.split", "names.table", "ddl-columns.index-value",
)  # fmt: skip
"""Differ only in what is read, so each is seen by one target in one consistency."""

IN_TASKS = (
    "split.index-value.raw", "split.table.split", "unique-swaps.index-value.raw", "unique-moves-250.index-value.split",
    "odd-keys.index-value.raw", "ddl-basic.table", "types.table", "keys.index-value.split",
)  # fmt: skip
"""Written by tasks, in `row` consistency."""

SMALL = (*EVERYWHERE, *ACROSS)
WITHOUT_NUL = (
    *(recording for recording in SMALL if not recording.startswith(("odd-keys", "types", "names"))),
    "odd-keys-without-nul.index-value.raw", "types-without-nul.table", "ddl-changes.index-value",
)  # fmt: skip
"""PostgreSQL's texts can't hold U+0000; it sees each recording in one consistency, by turns."""

DIAGONAL = (("sqlite", "transaction"), ("mariadb", "snapshot"))
CASES = [
    *product(EVERYWHERE, ("sqlite", "mariadb"), ("snapshot", "transaction")),
    *product(IN_TASKS, ("mariadb",), ("row",)),
    *product((*EVERYWHERE[1::2], *ACROSS[::3]), ("tidb",), ("row",)),
    ("split.index-value.raw", "tidb", "snapshot"),
    ("unique-swaps.index-value.raw", "tidb", "transaction"),
    ("ddl-basic.table", "sqlite", "row"),
    *((recording, *DIAGONAL[i % 2]) for i, recording in enumerate(ACROSS)),
    *((recording, "postgres", ("snapshot", "transaction", "row")[i % 3]) for i, recording in enumerate(WITHOUT_NUL)),
]
THROUGH_SPARK = (
    ("ddl-basic.table", "sqlite", "snapshot"), ("split.index-value.raw", "sqlite", "transaction"),
    ("split.lz4.split", "mariadb", "snapshot"), ("unique-swaps.index-value.raw", "mariadb", "transaction"),
    ("unique-moves-250.index-value.split", "mariadb", "row"), ("ddl-basic.no-watermark-before-ddl", "postgres", "row"),
    ("split.table.split", "tidb", "row"), ("unique-swaps.index-value.raw", "tidb", "transaction"),
)  # fmt: skip
"""Read from Kafka by Spark: each target, each consistency; the others read the same messages in this process."""

CONSISTENCIES = ("snapshot", "transaction", "row")
WHOLE = [
    *product(SMALL, ("sqlite", "mariadb", "tidb"), CONSISTENCIES),
    *product(WITHOUT_NUL, ("postgres",), CONSISTENCIES),
]
HERE = [case for case in CASES if case not in THROUGH_SPARK and case[1] != "tidb"]
INTO_TIDB = [case for case in CASES if case not in THROUGH_SPARK and case[1] == "tidb"]
REST = [pytest.param(*case, marks=pytest.mark.soak) for case in WHOLE if case not in (*CASES, *THROUGH_SPARK)]
"""What is left of the whole matrix."""

BANK = ("index-value.raw", "index-value.restarts", "index-value.split", "table.raw", "table.split")


def applied(feed: Feed, recording: str) -> None:
    """Send a recording, run, and compare; then run again, and once more after all of it was sent again."""
    messages = recorded(recording)
    upstream = oracle(recording.split(".", maxsplit=1)[0])
    rows = sum(map(is_row, messages))
    feed.send(messages)
    first = feed.once()
    assert differences(upstream, feed.cells) == []
    assert first.counts.events == rows
    feed.send(messages)
    repeated = feed.once()
    assert differences(upstream, feed.cells) == []
    assert repeated.counts.rows_written == first.counts.rows_written
    assert repeated.checkpoint_ts == first.checkpoint_ts
    with_redis = bool(feed.config.redis.uri)
    proven = repeated.counts.duplicates_proven - first.counts.duplicates_proven
    unproven = repeated.counts.duplicates_unproven - first.counts.duplicates_unproven
    assert (proven, unproven) == ((rows, 0) if with_redis else (0, rows))
    assert not (with_redis and first.counts.duplicates_unproven)
    idle = feed.once()
    assert (idle.counts, idle.checkpoint_ts) == (repeated.counts, repeated.checkpoint_ts)


@pytest.mark.cells("recording", ("feed", "consistency"))
@pytest.mark.parametrize(("recording", "feed", "consistency"), [*HERE, *REST], indirect=["feed"])
def test_recordings(feed: Feed, recording: str, consistency: str) -> None:
    ends_as_upstream(feed, recording, consistency)


@pytest.mark.cells(("feed", "consistency"), by_turns=("recording",))
@pytest.mark.parametrize(("recording", "feed", "consistency"), INTO_TIDB, indirect=["feed"])
def test_recordings_into_tidb(feed: Feed, recording: str, consistency: str) -> None:
    ends_as_upstream(feed, recording, consistency)


@pytest.mark.spark
@pytest.mark.cells(by_turns=("feed", "consistency"))
@pytest.mark.parametrize(("recording", "feed", "consistency"), THROUGH_SPARK, indirect=["feed"])
def test_recordings_through_spark(feed: Feed, recording: str, consistency: str) -> None:
    ends_as_upstream(feed, recording, consistency)


def ends_as_upstream(feed: Feed, recording: str, consistency: str) -> None:
    if consistency == "row" and recording in IN_TASKS:  # tasks are to write small windows too
        feed.by_tasks()
    if recording.startswith("types-without-nul"):
        feed.with_(target={"invalid-dates": "null"})
    applied(feed.with_(target={"consistency": consistency}), recording)


@pytest.mark.parametrize(("feed", "consistency"), DIAGONAL, indirect=["feed"])
def test_timestamps_of_another_time_zone(feed: Feed, consistency: str) -> None:
    applied(feed.with_(target={"consistency": consistency}, source={"time-zone": "America/New_York"}), "types.new-york")


@pytest.mark.parametrize("feed", ["mariadb", "tidb"], indirect=True)
def test_types_by_load_data(feed: Feed, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(writer, "_BULK_ROWS", 1)
    applied(feed.with_(target={"consistency": "snapshot"}), "types.table")


@pytest.mark.cells(by_turns=("feed", "variant"))
@pytest.mark.parametrize("variant", [*BANK[:1], pytest.param(BANK[1], marks=pytest.mark.spark), *BANK[2:]])
def test_bank(feed: Feed, redis_server: RedisServer, variant: str) -> None:
    applied(feed.with_(redis={"uri": redis_server.uri}), f"bank.{variant}")


@pytest.mark.by_turns
@pytest.mark.cells(by_turns=("feed",))
@pytest.mark.parametrize("feed", ["sqlite", "mariadb", "postgres"], indirect=True)
@pytest.mark.parametrize("recording", ["bank.index-value.restarts"])
def test_bank_transaction_by_transaction(feed: Feed, redis_server: RedisServer, recording: str) -> None:
    applied(feed.with_(redis={"uri": redis_server.uri}, target={"consistency": "transaction"}), recording)


@pytest.mark.parametrize(("feed", "consistency"), DIAGONAL, indirect=["feed"])
@pytest.mark.parametrize("recording", ["split.index-value.raw", "split.index-value.restarts", "ddl-basic.restarts"])
def test_repetitions_are_proven_with_redis(
    feed: Feed, redis_server: RedisServer, recording: str, consistency: str
) -> None:
    applied(feed.with_(redis={"uri": redis_server.uri}, target={"consistency": consistency}), recording)


def test_all_databases_of_the_recordings_are_compared() -> None:
    for recording in SMALL:
        named = {name.split(".")[0].lower() for name in oracle(recording.split(".")[0])}
        assert {name.lower() for name in databases_of(recorded(recording))} - named <= {"bc"}  # dropped again upstream
