"""Whether a DDL that no operator has decided about is executed, and what is left out of it, by the target's tables."""

from collections.abc import Collection
from dataclasses import dataclass, replace

import structlog

from consumer.config.changefeed_filter import ChangefeedFilter
from consumer.config.routes import Routes
from consumer.ddl.guard import reading, refuse_what_is_not_theirs
from consumer.ddl.kept_after import kept_after
from consumer.ddl.lost_keys import WHY_KEPT, dropped_indexes
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
from ordering.errors import InputError
from ordering.events import DdlEvent, TableName
from ordering.kept_keys import beyond_limit
from ordering.progress import Progress
from ordering.timestamps import utc_text
from sinks.bookkeeping.ddl_log import KEPT, DdlRecord
from sinks.ddl.parse.statement import read_statement
from sinks.rows.schema import Catalog
from sinks.target import Target

log = structlog.get_logger()
_SHOWN = 200


@dataclass(frozen=True, slots=True)
class DdlDecision:
    """The DDL as it is executed, or why it is ignored (`because`); `left_out`: indexes that it drops and that stay."""

    ddl: DdlEvent
    because: str = ""
    left_out: frozenset[str] = frozenset()

    @property
    def makes_keys(self) -> bool:
        """Whether upstream's table has after it what it says, so that kept keys may be in its way."""
        return not self.because or self.because.startswith(WHY_THERE)


@dataclass(frozen=True, slots=True)
class Deciding:
    """Decides for one changefeed."""

    target: Target
    wanted: ChangefeedFilter
    routes: Routes
    changefeed: str

    def decide(
        self, ddl: DdlEvent, waiting: Collection[DdlEvent], begun: DdlRecord | None, progress: Progress
    ) -> DdlDecision:
        """What becomes of a DDL. `begun`: its line, if a run has begun it; `waiting`: all still to be executed.

        Raises InputError for one that is refused.
        """
        # what a killed run began was judged by a schema that may be another one since
        because = "" if begun is not None else self._why_ignored(ddl, waiting)
        if because:
            return DdlDecision(ddl, because, self.last_keys(ddl) if because.startswith(WHY_KEPT) else frozenset())
        refuse_what_is_not_theirs(ddl)
        self._refuse_moved(ddl)
        return self._replicated(ddl, begun, progress)

    def is_left_out(self, ddl: DdlEvent) -> bool:
        """Whether the DDL is about tables that the changefeed does not take. Raises InputError."""
        return is_left_out(ddl, self.wanted.tables)

    def last_keys(self, ddl: DdlEvent) -> frozenset[str]:
        """See `policy.last_keys`; of a statement that can't be read none."""
        try:
            with reading(ddl):
                return frozenset(last_keys(ddl, self.wanted, self.target.catalog()))
        except InputError:
            return frozenset()

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
        log_lines = self.target.ddl_log.latest(self.changefeed, KEPT)
        never = all(was_never_made(table, ddl.commit_ts, log_lines) for table in tables)
        return f"{no_index(tables[0])}: no CREATE TABLE of it was sent" if never else ""

    def _refuse_moved(self, ddl: DdlEvent) -> None:
        if self.routes.columns:
            with reading(ddl):
                refuse_moved_columns(ddl, self.routes.columns, self.wanted.tables, self.target.catalog())

    def _replicated(self, ddl: DdlEvent, begun: DdlRecord | None, progress: Progress) -> DdlDecision:
        """The DDL without what TiCDC leaves out of it.

        `begun`: its line, if a run has begun it: what was decided then, by another schema maybe, counts.
        """
        with reading(ddl):
            if begun is None:
                found = self._without_idle_clauses(replicated(ddl, self.wanted, self.target.catalog()), progress)
            else:
                found = replace(ddl, replicated=self.target.ddl_log.replicated(begun))
            if not found.replicated:
                return DdlDecision(found)
            if ddl.removes and ddl.adds:
                return DdlDecision(_with_fewer_renames(found))
            left_out = frozenset(dropped_indexes(ddl.sql) - dropped_indexes(found.replicated))
        if left_out:
            because = "it drops the last valid index of its table, which TiCDC does not replicate"
            log.warning(
                "clauses of a DDL are left out", at=utc_text(ddl.commit_ts), because=because, indexes=sorted(left_out)
            )
        return DdlDecision(found, left_out=left_out)

    def _without_idle_clauses(self, ddl: DdlEvent, progress: Progress) -> DdlEvent:
        name = TableName(ddl.database, ddl.table)
        if self.routes.merges(name):  # there, columns are of other shards too
            return ddl
        return without_idle_clauses(ddl, self.target.catalog(), progress.kept_keys.get(name.folded, {}))


def _with_fewer_renames(ddl: DdlEvent) -> DdlEvent:
    statement, at = read_statement(ddl.replicated), utc_text(ddl.commit_ts)
    log.warning("renames of a statement are left out", at=at, statement=ddl.sql[:_SHOWN], left=ddl.replicated[:_SHOWN])
    return replace(ddl, removes=statement.removes(), adds=statement.adds())


def keeping(
    ddl: DdlEvent, progress: Progress, left_out: Collection[str], catalog: Catalog, *, is_done: bool
) -> Progress:
    """The progress that knows what is kept after a DDL; a statement that can't be read changes nothing of it."""
    try:
        with reading(ddl):
            kept = kept_after(progress.kept_keys, ddl, left_out, catalog, is_done=is_done)
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
