"""The recordings once more in the Simple protocol: every recording ends as TiCDC's upstream ended, cell by cell.

`tests.simple_protocol` writes the messages anew. Run again, nothing changes; sent a second time, nothing changes and
every repetition is counted.
"""

import json
from itertools import product
from typing import Any

import pytest

from ordering.errors import InputError
from tests.service.cells import differences, oracle
from tests.service.lab import Feed, recorded
from tests.service.rows.sent_again import check_sent_again
from tests.service.rows.test_vectors import EVERYWHERE, IN_TASKS, SMALL, WITHOUT_NUL
from tests.simple_protocol import as_simple

pytestmark = pytest.mark.service

MORE = (
    "ddl-basic.no-watermark-before-ddl", "ddl-basic.restarts", "ddl-defaults.index-value", "ddl-changes.index-value",
    "types.table", "keys.index-value.split", "names.table", "topics.topic-per-table", "split.default.split",
    "split.ts.raw", "split.columns.raw", "split.index-value.restarts", "bank.index-value.restarts",
)  # fmt: skip
CONSISTENCIES = ("snapshot", "transaction", "row")
OPTIONS: tuple[dict[str, Any], ...] = (
    {}, {"late": True}, {"compression": "lz4"}, {"compression": "snappy", "late": True}, {"checksums": True},
)  # fmt: skip
CASES = [
    *((name, "sqlite", CONSISTENCIES[i % 3]) for i, name in enumerate((*EVERYWHERE, *MORE))),
    *((name, "mariadb", CONSISTENCIES[i % 3]) for i, name in enumerate((*MORE, *EVERYWHERE))),
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
    check_sent_again(feed.with_(source={"protocol": "simple"}), recording, as_simple(recorded(recording), **options))


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
    applied(feed, "bank.index-value.restarts", compression="lz4", late=True)


@pytest.mark.by_turns
@pytest.mark.spark
@pytest.mark.parametrize("feed", ["sqlite"], indirect=True)
def test_ddls_through_kafka_and_spark(feed: Feed) -> None:
    applied(feed, "ddl-basic.restarts", checksums=True)


@pytest.mark.parametrize("zone", ["UTC", "America/New_York"])
@pytest.mark.parametrize("feed", ["sqlite", "mariadb"], indirect=True)
def test_timestamps_bring_their_zone(feed: Feed, zone: str) -> None:
    applied(feed.with_(source={"time-zone": zone}), "types.new-york", zone="America/New_York")


@pytest.mark.parametrize("feed", ["sqlite", "mariadb", "postgres"], indirect=True)
def test_schemas_are_kept_when_kafka_has_forgotten_them(feed: Feed) -> None:
    sent = as_simple(recorded("split.index-value.raw"))
    half = next(i for i, m in enumerate(sent) if i > len(sent) // 2 and b'"WATERMARK"' in m.value)
    feed.with_(source={"protocol": "simple"}).send(sent[:half])
    feed.once()
    for partition, entries in json.loads(feed.cells.progress(feed.name)["offsets"])[feed.topic].items():
        feed.delete_records(int(partition), entries["offset"])
    feed.send([m for m in sent[half:] if b'"BOOTSTRAP"' not in m.value])
    feed.once()
    assert differences(oracle("split"), feed.cells) == []


@pytest.mark.parametrize("feed", ["sqlite"], indirect=True)
def test_rows_wait_for_a_schema_that_comes_later(feed: Feed) -> None:
    sent = as_simple(recorded("split.index-value.raw"))
    late = [m for m in sent if b'"BOOTSTRAP"' in m.value]
    feed.with_(source={"protocol": "simple"}).send([m for m in sent if m not in late])
    before = feed.once()
    feed.send(late)
    after = feed.once()
    assert after.checkpoint_ts > before.checkpoint_ts
    assert after.counts.rows_written > before.counts.rows_written
    assert differences(oracle("split"), feed.cells) == []


@pytest.mark.parametrize("feed", ["sqlite", "postgres"], indirect=True)
def test_a_broken_row_is_told_and_set_aside(feed: Feed) -> None:
    sent = as_simple(recorded("split.index-value.raw"), checksums=True)
    at = next(i for i, m in enumerate(sent) if b'"INSERT"' in m.value)
    broken = sent[at]._replace(value=sent[at].value.replace(b'"corrupted":false', b'"corrupted":true'))
    feed.with_(source={"protocol": "simple"}).send([*sent[:at], broken, *sent[at + 1 :]])
    error = feed.failing(InputError)
    assert "corrupted" in error.fact
    assert f"partition={broken.partition} offset=" in error.where
    feed.with_(quarantine={"enabled": True}).once()
    assert len(differences(oracle("split"), feed.cells)) <= 2
