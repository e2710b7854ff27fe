"""`source.time-zone` of a later run: rows of two zones in one table would be wrong, so another one is refused."""

from pathlib import Path
from typing import Any

import pytest

from consumer.config.model import config_from
from consumer.load import write_file
from consumer.load.run import Load, LoadOptions
from consumer.operate.progress import reset_progress
from consumer.operate.quarantine import replay
from ordering.errors import InputError
from tests.loading.test_service_load_kills import Killed, Stop, values, write_dump
from tests.service.cells import SqliteCells
from tests.service.local import LocalFeed
from tests.service.messages import ddl, insert, typed, watermarks

pytestmark = pytest.mark.service
TABLE = "CREATE TABLE t (id INT PRIMARY KEY, c TIMESTAMP)"


@pytest.fixture
def feed(tmp_path: Path) -> LocalFeed:
    uri = f"sqlite:///{tmp_path}/target"
    return LocalFeed.into(uri, SqliteCells(tmp_path / "target"), tmp_path)


def row(ts: int, number: int) -> Any:
    return typed(insert("d.t", ts, id=number, c="2026-01-01 08:00:00"), c="timestamp")


def begin(feed: LocalFeed, zone: str = "+08:00") -> LocalFeed:
    """A changefeed with a row that is applied, and one that is not yet."""
    feed.with_(source={"time-zone": zone})
    feed.send([ddl("d", 1, "CREATE DATABASE d"), ddl("d.t", 1, TABLE), row(2, 1), *watermarks(3)])
    feed.apply()
    feed.send([row(4, 2), *watermarks(5)])
    return feed


def moments(feed: LocalFeed) -> dict[int, str]:
    return {found["id"]: str(found["c"]) for found in feed.cells.tables(["d"])["d.t"][1]}


def test_rows_of_another_zone_are_refused_with_the_way_out(feed: LocalFeed) -> None:
    begin(feed).with_(source={"time-zone": "UTC"})
    with pytest.raises(InputError, match=r"source\.time-zone is 'UTC'.*'UTC\+08:00'") as caught:
        feed.apply()
    assert "reconciler help recovery" in caught.value.hint
    assert moments(feed) == {1: "2026-01-01 00:00:00"}
    feed.with_(source={"time-zone": "+08:00"})
    feed.apply()
    assert moments(feed) == dict.fromkeys((1, 2), "2026-01-01 00:00:00")


def test_an_operator_goes_on_in_another_zone_by_a_reset_at_the_checkpoint(feed: LocalFeed) -> None:
    begin(feed).apply()
    feed.with_(source={"time-zone": "UTC", "start-ts": feed.checkpoint()})
    reset_progress(feed.config)
    feed.send([row(6, 3), *watermarks(7)])
    feed.apply()
    assert moments(feed) == {1: "2026-01-01 00:00:00", 2: "2026-01-01 00:00:00", 3: "2026-01-01 08:00:00"}


@pytest.mark.parametrize(("first", "then"), [("UTC", "+00:00"), ("Etc/UTC", "-00:00"), ("-00:00", "UTC")])
def test_another_spelling_is_the_same_zone(feed: LocalFeed, first: str, then: str) -> None:
    begin(feed, first).with_(source={"time-zone": then})
    feed.apply()
    assert moments(feed) == dict.fromkeys((1, 2), "2026-01-01 08:00:00")


def test_a_changefeed_that_has_applied_nothing_may_still_choose(feed: LocalFeed) -> None:
    feed.make_topic()
    feed.apply()
    feed.with_(source={"time-zone": "+08:00"})
    feed.send([ddl("d", 1, "CREATE DATABASE d"), ddl("d.t", 1, TABLE), row(2, 1), *watermarks(3)])
    feed.apply()
    assert moments(feed) == {1: "2026-01-01 00:00:00"}


def test_a_quarantined_row_is_not_replayed_in_another_zone(feed: LocalFeed) -> None:
    begin(feed).apply()
    feed.with_(source={"time-zone": "UTC"})
    with pytest.raises(InputError, match=r"source\.time-zone"):
        list(replay(feed.config, []))


def test_a_load_goes_on_in_the_zone_in_which_it_began(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(write_file, "BATCH_ROWS", 10)
    dump, uri = write_dump(tmp_path / "dump"), f"sqlite:///{tmp_path}/target"
    config = config_from(values(uri), "test")
    with pytest.raises(Killed):
        Load(config, LoadOptions(dump), observe=Stop(16)).run()
    with pytest.raises(InputError, match="the load began with"):
        Load(config, LoadOptions(dump, time_zone="+08:00"), observe=Stop(0)).run()
    assert Load(config, LoadOptions(dump), observe=Stop(0)).run().finished
