"""Event filters end to end: what they leave out is in no table, and everything else goes on."""

from typing import Any

import pytest

from consumer.operate.check import findings
from ordering.errors import ConfigError, InputError, TargetError
from sinks.steps import Step
from tests.service.lab import Feed
from tests.service.messages import at, begun, ddl, delete, insert, keyed, update, watermarks

pytestmark = [pytest.mark.service, pytest.mark.kafka]


def filtering(feed: Feed, *filters: dict[str, Any], rules: tuple[str, ...] = ("d.t*", "e.*")) -> Feed:
    return feed.with_(filter={"rules": list(rules), "event-filters": [{"matcher": ["d.t"], **one} for one in filters]})


def rows(feed: Feed, table: str = "d.t") -> list[tuple[str, ...]]:
    found = feed.cells.tables([table.partition(".")[0]])[table][1]
    return sorted(tuple(str(value) for value in row.values()) for row in found)


def test_rows_are_left_out_by_kind_and_by_value(sqlite_feed: Feed) -> None:
    feed = filtering(
        sqlite_feed,
        {"ignore-event": ["delete"]},
        {"ignore-insert-value-expr": "v >= 20 or s = 'draft'"},
        {"ignore-update-old-value-expr": "s = 'kept'", "ignore-update-new-value-expr": "v is null"},
    )
    feed.send([
        *begun(),
        insert("d.t", 4, id=2, v=20, s="two"),  # ignored
        insert("d.t", 4, 1, id=3, v=3, s="draft"),  # ignored
        insert("d.t", 5, id=4, v=4, s="kept"),
        delete("d.t", 6, id=1, v=1, s="one"),  # ignored: the INSERT behind it replaces the row
        insert("d.t", 7, id=1, v=7, s="again"),
        update("d.t", 8, {"v": 4}, id=4, v=8, s="kept"),  # ignored: by what `old` does not hold
        update("d.t", 9, {"v": 20}, id=2, v=None, s="two"),  # ignored
        update("d.t", 9, {"v": 3}, 1, id=3, v=9, s="published"),  # of a row whose INSERT was ignored: it is written
        *watermarks(9),
    ])  # fmt: skip
    outcome = feed.once()
    assert rows(feed) == [("1", "7", "again"), ("3", "9", "published"), ("4", "4", "kept")]
    assert (outcome.counts.events, outcome.counts.filtered, outcome.counts.duplicates) == (9, 5, 0)
    assert feed.status()["filtered"] == 5


def test_updates_of_nothing_but_named_columns_are_left_out_but_for_keys(sqlite_feed: Feed) -> None:
    """`v` becomes a key within the topic: from then on UPDATEs of it count."""
    feed = filtering(sqlite_feed, {"ignore-update-only-columns": ["V"]})
    feed.send([
        *begun(),
        insert("d.t", 4, id=2, v=2, s="two"),
        update("d.t", 5, {"v": 2}, id=2, v=9, s="two"),  # ignored
        update("d.t", 6, {"v": 1, "s": "one"}, id=1, v=5, s="both"),
        ddl("d.t", 7, "ALTER TABLE `t` ADD UNIQUE KEY `u` (`v`)", "ALTER"),
        update("d.t", 8, {"v": 5}, id=1, v=7, s="both"),
        *watermarks(8),
    ])  # fmt: skip
    assert feed.once().counts.filtered == 1
    assert rows(feed) == [("1", "7", "both"), ("2", "2", "two")]


def test_what_was_left_out_is_no_late_event_when_it_comes_again(sqlite_feed: Feed) -> None:
    feed = filtering(sqlite_feed, {"ignore-event": ["delete"]})
    messages = [*begun(), delete("d.t", 4, id=1, v=1, s="one"), *watermarks(4)]
    feed.send(messages)
    feed.once()
    feed.send([*messages, insert("d.t", 5, id=2, v=2, s="two"), *watermarks(5)])
    outcome = feed.once()
    assert rows(feed) == [("1", "1", "one"), ("2", "2", "two")]
    assert (outcome.counts.filtered, outcome.counts.duplicates) == (2, 1)


