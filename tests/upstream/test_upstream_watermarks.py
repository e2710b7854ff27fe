"""What a watermark promises, and which partitions get one."""

from collections import defaultdict
from itertools import pairwise
from typing import Any

import pytest
from upstream_applier import Value, content, decoded, is_row

from consumer.demo.fake_ticdc.bank import Bank
from consumer.demo.fake_ticdc.changefeed import Changefeed, Message
from consumer.demo.fake_ticdc.database import Database, Table
from consumer.demo.fake_ticdc.ddl import CreateDatabase, CreateTable, DropDatabase, DropTable, RenameTable

PER_TABLE = "cdc_{schema}_{table}"
MISHAPS: list[dict[str, Any]] = [
    {},
    {"topic": PER_TABLE},
    {"topic": PER_TABLE, "watermark_before_ddl": False},
    {"restart_every": 2, "restart_back": 2},
    {"topic": PER_TABLE, "duplicates": 0.2, "restart_every": 3, "full_replays": 1},
    {"lags": {("ticdc", 1): 3}, "restart_every": 4},
    {"stuck": {("ticdc", 0): 4}},
]


def logs(messages: list[Message]) -> dict[tuple[str, int], list[Value]]:
    found = defaultdict(list)
    for message, value in zip(messages, decoded(messages), strict=True):
        found[message.topic, message.partition].append(value)
    return found


def highest(values: list[Value]) -> int:
    return max((value["_tidb"].get("watermarkTs", 0) for value in values), default=0)


@pytest.mark.parametrize("mishaps", MISHAPS, ids=str)
@pytest.mark.parametrize("dispatcher", ["index-value", "table", "ts", "columns"])
def test_rows_up_to_a_watermark_lie_before_it(dispatcher: Any, mishaps: dict[str, Any]) -> None:
    for seed in range(5):
        log = Bank(seed, accounts=5, ddl=0.2).run(25).database.log
        feed = Changefeed(dispatcher=dispatcher, seed=seed, **mishaps)
        for partition in logs(list(feed.messages(log))).values():
            promised, seen, ddls = 0, set(), set()
            for value in partition:
                if is_row(value):
                    assert value["_tidb"]["commitTs"] > promised or content(value) in seen
                    seen.add(content(value))
                elif value["isDdl"]:
                    assert value["_tidb"]["commitTs"] >= promised or value["sql"] in ddls
                    ddls.add(value["sql"])
                else:
                    promised = max(promised, value["_tidb"]["watermarkTs"])


def test_every_partition_of_every_topic_in_use_comes_to_the_same_watermark() -> None:
    log = Bank(1, tables=5).run(30).database.log
    partitions = logs(list(Changefeed(topic=PER_TABLE, partitions=2).messages(log)))
    assert set(partitions) == {(f"cdc_bank_acc{n}", p) for n in range(5) for p in range(2)} | {
        ("ticdc", 0),
        ("ticdc", 1),
    }
    assert {highest(values) for values in partitions.values()} == {log[-1].commit_ts + 1}


def test_a_watermark_equal_to_a_ddl_comes_before_it() -> None:
    log = Bank(2, ddl=0.5).run(10).database.log
    values = decoded(Changefeed(partitions=1).messages(log))
    for before, value in pairwise(values):
        if value["isDdl"]:
            assert before["_tidb"] == {"watermarkTs": value["_tidb"]["commitTs"]}


def one_column(name: str) -> Table:
    return Table("d", name, (("id", "int", False),), ("id",))


@pytest.fixture
def renamed_and_dropped() -> Database:
    database = Database()
    database.execute(CreateDatabase("d"))
    database.execute(CreateTable(one_column("a")))
    database.execute(CreateTable(one_column("b")))
    insert(database, "d.a", "1")
    insert(database, "d.b", "1")
    database.execute(RenameTable("d.a", "d.c"))
    database.execute(DropTable("d.b"))
    insert(database, "d.c", "2")
    insert(database, "d.c", "3")
    return database


def insert(database: Database, table: str, key: str) -> None:
    with database.transaction() as transaction:
        transaction.insert(table, {"id": key})


