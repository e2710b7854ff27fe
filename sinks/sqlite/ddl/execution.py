"""Executes DDL in SQLite: in the transaction of the progress, but for databases, which are files."""

import time
from functools import partial

from ordering.events import DdlEvent, TableName
from ordering.progress import Progress
from sinks.bookkeeping.ddl_log import DdlRecord, DdlState, milliseconds_since
from sinks.bookkeeping.progress_rows import Lease
from sinks.ddl.index_names import check_names
from sinks.ddl.kept_definitions import Definitions, PlacedDdl
from sinks.ddl.name_resolution import older_database, respelled, session_of
from sinks.ddl.parse.left_out import without_those_there
from sinks.ddl.parse.statement import DdlKind, Statement, read_statement
from sinks.ddl.rows.default_values import Circumstances, filling_of
from sinks.rows.schema import TableSchema
from sinks.rows.values import ValueRules
from sinks.sqlite.catalog import is_of_ddl, make_database, read_tables, remove_database
from sinks.sqlite.ddl.live_schema import Site
from sinks.sqlite.ddl.translate import SqliteTranslation
from sinks.sqlite.encoder import SqliteEncoder
from sinks.sqlite.session import SqliteSession
from sinks.sqlite.types import column_of
from sinks.steps import Observer, Step
from sinks.target_session import TargetSession

DEFINITION = "main.definition"


class SqliteDdl:
    """See `sinks.ddl_execution.DdlExecution`."""

    def __init__(self, at: TargetSession[SqliteSession], encoder: SqliteEncoder, rules: ValueRules) -> None:
        self._at, self._encoder, self._rules = at, encoder, rules

    def execute(self, ddl: DdlEvent, progress: Progress, lease: Lease, observe: Observer) -> None:
        """See `DdlExecution.execute`.

        A database is a file: making or removing one can be done twice, and is done only while a transaction holds the
        epoch: a leader that was stopped and goes on would remove its successor's. The rest is one transaction with the
        progress.
        """
        at, log = self._at, self._at.books.ddl_log
        statement = read_statement(respelled(ddl.statement, ddl.own_database, at.catalog()))
        directory, database = at.db.directory, statement.database or ""
        with at.led_transaction(lease):
            entered = log.enter(ddl, "", lease.changefeed, {})
            if statement.kind is DdlKind.CREATE_DATABASE:
                make_database(directory, database)
        observe(Step.DDL_RECORDED)
        begun = time.monotonic()
        if statement.kind is DdlKind.CREATE_DATABASE:
            at.db.attach(database)
        if statement.kind is DdlKind.DROP_DATABASE:
            at.db.detach(database)
        translation = self._translation(statement, ddl, lease)
        try:
            with at.led_transaction(lease):
                if statement.kind is DdlKind.DROP_DATABASE:
                    remove_database(directory, database)
                executed = list(translation.executed())
                observe(Step.DDL_EXECUTED)
                at.save(progress, lease)
                log.close(entered.id, DdlState.DONE, milliseconds_since(begun), "; ".join(executed))
        finally:
            at.forget_tables(ddl, self._read_table)
        observe(Step.DDL_DONE)

    def _read_table(self, name: TableName) -> dict[TableName, TableSchema]:
        db = self._at.db
        return read_tables(db.connection, name.database, name.table) if name.database in db.attached else {}

    def _translation(self, statement: Statement, ddl: DdlEvent, lease: Lease) -> SqliteTranslation:
        db, catalog = self._at.db, self._at.catalog()
        own = catalog.database(ddl.own_database)
        site = Site(db.connection, db.execute, self._definitions(lease), self._encoder, self._rules)
        if statement.kind in {DdlKind.ALTER_TABLE, DdlKind.DROP_INDEX}:
            name = catalog.spelled(TableName(statement.tables[0].database or own, statement.tables[0].table))
            check_names(statement, catalog.get(name), catalog, partial(site.has_index, name), partial(is_of_ddl, name))
        if statement.kind is DdlKind.ALTER_TABLE:
            left = without_those_there(statement.sql, ddl.sql, lambda index: site.has_index(name, index))
            statement = statement if left == statement.sql else read_statement(left)
        placed = statement.placed(own, lambda old: older_database(statement, old, ddl, catalog))
        session = session_of(placed, ddl, catalog, lambda: site.views(db.attached))
        circumstances = Circumstances(session, filling_of(ddl, self._rules))
        return SqliteTranslation(placed, catalog, site, circumstances)

    def _definitions(self, lease: Lease) -> Definitions:
        run = self._at.db.execute
        return Definitions(run, run, DEFINITION, "?", lease.changefeed)

    def may_have_run(self, line: DdlRecord) -> bool:  # noqa: ARG002
        """See `DdlExecution.may_have_run`: a rollback undoes it."""
        return False

    def follow(self, made: PlacedDdl, lease: Lease) -> None:
        """See `DdlExecution.follow`."""
        self._definitions(lease).follow_made(made, self._at.catalog())

    def pass_over(self, left_out: PlacedDdl, lease: Lease) -> None:
        """See `DdlExecution.pass_over`."""
        self._definitions(lease).pass_over(left_out, self._at.catalog())

    def define(self, there: PlacedDdl, lease: Lease) -> None:
        """See `DdlExecution.define`."""
        self._definitions(lease).define(there, self._at.catalog(), column_of)

    def resume(self, lease: Lease) -> None:
        """See `DdlExecution.resume`: nothing goes on by itself."""
