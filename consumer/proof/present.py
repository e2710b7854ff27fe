"""The target at one moment: its checkpoint, its tables as sums see them, and what DDLs it has executed."""

import time
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass, field, replace
from threading import Event
from typing import Self

from consumer.config.changefeed_filter import read_filter
from consumer.config.model import Config
from consumer.config.routes import read_routes
from consumer.config.zone import in_zone
from consumer.proof.ddls import Filled, ended, filled, settled, since
from consumer.proof.state import ProofState, lineage_of
from consumer.verify.sides import Side, open_target_side
from consumer.wiring import target_of, values_of
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
_SELECTED = "sink.column-selectors leave it out"
_NOT_OF_SHARD = "this shard lacks it upstream"
_OWN = "upstream lacks it"
_UNMASKED = "rows from before its ADD COLUMN hold its default, not its mask"


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
    filled: Filled = field(default_factory=dict)
    """Columns in which rows may hold a default that no message has told."""

    @property
    def checkpoint_ts(self) -> int:
        """C."""
        return int(self.progress.checkpoint_ts)


@dataclass(frozen=True, slots=True)
class SumRules:
    """How the rows of a table are summed up. `unsent`: columns that rows lack on the way, and why. Can be pickled."""

    values: ValueRules
    unsent: Mapping[str, str]

    @classmethod
    def of(
        cls,
        config: Config,
        progress: Progress,
        schema: TableSchema,
        shown: Collection[str] = (),
        own: Collection[str] = (),
    ) -> Self:
        """What the config and the progress say of a table. `shown`: as in `Present.filled`; `own`: as in the state."""
        there = [column.name for column in schema.columns]
        rules = read_routes(config.sink).columns
        unmasked = [name for name in there if folded(name) in shown and rules.is_masked(schema.name, name)]
        unsent = (
            dict.fromkeys(own, _OWN)
            | dict.fromkeys(unmasked, _UNMASKED)
            | dict.fromkeys(_lacking(progress, schema, there), _NOT_OF_SHARD)
        )
        return cls(values_of(config), unsent | dict.fromkeys(rules.unsent(schema.name, there), _SELECTED))

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
        _check_same(config, stored.progress)
        yield side, stored.progress
    finally:
        side.close()


def _check_same(config: Config, progress: Progress) -> None:
    """Raise InputError where the config says something else of rows than what they were written by."""
    in_zone(progress, config.source.time_zone, config.changefeed)
    read_routes(config.sink).check_change(progress.routes, config.changefeed)
    if progress.filter_digest:
        read_filter(config.filter).check_change(progress.filter_digest, config.changefeed)


def present_of(config: Config, side: Side, progress: Progress, state: ProofState | None) -> Present:
    """What a snapshot shows of all tables that the filter takes. `state`: what the last proof has left."""
    accepts = read_filter(config.filter).tables
    ddls = side.targets[0].ddl_log.latest(config.changefeed, KEPT)
    shown = _filled(ddls, state, progress)
    known = {} if state is None or state.lineage != lineage_of(progress) else state.own
    own = {name: [column for column, is_own in columns.items() if is_own] for name, columns in known.items()}
    tables = side.catalog().tables.items()
    rows = {
        name: SumRules.of(config, progress, schema, shown.get(name.folded, ()), own.get(name, ())).rows(
            schema, side.readers[0]
        )
        for name, schema in tables
        if accepts(*name)
    }
    done = settled(ddls, int(progress.checkpoint_ts))
    return Present(progress, ddls, rows, done, done | (ended(ddls) if progress.untouched else frozenset()), shown)


def with_executed(config: Config, present: Present) -> Present:
    """The same with the DDLs of now: a DDL that is executed after a snapshot has begun may show in it.

    MySQL and MariaDB tell which tables there are, and their columns, as they are at the moment. PostgreSQL shows a
    table that was truncated or rewritten as an empty one (its manual, "Caveats" of MVCC).
    """
    with closing(target_of(config)) as target:
        target.connect()
        return replace(present, ddls=target.ddl_log.latest(config.changefeed, KEPT))


def _filled(ddls: Sequence[DdlRecord], state: ProofState | None, progress: Progress) -> Filled:
    """By the DDLs since the last proof; where there is none that goes on, by all that the log holds."""
    if state is None or state.filled is None or state.lineage != lineage_of(progress):
        return filled(reversed(ddls), {})
    return filled(reversed(list(since(ddls, state.checkpoint_ts, state.settled))), state.filled)


def _lacking(progress: Progress, schema: TableSchema, columns: Iterable[str]) -> frozenset[str]:
    """The columns of a merged table that this shard lacks upstream: its events do not name them."""
    table = merged_at(progress.merged, schema.here) if schema.origin else None
    lacks = frozenset[str]() if table is None else table.lacks.get(schema.name, frozenset())
    return frozenset(column for column in columns if f"column {folded(column)}" in lacks)
