"""The recordings once more in TiCDC's Avro protocol, with their schemas in a registry: every one ends as upstream.

`tests.avro_protocol` writes the messages anew. Run again, nothing changes; sent a second time, nothing changes and
every repetition is counted.
"""

from typing import Any

import pytest

from consumer.codec.canal_json import WATERMARK
from consumer.demo.fake_ticdc.changefeed import Message
from consumer.operate.check import findings
from ordering.errors import (
    AnotherProtocolError,
    BodyMissingError,
    InputError,
    SourceError,
    SourceUnreachableError,
    TableMismatchError,
)
from tests.avro_protocol import as_avro
from tests.consumer.formats.test_schema_registry import BODIES
from tests.service.cells import differences, oracle
from tests.service.lab import Feed, body, recorded
from tests.service.local import LocalFeed
from tests.service.messages import insert, typed, watermarks
from tests.service.rows.sent_again import check_sent_again
from tests.service.rows.test_debezium_vectors import killing_after
from tests.service.rows.test_genuine_formats import genuine, upstream
from tests.service.rows.test_simple_vectors import CONSISTENCIES
from tests.service.schema_registry import FakeRegistry
from tests.service.ticdc_api import ticdc_api

pytestmark = pytest.mark.service

MARKED = (
    "iv.index-value.split", "ddl-basic.table", "ddl-basic.restarts", "ddl-basic.no-watermark-before-ddl", "crossing-2",
    "topics.topic-per-table", "unique-moves-250.index-value.split",
)  # fmt: skip
"""Those whose rows are deleted from tables with a primary key, and whose key-changing UPDATEs are split."""
BEFORE = (
    "split.index-value.raw", "split.ts.raw", "split.table.split", "split.default.split", "split.columns.raw",
    "split.index-value.restarts", "bank.index-value.restarts", "keys.index-value.split", "iv.index-value.raw",
    "unique-swaps.index-value.raw",
)  # fmt: skip


def reading(feed: Feed, registry: FakeRegistry, **source: Any) -> Feed:
    """The feed, set to read Avro."""
    told = {"protocol": "avro", "schema-registry": registry.url, "avro-enable-watermark": True}
    return feed.with_(source={**told, **source})


@pytest.mark.cells(by_turns=(("feed", "consistency"), "recording"))
@pytest.mark.parametrize("recording", MARKED)
@pytest.mark.parametrize("feed", ["sqlite", "mariadb", "postgres"], indirect=True)
@pytest.mark.parametrize("consistency", CONSISTENCIES)
def test_deletes_that_bring_their_commit_ts(
    feed: Feed, registry: FakeRegistry, recording: str, consistency: str
) -> None:
    reading(feed, registry).with_(target={"consistency": consistency})
    strings = sum(map(ord, recording + consistency)) % 2 > 0
    check_sent_again(feed, recording, as_avro(recorded(recording), registry.register, strings=strings))
    assert any(path.startswith("/schemas/ids/") for path in registry.asked)


@pytest.mark.cells(by_turns=(("feed", "consistency"), "recording"))
@pytest.mark.parametrize("recording", BEFORE)
@pytest.mark.parametrize("feed", ["sqlite", "mariadb", "postgres"], indirect=True)
@pytest.mark.parametrize("consistency", CONSISTENCIES)
def test_rows_before(feed: Feed, registry: FakeRegistry, recording: str, consistency: str) -> None:
    reading(feed, registry).with_(target={"consistency": consistency})
    check_sent_again(feed, recording, as_avro(recorded(recording), registry.register, deletes="before"))


@pytest.mark.cells("strings", by_turns=(("feed", "consistency"),))
@pytest.mark.parametrize("strings", [False, True])
@pytest.mark.parametrize("feed", ["sqlite", "mariadb"], indirect=True)
@pytest.mark.parametrize("consistency", CONSISTENCIES)
def test_all_types(feed: Feed, registry: FakeRegistry, consistency: str, strings: bool) -> None:
    recording = [m for m in recorded("types.table") if "odd" not in (body(m)["table"] or "")]
    reading(feed, registry).with_(target={"consistency": consistency})
    feed.send(as_avro(recording, registry.register, strings=strings, deletes="before"))
    feed.once()
    wanted = {name: table for name, table in oracle("types").items() if "odd" not in name}
    assert differences(wanted, feed.cells) == []


