"""Tasks over real Kafka: as the compiled core takes messages from Kafka's library, and as Python's client gives them.

Records (reports, blocks, manifests) and errors have to be the same, byte by byte, whatever the log has gone through.
"""

import gc
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from consumer.embedded import KafkaBroker
from consumer.filters.tables import table_filter
from consumer.kafka import reader
from consumer.kafka.admin import KafkaAdmin
from consumer.kafka.properties import reader_settings
from consumer.kafka.reader import KafkaReaders, RangeReader
from consumer.native import chosen
from consumer.native.kafka_client import CoreConsumer
from consumer.tasks.order import ReadTask
from consumer.tasks.read_spec import ReadSpec
from consumer.tasks.report import Report
from consumer.tasks.shuffle_blocks import REPORTS, decode_block
from ordering.errors import ReconcilerError, SourceUnreachableError
from ordering.events import Partition, TableName
from ordering.rows.manifest import Manifest
from ordering.rows.segments import Segment, segments_of
from ordering.timestamps import MAX_TSO, CheckpointTs, ResolvedTs
from ordering.window import Range, Window
from tests.service.kafka.test_compaction import compacted
from tests.service.lab import PARTITIONS, Feed
from tests.service.messages import at, delete, encoded, insert, lz4, row_value, update, watermark
from tests.service.producing import Transaction, aborted_at_last, packed

pytestmark = [pytest.mark.service, pytest.mark.kafka]
CODECS = ("none", "gzip", "snappy", "lz4", "zstd")
IMPATIENT_S = 3.0
"""In place of half a minute; a busy machine's broker may be silent for a second."""
KEYS = {TableName("d", "t"): ("id",), TableName("d", "u"): ("id",)}


def everything() -> Window:
    return Window(CheckpointTs(0), CheckpointTs(0), ResolvedTs(MAX_TSO), ResolvedTs(MAX_TSO), ())


@dataclass
class Both:
    """Both clients on a feed's topic, each with a reader that is used again."""

    feed: Feed
    window: Window = field(default_factory=everything)
    limit: int = 1 << 20
    segments: tuple[Segment, ...] = ()
    settings: dict[str, object] = field(default_factory=dict)

    def records(self, ranges: tuple[Range, ...], *, core: bool) -> "Records":
        """What a task gives."""
        spec = ReadSpec(replace(self.window, ranges=ranges), KEYS, table_filter(["d.*", "!d.x"]), 4, self.limit)
        spec = replace(spec, segments=self.segments)
        readers = KafkaReaders(reader_settings(self.feed.bootstrap, self.settings), native=core)
        found = list(ReadTask(spec, readers)([(0, ranges)]))
        assert isinstance(readers.get()._consumer, CoreConsumer) == core
        payloads = [(bucket, _worded(payload)) for bucket, payload in found]
        blocks = [(bucket, decode_block(block)) for bucket, block in payloads if isinstance(block, bytes)]
        return Records(
            sorted((bucket, half) for bucket, block in blocks for half in block.halves()),
            [(bucket, payload) for bucket, payload in payloads if isinstance(payload, str)],
            [payload for bucket, payload in payloads if bucket == REPORTS],
            payloads if len(ranges) == 1 else [],
        )

    def same(self, *spans: tuple[int, int, int], counted_to: int = 0) -> list[object]:
        """The records of ranges [start, stop) of partitions, which both give."""
        ranges = tuple(
            Range(Partition(self.feed.topic, number), start, stop, max(start, counted_to))
            for number, start, stop in spans
        )
        by_python, by_core = (self.records(ranges, core=core) for core in (False, True))
        for one, other in zip(by_core.reports, by_python.reports, strict=True):
            assert _differing(one, other) == {}
        assert by_core.halves == by_python.halves
        if not self.segments:  # their rows are in blocks of as many as the runs are long
            assert by_core == by_python
        return by_core.reports

    def ends(self) -> dict[int, int]:
        places = [Partition(self.feed.topic, number) for number in range(PARTITIONS)]
        with closing(KafkaAdmin(self.feed.bootstrap, {})) as control:
            return {place.partition: end for place, end in control.ends(places).items()}


def _worded(payload: object) -> object:
    if isinstance(payload, Manifest) and payload.error is not None:
        return f"{payload._replace(error=None)} {_worded(payload.error)}"
    return f"{type(payload).__name__} {payload}" if isinstance(payload, ReconcilerError) else payload


def _differing(one: object, other: object) -> dict[str, object]:
    """What two reports tell differently."""
    if not (isinstance(one, Report) and isinstance(other, Report)):
        return {} if one == other else {"": (one, other)}
    pairs = {name.name: (getattr(one, name.name), getattr(other, name.name)) for name in fields(one)}
    return {name: pair for name, pair in pairs.items() if pair[0] != pair[1]}


