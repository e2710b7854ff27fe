"""`target.audit`: a line for each window, written with its progress, whole through crashes, bounded by age."""

import json
from collections import Counter
from collections.abc import Iterator
from contextlib import closing
from itertools import count, pairwise
from typing import Any

import pytest

from consumer.operate.audit import audit_of
from consumer.wiring import target_of
from sinks.bookkeeping import audit
from sinks.steps import Step
from tests.service.commands.test_prove import changes, every, feed
from tests.service.lab import Feed
from tests.service.local import Killed, LocalFeed
from tests.service.messages import at, begun, watermarks

__all__ = ["every", "feed"]
pytestmark = pytest.mark.service
CONSISTENCIES = ["snapshot", "transaction", "row"]


def audited(feed: LocalFeed, consistency: str = "snapshot", **more: Any) -> LocalFeed:
    feed.with_(target={"consistency": consistency, "audit": True, **more})
    return feed.by_tasks() if consistency == "row" else feed


def lines(feed: Feed) -> list[dict[str, Any]]:
    """The oldest first."""
    return audit_of(feed.config, 10_000)[::-1]


def rows_written(feed: LocalFeed) -> int:
    with closing(target_of(feed.config)) as target:
        stored = target.stored(feed.name)
    return 0 if stored is None else stored.progress.counts.rows_written


@pytest.mark.parametrize("consistency", CONSISTENCIES)
def test_each_window_has_a_line(every: LocalFeed, consistency: str) -> None:
    audited(every, consistency)
    every.send(begun())
    every.apply()
    every.send([*changes(4), *watermarks(9)])
    every.apply()
    every.send(watermarks(15))
    every.apply()
    every.send([*changes(20), *watermarks(29)])
    every.apply()
    found = lines(every)
    assert len(found) == 3, "a window without rows has none"
    assert [one["checkpoint_ts"] for one in found] == [at(3), at(9), at(29)]
    assert all(set(one["rows_by_table"]) == {"d.t"} for one in found)
    assert sum(one["rows"] for one in found) == rows_written(every)
    assert all(one["rows"] == sum(one["rows_by_table"].values()) for one in found)
    assert all(low["checkpoint_ts"] <= high["above_ts"] < high["checkpoint_ts"] for low, high in pairwise(found))
    assert all(low["epoch"] < high["epoch"] for low, high in pairwise(found))


def test_without_it_nothing_is_written(feed: LocalFeed) -> None:
    feed.send(begun())
    feed.apply()
    assert lines(feed) == []
    with closing(target_of(feed.config)) as target:
        assert not target.session.book.has("audit")


@pytest.mark.parametrize("consistency", CONSISTENCIES)
def test_after_a_crash_at_any_step_no_row_is_missing(feed: LocalFeed, consistency: str) -> None:
    """Of rows whose transactions were committed before the line was, only the tables are lost."""
    audited(feed, consistency)
    feed.send(begun())
    feed.apply()
    for number in count(1):
        feed.send([*changes(number * 10), *watermarks(number * 10 + 9)])
        steps = iter(range(number))

        def kill(_: Step, steps: Iterator[int] = steps) -> None:
            if next(steps, None) is None:
                raise Killed

        alive = feed.lives(kill)
        feed.apply()
        found = lines(feed)
        assert sum(one["rows"] for one in found) == rows_written(feed), json.dumps(found[-3:])
        assert all(low["checkpoint_ts"] <= high["above_ts"] for low, high in pairwise(found))
        if alive:
            break
    unknown = [one for one in lines(feed) if one["rows_by_table"] is None]
    assert bool(unknown) == (consistency == "transaction")
    assert number > 8


def test_what_was_written_while_the_list_was_off_is_told_as_not_known(feed: LocalFeed) -> None:
    audited(feed).send(begun())
    feed.apply()
    feed.with_(target={"audit": False}).send([*changes(10), *watermarks(19)])
    feed.apply()
    between = rows_written(feed) - 1
    feed.with_(target={"audit": True}).send([*changes(20), *watermarks(29)])
    feed.apply()
    found = lines(feed)
    assert [(one["above_ts"], one["checkpoint_ts"]) for one in found[1:]] == [(at(3), at(19)), (at(19), at(29))]
    assert (found[1]["rows"], found[1]["rows_by_table"]) == (between, None)


def test_one_line_stands_for_many_transactions(feed: LocalFeed, monkeypatch: pytest.MonkeyPatch) -> None:
    audited(feed, "transaction")
    feed.send([*begun(), *changes(10), *changes(20), *changes(30), *watermarks(39)])
    feed.apply()
    many = Counter(one["epoch"] for one in lines(feed))
    assert set(many.values()) == {1}
    monkeypatch.setattr(audit, "_LINE_S", 0.0)
    feed.send([*changes(40), *watermarks(49)])
    feed.apply()
    assert len(lines(feed)) == 1 + 4, "one for each commitTs"


def test_lines_go_by_their_age(feed: LocalFeed) -> None:
    audited(feed, **{"audit-days": 2})
    feed.send(begun())
    feed.apply()
    with closing(target_of(feed.config)) as target:
        target.connect()
        target.session.book.run("UPDATE audit SET applied_at = '2026-01-01T00:00:00.000000+00:00'", ())
    feed.send([*changes(10), *watermarks(19)])
    feed.apply()
    assert [one["checkpoint_ts"] for one in lines(feed)] == [at(3), at(19)], "the latest stays: what follows it counts"
    feed.send([*changes(20), *watermarks(29)])
    feed.apply()
    assert [one["checkpoint_ts"] for one in lines(feed)] == [at(19), at(29)]


def test_what_was_written_before_the_list_was_on_has_a_line(feed: LocalFeed) -> None:
    """So has what a crash has taken the first line of: which of both it was is not known."""
    feed.send([*begun(), *watermarks(3)])
    feed.apply()
    written = rows_written(feed)
    audited(feed).send([*changes(10), *watermarks(19)])
    feed.apply()
    first, second = lines(feed)
    assert (first["checkpoint_ts"], first["rows"], first["rows_by_table"]) == (at(3), written, None)
    assert (second["above_ts"], second["checkpoint_ts"]) == (at(3), at(19))
    assert set(second["rows_by_table"]) == {"d.t"}


def test_a_clock_that_was_ahead_keeps_the_order(feed: LocalFeed) -> None:
    audited(feed)
    feed.send(begun())
    feed.apply()
    with closing(target_of(feed.config)) as target:
        target.connect()
        target.session.book.run("UPDATE audit SET applied_at = '2999-01-01T00:00:00.000000+00:00'", ())
    feed.send([*changes(10), *watermarks(19)])
    feed.apply()
    assert [one["checkpoint_ts"] for one in lines(feed)] == [at(3), at(19)]


@pytest.mark.kafka
def test_the_command_shows_it(sqlite_feed: Feed) -> None:
    sqlite_feed.with_(target={"audit": True})
    sqlite_feed.send([*begun(), *changes(4), *watermarks(9)])
    sqlite_feed.once()
    path = str(sqlite_feed.file())
    (line,) = json.loads(sqlite_feed.command("audit", path, "--json").stdout)
    assert line["rows_by_table"].keys() == {"d.t"}
    told = sqlite_feed.command("audit", path)
    assert f"{line['checkpoint_ts']}]" in told.stdout
    assert "d.t" in told.stdout