@pytest.mark.cells(by_turns=("feed", "consistency"))
@pytest.mark.parametrize("feed", ["sqlite", "mariadb"], indirect=True)
@pytest.mark.parametrize("consistency", CONSISTENCIES)
def test_what_ticdc_itself_wrote_in_canal_json(feed: Feed, registry: FakeRegistry, consistency: str) -> None:
    reading(feed, registry).with_(target={"consistency": consistency})
    sent = [m for m in genuine("formats.canal-json") if "ird" not in (body(m)["table"] or "")]  # no name in Avro
    feed.send(as_avro(sent, registry.register, deletes="before"))
    feed.once()
    wanted = {name: table for name, table in upstream().items() if "ird" not in name}
    assert differences(wanted, feed.cells) == []


@pytest.mark.parametrize("consistency", CONSISTENCIES)
@pytest.mark.parametrize("feed", ["sqlite"], indirect=True)
def test_a_watermark_from_outside(feed: Feed, registry: FakeRegistry, consistency: str) -> None:
    whole = recorded("split.ts.raw")
    last = max(body(m)["_tidb"].get("watermarkTs", 0) for m in whole)
    ddls = [m for m in whole if body(m)["isDdl"]]
    rows = [m for m in whole if not body(m)["isDdl"] and body(m)["type"] != WATERMARK]
    with ticdc_api() as api:
        api.at(last)
        source = {"watermark-from": api.url, "watermark-changefeed": "orders"}
        reading(feed, registry, **source).with_(target={"consistency": consistency})
        feed.send(as_avro([*ddls, *rows], registry.register, deletes="before"))
        assert feed.once().checkpoint_ts == last
    assert differences(oracle("split"), feed.cells) == []


@pytest.mark.by_turns
@pytest.mark.spark
@pytest.mark.cells(by_turns=("consistency",))
@pytest.mark.parametrize("consistency", CONSISTENCIES)
@pytest.mark.parametrize("feed", ["sqlite"], indirect=True)
def test_recordings_through_kafka_and_spark(feed: Feed, registry: FakeRegistry, consistency: str) -> None:
    reading(feed, registry).with_(target={"consistency": consistency})
    recording = "split.index-value.restarts"
    check_sent_again(feed, recording, as_avro(recorded(recording), registry.register, deletes="before"))


@pytest.mark.parametrize("consistency", CONSISTENCIES)
@pytest.mark.parametrize("deletes", ["marked", "before"])
@pytest.mark.parametrize("feed", ["sqlite"], indirect=True)
def test_killed_at_every_step(feed: LocalFeed, registry: FakeRegistry, deletes: str, consistency: str) -> None:
    reading(feed, registry).with_(target={"consistency": consistency})
    recording = "iv.index-value.split" if deletes == "marked" else "iv.index-value.raw"
    feed.send(as_avro(recorded(recording), registry.register, deletes=deletes))
    last = 0
    while not feed.lives(killing_after(last := last + 1)):
        assert last < 1_000
    assert last > 5
    assert differences(oracle("iv"), feed.cells) == []


def refused(
    feed: Feed, registry: FakeRegistry, sent: list[Message], kind: type[Exception] = AnotherProtocolError
) -> Any:
    reading(feed, registry).send(sent)
    return feed.failing(kind)


def test_a_delete_without_its_commit_ts(sqlite_feed: Feed, registry: FakeRegistry) -> None:
    sent = as_avro(recorded("iv.index-value.split"), registry.register, deletes="bare")
    error = refused(sqlite_feed, registry, sent)
    assert "can't be ordered" in error.fact
    assert "avro-enable-watermark=true" in error.hint
    assert "partition=" in error.where
    assert "offset=" in error.where


def test_a_delete_without_a_key(sqlite_feed: Feed, registry: FakeRegistry) -> None:
    error = refused(sqlite_feed, registry, as_avro(recorded("split.index-value.split"), registry.register))
    assert "avro-include-before-value=true" in error.hint


def test_a_registry_that_gave_its_numbers_to_others(sqlite_feed: Feed, registry: FakeRegistry) -> None:
    """Two tables that look alike: without a word, rows of the one would be written into the other."""
    feed = reading(sqlite_feed, registry, topics=[f"~{sqlite_feed.topic}.*"])
    feed.make_database("d", "CREATE TABLE a (id INT PRIMARY KEY, v INT); CREATE TABLE b (id INT PRIMARY KEY, v INT)")
    marks = watermarks(3)
    sent = [insert("d.a", 1, id=1, v=1), insert("d.b", 2, id=2, v=2)._replace(topic="b"), *marks]

    def register(subject: str, schema: str) -> int:
        topic, _, rest = subject.rpartition("-")
        return registry.register(f"{feed.topic_for(topic)}-{rest}", schema)

    sent = list(as_avro([*sent, *(mark._replace(topic="b") for mark in marks)], register))
    first, other = ([n for n, text in registry.schemas.items() if f'"name":"{t}"' in text] for t in "ab")
    assert len(first) == len(other) > 1
    for one, two in zip(first, other, strict=True):
        registry.schemas[one], registry.schemas[two] = registry.schemas[two], registry.schemas[one]
        registry.subjects[one], registry.subjects[two] = registry.subjects[two], registry.subjects[one]
    feed.send(sent)
    assert "is another topic's" in feed.failing(InputError).fact
    assert not any(rows for _, rows in feed.cells.tables(["d"]).values())