def test_in_transaction_consistency_too(sqlite_feed: Feed) -> None:
    feed = filtering(sqlite_feed, {"ignore-event": ["update"]}).with_(target={"consistency": "transaction"})
    feed.send([*begun(), update("d.t", 4, {"v": 1}, id=1, v=2, s="one"), insert("d.t", 4, id=2, v=2, s="two")])
    feed.send(watermarks(4))
    assert feed.once().counts.filtered == 1
    assert rows(feed) == [("1", "1", "one"), ("2", "2", "two")]


def test_ddls_are_left_out_and_logged_and_rows_go_on(feed: Feed) -> None:
    filtering(feed, {"ignore-event": ["truncate table", "drop table"], "ignore-sql": ["comment = 'no"]})
    feed.send([
        *begun(),
        ddl("d.t", 4, "TRUNCATE TABLE `t`", "TRUNCATE"),
        insert("d.t", 5, id=2, v=2, s="two"),
        ddl("d.t", 6, "ALTER TABLE `t` COMMENT = 'None'", "ALTER"),
        ddl("d.u", 7, "CREATE TABLE `u` (`id` INT PRIMARY KEY)"),
        ddl("d.t", 8, "ALTER TABLE `t` SET TIFLASH REPLICA 1", "ALTER"),
        ddl("d.t", 9, "DROP TABLE `d`.`t`", "ERASE"),
        *watermarks(10),
    ])  # fmt: skip
    feed.once()
    assert rows(feed) == [("1", "1", "one"), ("2", "2", "two")]
    assert feed.checkpoint() == at(10)
    log = [(line["state"], line["executed"]) for line in reversed(feed.status()["ddl_history"])]
    assert [state for state, _ in log] == ["done", "done", *["ignored"] * 5]
    assert [why for _, why in log[2:]] == [
        "filter.event-filters.0 ignores 'truncate table'",
        "filter.event-filters.0.ignore-sql matches",
        "filter.rules leave it out",
        "TiCDC's list of DDLs to replicate does not hold it: SET TIFLASH REPLICA 1",
        "filter.event-filters.0 ignores 'drop table'",
    ]


class Crash(Exception):  # noqa: N818 not an error: the test's own
    """Where the test lets a run die."""


@pytest.mark.by_turns
@pytest.mark.parametrize("at_step", [Step.DDL_RECORDED, Step.DDL_DONE])
def test_a_ddl_is_passed_over_once_whatever_ends_the_run(sqlite_feed: Feed, at_step: Step) -> None:
    def crash(step: Step) -> None:
        if step is at_step:
            raise Crash

    feed = filtering(sqlite_feed, {"ignore-event": ["truncate table"]})
    feed.send(begun())
    feed.once()
    truncated = ddl("d.t", 4, "TRUNCATE TABLE `t`", "TRUNCATE")
    feed.send([truncated, insert("d.t", 5, id=2, v=2, s="two"), *watermarks(5)])
    with pytest.raises(Crash):
        feed.once(crash)
    feed.once()
    feed.send([truncated, *watermarks(5)])
    feed.once()
    assert rows(feed) == [("1", "1", "one"), ("2", "2", "two")]
    assert [line["state"] for line in feed.status()["ddl_history"]] == ["ignored", "done", "done"]


def test_a_table_without_a_valid_index_is_not_made_and_its_rows_are_refused(sqlite_feed: Feed) -> None:
    feed = filtering(sqlite_feed)
    feed.send([*begun(), ddl("d.t2", 4, "CREATE TABLE `t2` (`v` INT)"), *watermarks(4)])
    feed.once()
    assert feed.status()["ddl_history"][0]["executed"].startswith("table d.t2 has no valid index")
    feed.send([keyed(insert("d.t2", 5, v=1)), *watermarks(5)])
    assert "filter.force-replicate" in feed.failing(TargetError).hint


