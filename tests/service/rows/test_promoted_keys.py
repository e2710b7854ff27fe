"""Tables without a primary key upstream, to which somebody has given one in the target."""

from pathlib import Path
from typing import Any

import pytest

from consumer.demo.fake_ticdc.changefeed import Message
from consumer.operate.quarantine import replay
from ordering.errors import TableMismatchError
from ordering.quarantine import QuarantineState
from tests.service.cells import SqliteCells
from tests.service.lab import Feed
from tests.service.local import LocalFeed
from tests.service.messages import TOPIC, at, encoded, row_value, watermarks

pytestmark = pytest.mark.service
HAND_MADE = "CREATE TABLE t (a INT NOT NULL PRIMARY KEY, b INT NOT NULL)"


def insert(number: int, **row: Any) -> Message:
    return Message(TOPIC, 0, encoded(row_value("INSERT", "d.t", at(number), row, None, ())))


def fed(feed: Feed, sql: str, **given: Any) -> Feed:
    """A feed of two rows that are equal in `a`, without the name of a key."""
    feed.make_database("d", sql)
    feed.send([insert(1, a=1, b=1), insert(2, a=1, b=2), *watermarks(9)])
    return feed.with_(filter={"rules": ["*.*"], **given})


@pytest.mark.parametrize("force", [True, False])
@pytest.mark.parametrize("consistency", ["snapshot", "transaction", "row"])
def test_rows_that_are_equal_there_do_not_replace_each_other(feed: Feed, consistency: str, *, force: bool) -> None:
    refused = fed(feed, HAND_MADE, **{"force-replicate": force}).with_(target={"consistency": consistency})
    with pytest.raises(TableMismatchError, match=r"d\.t has no primary key upstream.* over a: ") as caught:
        refused.once()
    assert "promoted-keys" in caught.value.hint
    assert refused.cells.tables(["d"])["d.t"][1] == []


def test_a_unique_key_within_it_tells_rows_apart(feed: Feed) -> None:
    both = fed(feed, "CREATE TABLE t (a INT NOT NULL, b INT NOT NULL, PRIMARY KEY (a, b), UNIQUE (b))")
    assert both.once().counts.rows_written == 2


def test_an_operators_word_counts(feed: Feed) -> None:
    promoted = fed(feed, "CREATE TABLE t (a INT NOT NULL, b INT NOT NULL, PRIMARY KEY (a, b))")
    with pytest.raises(TableMismatchError):
        promoted.once()
    told = promoted.with_(filter={"rules": ["*.*"], "promoted-keys": ["D.*"]})
    assert told.once().counts.rows_written == 2


def test_a_row_that_was_held_is_not_replayed_over_another(tmp_path: Path) -> None:
    """Its table got the primary key after it was held."""
    feed = LocalFeed.into(f"sqlite:///{tmp_path}/target", SqliteCells(tmp_path / "target"), tmp_path)
    feed.make_database("d", "CREATE TABLE t (a INT NOT NULL, b INT NOT NULL, c INT NOT NULL, UNIQUE (a))")
    feed.with_(quarantine={"enabled": True})
    feed.send([insert(1, a=1, b=5, c=1), insert(2, a=2, b=5, c=None), *watermarks(9)])
    feed.apply()
    rows = "SELECT * FROM t"
    feed.make_database(
        "d", f"CREATE TABLE u (a INT, b INT NOT NULL PRIMARY KEY, c INT); INSERT INTO u {rows}; DROP TABLE t"
    )
    feed.make_database("d", "ALTER TABLE u RENAME TO t")
    (verdict,) = replay(feed.config, [])
    assert (verdict.state, "no primary key upstream" in verdict.why) == (QuarantineState.HELD, True)
    assert [row["a"] for row in feed.cells.tables(["d"])["d.t"][1]] == [1]
