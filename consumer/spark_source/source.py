"""The data source: what PySpark's Python Data Source API asks for.

    spark.dataSource.register(TicdcDataSource)
    changes = spark.readStream.format("ticdc").load("orders.toml")

`FeedPlanner` plans in a process of its own on the driver, `SliceReader` reads in Spark's tasks. Exactly once is
Spark's: it logs an offset before it reads up to it, and asks for the same two offsets again after a crash.
"""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa
from pyspark.sql.datasource import DataSource, DataSourceReader, DataSourceStreamReader, InputPartition
from pyspark.sql.streaming.datasource import ReadLimit, ReadMaxRows, SupportsTriggerAvailableNow
from pyspark.sql.types import StructType

from consumer.config.changefeed_filter import read_filter
from consumer.kafka.properties import reader_settings
from consumer.kafka.reader import KafkaReaders
from consumer.source.probe import Source
from consumer.spark_source.columns import CHANGES, TypedRows, batches, change_row, ddl_row
from consumer.spark_source.offset import FeedOffset, restored
from consumer.spark_source.options import SourceOptions, read_options
from consumer.spark_source.planning import FeedPlanner, Slice
from consumer.spark_source.slices import FeedChange, SliceReader
from consumer.tasks.report import RawDdl
from ordering.errors import ConfigError, InputError
from ordering.events import Partition
from ordering.timestamps import utc_text
from sinks.rows.values import zone_of

_NO_LIMIT = 2**62


class _Slices(InputPartition):  # type: ignore[misc]  # PySpark's types are not looked at
    """What one task reads; shows nothing of how Kafka is reached."""

    def __init__(self, part: Slice | None, ddls: Sequence[RawDdl] = ()) -> None:
        super().__init__(None)
        self.part, self.ddls = part, tuple(ddls)


@dataclass(frozen=True)
class _Reading:
    """What both ways of reading share; travels to the tasks."""

    options: Mapping[str, str] = field(repr=False)
    schema: StructType

    def read_options(self) -> SourceOptions:
        """The options, checked. Raises ConfigError."""
        found = read_options(self.options)
        if (found.table is None) != (self.schema == CHANGES):
            hint = '.schema("id BIGINT, ...").option("table", "DATABASE.TABLE"): both, or none of them'
            raise ConfigError("only a query of one table can have columns of its own", where="table", hint=hint)
        return found

    def planner(self, options: SourceOptions, max_rows: int) -> FeedPlanner:
        """A planner of this process."""
        source = Source.of(options.config)
        return FeedPlanner(options, source, self._readers(options), max_rows)

    def _readers(self, options: SourceOptions) -> KafkaReaders:
        section = options.config.source
        return KafkaReaders(reader_settings(section.bootstrap_servers, section.kafka))

    def read(self, partition: "_Slices") -> Iterator[pa.RecordBatch]:
        """Run in a task."""
        options = self.read_options()
        rows: Iterator[tuple[Any, ...]] = map(ddl_row, partition.ddls)
        if partition.part is not None:
            config = options.config
            accepts, limit = read_filter(config.filter).tables, config.limits.message_bytes
            reader = SliceReader(self._readers(options), accepts, options.handle_keys, limit)
            rows = self._rows(reader.changes(partition.part), options)
        yield from batches(rows, self.schema)

    def _rows(self, changes: Iterator[FeedChange], options: SourceOptions) -> Iterator[tuple[Any, ...]]:
        if options.table is None:
            return map(change_row, changes)
        row, wanted = TypedRows(self.schema, zone_of(options.config.source.time_zone)), options.table.folded
        return (row(change) for change in changes if change.table.folded == wanted)

    def partitions(self, planner: FeedPlanner, batch: FeedOffset, options: SourceOptions) -> list[_Slices]:
        """What the tasks of a batch read."""
        found = [_Slices(part) for part in planner.slices(batch)]
        return [*found, _Slices(None, batch.ddls)] if batch.ddls and options.table is None else found


class TicdcDataSource(DataSource):  # type: ignore[misc]
    """Row changes and DDLs of a TiCDC changefeed, each once, in batches that end at a resolvedTs."""

    @classmethod
    def name(cls) -> str:
        """What `format` is given."""
        return "ticdc"

    def schema(self) -> StructType:
        """The columns, where the query names none."""
        return CHANGES

    def reader(self, schema: StructType) -> "TicdcReader":
        """For `spark.read`."""
        return TicdcReader(_Reading(dict(self.options), schema))

    def streamReader(self, schema: StructType) -> "TicdcStreamReader":  # noqa: N802 PySpark's name
        """For `spark.readStream`."""
        return TicdcStreamReader(_Reading(dict(self.options), schema))


