"""What becomes of a DDL whose turn has come: it is executed, passed over, or as an operator decided; or it fails.

A DDL that fails stops the changefeed: it is in the DDL log with the error, and nothing after it is applied until it can
be executed or an operator decides (`reconciler ddl skip`, `reconciler ddl done`).
"""

from collections.abc import Collection, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace

import structlog

from consumer.config.changefeed_filter import ChangefeedFilter
from consumer.config.routes import Routes
from consumer.ddl.ask_upstream import Asking
from consumer.ddl.guard import reading, refuse_what_is_not_theirs
from consumer.ddl.lost_keys import WHY_KEPT, LostKey, dropped_indexes, kept_after, lost_keys, without
from consumer.ddl.merged.shards import RoutedDdl
from consumer.ddl.moved_columns import refuse_moved_columns
from consumer.ddl.never_made import may_mean_another, tables_of, was_never_made
from consumer.ddl.policy import (
    WHY_THERE,
    is_left_out,
    last_keys,
    no_index,
    replicated,
    why_ignored,
    without_idle_clauses,
)
from consumer.ddl.routing import after, left, passed_over, routed, shards
from ordering.errors import TRANSIENT, ConfigError, InputError, ReconcilerError, TargetError
from ordering.events import DdlEvent, TableName
from ordering.kept_keys import beyond_limit
from ordering.progress import Progress
from ordering.timestamps import utc_text
from sinks.bookkeeping.ddl_log import DECIDED, KEPT, DdlRecord, DdlState
from sinks.bookkeeping.progress_rows import Lease
from sinks.ddl.kept_definitions import NOTHING_HERE, PlacedDdl, placed
from sinks.ddl.parse.statement import read_statement
from sinks.rows.routed import NameMap
from sinks.steps import Observer
from sinks.target import Target

log = structlog.get_logger()
_SHOWN = 200


