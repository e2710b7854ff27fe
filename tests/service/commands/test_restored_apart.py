"""Target, Kafka and Redis restored from backups of different moments: what only Redis remembers was not applied."""

import shutil
from pathlib import Path

import pytest

from consumer.embedded import RedisServer
from ordering.errors import LateEventError
from ordering.events import Partition
from tests.service.local import LocalFeed
from tests.service.messages import at, insert, watermarks

pytestmark = pytest.mark.service


@pytest.fixture
def backed_up(sqlite_feed: LocalFeed, redis_server: RedisServer, tmp_path: Path) -> LocalFeed:
    """A changefeed that applied the rows 1 to 3, and whose target stands at row 1 again."""
    feed = sqlite_feed.with_(redis={"uri": redis_server.uri})
    feed.make_database("d", "CREATE TABLE t (id INT PRIMARY KEY, v INT)")
    feed.send([insert("d.t", 1, id=1, v=1), *watermarks(2)])
    feed.once()
    shutil.copytree(tmp_path / "target", tmp_path / "backup")
    feed.send([insert("d.t", 3, id=2, v=2), insert("d.t", 4, id=3, v=3), *watermarks(5)])
    feed.once()
    shutil.rmtree(tmp_path / "target")
    shutil.copytree(tmp_path / "backup", tmp_path / "target")
    return feed


def ids(feed: LocalFeed) -> list[int]:
    return sorted(int(row["id"]) for row in feed.cells.tables(["d"])["d.t"][1])


def test_an_older_target_with_all_of_redis(backed_up: LocalFeed) -> None:
    assert ids(backed_up) == [1]
    assert backed_up.once().checkpoint_ts == at(5)
    assert ids(backed_up) == [1, 2, 3]
    backed_up.send([insert("d.t", 3, id=2, v=2), *watermarks(6)])
    assert backed_up.once().counts.duplicates_proven == 1


def test_an_older_target_and_an_older_log_with_all_of_redis(backed_up: LocalFeed) -> None:
    """Row 3 comes late to this log: only the run that is lost had applied it."""
    log, first = backed_up.log_of_messages, Partition(backed_up.topic, 0)
    for partition in sorted(log.held):
        log.elect(partition, lost=2 if partition == first else 1)
    assert len(log.held[first]) == 3
    backed_up.send(watermarks(6))
    backed_up.once()
    assert ids(backed_up) == [1, 2]
    backed_up.send([insert("d.t", 4, id=3, v=3), *watermarks(7)])
    with pytest.raises(LateEventError):
        backed_up.once()
