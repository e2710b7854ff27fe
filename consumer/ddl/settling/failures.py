"""DDLs that fail: why, in the DDL log; and what an operator may do, in the error."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import structlog

from consumer.ddl.never_made import was_never_made
from ordering.errors import TRANSIENT, InputError, ReconcilerError, TargetError
from ordering.events import DdlEvent, TableName
from sinks.bookkeeping.ddl_log import KEPT
from sinks.bookkeeping.progress_rows import Lease
from sinks.target import Target

log = structlog.get_logger()


@dataclass(frozen=True, slots=True)
class Failures:
    """Of one changefeed's DDLs."""

    target: Target
    lease: Lease

    @contextmanager
    def noted(self, ddl: DdlEvent) -> Iterator[None]:
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


@contextmanager
def named(ddl: DdlEvent) -> Iterator[None]:
    """Name the DDL in what the target says of it."""
    try:
        yield
    except TargetError as error:
        what = f"DDL at commitTs {ddl.commit_ts} in database {ddl.database!r}: {ddl.sql[:500]}"
        places = "; ".join(filter(None, (str(ddl.position), error.where)))
        raise type(error)(f"{error.fact}; {what}", where=places, hint=error.hint) from error
