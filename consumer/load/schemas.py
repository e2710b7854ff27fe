"""Makes the databases, tables and views that a dump defines."""

from dataclasses import dataclass, field
from typing import Any

import structlog

from consumer.config.changefeed_filter import read_filter
from consumer.config.model import Config
from consumer.config.routes import read_routes
from consumer.ddl.guard import check_names, reading, refuse_what_is_not_theirs
from consumer.ddl.lost_keys import unique_keys
from consumer.ddl.merged.shards import RoutedDdl
from consumer.ddl.policy import NO_INDEX, creates_key, why_ignored
from consumer.ddl.routing import after, routed, shards, with_rows
from consumer.filters.promoted_keys import PromotedKeys
from consumer.load.definitions import FilePlace, ddl_of, in_order, view_of
from consumer.load.dump import Dump
from consumer.load.write_file import LoadStep, Observe
from ordering.errors import ConfigError, InputError, TableMismatchError, TargetError
from ordering.events import DdlEvent, TableName
from ordering.progress import Progress
from ordering.tables.merged_tables import merged_at
from sinks.bookkeeping.ddl_log import DdlState
from sinks.bookkeeping.progress_rows import Lease
from sinks.ddl.kept_definitions import PlacedDdl, placed
from sinks.ddl.model import ColumnDef
from sinks.ddl.parse.statement import read_statement
from sinks.ddl.parse.tables import read_table
from sinks.rows.schema import TableSchema
from sinks.target import Target

log = structlog.get_logger()


@dataclass(slots=True)
class LoadOutcome:
    """What a load did. `finished`: the checkpoint is set; `resumed`: an earlier load had begun.

    `without_rows`: tables that were made and of which the dump holds no rows; `unproven`: how many files would look
    whole if they had been cut off between two rows.
    """

    checkpoint_ts: int
    tables: int = 0
    views: int = 0
    files: int = 0
    rows: int = 0
    left_out: list[str] = field(default_factory=list)
    without_rows: list[str] = field(default_factory=list)
    unproven: int = 0
    resumed: bool = False
    finished: bool = False
    seconds: float = 0.0

    def as_json(self) -> dict[str, Any]:
        """The object of `--json`."""
        named = ("checkpoint_ts", "tables", "views", "files", "rows", "left_out", "without_rows", "unproven", "resumed")
        told = {name: getattr(self, name) for name in named}
        return {**told, "finished": self.finished, "seconds": round(self.seconds, 3)}


def check_key(table: TableSchema, where: str, *, force_replicate: bool) -> None:
    """Raise TableMismatchError for a table that a run could not write, whose rows in the dump would be left out."""
    if not (table.handle_key or force_replicate):
        hint = "give it upstream's primary key, or let filter.rules leave it out; without one upstream: force-replicate"
        raise TableMismatchError(f"table {table.name} has no valid index in the target", where=where, hint=hint)


