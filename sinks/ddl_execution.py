"""Executes a DDL exactly once: the port, and what does it where a rollback undoes DDL."""

import time
from collections.abc import Callable, Sequence
from typing import Generic, Protocol

from ordering.events import DdlEvent
from ordering.progress import Progress
from sinks.bookkeeping.ddl_log import DdlRecord, DdlState, milliseconds_since
from sinks.bookkeeping.progress_rows import Lease
from sinks.ddl.kept_definitions import PlacedDdl
from sinks.rows.schema import Catalog
from sinks.steps import Observer, Step
from sinks.target_session import S, TargetSession


class DdlExecution(Protocol):
    """What executes DDL over one session. All methods raise TargetError and LeadershipLostError."""

    def execute(self, ddl: DdlEvent, progress: Progress, lease: Lease, observe: Observer) -> None:
        """Execute a DDL exactly once and save `progress`, whatever crashes in between."""
        ...

    def may_have_run(self, line: DdlRecord) -> bool:
        """Whether an intent's statement may have been executed, though an error has come (`DdlState.INTENT`)."""
        ...

    def follow(self, made: PlacedDdl, lease: Lease) -> None:
        """Keep the definition that a change made by hand leaves, where any is kept (`sinks.ddl.kept_definitions`)."""
        ...

    def pass_over(self, left_out: PlacedDdl, lease: Lease) -> None:
        """Keep of definitions what is known after a statement that only upstream has executed."""
        ...

    def define(self, there: PlacedDdl, lease: Lease) -> None:
        """Keep the definition of a table that is there, and now gets the rows of a dump with this CREATE TABLE."""
        ...

    def resume(self, lease: Lease) -> None:
        """Take on what went on by itself when the last leader ended; called when this one has begun."""
        ...


class TransactionalDdl(Generic[S]):
    """The statements, that they are done and the progress are one transaction."""

    def __init__(self, at: TargetSession[S], execute: Callable[[S, DdlEvent, Catalog], Sequence[str]]) -> None:
        self._at, self._execute = at, execute

    def execute(self, ddl: DdlEvent, progress: Progress, lease: Lease, observe: Observer) -> None:
        """See `DdlExecution.execute`."""
        at, log = self._at, self._at.books.ddl_log
        at.forget_catalog()
        with at.led_transaction(lease):
            entered = log.enter(ddl, "", lease.changefeed, {})
        observe(Step.DDL_RECORDED)
        begun = time.monotonic()
        try:
            with at.led_transaction(lease):
                executed = "; ".join(self._execute(at.db, ddl, at.catalog()))
                observe(Step.DDL_EXECUTED)
                at.save(progress, lease)
                log.close(entered.id, DdlState.DONE, milliseconds_since(begun), executed)
        finally:
            at.forget_catalog()
        observe(Step.DDL_DONE)

    def may_have_run(self, line: DdlRecord) -> bool:  # noqa: ARG002
        """See `DdlExecution.may_have_run`: a rollback undoes it."""
        return False

    def follow(self, made: PlacedDdl, lease: Lease) -> None:
        """No definitions are kept."""

    def pass_over(self, left_out: PlacedDdl, lease: Lease) -> None:
        """No definitions are kept."""

    def define(self, there: PlacedDdl, lease: Lease) -> None:
        """No definitions are kept."""

    def resume(self, lease: Lease) -> None:
        """Nothing goes on by itself."""
