"""A row is read with the schema of its commitTs, and judged once it counts (R14).

Behind a DDL that nobody had seen when it was read; sent again from before a DDL that was executed. The recorded
histories (`tests.histories.keys`) stopped the run with exit 3 for ever, each in another way.
"""

import json
from contextlib import closing
from typing import Any

import pytest

from consumer.demo.fake_ticdc.changefeed import Message
from consumer.embedded import RedisServer
from consumer.operate.progress import reset_progress
from consumer.wiring import target_of
from ordering.errors import ConfigError, InputError, LateEventError
from tests.service.cells import VECTORS, differences, oracle
from tests.service.ddl.test_ddl import TARGETS, made
from tests.service.lab import recorded
from tests.service.local import LocalFeed
from tests.service.messages import TOPIC, at, begun, ddl, encoded, insert, keyed, watermarks

__all__ = ["made"]
pytestmark = pytest.mark.service

CONSISTENCIES = ("snapshot", "transaction", "row")
HISTORIES = sorted(path.name.removesuffix(".jsonl.gz") for path in VECTORS.glob("keys-history-*.jsonl.gz"))
WITH_ALL_KEYS = {"rules": ["*.*"], "force-replicate": True}


def in_portions(feed: LocalFeed, messages: list[Message], length: int) -> None:
    for start in range(0, len(messages), length):
        feed.send(messages[start : start + length])
        feed.apply()


def rows(feed: LocalFeed, *columns: str) -> list[tuple[str, ...]]:
    return sorted(tuple(str(row[c]) for c in columns) for row in feed.cells.tables(["d"])["d.t"][1])


def duplicates(feed: LocalFeed) -> tuple[int, int]:
    """Proven and unproven."""
    with closing(target_of(feed.config)) as target:
        stored = target.stored(feed.name)
        assert stored is not None
        return stored.progress.counts.duplicates_proven, stored.progress.counts.duplicates_unproven


def sqlite_with_redis(made: LocalFeed, redis_server: RedisServer) -> LocalFeed:
    return made.with_(redis={"uri": redis_server.uri})


@pytest.mark.cells("history", "made", ("consistency", "portion"))
@pytest.mark.parametrize(("portion", "window_rows"), [(1_000, 1_000_000), (20, 3), (5, 40)])
@pytest.mark.parametrize("consistency", CONSISTENCIES)
@pytest.mark.parametrize("history", HISTORIES)
@pytest.mark.parametrize("made", TARGETS, indirect=True)
def test_histories_of_keys(
    made: LocalFeed, redis_server: RedisServer, history: str, consistency: str, portion: int, window_rows: int
) -> None:
    made.with_(filter=WITH_ALL_KEYS if history.endswith("124") else {}, redis={"uri": redis_server.uri})
    made.with_(target={"consistency": consistency}, limits={"window-rows": window_rows})
    for _ in range(2):  # all of it once more is nothing but repetitions from before DDLs
        in_portions(made, recorded(history), portion)
        assert differences(oracle(history), made.cells) == []


def test_there_are_histories() -> None:
    assert HISTORIES


@pytest.mark.parametrize("consistency", CONSISTENCIES)
@pytest.mark.parametrize("made", TARGETS, indirect=True)
def test_a_table_made_anew_with_another_key_within_a_window(made: LocalFeed, consistency: str) -> None:
    made.with_(target={"consistency": consistency})
    made.send([
        *begun(),
        ddl("d.t", 5, "DROP TABLE `d`.`t`", kind="ERASE"),
        ddl("d.t", 6, "CREATE TABLE `t` (`a` INT NOT NULL, `s` VARCHAR(10), UNIQUE KEY `u` (`a`))"),
        keyed(insert("d.t", 7, 1, a=5, s="new")),
        *watermarks(9),
    ])  # fmt: skip
    made.apply()
    assert rows(made, "a", "s") == [("5", "new")]


def two_keys() -> list[Message]:
    """A table without a primary key whose handle key goes from `a` to `b`, with a row from before."""
    return [
        ddl("d.", 1, "CREATE DATABASE `d`", kind="QUERY"),
        ddl("d.t", 2, "CREATE TABLE `t` (`a` INT NOT NULL, `b` INT NOT NULL, UNIQUE `ua` (`a`), UNIQUE `ub` (`b`))"),
        keyed(insert("d.t", 3, a=1, b=2)),
        *watermarks(4),
        ddl("d.t", 5, "ALTER TABLE `t` DROP INDEX `ua`", kind="DINDEX"),
        keyed(insert("d.t", 6, a=3, b=4)),
        *watermarks(7),
    ]