def test_a_table_that_is_renamed_out_of_the_filter_leaves_it(sqlite_feed: Feed) -> None:
    feed = filtering(sqlite_feed)
    renamed = ddl("d.x", 4, "RENAME TABLE `d`.`t` TO `d`.`x`", "RENAME")
    feed.send([*begun(), renamed, insert("d.x", 5, id=2, v=2, s="two"), *watermarks(5)])
    feed.once()
    assert rows(feed, "d.x") == [("1", "1", "one")]


def test_a_table_that_is_renamed_into_the_filter_is_an_error(sqlite_feed: Feed) -> None:
    feed = filtering(sqlite_feed)
    feed.send([*begun(), ddl("d.t2", 4, "RENAME TABLE `d`.`x` TO `d`.`t2`", "RENAME"), *watermarks(5)])
    error = feed.failing(InputError)
    assert error.exit_code == 3
    assert "RENAME of d.x to d.t2" in error.fact
    assert f"topic={feed.topic} partition=0" in error.where


def test_a_row_that_a_condition_cannot_judge_stops_the_run(sqlite_feed: Feed) -> None:
    feed = filtering(sqlite_feed, {"ignore-insert-value-expr": "price > 5"})
    feed.send(begun())
    error = feed.failing(InputError)
    assert "lacks column 'price'" in error.fact
    assert f"topic={feed.topic} partition=0 offset=2" in error.where


def test_a_filter_that_takes_in_more_is_refused(sqlite_feed: Feed) -> None:
    feed = filtering(sqlite_feed, {"ignore-event": ["delete"]})
    feed.send(begun())
    feed.once()
    filtering(feed, {"ignore-event": ["delete"]}, {"ignore-insert-value-expr": "v > 5"})
    feed.send([insert("d.t", 4, id=6, v=6, s="six"), *watermarks(4)])
    assert feed.once().counts.filtered == 1
    assert "filter.event-filters differ" in filtering(feed, {"ignore-event": ["delete"]}).failing(InputError).fact


def test_an_expression_follows_a_column_that_is_renamed(sqlite_feed: Feed) -> None:
    feed = filtering(sqlite_feed, {"ignore-insert-value-expr": "v > 5"})
    feed.send(begun())
    feed.once()
    renamed = ddl("d.t", 4, "ALTER TABLE `t` RENAME COLUMN `v` TO `w`", kind="ALTER")
    feed.send([renamed, insert("d.t", 5, id=6, w=6, s="six"), insert("d.t", 5, id=7, w=2, s="two"), *watermarks(6)])
    assert "changed-event-filters" in feed.failing(InputError).hint
    filters = [{"matcher": ["d.*"], "ignore-insert-value-expr": "w > 5"}]
    assert "changed-event-filters" in feed.with_(filter={"event-filters": filters}).failing(InputError).hint
    accepted = feed.with_(filter={"event-filters": filters, "changed-event-filters": "accept"})
    assert accepted.once().counts.filtered == 1
    assert feed.with_(filter={"event-filters": filters}).once().checkpoint_ts == at(6)
    assert {row["id"] for row in feed.cells.tables(["d"])["d.t"][1]} == {1, 7}


def test_check_says_what_the_filter_does(sqlite_feed: Feed) -> None:
    feed = filtering(sqlite_feed, {"ignore-insert-value-expr": "v > 5"})
    feed.send(begun())
    told = [finding.text for finding in findings(feed.config) if finding.subject == "filter"]
    assert told == ["2 rules, 1 event filter"]
    assert not feed.cells.directory.exists()  # type: ignore[union-attr]  # nothing was changed
    feed.once()
    told = [finding.text for finding in findings(feed.config) if finding.subject == "filter"]
    assert told == ["2 rules: 1 of 1 table in the target", "event filter 0: 1 table in the target"]
    filtering(feed, {"ignore-insert-value-expr": "price > 5"})
    (finding,) = [finding for finding in findings(feed.config) if finding.subject == "filter"]
    assert isinstance(finding.error, ConfigError)
    assert "price" in finding.text
