"""The recordings once more in TiCDC's Debezium format, as far as it loses nothing of them: every one ends as upstream.

`tests.debezium` writes the messages anew. Run again, nothing changes; sent a second time, nothing changes and every
repetition is counted.
"""

from typing import Any

import pytest

from ordering.errors import InputError, TableMismatchError
from sinks.steps import Observer, Step
from tests.debezium import as_debezium
from tests.service.cells import differences, oracle
from tests.service.lab import Feed, recorded
from tests.service.local import Killed, LocalFeed
from tests.service.messages import delete, keyed, typed, watermarks
from tests.service.rows.sent_again import check_sent_again
from tests.service.rows.test_simple_vectors import CONSISTENCIES

pytestmark = pytest.mark.service

RECORDINGS = (
    "split.index-value.raw", "split.table.split", "split.default.split", "split.ts.raw", "split.columns.raw",
    "split.index-value.restarts", "bank.index-value.restarts", "ddl-basic.table", "ddl-basic.restarts",
    "ddl-basic.no-watermark-before-ddl", "topics.topic-per-table", "keys.index-value.split",
    "unique-swaps.index-value.raw", "iv.index-value.raw",
)  # fmt: skip
OPTIONS: tuple[dict[str, Any], ...] = ({}, {"compression": "lz4"}, {"compression": "snappy"})
LOSSY = {"protocol": "debezium", "lossy-values": "stop"}


def applied(feed: Feed, recording: str, **options: Any) -> None:
    """Send a recording in this format; see `check_sent_again`."""
    check_sent_again(feed.with_(source=LOSSY), recording, as_debezium(recorded(recording), **options))


@pytest.mark.cells(by_turns=(("feed", "consistency"), "recording"))
@pytest.mark.parametrize("recording", RECORDINGS)
@pytest.mark.parametrize("feed", ["sqlite", "mariadb", "postgres"], indirect=True)
@pytest.mark.parametrize("consistency", CONSISTENCIES)
def test_recordings(feed: Feed, recording: str, consistency: str) -> None:
    options = OPTIONS[sum(map(ord, recording + consistency)) % len(OPTIONS)]
    applied(feed.with_(target={"consistency": consistency}), recording, **options)


@pytest.mark.cells("feed", "consistency")
@pytest.mark.parametrize("feed", ["sqlite", "mariadb"], indirect=True)  # PostgreSQL has no such long names
@pytest.mark.parametrize("consistency", CONSISTENCIES)
def test_odd_names(feed: Feed, consistency: str) -> None:
    applied(feed.with_(target={"consistency": consistency}), "names.table")


@pytest.mark.parametrize("feed", ["sqlite"], indirect=True)
def test_without_old_values_rows_are_written_whole(feed: Feed) -> None:
    feed.with_(source=LOSSY).send(as_debezium(recorded("bank.index-value.split"), old_values=False))
    feed.once()
    assert differences(oracle("bank"), feed.cells) == []


@pytest.mark.parametrize("feed", ["sqlite"], indirect=True)
def test_a_broken_message_is_told_with_its_position(feed: Feed) -> None:
    sent = as_debezium(recorded("split.index-value.raw"))
    at = next(i for i, m in enumerate(sent) if b'"op":"c"' in m.value)
    broken = sent[at]._replace(value=sent[at].value[:-3])
    feed.with_(source=LOSSY).send([*sent[:at], broken, *sent[at + 1 :]])
    error = feed.failing(InputError)
    assert "Debezium" in error.fact
    assert f"partition={broken.partition} offset=" in error.where


@pytest.mark.parametrize("consistency", CONSISTENCIES)
@pytest.mark.parametrize("feed", ["sqlite"], indirect=True)
def test_killed_at_every_step(feed: LocalFeed, consistency: str) -> None:
    feed.with_(source=LOSSY, target={"consistency": consistency})
    feed.send(as_debezium(recorded("iv.index-value.raw"), compression="snappy"))
    last = 0
    while not feed.lives(killing_after(last := last + 1)):
        assert last < 1_000
    assert last > 5
    assert differences(oracle("iv"), feed.cells) == []


@pytest.mark.parametrize("kind", ["decimal(10,2)", "datetime(1)", "time(1)"])
def test_a_key_that_the_target_holds_as_text_is_refused_where_it_may_end_in_zeros(sqlite_feed: Feed, kind: str) -> None:
    """A dump's `1.50` would not be found by a message's `1.5`."""
    key = {"decimal(10,2)": "1.50", "datetime(1)": "2026-01-01 00:00:00.1", "time(1)": "00:00:00.1"}[kind]
    feed = sqlite_feed.with_(source=LOSSY)
    feed.make_database(
        "d", f"CREATE TABLE t (k TEXT PRIMARY KEY NOT NULL, v INTEGER); INSERT INTO t VALUES ('{key}', 1)"
    )
    feed.send(as_debezium([keyed(typed(delete("d.t", 5, k=key, v=1), k=kind), "k"), *watermarks(6)]))
    error = feed.failing(TableMismatchError)
    assert "the key column 'k'" in error.fact
    assert "partition=0 offset=0" in error.where


def killing_after(steps: int) -> Observer:
    """Ends a life at this step, counted from its beginning; each life goes on a step further than the one before."""
    left = iter(range(steps))

    def observe(_: Step) -> None:
        if next(left, None) is None:
            raise Killed

    return observe