@pytest.mark.parametrize("before", [True, False])
def test_topics_of_tables_that_are_gone_get_no_more_watermarks(renamed_and_dropped: Database, before: bool) -> None:
    log = renamed_and_dropped.log
    feed = Changefeed(topic=PER_TABLE, partitions=2, watermark_every=1, watermark_before_ddl=before)
    partitions = logs(list(feed.messages(log)))
    rename, drop, end = log[5].commit_ts, log[6].commit_ts, log[-1].commit_ts + 1
    assert partitions["cdc_d_a", 0][-1]["_tidb"] == {"commitTs": rename}
    assert partitions["cdc_d_a", 0][-1]["table"] == "c"
    assert partitions["cdc_d_b", 0][-1]["_tidb"] == {"commitTs": drop}
    assert (highest(partitions["cdc_d_a", 1]) == rename) == before
    assert (highest(partitions["cdc_d_b", 1]) == drop) == before
    assert {highest(partitions[topic, p]) for topic in ("cdc_d_c", "ticdc") for p in (0, 1)} == {end}


def test_a_topic_appears_when_it_is_first_needed(renamed_and_dropped: Database) -> None:
    topics = [message.topic for message in Changefeed(topic=PER_TABLE).messages(renamed_and_dropped.log)]
    assert list(dict.fromkeys(topics)) == ["ticdc", "cdc_d_a", "cdc_d_b", "cdc_d_c"]


def test_dropping_a_database_says_nothing_of_its_tables(renamed_and_dropped: Database) -> None:
    renamed_and_dropped.execute(DropDatabase("d"))
    messages = list(Changefeed(topic=PER_TABLE, partitions=1).messages(renamed_and_dropped.log))
    assert renamed_and_dropped.snapshot() == {}
    assert [(message.topic, value["type"]) for message, value in zip(messages, decoded(messages), strict=True)][
        -2:
    ] == [
        ("ticdc", "QUERY"),
        ("ticdc", "TIDB_WATERMARK"),
    ]


def test_a_partition_can_lag_behind_or_stand_still() -> None:
    log = Bank(5).run(40).database.log
    feed = Changefeed(lags={("ticdc", 1): 2}, stuck={("ticdc", 2): 3})
    marks = {
        where[1]: [value["_tidb"]["watermarkTs"] for value in values if value["type"] == "TIDB_WATERMARK"]
        for where, values in logs(list(feed.messages(log))).items()
    }
    assert marks[1] == marks[0][:-2]
    assert marks[2] == marks[0][:3]


def test_odd_names_make_topics_that_kafka_takes() -> None:
    database = Database()
    database.execute(CreateTable(one_column("odd `name")))
    topics = {message.topic for message in Changefeed(topic=PER_TABLE).messages(database.log)}
    assert topics == {"ticdc", "cdc_d_odd__name"}


def since_last_watermark(values: list[Value], mark: int) -> dict[str, list[tuple[Any, ...]]]:
    """The rows above a watermark per table, in the order in which they were first sent."""
    found: dict[str, dict[tuple[Any, ...], None]] = defaultdict(dict)
    for value in values:
        if is_row(value) and value["_tidb"]["commitTs"] > mark:
            found[value["table"]][content(value)] = None
    return {table: list(rows) for table, rows in found.items()}


def test_a_restart_sends_everything_above_its_watermark_again_and_in_the_tables_order() -> None:
    torn = 0
    for seed in range(10):
        log = Bank(seed, accounts=5, ddl=0.1).run(40).database.log
        feed = Changefeed(partitions=1, seed=seed, restart_every=3, restart_back=2)
        values = decoded(feed.messages(log))
        marks = [(at, value["_tidb"]["watermarkTs"]) for at, value in enumerate(values) if is_watermark(value)]
        restarts = [(at, ts, before) for (_, before), (at, ts) in pairwise(marks) if ts < before]
        assert restarts
        for at, ts, before in restarts:
            was, again = since_last_watermark(values[:at], ts), since_last_watermark(values[at:], ts)
            assert all(again[table][: len(rows)] == rows for table, rows in was.items())
            torn += any(row[0] > before for rows in was.values() for row in rows)
    assert torn


def is_watermark(value: Value) -> bool:
    return bool(value["type"] == "TIDB_WATERMARK")
