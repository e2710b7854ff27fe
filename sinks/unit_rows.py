"""Writes the rows of a unit, inside the transaction that has begun: all deletes before all writes (R5).

Where the target refuses a row, a savepoint before each group lets the row at fault be found out.
"""

from collections.abc import Callable
from typing import Any

from ordering.drift import Drift, Drifts, Met, drift_of, summed
from ordering.errors import NO_ROW_AT_FAULT, TargetError
from ordering.events import RowOp, TableName
from sinks.dialect import Dialect
from sinks.rows.bisect_refused import Trial
from sinks.rows.schema import Catalog, TableSchema
from sinks.rows.spool import Group, Spool
from sinks.target_session import TargetSession

Put = Callable[[Group], Met]


class UnitRows:
    """The rows of units on their way into one target. Raises TargetError and its kinds."""

    def __init__(self, session: TargetSession[Any], dialect: Dialect[Any], catalog: Callable[[], Catalog]) -> None:
        self._session, self._dialect, self._catalog = session, dialect, catalog

    def write(self, spool: Spool) -> Drifts:
        """Write them; what they have shown of drift.

        Raises RowRefusedError where it is one row that the target refuses, if it has savepoints.
        """
        return self._written(spool, self._tried if self._dialect.has_savepoints else _at_once)

    def write_at_once(self, spool: Spool) -> Drifts:
        """Write them without savepoints; of a row that the target refuses the target's own error is raised."""
        return self._written(spool, _at_once)

    def _written(self, spool: Spool, tried: Callable[[Group, Put], Met]) -> Drifts:
        groups = (*spool.groups(RowOp.DELETE), *spool.groups(RowOp.WRITE))
        return summed((group.first.table, self._put(group, tried)) for group in groups)

    def _put(self, group: Group, tried: Callable[[Group, Put], Met]) -> Drift:
        db, schema = self._session.db, self._schema(group.first.table)
        write = self._dialect.delete if group.first.half is RowOp.DELETE else self._dialect.write
        met = tried(group, lambda some: write(db, some, schema))
        return Drift(0, 0) if group.met is None else drift_of(group.met, met)

    def _schema(self, table: TableName) -> TableSchema:
        """A table that rows are written into, by its name here. Raises TargetError: it is missing, or unfit."""
        schema = self._catalog().get(table)
        if schema is None:
            raise TargetError(f"table {table} is missing in the target", where=self._dialect.name)
        schema.check_fit()
        return schema.in_target()

    def _tried(self, group: Group, put: Put) -> Met:
        """What `put` does with a group; where the target refuses it, which row is at fault is found out."""
        db = self._session.db
        db.save_point()
        try:
            return put(group)
        except NO_ROW_AT_FAULT:
            raise
        except TargetError as error:
            db.back_to_point()
            raise Trial(self._dialect.encoder, put, db.save_point, db.back_to_point).refused(group, error) from error


def _at_once(group: Group, put: Put) -> Met:
    return put(group)