@dataclass(frozen=True, slots=True)
class Execution:
    """Executes DDLs for the one who leads."""

    target: Target
    wanted: ChangefeedFilter
    routes: Routes
    lease: Lease
    observe: Observer
    asking: Asking

    def unsettled(self) -> list[DdlRecord]:
        """Lines of the DDL log that this run finds open."""
        return self.target.ddl_log.unsettled(self.lease.changefeed)

    def placed(self, ddl: DdlEvent, stayed: Collection[TableName]) -> DdlEvent:
        """The DDL with the tables that it means where its names leave that open. `stayed`: tables that it left."""
        return self.asking.placed(ddl, self.target.catalog(), stayed)

    def settle(
        self,
        ddl: DdlEvent,
        waiting: Iterable[DdlEvent],
        unsettled: Collection[DdlRecord],
        before: Progress,
        progress: Progress,
    ) -> Progress:
        """Do with the DDL what is to be done; the progress that was saved. `waiting`: all DDLs still to be executed.

        `before` and `progress`: without the DDL and with it.

        Raises InputError or TargetError, with the DDL's position, if it can't be done.
        """
        waiting = [ddl if other.identity == ddl.identity else other for other in waiting]
        line = next((line for line in unsettled if line.is_of(ddl)), None)
        if line is not None and DdlState(line.state) in DECIDED:
            return self._pass(ddl, line, self._keeping(ddl, progress, *self._last_keys(ddl)))
        with self._noting(ddl):
            # what a killed run began was judged by a schema that may be another one since
            torn = line is not None and line.state == DdlState.INTENT.value
            because = "" if torn else self._why_ignored(ddl, waiting)
            if because:
                left_out = self._last_keys(ddl) if because.startswith(WHY_KEPT) else ()
            else:
                refuse_what_is_not_theirs(ddl)
                self._refuse_moved(ddl)
                ddl, left_out = self._replicated(ddl, line if torn else None, progress)
        if not because or because.startswith(WHY_THERE):
            before, progress = self._drop_lost_keys(ddl, unsettled, before, progress)
        progress = self._keeping(ddl, progress, *left_out)
        if because:
            progress = self._without(ddl, progress)
            self._ignore(ddl, because, self._here(ddl, progress), progress)
            return progress
        with self._noting(ddl):
            return self._execute(self.asking.completed(ddl), progress, torn=torn)

    def _execute(self, ddl: DdlEvent, progress: Progress, *, torn: bool) -> Progress:
        found = self._routed(ddl, progress, torn=torn)
        ddl, progress = found.ddl, after(progress, found)
        if found.because:
            self._ignore(ddl, found.because, _here(found), progress)
            return progress
        if found.rows is not None:
            log.info("changing a shard's rows", at=utc_text(ddl.commit_ts), statement=ddl.statement[:_SHOWN])
            with _named(ddl):
                self.target.merged.change(ddl, found.rows, progress, self.lease, self.observe)
            self.target.know(progress)
            return progress
        log.info("executing DDL", at=utc_text(ddl.commit_ts), database=ddl.database, statement=ddl.statement[:_SHOWN])
        with _named(ddl), reading(ddl):
            self.target.execute_ddl(ddl, progress, self.lease, self.observe)
        return progress

    def _refuse_moved(self, ddl: DdlEvent) -> None:
        if self.routes.columns:
            with reading(ddl):
                refuse_moved_columns(ddl, self.routes.columns, self.wanted.tables, self.target.catalog())

    def _why_ignored(self, ddl: DdlEvent, waiting: Collection[DdlEvent]) -> str:
        """Why a DDL that no run has begun is left out; "" if it is not."""
        return why_ignored(ddl, waiting, self.wanted, self.target.catalog()) or self._never_made(ddl)

    def _never_made(self, ddl: DdlEvent) -> str:
        """Why a DDL of tables that are not there is left out; "" if it is not, or if they have to be there."""
        if self.wanted.force_replicate:
            return ""
        with reading(ddl):
            tables, catalog = tables_of(ddl), self.target.catalog()
            is_open = may_mean_another(ddl, catalog)
        if not tables or is_open or any(catalog.get(catalog.spelled(table)) is not None for table in tables):
            return ""
        log_lines = self.target.ddl_log.latest(self.lease.changefeed, KEPT)
        never = all(was_never_made(table, ddl.commit_ts, log_lines) for table in tables)
        return f"{no_index(tables[0])}: no CREATE TABLE of it was sent" if never else ""

    def _last_keys(self, ddl: DdlEvent) -> set[str]:
        """See `last_keys`; of a statement that can't be read none."""
        try:
            with reading(ddl):
                return last_keys(ddl, self.wanted, self.target.catalog())
        except InputError:
            return set()

    def _keeping(self, ddl: DdlEvent, progress: Progress, *left_out: str) -> Progress:
        """The progress that knows what is kept after a DDL; a statement that can't be read changes nothing of it."""
        try:
            with reading(ddl):
                kept = kept_after(progress.kept_keys, ddl, left_out, self.target.catalog())
        except InputError:
            return progress
        forgotten = beyond_limit(kept)
        for table in forgotten:
            log.warning(
                "too many tables keep an index that upstream has dropped: this one is no longer remembered",
                table=str(table),
                indexes=sorted(kept[table]),
                hint="drop these indexes by hand, or rows that are equal in their columns may replace each other",
            )
        return replace(progress, kept_keys={table: keys for table, keys in kept.items() if table not in forgotten})

    def _drop_lost_keys(
        self, ddl: DdlEvent, unsettled: Collection[DdlRecord], before: Progress, progress: Progress
    ) -> tuple[Progress, Progress]:
        """Drop what upstream dropped before and the target has kept, where the DDL makes another key."""
        begun = [line.sql for line in unsettled if line.commit_ts == ddl.commit_ts]
        with reading(ddl):
            found = lost_keys(ddl, progress.kept_keys, self.target.catalog(), begun)
        for lost in found:
            kept = without(progress.kept_keys, ddl, lost.name)
            before, progress = replace(before, kept_keys=kept), replace(progress, kept_keys=kept)
            self._drop_lost(lost, unsettled, before)
        return before, progress

    def _drop_lost(self, lost: LostKey, unsettled: Collection[DdlRecord], before: Progress) -> None:
        """Drop a key as `settle` executes a DDL; it has a line of its own in the DDL log, and moves no offsets."""
        drop = lost.ddl
        line = next((line for line in unsettled if line.is_of(drop)), None)
        if line is not None and DdlState(line.state) in DECIDED:
            self._pass(drop, line, before)
            return
        because = "upstream dropped this key before, and makes another one now"
        log.warning("a key that was kept is dropped", at=utc_text(drop.commit_ts), because=because, statement=drop.sql)
        with self._noting(drop):
            lost.check()
            self._execute(drop, before, torn=line is not None and line.state == DdlState.INTENT.value)

    def _routed(self, ddl: DdlEvent, progress: Progress, *, torn: bool, by_hand: bool = False) -> RoutedDdl:
        """The DDL by the target's names."""
        if not self.routes.rules:
            return RoutedDdl(ddl, progress.sources)
        with reading(ddl):
            return routed(ddl, shards(self.routes, progress, self.target, torn=torn), by_hand=by_hand)

    def _without(self, ddl: DdlEvent, progress: Progress) -> Progress:
        """The progress that knows what upstream's shards have after a DDL that the target leaves out."""
        if not self.routes.columns.origins:
            return progress
        return replace(progress, merged=passed_over(ddl, shards(self.routes, progress, self.target)))

    def _replicated(self, ddl: DdlEvent, begun: DdlRecord | None, progress: Progress) -> tuple[DdlEvent, set[str]]:
        """The DDL without what TiCDC leaves out of it, and the indexes whose drops that are.

        `begun`: its line, if a run has begun it: what was decided then, by another schema maybe, counts.
        """
        with reading(ddl):
            if begun is None:
                found = replicated(ddl, self.wanted, self.target.catalog())
                name = TableName(ddl.database, ddl.table)
                if not self.routes.merges(name):  # there, columns are of other shards too
                    kept = progress.kept_keys.get(name.folded, {})
                    found = without_idle_clauses(found, self.target.catalog(), kept)
            else:
                found = replace(ddl, replicated=self.target.ddl_log.replicated(begun))
            if not found.replicated:
                return found, set()
            if ddl.removes and ddl.adds:
                return self._with_fewer_renames(found), set()
            left_out = dropped_indexes(ddl.sql) - dropped_indexes(found.replicated)
        if not left_out:
            return found, set()
        because = "it drops the last valid index of its table, which TiCDC does not replicate"
        log.warning(
            "clauses of a DDL are left out", at=utc_text(ddl.commit_ts), because=because, indexes=sorted(left_out)
        )
        return found, left_out

    def _with_fewer_renames(self, ddl: DdlEvent) -> DdlEvent:
        statement, at = read_statement(ddl.replicated), utc_text(ddl.commit_ts)
        log.warning(
            "renames of a statement are left out", at=at, statement=ddl.sql[:_SHOWN], left=ddl.replicated[:_SHOWN]
        )
        return replace(ddl, removes=statement.removes(), adds=statement.adds())

    def _pass(self, ddl: DdlEvent, line: DdlRecord, progress: Progress) -> Progress:
        becomes = DECIDED[DdlState(line.state)].value
        log.warning("DDL not executed, as decided", at=utc_text(ddl.commit_ts), becomes=becomes, reason=line.reason)
        if self.routes.rules and DdlState(line.state) is DdlState.TAKE:
            line, progress = self._made_by_hand(ddl, line, progress)
        else:
            line = replace(line, **self._here(ddl, progress)._asdict())
            progress = self._without(ddl, progress)
        self.target.settle_ddl(line, progress, self.lease, self.observe)
        return progress

    def _here(self, ddl: DdlEvent, progress: Progress) -> PlacedDdl:
        """A DDL of which nothing is executed, by the target's names; without a statement where it can't be said."""
        try:
            if is_left_out(ddl, self.wanted.tables):  # what has its name here is none of this changefeed's
                return NOTHING_HERE
            if not self.routes.rules:
                return placed(ddl)
            found = self._routed(ddl, progress, torn=True, by_hand=True)
        except (InputError, ConfigError):  # an operator may skip what can't be read, or what case alone leaves out
            return PlacedDdl("", *self._place_of(ddl, progress))
        return _here(found)

    def _place_of(self, ddl: DdlEvent, progress: Progress) -> TableName:
        name = TableName(ddl.database, ddl.table)
        names = NameMap(self.routes, progress.sources, self.routes.columns.origins)
        return names.place(name) if name.table else name

    def _made_by_hand(self, ddl: DdlEvent, line: DdlRecord, progress: Progress) -> tuple[DdlRecord, Progress]:
        """The line by the target's names, and the progress that knows of it; of what can't be said, what it removes."""
        try:
            found = self._routed(ddl, progress, torn=True, by_hand=True)
        except InputError as error:
            log.warning("a DDL that was made by hand has no form by the target's names", because=str(error))
            line = replace(line, **PlacedDdl("", *self._place_of(ddl, progress))._asdict())
            return line, replace(progress, sources=left(ddl, progress.sources))
        return replace(line, **_here(found)._asdict()), after(progress, found)

    def _ignore(self, ddl: DdlEvent, because: str, here: PlacedDdl, progress: Progress) -> None:
        tell = log.info if because.startswith("filter.") else log.warning  # what the config asks for is no news
        tell("DDL ignored", at=utc_text(ddl.commit_ts), because=because, statement=ddl.sql[:_SHOWN])
        self.target.ignore_ddl(ddl, because, here, progress, self.lease, self.observe)

    @contextmanager
    def _noting(self, ddl: DdlEvent) -> Iterator[None]:
        """Note in the DDL log why the DDL can't be executed, and say what an operator may do."""
        try:
            yield
        except TRANSIENT:
            raise
        except (InputError, TargetError) as error:
            self._note(ddl, error)
            advice = (
                "correct the target and start again: the DDL is tried again;"
                f" if you made the change by hand: `reconciler ddl done CONFIG {ddl.commit_ts}`;"
                f" to leave it out: `reconciler ddl skip CONFIG {ddl.commit_ts}`"
            )
            hint = "; ".join(filter(None, (error.hint.rstrip("."), self._unsent(ddl), advice)))
            raise type(error)(error.fact, where=error.where, hint=hint) from error

    def _unsent(self, ddl: DdlEvent) -> str:
        """What a table needs besides that upstream had without a valid index until now; "" for others."""
        table = TableName(ddl.database, ddl.table)
        try:
            catalog = self.target.catalog()
            if not ddl.table or catalog.get(catalog.spelled(table)) is not None:
                return ""
            log_lines = self.target.ddl_log.latest(self.lease.changefeed, KEPT)
        except ReconcilerError:  # what is told is the first error
            return ""
        if not was_never_made(table, ddl.commit_ts, log_lines):
            return ""
        return f"upstream had {table} without a valid index, so its rows were not sent: make the table with these rows"

    def _note(self, ddl: DdlEvent, error: ReconcilerError) -> None:
        try:
            self.target.fail_ddl(ddl, error.fact, self.lease)
        except ReconcilerError as second:
            log.warning("the failure can't be recorded in the DDL log", because=str(second))


def _here(found: RoutedDdl) -> PlacedDdl:
    """A DDL by the target's names; of one that the routes leave out, or about a shard alone, there is none."""
    of_a_shard = found.merged is not None and not found.ddl.routed
    return NOTHING_HERE if of_a_shard or found.because else placed(found.ddl)


@contextmanager
def _named(ddl: DdlEvent) -> Iterator[None]:
    """Name the DDL in what the target says of it."""
    try:
        yield
    except TargetError as error:
        what = f"DDL at commitTs {ddl.commit_ts} in database {ddl.database!r}: {ddl.sql[:500]}"
        places = "; ".join(filter(None, (str(ddl.position), error.where)))
        raise type(error)(f"{error.fact}; {what}", where=places, hint=error.hint) from error