class Schemas:
    """Makes what the dump defines, as DDLs of the changefeed: fitted to the target, in its DDL log, once each.

    `columns`: the tables' columns upstream; `passed`: tables that are left out; `progress`: as it is saved with them.
    """

    def __init__(self, config: Config, target: Target, lease: Lease, progress: Progress, observe: Observe) -> None:
        self._target, self._lease, self._observe = target, lease, observe
        self._promoted = PromotedKeys.of(config.filter.promoted_keys)
        self.progress, self._filter, self._routes = progress, read_filter(config.filter), read_routes(config.sink)
        self.columns: dict[TableName, tuple[ColumnDef, ...]] = {}
        self.passed: set[TableName] = set()
        self._torn = {
            (line.database, line.table)
            for line in target.ddl_log.unsettled(lease.changefeed)
            if line.state == DdlState.INTENT.value
        }

    def define(self, dump: Dump, outcome: LoadOutcome) -> None:
        """Make databases and tables that are not there. Raises InputError or TargetError."""
        for database, path in dump.databases.items():
            if self._filter.tables.database_of_message(database):
                self._execute(ddl_of(path, dump.tso, database))
        held = {file.table for file in dump.files}
        for name, path in dump.tables.items():
            if not self._filter.tables.of_message(*name):
                self._leave(name, "filter.rules leave it out", outcome)
                continue
            ddl = ddl_of(path, dump.tso, *name)
            self._define(name, ddl, outcome, has_rows=name in held)
        self._place(dump)
        outcome.left_out += dump.left
        if dump.left:
            log.warning("these files of the dump are not loaded", files=dump.left[:10], count=len(dump.left))

    def _place(self, dump: Dump) -> None:
        """Note where tables lie that the dump did not make. Raises InputError for a place of two."""
        files = {file.table: FilePlace(file.name, 0, 0) for file in dump.files if self._filter.tables(*file.table)}
        if self._routes.rules:
            self.progress = with_rows(self.progress, self._routes, files)
            self._target.know(self.progress)

    def _define(self, name: TableName, ddl: DdlEvent, outcome: LoadOutcome, *, has_rows: bool) -> None:
        refuse_what_is_not_theirs(ddl)
        self.columns[name] = read_table(ddl.sql).columns
        if not (self._filter.force_replicate or creates_key(ddl.sql)):  # upstream's table decides, not the target's
            self._leave(name, f"it {NO_INDEX}", outcome)
            return
        catalog = self._target.catalog()
        if catalog.get(catalog.spelled(name)) is None or tuple(name) in self._torn or self._joins(name):
            because = why_ignored(ddl, [ddl], self._filter, catalog)
            if because and has_rows:
                raise ConfigError(
                    f"the dump holds rows of table {name}, which the target lacks; its CREATE TABLE is not executed,"
                    f" because {because}",
                    where=self._target.name,
                    hint="create the table as it is upstream, or let filter.rules leave it out",
                )
            if because:
                self._leave(name, because, outcome)
                return
            self._execute(ddl)
            catalog = self._target.catalog()
        elif not self._routes.merges(name):
            self._target.define(self._there(ddl), self._lease)
        schema = catalog.get(catalog.spelled(name))
        if schema is not None:
            check_key(schema, self._target.name, force_replicate=self._filter.force_replicate)
            made = read_table(ddl.sql) if read_statement(ddl.sql).like is None else None
            if made is not None and not made.primary_key:
                self._promoted.check(schema, self._target.name)
                self._promoted.check_made(schema, unique_keys(made), self._target.name)
        outcome.tables += 1

    def _joins(self, name: TableName) -> bool:
        """Whether it is merged with tables that this load has defined: it has to be defined as they are."""
        table = merged_at(self.progress.merged, self._routes(name))
        return self._routes.merges(name) and table is not None and table.whole

    def _leave(self, name: TableName, because: str, outcome: LoadOutcome) -> None:
        self.passed.add(name)
        outcome.left_out.append(str(name))
        log.warning("table left out", table=str(name), because=because)

    def view(self, dump: Dump, outcome: LoadOutcome) -> None:
        """Make the views, or make them again."""
        views = [view_of(path, dump.tso, name) for name, path in dump.views.items() if self._filter.tables(*name)]
        for ddl in in_order(views):
            refuse_what_is_not_theirs(ddl)
            with reading(ddl):
                check_names(ddl, read_statement(ddl.sql), self._filter.tables)
            self._execute(ddl)
            outcome.views += 1

    def _execute(self, ddl: DdlEvent) -> None:
        log.debug("executing DDL", statement=ddl.sql[:200])
        try:
            found = self._routed(ddl)
            self.progress = after(self.progress, found)
            if not found.because and found.rows is None:
                self._target.execute_ddl(found.ddl, self.progress, self._lease, lambda _: None)
        except (TargetError, InputError) as error:
            places = "; ".join(filter(None, (str(ddl.position), error.where)))
            raise type(error)(error.fact, where=places, hint=error.hint) from error
        self._observe(LoadStep.DEFINED)

    def _there(self, ddl: DdlEvent) -> PlacedDdl:
        """The CREATE TABLE of a table that is there, by the target's names. Raises InputError."""
        if not self._routes.rules:
            return placed(ddl)
        with reading(ddl):
            known = shards(self._routes, self.progress, self._target, torn=True)
            return placed(routed(ddl, known, by_hand=True).ddl)

    def _routed(self, ddl: DdlEvent) -> RoutedDdl:
        """The DDL by the target's names."""
        if not self._routes.rules:
            return RoutedDdl(ddl, self.progress.sources)
        torn = (ddl.database, ddl.table) in self._torn
        with reading(ddl):
            return routed(ddl, shards(self._routes, self.progress, self._target, torn=torn))
