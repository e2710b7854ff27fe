"""Rows of one shard in a table of the target in which several are merged: they go, or get another origin."""

from collections.abc import Sequence
from typing import Any

from ordering.errors import TargetError
from ordering.events import DdlEvent, TableName
from ordering.progress import Progress
from sinks.bookkeeping.ddl_log import DdlState
from sinks.bookkeeping.progress_rows import Lease
from sinks.dialect import Dialect
from sinks.rows.origin_rows import OriginRows, Spelling, changed_rows, other_rows, own_rows
from sinks.rows.routed import Origin
from sinks.steps import Observer, Step
from sinks.target_session import TargetSession


class MergedRows:
    """The rows of shards, over a target's session. Raises TargetError and its kinds."""

    def __init__(self, at: TargetSession[Any], dialect: Dialect[Any]) -> None:
        self._at, self._dialect = at, dialect

    def change(self, ddl: DdlEvent, rows: OriginRows, progress: Progress, lease: Lease, observe: Observer) -> None:
        """Change a shard's rows in place of executing its DDL, and save `progress`, in one transaction."""
        at, log = self._at, self._at.books.ddl_log
        statement, values = changed_rows(rows, self._spelling(rows.place, rows.origin))
        with at.led_transaction(lease):
            at.db.run(statement, values)
            observe(Step.DDL_EXECUTED)
            line = log.open_line(ddl, lease.changefeed)
            if line is None:
                log.add(ddl, statement, DdlState.DONE, lease.changefeed)
            else:
                log.close(line.id, DdlState.DONE, executed=statement)
            observe(Step.DDL_RECORDED)
            at.save(progress, lease)
        observe(Step.DDL_DONE)

    def has_others(self, place: TableName, origins: Sequence[Origin]) -> bool:
        """Whether a table, by its name in the target, holds rows of other shards than those of these origins."""
        return bool(self._at.db.query(*other_rows(origins, self._spelling(place, origins[0]))))

    def has_own(self, place: TableName, origin: Origin) -> bool:
        """Whether a table, by its name in the target, holds rows of this origin."""
        return bool(self._at.db.query(*own_rows(origin, self._spelling(place, origin))))

    def _spelling(self, place: TableName, origin: Origin) -> Spelling:
        catalog = self._at.catalog()
        schema = catalog.get(catalog.spelled(place))
        if schema is None:
            raise TargetError(f"table {place} is missing in the target", where=self._at.name)
        own, moved = [column for column, _ in origin], [column.name for column in schema.columns if column.moved]
        named, columns = self._dialect.spelled(schema.name, [*own, *moved])
        return Spelling(named, tuple(columns[: len(own)]), self._at.book.types.mark, tuple(columns[len(own) :]))