class Records(NamedTuple):
    """What a task gives; in which order the partitions' messages come is the brokers' matter."""

    halves: list[object]
    told: list[object]
    reports: list[object]
    all: list[object]
    """Of one partition, in order and byte by byte."""


@pytest.fixture
def both(sqlite_feed: Feed) -> Iterator[Both]:
    sqlite_feed.make_topic()
    yield Both(sqlite_feed)
    KafkaReaders({}).forget()


def values(first: int, count: int, table: str = "d.t") -> list[bytes]:
    """INSERTs, UPDATEs that move a row or not, and DELETEs."""
    found = []
    for n in range(first, first + count):
        row = {"id": n % 50, "v": n, "s": "x" * (n % 7)}
        kind = ("INSERT", "UPDATE", "UPDATE", "DELETE")[n % 4]
        old = {**row, "v": 0, "id": (n + n % 3) % 50} if kind == "UPDATE" else None
        found.append(encoded(row_value(kind, table, at(n), row, old)))
    return found


def filled(feed: Feed, count: int = 300) -> None:
    """Each codec, tables that count and one that does not, transactions that end either way and interleave."""
    for partition in range(PARTITIONS):
        for number, codec in enumerate(CODECS):
            table = ("d.t", "d.u", "d.x")[number % 3]
            packed(feed, codec, partition, *values(1 + count * number, count, table), key=b"k" * partition)
        lost, kept, lost_too = Transaction(feed), Transaction(feed), Transaction(feed)
        for n in range(30):
            for who, transaction in enumerate((lost, kept, lost_too)):
                transaction.send([insert("d.t", 5 + n, partition, id=1_000 * who + n, v=n, s="x")])
        lost.abort()
        kept.commit()
        packed(feed, "gzip", partition, *values(2_000, 5))
        lost_too.abort()
        feed.send([watermark(5_000, partition)])


@pytest.mark.by_turns
def test_ranges_that_begin_and_end_anywhere(both: Both) -> None:
    filled(both.feed)
    ends = both.ends()
    for start, back in ((0, 0), (0, 0), (1, 1), (299, 3), (777, 50), (1_500, 0), (1_503, 20), (0, 999), (9, 1_400)):
        spans = [(n, start + n, max(start + n, end - back)) for n, end in ends.items()]
        reports = both.same(*spans, counted_to=start + 100)
        assert len(reports) == PARTITIONS
        assert all(isinstance(report, Report) for report in reports)
    for start in range(1_500, ends[1], 7):
        both.same((1, start, min(start + 9, ends[1])))


@pytest.mark.by_turns
def test_windows_that_hold_a_part(both: Both) -> None:
    """Rows above, below the checkpoint, and repeated; also in segments between DDLs."""
    filled(both.feed)
    spans = [(n, 0, end) for n, end in both.ends().items()]
    for low, base, high in ((0, 0, 700), (400, 0, 700), (400, 300, 1_200), (1_400, 1_400, 1_500)):
        both.window = Window(
            CheckpointTs(at(low)), CheckpointTs(at(base)), ResolvedTs(at(high)), ResolvedTs(at(high)), ()
        )
        both.same(*spans, counted_to=250)
    both.window = Window(CheckpointTs(0), CheckpointTs(0), ResolvedTs(at(1_000)), ResolvedTs(at(1_000)), ())
    both.segments = segments_of(0, [at(200), at(640), at(1_000)], [2, 2, 2])
    both.same(*spans)


BAD: dict[str, bytes | None] = {
    "tombstone": None,
    "empty": b"",
    "no-json": b"{" * 40,
    "compressed": lz4(values(1, 1)[0]),
    "compressed-and-broken": lz4(values(1, 1)[0])[:-5] + b"xxxxx",
    "ddl": encoded({"id": 0, "database": "d", "table": "t", "pkNames": None, "isDdl": True, "type": "CREATE",
                    "es": 1, "ts": 1, "sql": "CREATE TABLE d.t (id INT)", "sqlType": None, "mysqlType": None,
                    "data": None, "old": None, "_tidb": {"commitTs": at(3)}}),
    "too-long": values(1, 1)[0][:-1] + b" " * 70_000 + b"}",
    "claim-check": encoded(row_value("INSERT", "d.t", at(3), {"id": 1})
                           | {"_tidb": {"commitTs": at(3), "claimCheckLocation": "/x/y.json"}}),
    "no-key": encoded(row_value("INSERT", "d.t", at(3), {"v": 1})),
    "watermark-too-high": watermark(9_999, 1).value,
}  # fmt: skip


