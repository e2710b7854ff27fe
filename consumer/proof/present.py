"""The target at one moment: its checkpoint, its tables as sums see them, and what DDLs it has executed."""

import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from threading import Event
from typing import Self

from consumer.config.changefeed_filter import read_filter
from consumer.config.model import Config
from consumer.config.routes import read_routes
from consumer.config.zone import in_zone
from consumer.proof.ddls import ended, settled
from consumer.verify.sides import Side, open_target_side
from consumer.wiring import values_of
from ordering.errors import TargetBusyError
from ordering.events import TableName, folded
from ordering.progress import Progress
from ordering.tables.merged_tables import merged_at
from sinks.bookkeeping.ddl_log import KEPT, DdlRecord
from sinks.compare.canonical import CanonicalRows, canonical_rows
from sinks.compare.digests import TableReader
from sinks.rows.schema import TableSchema
from sinks.rows.values import ValueRules

_WAIT_S = 60.0
_LOOK_S = 0.1


@dataclass(frozen=True, slots=True)
class Present:
    """What one transaction of the target has shown."""

    progress: Progress
    ddls: list[DdlRecord]
    rows: dict[TableName, CanonicalRows] = field(default_factory=dict)
    settled: frozenset[int] = frozenset()
    """The DDLs of just its checkpoint that were done with in it."""
    past: frozenset[int] = frozenset()
    """Lines that say nothing of what is executed from here on: also those of before a reset."""

    @property
    def checkpoint_ts(self) -> int:
        """C."""
        return int(self.progress.checkpoint_ts)


@dataclass(frozen=True, slots=True)
class SumRules:
    """How the rows of a table are summed up. `unsent`: columns that upstream's rows lack on the way. Can be pickled."""

    values: ValueRules
    unsent: frozenset[str]

    @classmethod
    def of(cls, config: Config, progress: Progress, schema: TableSchema) -> Self:
        """What the config and the progress say of a table."""
        there = [column.name for column in schema.columns]
        unsent = read_routes(config.sink).columns.unsent(schema.name, there)
        return cls(values_of(config), frozenset(unsent) | _lacking(progress, schema, there))

    def rows(self, schema: TableSchema, reader: TableReader) -> CanonicalRows:
        """The table as its sums see it."""
        return canonical_rows(schema, reader, self.values, self.unsent)


@contextmanager
def at_rest(config: Config, stopping: Event | None = None) -> Iterator[tuple[Side, Progress]]:
    """A snapshot whose offsets are those of its checkpoint: not one in the middle of a window.

    `stopping`: ends the wait for one early. Raises TargetBusyError where there is none, and what the target raises.
    """
    until, wait = time.monotonic() + _WAIT_S, stopping or Event()
    while True:
        side, stored = open_target_side(config, 1)
        if stored is not None and not stored.progress.is_torn and not stored.progress.loading_ts:
            break
        side.close()
        if time.monotonic() > until or wait.is_set():
            hint = "a window or a load is half done: let `reconciler run` finish it"
            raise TargetBusyError(f"the target did not come to rest within {_WAIT_S:.0f} s", hint=hint)
        wait.wait(_LOOK_S)
    try:
        in_zone(stored.progress, config.source.time_zone, config.changefeed)
        read_routes(config.sink).check_change(stored.progress.routes, config.changefeed)
        yield side, stored.progress
    finally:
        side.close()


def present_of(config: Config, side: Side, progress: Progress) -> Present:
    """What a snapshot shows of all tables that the filter takes."""
    accepts = read_filter(config.filter).tables
    tables = side.catalog().tables.items()
    rows = {
        name: SumRules.of(config, progress, schema).rows(schema, side.readers[0])
        for name, schema in tables
        if accepts(*name)
    }
    ddls = side.targets[0].ddl_log.latest(config.changefeed, KEPT)
    done = settled(ddls, int(progress.checkpoint_ts))
    return Present(progress, ddls, rows, done, done | (ended(ddls) if progress.untouched else frozenset()))


def _lacking(progress: Progress, schema: TableSchema, columns: Iterable[str]) -> frozenset[str]:
    """The columns of a merged table that this shard lacks upstream: its events do not name them."""
    table = merged_at(progress.merged, schema.here) if schema.origin else None
    lacks = frozenset[str]() if table is None else table.lacks.get(schema.name, frozenset())
    return frozenset(column for column in columns if f"column {folded(column)}" in lacks)
