"""Executes DDL in PostgreSQL: in the transaction of the progress, but for indexes that are built concurrently."""

import time
from functools import partial

from ordering.events import DdlEvent, TableName
from ordering.progress import Progress
from sinks.bookkeeping.ddl_log import DdlRecord, DdlState, milliseconds_since
from sinks.bookkeeping.progress_rows import Lease
from sinks.ddl.index_names import check_names
from sinks.ddl.kept_definitions import PlacedDdl
from sinks.ddl.name_resolution import older_database, respelled, session_of
from sinks.ddl.parse.left_out import without_those_there
from sinks.ddl.parse.statement import DdlKind, read_statement
from sinks.ddl.rows.default_values import Circumstances, filling_of
from sinks.postgres.catalog import of_one, read_tables
from sinks.postgres.connection import PostgresConnection
from sinks.postgres.ddl import concurrent_indexes
from sinks.postgres.ddl.indexes import has_index
from sinks.postgres.ddl.translate import PostgresTranslation, definitions_in
from sinks.postgres.names import is_of_ddl
from sinks.postgres.preconditions import firing_triggers, unfit_tables
from sinks.postgres.types import column_of
from sinks.rows.schema import TableSchema
from sinks.rows.values import ValueRules
from sinks.steps import Observer, Step
from sinks.target_session import TargetSession

_APART = "apart"
"""What an intent holds if its statements run outside of the transaction."""


class PostgresDdl:
    """See `sinks.ddl_execution.DdlExecution`."""

    def __init__(self, at: TargetSession[PostgresConnection], rules: ValueRules, *, concurrently: bool) -> None:
        self._at, self._rules, self._concurrently = at, rules, concurrently

    def execute(self, ddl: DdlEvent, progress: Progress, lease: Lease, observe: Observer) -> None:
        """See `DdlExecution.execute`: the statements, that they are done and the progress are one transaction."""
        at, log = self._at, self._at.books.ddl_log
        at.forget_tables(ddl, self._read_table)
        translation = self._translation(ddl, lease)
        with at.led_transaction(lease):
            entered = log.torn(ddl, lease.changefeed)
            entered = entered or log.enter(ddl, "", lease.changefeed, self._apart(translation))
        observe(Step.DDL_RECORDED)
        begun = time.monotonic()
        apart, confirm = entered.before.get(_APART), partial(at.confirm, lease)
        try:
            made = concurrent_indexes.build(at.db, apart, confirm, torn=entered.torn) if apart else ""
            with at.led_transaction(lease):
                if made:
                    translation.follow()
                executed = made or "; ".join(translation.executed())
                observe(Step.DDL_EXECUTED)
                at.save(progress, lease)
                log.close(entered.id, DdlState.DONE, milliseconds_since(begun), executed)
        finally:
            at.forget_tables(ddl, self._read_table)
        observe(Step.DDL_DONE)

    def _read_table(self, name: TableName) -> dict[TableName, TableSchema]:
        db = self._at.db
        unfit, triggers = unfit_tables(db, name), firing_triggers(db, name)
        return read_tables(lambda sql: db.query(of_one(sql), tuple(name)), unfit, triggers)

    def _translation(self, ddl: DdlEvent, lease: Lease) -> PostgresTranslation:
        at, catalog = self._at, self._at.catalog()
        statement = read_statement(respelled(ddl.statement, ddl.own_database, catalog))
        own = catalog.database(ddl.own_database)
        if statement.kind in {DdlKind.ALTER_TABLE, DdlKind.DROP_INDEX}:
            name = catalog.spelled(TableName(statement.tables[0].database or own, statement.tables[0].table))
            is_ours = partial(is_of_ddl, name)
            check_names(statement, catalog.get(name), catalog, partial(has_index, at.db, name), is_ours)
        if statement.kind is DdlKind.ALTER_TABLE:
            left = without_those_there(statement.sql, ddl.sql, lambda index: has_index(at.db, name, index))
            statement = statement if left == statement.sql else read_statement(left)
        placed = statement.placed(own, lambda old: older_database(statement, old, ddl, catalog))
        definitions = definitions_in(at.db, lease.changefeed)
        session = session_of(placed, ddl, catalog, definitions.views)
        circumstances = Circumstances(session, filling_of(ddl, self._rules))
        return PostgresTranslation(placed, catalog, at.db, self._rules, circumstances, definitions)

    def _apart(self, translation: PostgresTranslation) -> dict[str, list[str]]:
        """The statements that are to be executed outside of the transaction, where that is wanted and can be."""
        if not self._concurrently:
            return {}
        statements = translation.indexes()
        return {_APART: statements} if concurrent_indexes.only_indexes(self._at.db, statements) else {}

    def may_have_run(self, line: DdlRecord) -> bool:  # noqa: ARG002
        """See `DdlExecution.may_have_run`: a rollback undoes it."""
        return False

    def follow(self, made: PlacedDdl, lease: Lease) -> None:
        """See `DdlExecution.follow`."""
        definitions_in(self._at.db, lease.changefeed).follow_made(made, self._at.catalog())

    def pass_over(self, left_out: PlacedDdl, lease: Lease) -> None:
        """See `DdlExecution.pass_over`."""
        definitions_in(self._at.db, lease.changefeed).pass_over(left_out, self._at.catalog())

    def define(self, there: PlacedDdl, lease: Lease) -> None:
        """See `DdlExecution.define`."""
        definitions_in(self._at.db, lease.changefeed).define(there, self._at.catalog(), column_of)

    def resume(self, lease: Lease) -> None:
        """See `DdlExecution.resume`: nothing goes on by itself."""
