"""The key of the ledger's seals: made once, kept in the target, shown nowhere, gone with its progress."""

import json
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest
from redis import Redis
from structlog.testing import capture_logs

from consumer.embedded import RedisServer
from consumer.operate.progress import reset_progress, shown
from sinks.sqlite.catalog import file_of
from tests.service.cells import SqliteCells
from tests.service.lab import is_row, recorded
from tests.service.local import LocalFeed

pytestmark = pytest.mark.service
RECORDING = "split.index-value.raw"


@pytest.fixture
def feed(tmp_path: Path, redis_server: RedisServer) -> LocalFeed:
    (tmp_path / "t").mkdir()
    found = LocalFeed.into(f"sqlite:///{tmp_path / 't'}", SqliteCells(tmp_path / "t"), tmp_path)
    found.with_(redis={"uri": redis_server.uri})
    found.make_topic()
    return found


def kept(feed: LocalFeed) -> tuple[str, str]:
    """The ledger's name and key, as the target holds them."""
    with closing(sqlite3.connect(file_of(feed.directory / "t", "ticdc_reconciler"))) as line:
        ((state,),) = line.execute("SELECT state FROM checkpoint").fetchall()
    told = json.loads(state)
    return told["ledger"], told.get("ledger_key", "")


def test_one_key_for_all_runs_and_a_new_one_after_a_reset(feed: LocalFeed, redis_server: RedisServer) -> None:
    messages = recorded(RECORDING)
    feed.send(messages)
    with capture_logs() as logs:
        feed.once()
        name, key = kept(feed)
        feed.send(messages)
        counts = feed.once().counts
    assert len(key) == 64
    assert kept(feed) == (name, key)
    rows = sum(map(is_row, messages))
    assert (counts.duplicates_proven, counts.duplicates_unproven) == (rows, 0)
    with Redis.from_url(redis_server.uri) as client:
        held = b"".join(client.dump(found) for found in client.scan_iter(f"*:{name}:*"))  # type: ignore[misc]
    assert held
    assert key not in f"{logs} {shown(feed.config)} {held!r}"
    reset_progress(feed.config)
    after = kept(feed)
    assert after[0] != name
    assert not after[1]  # whoever leads next makes one
