"""`status` says with which error the last run ended, until one leads again."""

import pytest

from consumer.wiring import target_of
from ordering.errors import SourceError, TargetError
from tests.service.lab import Feed
from tests.service.messages import at, begun, insert, watermarks

pytestmark = [pytest.mark.service, pytest.mark.kafka]


def test_the_error_that_ended_a_run_is_told_until_one_leads_again(feed: Feed) -> None:
    feed.send(begun())
    feed.once()
    assert feed.status()["last_stop"] is None
    feed.send([insert("d.other", 5, id=1, v=1), *watermarks(6)])
    error = feed.failing(TargetError)

    told = feed.status()["last_stop"]
    assert (told["exit_code"], told["error"]) == (4, str(error))
    shown = feed.command("status", str(feed.file())).stdout
    assert "state        stopped by an error, exit code 4" in shown
    assert "table d.other is missing in the target" in shown
    feed.failing(TargetError)
    assert feed.status()["last_stop"]["at"] > told["at"]

    feed.cells.run("d", "CREATE TABLE other (id INT PRIMARY KEY, v INT)")
    feed.once()
    assert feed.status()["last_stop"] is None
    assert feed.checkpoint() >= at(6)


def test_what_ends_a_run_before_it_leads_is_told_too(sqlite_feed: Feed) -> None:
    feed = sqlite_feed.with_(source={"bootstrap-servers": "127.0.0.1:1"})
    error = feed.failing(SourceError)
    stop = feed.status()["last_stop"]
    assert (stop["exit_code"], stop["error"]) == (3, str(error))


def test_what_ends_a_stand_by_is_not_told_of_the_changefeed(feed: Feed) -> None:
    feed.with_(source={"bootstrap-servers": "127.0.0.1:1"})
    leader = target_of(feed.config)
    leader.connect()
    try:
        assert leader.try_lead(feed.name)
        feed.failing(SourceError)
        assert feed.status()["last_stop"] is None
    finally:
        leader.close()