class TicdcReader(DataSourceReader):  # type: ignore[misc]
    """All changes with start-ts < commitTs <= end-ts; without `end-ts` up to where the topics are resolved now."""

    def __init__(self, reading: _Reading) -> None:
        self._reading = reading

    def partitions(self) -> Sequence[InputPartition]:
        """Plan batch by batch: none is read here, and Spark's tasks read all of them at once."""
        options = self._reading.read_options()
        found: list[_Slices] = []
        with closing(self._reading.planner(options, options.max_rows)) as planner:
            caps, at = planner.ends(), planner.first()
            while (batch := planner.after(at, caps)) is not at:
                found += self._reading.partitions(planner, batch, options)
                at = batch
            _check_end(options.end_ts, planner.latest)
        return found

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """Run in a task."""
        return self._reading.read(partition)


def _check_end(end_ts: int | None, latest: int | None) -> None:
    if end_ts is not None and (latest is None or latest < end_ts):
        reached = "not at all" if latest is None else f"up to {latest} ({utc_text(latest)} UTC) only"
        hint = "wait until TiCDC has come so far, or ask for less"
        raise InputError(f"the topics are resolved {reached}, end-ts is {end_ts}", where="end-ts", hint=hint)


class TicdcStreamReader(DataSourceStreamReader, SupportsTriggerAvailableNow):  # type: ignore[misc]
    """Batches up to the global resolvedTs, of at most `maxRowsPerTrigger` row messages, transactions whole."""

    def __init__(self, reading: _Reading) -> None:
        self._reading = reading
        self._planners: dict[int, FeedPlanner] = {}
        """By the size of their batches: Trigger.Once asks for all at once."""
        self._last: FeedPlanner | None = None
        """The one that planned the batch which Spark asks for next."""
        self._caps: dict[Partition, int] | None = None

    def __getstate__(self) -> dict[str, Any]:
        """For tasks: what is open stays here."""
        return {"_reading": self._reading, "_planners": {}, "_caps": None, "_last": None}

    def _planner(self, max_rows: int) -> FeedPlanner:
        if max_rows not in self._planners:
            self._planners[max_rows] = self._reading.planner(self._reading.read_options(), max_rows)
        return self._planners[max_rows]

    def _usual(self) -> FeedPlanner:
        return self._planner(self._reading.read_options().max_rows)

    def initialOffset(self) -> dict[str, Any]:  # noqa: N802 PySpark's name
        """Where a new query begins."""
        return self._usual().first().stored()

    def getDefaultReadLimit(self) -> ReadLimit:  # noqa: N802
        """The size of a batch."""
        return ReadMaxRows(self._reading.read_options().max_rows)

    def latestOffset(self, start: dict[str, Any], limit: ReadLimit) -> dict[str, Any]:  # noqa: N802
        """The end of the next batch."""
        planner = self._last = self._planner(limit.max_rows if isinstance(limit, ReadMaxRows) else _NO_LIMIT)
        at = restored(start)
        found = planner.after(at, self._caps)
        return start if found is at else found.stored()

    def reportLatestOffset(self) -> dict[str, Any] | None:  # noqa: N802
        """Up to where the topics are resolved: what Spark's listeners show beside the query's own offset."""
        seen = [planner.latest for planner in self._planners.values() if planner.latest is not None]
        return {"commitTs": max(seen)} if seen else None

    def prepareForTriggerAvailableNow(self) -> None:  # noqa: N802
        """Read no further than the topics hold now."""
        self._caps = self._usual().ends()

    def partitions(self, start: dict[str, Any], end: dict[str, Any]) -> Sequence[InputPartition]:
        """What the tasks of the batch read that ends there."""
        if start == end:
            return []
        return self._reading.partitions(self._last or self._usual(), restored(end), self._reading.read_options())

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """Run in a task."""
        return self._reading.read(partition)

    def commit(self, end: dict[str, Any]) -> None:
        """Spark has done all up to there."""
        self._usual().commit(restored(end))

    def stop(self) -> None:
        """The query has ended."""
        while self._planners:
            self._planners.popitem()[1].close()