@pytest.mark.parametrize("made", ["sqlite"], indirect=True)
def test_rows_from_before_a_change_of_the_key_come_again(made: LocalFeed, redis_server: RedisServer) -> None:
    feed = sqlite_with_redis(made, redis_server)
    feed.send(two_keys())
    feed.apply()
    feed.send(two_keys())
    feed.apply()
    assert rows(feed, "a", "b") == [("1", "2"), ("3", "4")]
    assert duplicates(feed) == (1, 1)  # the first was known by another key


@pytest.mark.parametrize("made", ["sqlite"], indirect=True)
def test_rows_whose_key_is_gone_come_again(made: LocalFeed, redis_server: RedisServer) -> None:
    feed = sqlite_with_redis(made, redis_server)
    again = [
        *two_keys(),
        ddl("d.t", 10, "DROP TABLE `d`.`t`", kind="ERASE"),
        ddl("d.t", 11, "CREATE TABLE `t` (`c` INT NOT NULL, UNIQUE `uc` (`c`))"),
        keyed(insert("d.t", 12, c=1)),
        *watermarks(13),
    ]
    feed.send(again)
    feed.apply()
    feed.send(again)
    feed.apply()
    assert rows(feed, "c") == [("1",)]
    assert duplicates(feed) == (1, 2)


@pytest.mark.parametrize("made", ["sqlite"], indirect=True)
@pytest.mark.parametrize("key", [("id",), ()], ids=["own key", "key of the table"])
def test_a_late_event_is_one_where_no_ddl_lies_between(
    made: LocalFeed, redis_server: RedisServer, key: tuple[str, ...]
) -> None:
    feed = sqlite_with_redis(made, redis_server)
    feed.send([
        *begun(),
        ddl("d.t", 4, "ALTER TABLE `t` ADD COLUMN `x` INT", kind="ALTER"),
        insert("d.t", 8, id=8, v=8, s="x", x=1),
        *watermarks(9),
    ])  # fmt: skip
    feed.apply()
    feed.send([keyed(insert("d.t", 7, id=7, v=7, s="late", x=None), *key)])
    error = feed.failing(LateEventError)
    assert f"topic={feed.topic} partition=0" in str(error)


@pytest.mark.parametrize("made", ["sqlite"], indirect=True)
def test_a_ddl_about_other_columns_hides_no_late_event_of_a_table_with_a_primary_key(
    made: LocalFeed, redis_server: RedisServer
) -> None:
    feed = sqlite_with_redis(made, redis_server)
    feed.send([
        *begun(),
        insert("d.t", 5, id=5, v=5, s="x"),
        *watermarks(6),
        ddl("d.t", 7, "ALTER TABLE `t` ADD COLUMN `x` INT", kind="ALTER"),
        *watermarks(9),
    ])  # fmt: skip
    feed.apply()
    feed.send([insert("d.t", 4, id=4, v=4, s="late")])
    feed.failing(LateEventError)


@pytest.mark.parametrize("made", ["sqlite"], indirect=True)
def test_a_condition_on_a_column_that_does_not_exist_yet_or_any_more(made: LocalFeed) -> None:
    feed = made.with_(filter={"event-filters": [{"matcher": ["d.t"], "ignore-insert-value-expr": "x = 1"}]})
    first = [
        ddl("d.", 1, "CREATE DATABASE `d`", kind="QUERY"),
        ddl("d.t", 2, "CREATE TABLE `t` (`id` INT PRIMARY KEY, `x` INT)"),
        insert("d.t", 3, id=1, x=1),
        insert("d.t", 3, id=2, x=2),
        *watermarks(4),
    ]
    feed.send(first)
    feed.apply()
    feed.send([ddl("d.t", 5, "ALTER TABLE `t` DROP COLUMN `x`", kind="ALTER"), *watermarks(6)])
    feed.apply()
    feed.send([*first, insert("d.t", 5, id=3), *watermarks(6)])  # from below the checkpoint, and it can't be judged
    feed.apply()
    assert rows(feed, "id") == [("2",)]
    feed.send([insert("d.t", 7, id=4), *watermarks(8)])
    assert "event filter" in feed.failing(InputError).fact


@pytest.mark.parametrize("made", ["sqlite"], indirect=True)
def test_two_keys_without_a_ddl_between_are_refused(made: LocalFeed) -> None:
    made.send([*begun(), insert("d.t", 4, id=2, v=2, s="x"), keyed(insert("d.t", 4, id=3, v=3, s="y"), "id", "v")])
    made.send(watermarks(5))
    error = made.failing(InputError)
    assert "two handle keys" in error.fact
    assert "offset=" in str(error)


