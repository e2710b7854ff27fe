"""The recordings once more in the Open Protocol: every recording ends as TiCDC's upstream ended, cell by cell.

`tests.open_protocol` writes the messages anew. Run again, nothing changes; sent a second time, nothing changes and
every repetition is counted.
"""

from itertools import product
from typing import Any

import pytest

from ordering.errors import InputError
from tests.open_protocol import as_open
from tests.service.cells import differences, oracle
from tests.service.lab import Feed, is_row, recorded
from tests.service.rows.sent_again import check_sent_again
from tests.service.rows.test_simple_vectors import CONSISTENCIES, MORE
from tests.service.rows.test_vectors import EVERYWHERE, IN_TASKS, SMALL, WITHOUT_NUL

pytestmark = pytest.mark.service

OPTIONS: tuple[dict[str, Any], ...] = (
    {},
    {"batch": 1},
    {"compression": "lz4"},
    {"compression": "snappy"},
    {"batch": 3},
)
OLDER = ("types.delete-only-handle-key", "split.delete-only-handle-key.split", "split.only-updated-columns.raw")
CASES = [
    *((name, "sqlite", CONSISTENCIES[i % 3]) for i, name in enumerate((*EVERYWHERE, *MORE, *OLDER))),
    *((name, "mariadb", CONSISTENCIES[i % 3]) for i, name in enumerate((*MORE, *EVERYWHERE, *OLDER))),
    *((name, "postgres", CONSISTENCIES[i % 3]) for i, name in enumerate(WITHOUT_NUL)),
    *product(("split.index-value.raw", "ddl-basic.table"), ("sqlite", "mariadb", "postgres"), CONSISTENCIES),
]
WHOLE = [
    *product((*SMALL, *MORE), ("sqlite", "mariadb"), CONSISTENCIES),
    *product(WITHOUT_NUL, ("postgres",), CONSISTENCIES),
]
REST = [pytest.param(*case, marks=pytest.mark.soak) for case in dict.fromkeys(WHOLE) if case not in CASES]


def applied(feed: Feed, recording: str, **options: Any) -> None:
    """Send a recording in this format; see `check_sent_again`."""
    check_sent_again(
        feed.with_(source={"protocol": "open-protocol"}), recording, as_open(recorded(recording), **options)
    )


@pytest.mark.cells(by_turns=(("feed", "consistency"), "recording"))
@pytest.mark.parametrize(("recording", "feed", "consistency"), [*dict.fromkeys(CASES), *REST], indirect=["feed"])
def test_recordings(feed: Feed, recording: str, consistency: str) -> None:
    if consistency == "row" and recording in IN_TASKS:
        feed.by_tasks()
    if recording.startswith("types-without-nul"):
        feed.with_(target={"invalid-dates": "null"})
    options = OPTIONS[sum(map(ord, recording + consistency)) % len(OPTIONS)]
    applied(feed.with_(target={"consistency": consistency}), recording, **options)


@pytest.mark.by_turns
@pytest.mark.spark
@pytest.mark.cells(by_turns=("consistency",))
@pytest.mark.parametrize("consistency", CONSISTENCIES)
@pytest.mark.parametrize("feed", ["sqlite"], indirect=True)
def test_recordings_through_kafka_and_spark(feed: Feed, consistency: str) -> None:
    feed.with_(target={"consistency": consistency})
    applied(feed, "bank.index-value.restarts", compression="lz4")


@pytest.mark.by_turns
@pytest.mark.spark
@pytest.mark.parametrize("feed", ["sqlite"], indirect=True)
def test_ddls_through_kafka_and_spark(feed: Feed) -> None:
    applied(feed, "ddl-basic.restarts")


@pytest.mark.by_turns
@pytest.mark.parametrize("feed", ["sqlite", "postgres"], indirect=True)
def test_a_batch_across_a_watermark_is_counted_once(feed: Feed) -> None:
    """What lies above a watermark is read twice, with the rest of its batch."""
    sent = as_open(recorded("bank.index-value.restarts"), batch=16)
    feed.with_(source={"protocol": "open-protocol"})
    for start in range(0, len(sent), 500):
        feed.send(sent[start : start + 500])
        feed.once()
    rows = sum(map(is_row, recorded("bank.index-value.restarts")))
    assert feed.once().counts.events == rows
    assert differences(oracle("bank"), feed.cells) == []


@pytest.mark.parametrize("feed", ["sqlite"], indirect=True)
def test_without_old_values_rows_are_written_whole(feed: Feed) -> None:
    feed.with_(source={"protocol": "open-protocol"}).send(as_open(recorded("bank.index-value.split"), old_values=False))
    feed.once()
    assert differences(oracle("bank"), feed.cells) == []


@pytest.mark.parametrize("feed", ["sqlite"], indirect=True)
def test_a_broken_batch_is_refused_as_a_whole(feed: Feed) -> None:
    sent = as_open(recorded("split.index-value.raw"))
    at = next(i for i, m in enumerate(sent) if b'"u"' in m.value)
    broken = sent[at]._replace(value=sent[at].value[:-3])
    feed.with_(source={"protocol": "open-protocol"}).send([*sent[:at], broken, *sent[at + 1 :]])
    error = feed.failing(InputError)
    assert "its value" in error.fact
    assert f"partition={broken.partition} offset=" in error.where