@pytest.mark.by_turns
@pytest.mark.parametrize("what", BAD)
def test_messages_that_are_not_usual(both: Both, what: str) -> None:
    """Where they lie among others, first and last; the errors name the same position."""
    both.limit = 50_000
    if what == "watermark-too-high":
        both.window = replace(everything(), resolved=ResolvedTs(at(5_000)), high=ResolvedTs(at(5_000)))
    both.feed.send_raw(1, *values(1, 20), BAD[what], *values(30, 20), BAD[what], BAD[what])
    for start, stop in ((0, 43), (0, 20), (20, 21), (3, 42), (21, 41), (41, 43)):
        both.same((1, start, stop))


@pytest.mark.by_turns
def test_an_open_transaction_ends_a_read_alike(both: Both, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reader, "SILENCE_S", IMPATIENT_S)
    both.feed.send_raw(1, *values(1, 20))
    with aborted_at_last(both.feed) as transaction:
        transaction.send([insert("d.t", 5, 1, id=1, v=1, s="x")])
        for _ in range(2):
            (told,) = both.same((1, 0, 21))
            assert f"{SourceUnreachableError.__name__} Kafka gives out messages up to offset 20 only" in str(told)


@pytest.mark.by_turns
def test_records_that_were_deleted(both: Both, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reader, "SILENCE_S", IMPATIENT_S)
    both.feed.send_raw(1, *values(1, 100))
    both.feed.delete_records(1, 40)
    both.same((1, 40, 100))
    for start, stop in ((0, 100), (39, 100), (0, 10)):
        (told,) = both.same((1, start, stop))
        assert f"offset={start}" in str(told)
    (told,) = both.same((1, 100, 105), (0, 0, 0))
    assert "offset=" in str(told)


@pytest.mark.by_turns
def test_a_log_that_was_compacted(sqlite_feed: Feed, own_broker: KafkaBroker) -> None:
    feed = replace(sqlite_feed, bootstrap=own_broker.bootstrap, settings={})
    feed.make_topic()
    both = Both(feed)
    sent = [insert("d.t", n, 1, id=n % 3, v=n, s="x") for n in range(1, 20)]
    compacted(feed, [*sent, update("d.t", 30, {"v": 1}, 1, id=1, v=2)], [watermark(40, 1)])
    end = both.ends()[1]
    for start in range(end):
        (told,) = both.same((1, start, end))
        assert isinstance(told, Report)


@pytest.mark.by_turns
def test_a_log_that_lost_its_end(sqlite_feed: Feed, own_broker: KafkaBroker) -> None:
    feed = replace(sqlite_feed, bootstrap=own_broker.bootstrap, settings={})
    feed.make_topic()
    both = Both(feed)
    feed.send_raw(1, *values(1, 10))
    log = own_broker.directory / "data" / f"{feed.topic}-1" / f"{0:020}.log"
    size = log.stat().st_size
    feed.send_raw(1, *values(20, 10))
    both.same((1, 0, 20))
    own_broker.kill()
    with log.open("r+b") as file:
        file.truncate(size)
    own_broker.start()
    both.same((1, 0, 10))
    (told,) = both.same((1, 12, 20))
    assert "offset=12" in str(told)


def test_a_reader_that_is_closed_or_dropped_leaves_no_thread(both: Both) -> None:
    """Whether what it gave was looked at or not; its threads are librdkafka's."""
    both.feed.send_raw(1, *values(1, 5_000))
    place, core = Partition(both.feed.topic, 1), chosen(True).core
    before = threads()

    def looked(act: Callable[[Any], object]) -> None:
        made = RangeReader(reader_settings(both.feed.bootstrap, {}), core=core)
        runs = made.read([(place, 0, 5_000)])
        assert len(next(runs)[1]) > 0
        assert threads() > before
        act(runs)
        made.close()
        with pytest.raises(RuntimeError, match="closed"):
            made._consumer.consume(1, 0)

    looked(lambda runs: runs.close())
    looked(list)
    unused = RangeReader(reader_settings(both.feed.bootstrap, {}), core=core)
    del unused
    gc.collect()
    assert threads() == before


def threads() -> int:
    """Of this process."""
    return len(list(Path("/proc/self/task").iterdir()))


def test_a_delete_of_each_row_is_taken(both: Both) -> None:
    both.feed.send([delete("d.t", n, 1, id=n) for n in range(1, 30)])
    (told,) = both.same((1, 0, 29))
    assert isinstance(told, Report)
    assert told.deletes == 29