def test_rows_without_the_extension(sqlite_feed: Feed, registry: FakeRegistry) -> None:
    sent = as_avro(recorded("split.index-value.split"), registry.register, extension=False)
    error = refused(sqlite_feed, registry, sent)
    assert "enable-tidb-extension=true" in error.hint
    assert "partition=" in error.where


def test_names_that_avro_can_not_hold(sqlite_feed: Feed, registry: FakeRegistry) -> None:
    error = refused(sqlite_feed, registry, as_avro(recorded("names.table"), registry.register, deletes="before"))
    assert "Avro can't name" in error.fact


STATUSES = {404: BodyMissingError, 429: SourceUnreachableError, 503: SourceUnreachableError, 401: SourceError}


@pytest.mark.parametrize("status", STATUSES)
@pytest.mark.parametrize("feed", ["sqlite"], indirect=True)
def test_a_registry_that_is_away_and_returns(feed: Feed, registry: FakeRegistry, status: int) -> None:
    reading(feed, registry).send(as_avro(recorded("iv.index-value.split"), registry.register))
    registry.instead = lambda _: (status, {}, b"")
    error = feed.failing(STATUSES[status])
    assert (type(error), error.exit_code) == (STATUSES[status], 3)
    assert "source.schema-registry = " in error.where
    registry.instead = lambda _: None
    feed.once()
    assert differences(oracle("iv"), feed.cells) == []


@pytest.mark.parametrize("name", BODIES)
@pytest.mark.parametrize("feed", ["sqlite"], indirect=True)
def test_a_registry_that_answers_anything_for_one_schema(feed: Feed, registry: FakeRegistry, name: str) -> None:
    sent = as_avro(recorded("split.index-value.split"), registry.register, deletes="before")
    reading(feed, registry).send(sent)
    broken = f"/schemas/ids/{len(registry.schemas) // 2}"
    registry.instead = lambda path: (200, {}, BODIES[name]) if path == broken else None
    error = feed.failing(InputError)
    assert f"topic={feed.topic} partition=" in error.where
    assert "source.schema-registry = " in error.where
    registry.instead = lambda _: None
    feed.once()
    assert differences(oracle("split"), feed.cells) == []


@pytest.mark.parametrize("feed", ["sqlite"], indirect=True)
def test_check_tries_the_registry(feed: Feed, registry: FakeRegistry) -> None:
    feed.make_topic()
    reading(feed, registry)
    assert [f.error for f in findings(feed.config) if f.subject == "schema registry"] == [None]
    assert not [f for f in findings(feed.config) if f.subject == "protocol"]
    registry.login = "me:s3cret"
    with ticdc_api() as api:
        feed.with_(source={"watermark-from": api.url, "avro-enable-watermark": False})
        (found, warned) = [f for f in findings(feed.config) if f.subject in ("schema registry", "protocol")]
    assert "401" in str(found.error)
    assert "TRUNCATE" in warned.text


TWO = [("t_x", "t-x", "v"), ("t", "u", "a-b")]


@pytest.mark.parametrize(("table", "beside", "column"), TWO)
def test_rows_that_may_be_another_tables(
    sqlite_feed: Feed, registry: FakeRegistry, table: str, beside: str, column: str
) -> None:
    for name in (table, beside):
        sqlite_feed.make_database("d", f'CREATE TABLE "{name}" (id INT PRIMARY KEY, "{column}" INT)')
    sent_column = column.replace("-", "_")
    rows = [typed(insert(f"d.{table}", 1, 0, id=1, **{sent_column: 1}), **{sent_column: "int"}), *watermarks(2)]
    error = refused(sqlite_feed, registry, as_avro(rows, registry.register), TableMismatchError)
    assert "arrive as" in error.fact
    assert "offset=0" in error.where
    assert "canal-json" in error.hint