def broken(message: Message, **more: Any) -> Message:
    return message._replace(value=encoded({**json.loads(message.value), **more}))


@pytest.mark.parametrize("made", ["sqlite"], indirect=True)
@pytest.mark.parametrize("data", [[{"id": 7}], [], [{"id": "7"}, {"id": "8"}]])
def test_a_message_that_is_broken_whatever_the_schema_is_stops_the_run_anywhere(
    made: LocalFeed, data: list[dict[str, object]]
) -> None:
    made.send([*begun(), *watermarks(9)])
    made.apply()
    made.send([broken(insert("d.t", 5, 1, id=7), data=data)])
    assert f"topic={made.topic_for(TOPIC)} partition=1" in str(made.failing(InputError))


@pytest.mark.parametrize("made", ["sqlite"], indirect=True)
@pytest.mark.parametrize("rules", [["D.*"], ["*.*", "!D.*"]])
def test_a_table_that_a_rule_names_in_another_case_is_no_table_without_rows(made: LocalFeed, rules: list[str]) -> None:
    """After a RENAME TiCDC spells a database in lower case."""
    made.with_(filter={"rules": rules, "case-sensitive": True})
    made.send([*begun(), insert("d.t", 4, id=2, v=2, s="x"), *watermarks(5)])
    assert made.failing(ConfigError).where == "filter.case-sensitive"


@pytest.mark.parametrize("made", ["sqlite"], indirect=True)
@pytest.mark.parametrize(
    "statement",
    [
        ddl("shop.u", 6, "RENAME TABLE `shop`.`t` TO `shop`.`u`", kind="RENAME"),
        ddl("shop.t", 6, "TRUNCATE TABLE `t`", kind="TRUNCATE"),
        ddl("shop.t", 6, "DROP TABLE `shop`.`t`", kind="ERASE"),
        ddl("shop.", 6, "DROP DATABASE `shop`", kind="QUERY"),
    ],
)
def test_a_ddl_that_case_alone_leaves_out_stops_the_run(made: LocalFeed, statement: Message) -> None:
    """Its rows would stay; with the advice followed, it goes on."""
    rules = ["Shop.*"]
    made.with_(filter={"rules": rules, "case-sensitive": True})
    made.send([ddl("Shop.", 1, "CREATE DATABASE `Shop`", kind="QUERY")])
    made.send([ddl("Shop.t", 2, "CREATE TABLE `t` (`id` INT PRIMARY KEY)"), insert("Shop.t", 3, id=1), *watermarks(5)])
    made.apply()
    made.send([statement, *watermarks(7)])
    assert made.failing(ConfigError).where == "filter.case-sensitive"
    made.with_(filter={"rules": rules, "case-sensitive": False})
    made.apply()
    assert not made.cells.tables(["Shop"]).get("Shop.t", ([], []))[1]


@pytest.mark.parametrize("made", ["sqlite"], indirect=True)
@pytest.mark.parametrize(
    "sections",
    [
        {"event-filters": [{"matcher": ["Shop.*"], "ignore-event": ["truncate table", "drop table", "drop schema"]}]},
        {"rules": ["*.*", "!Shop.*"]},
    ],
)
@pytest.mark.parametrize(
    "statement",
    [
        ddl("shop.t", 6, "TRUNCATE TABLE `t`", kind="TRUNCATE"),
        ddl("shop.t", 6, "DROP TABLE `shop`.`t`", kind="ERASE"),
        ddl("shop.", 6, "DROP DATABASE `shop`", kind="QUERY"),
    ],
)
def test_a_ddl_that_is_taken_in_by_case_alone_stops_the_run(
    made: LocalFeed, sections: dict[str, object], statement: Message
) -> None:
    """Rows that a rule in another case was to keep went."""
    made.send([ddl("Shop.", 1, "CREATE DATABASE `Shop`", kind="QUERY")])
    made.send([ddl("Shop.t", 2, "CREATE TABLE `t` (`id` INT PRIMARY KEY)"), insert("Shop.t", 3, id=1), *watermarks(5)])
    made.apply()
    made.with_(filter={**sections, "case-sensitive": True}, source={"start-ts": at(5)})
    reset_progress(made.config)
    made.send([statement, *watermarks(7)])
    assert made.failing(ConfigError).where == "filter.case-sensitive"
    made.with_(filter={"case-sensitive": False})
    made.apply()
    assert len(made.cells.tables(["Shop"])["Shop.t"][1]) == 1
