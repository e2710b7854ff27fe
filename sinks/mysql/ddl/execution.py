"""Executes DDL on the MySQL family; how it survives crashes stands in `sinks.mysql.ddl.recovery`."""

import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import nullcontext
from dataclasses import replace
from functools import partial

import structlog

from ordering.errors import InputError, TargetError, TargetUnreachableError
from ordering.events import DdlEvent, TableName
from ordering.progress import Progress
from sinks.bookkeeping.ddl_log import DdlRecord, DdlState, Entered, milliseconds_since
from sinks.bookkeeping.progress_rows import Lease
from sinks.ddl.index_names import check_names
from sinks.ddl.kept_definitions import PlacedDdl
from sinks.ddl.model import ColumnDef, TypeDef
from sinks.ddl.name_resolution import respelled
from sinks.ddl.parse.left_out import conditional_indexes, without_those_there
from sinks.ddl.parse.options import own_collation
from sinks.ddl.parse.statement import DdlKind, Statement, named, read_statement
from sinks.ddl.rows.default_values import Filling, filling_of, unknown_here
from sinks.mysql.catalog import place_of, quoted, read_table
from sinks.mysql.connection import ROUNDING_MODE, MysqlConnection
from sinks.mysql.ddl import kept_indexes, recovery
from sinks.mysql.ddl.columns import lasting_members
from sinks.mysql.ddl.constraints import COUNTED, FOREIGN_KEYS, foreign_keys_in
from sinks.mysql.ddl.conversion_trial import check_conversions
from sinks.mysql.ddl.global_indexes import plain_globals
from sinks.mysql.ddl.partitions import by_key
from sinks.mysql.ddl.pre_conversion import prepared
from sinks.mysql.ddl.rehearsal import Rehearsal, Settings
from sinks.mysql.ddl.translate import Adapted, adapted, server_of
from sinks.mysql.ddl.virtual_columns import DATABASE_COLLATION, TABLE_COLLATION, TYPES, may_compute
from sinks.rows.schema import TableSchema
from sinks.rows.values import ValueRules
from sinks.steps import Observer, Step
from sinks.target_session import TargetSession

log = structlog.get_logger()
_ALREADY_SO = "-- nothing: it was so already"


class MysqlDdl:
    """See `sinks.ddl_execution.DdlExecution`. What TiDB does in another way has a method of its own."""

    _reads_features = False
    """Whether the server reads what stands in TiDB's own comments."""

    def __init__(self, at: TargetSession[MysqlConnection], rules: ValueRules) -> None:
        self._at, self._rules = at, rules
        self._log = at.books.ddl_log
        self._refused: int | None = None
        """The line of the statement that the server has just refused."""
        self._torn: Entered | None = None
        """Of the statement that is executed: what a killed run had begun."""

    def may_have_run(self, line: DdlRecord) -> bool:
        """See `DdlExecution.may_have_run`: what was begun commits by itself, unless the server refused it."""
        return line.id != self._refused

    def follow(self, made: PlacedDdl, lease: Lease) -> None:
        """See `DdlExecution.follow`: the server keeps definitions as upstream does."""

    def pass_over(self, left_out: PlacedDdl, lease: Lease) -> None:
        """See `DdlExecution.pass_over`; see `follow`."""

    def define(self, there: PlacedDdl, lease: Lease) -> None:
        """See `DdlExecution.define`; see `follow`."""

    def resume(self, lease: Lease) -> None:
        """See `DdlExecution.resume`: nothing goes on by itself."""

    def execute(self, ddl: DdlEvent, progress: Progress, lease: Lease, observe: Observer) -> None:
        """See `DdlExecution.execute`; how it survives crashes stands in `sinks.mysql.ddl.recovery`."""
        self._at.forget_tables(ddl, self._read_table)
        taken, notes = self._taken(ddl)
        given = respelled(taken, ddl.own_database, self._at.catalog(), features=self._reads_features)
        sql = self._without_those_there(given, ddl, lease)
        statement = read_statement(sql)
        self._torn = self._log.torn(ddl, lease.changefeed)
        fitted = self._fitted(sql, ddl)
        fitted.notes.extend(notes)
        ddl = recovery.with_known(statement, ddl, self._rules.time_zone, self._at.catalog())
        computed = recovery.moment_columns(statement)
        if computed and self._has_rows(statement, ddl):
            fitted.notes.extend(_filled(computed, filling_of(ddl, self._rules)))
        self._refused = None
        entered = self._entered(ddl, statement, lease, fitted)
        observe(Step.DDL_RECORDED)
        begun = time.monotonic()
        session, settings = entered.before.get(recovery.SESSION), self._settings(fitted.sql, ddl)
        rehearsal = Rehearsal(self._at.db, lease.changefeed, session, settings)
        executed, state = self._made(ddl, statement, fitted, entered, rehearsal, lease)
        self._at.forget_tables(ddl, self._read_table)
        observe(Step.DDL_EXECUTED)
        with self._at.led_transaction(lease):
            self._log.close(entered.id, state, milliseconds_since(begun), executed)
            self._at.save(progress, lease)
        observe(Step.DDL_DONE)

    def _taken(self, ddl: DdlEvent) -> tuple[str, list[str]]:
        """The statement with what no server but TiDB has as what comes nearest; see `plain_globals`."""

        def has_primary_key() -> bool:
            catalog, statement = self._at.catalog(), read_statement(ddl.statement)
            session = recovery.session_database(statement, ddl, catalog)
            table = catalog.get(catalog.spelled(recovery.subjects(statement, session)[0]))
            return table is not None and "PRIMARY" in table.valid_indexes

        return (ddl.statement, []) if self._reads_features else plain_globals(ddl.statement, has_primary_key)

    def _without_those_there(self, sql: str, ddl: DdlEvent, lease: Lease) -> str:
        """See `kept_indexes`; judged by what was there when the statement was begun, whatever it has made since."""
        statement = read_statement(sql)
        conditional = conditional_indexes(ddl.sql) if statement.kind is DdlKind.ALTER_TABLE else ()
        if not conditional:
            return sql
        session = recovery.session_database(statement, ddl, self._at.catalog())
        table, *others = recovery.subjects(statement, session)
        torn = self._log.torn(ddl, lease.changefeed)
        if torn is None:  # an index that is still being made is one that is there
            self._await_jobs([table, *others])
            self._end_running(lease, [table, *others])
        before = self._there(statement, session) if torn is None else torn.before
        plain = kept_indexes.plain_indexes(before.get(str(table)) or "")
        return without_those_there(sql, ddl.sql, plain.__contains__)

    def _read_table(self, name: TableName) -> dict[TableName, TableSchema]:
        db = self._at.db
        return read_table(db.query, db.made_indexes, name, mariadb=db.is_mariadb)

    def _entered(self, ddl: DdlEvent, statement: Statement, lease: Lease, fitted: Adapted) -> Entered:
        """The intent of this DDL, found from before a crash or written now, with what is there before it."""
        torn = self._log.torn(ddl, lease.changefeed)
        if torn is not None:
            self._await_jobs(recovery.subjects(statement, torn.before.get(recovery.SESSION)))
            return torn
        session = recovery.session_database(statement, ddl, self._at.catalog())
        self._await_jobs(recovery.subjects(statement, session))
        self._end_running(lease, recovery.subjects(statement, session))
        sent, catalog = read_statement(ddl.sql), self._at.catalog()
        query, has_partial = self._at.db.query, self._reads_features
        for name in recovery.subjects(statement, session)[:1]:
            table = catalog.spelled(name)
            has_index = partial(kept_indexes.has_index, query, table)
            check_names(statement, catalog.get(table), catalog, has_index, lambda _: False)
        for left_over in kept_indexes.drops(query, statement, sent, session, catalog, has_partial=has_partial):
            self._change(left_over, lease)
        with self._at.led_transaction(lease):
            return self._log.enter(ddl, fitted.logged, lease.changefeed, self._there(statement, session))

    def _there(self, statement: Statement, session: str | None) -> recovery.Definitions:
        """What is there of what the statement is about."""
        found = recovery.definitions(self._at.db, statement, session)
        sides = recovery.exchanged(statement, session)
        return {**found, recovery.ROWS: self._sides(*sides)} if sides else found

    def _sides(self, table: TableName, partition: str, other: TableName) -> list[str]:
        """What tells the rows of an exchange's two sides apart."""
        return [recovery.checksum(self._at.db, table, partition), recovery.checksum(self._at.db, other)]

    def _made(
        self,
        ddl: DdlEvent,
        statement: Statement,
        fitted: Adapted,
        entered: Entered,
        rehearsal: Rehearsal,
        lease: Lease,
    ) -> tuple[str, DdlState]:
        """Make the change unless it is made; what was executed, and whether it is done."""
        session = entered.before.get(recovery.SESSION)
        now = self._there(statement, session)
        if entered.torn:
            match recovery.fate(rehearsal, statement, fitted.sql, entered.before, now):
                case recovery.DdlFate.RAN:
                    return fitted.logged, DdlState.DONE
                case recovery.DdlFate.UNKNOWN:
                    raise self._cannot_tell(now)
        try:
            return self._make(ddl, statement, fitted, now, rehearsal, lease)
        except TargetUnreachableError:
            raise
        except (InputError, TargetError):
            self._refused = entered.id
            raise

    def _make(
        self,
        ddl: DdlEvent,
        statement: Statement,
        fitted: Adapted,
        now: recovery.Definitions,
        rehearsal: Rehearsal,
        lease: Lease,
    ) -> tuple[str, DdlState]:
        """See `_made`, of what is not made yet. `now`: what is there."""
        session = now[recovery.SESSION]
        there = kept_indexes.all_there(self._at.db.query, statement, session, self._at.catalog())
        if there or recovery.already_so(statement, now):
            return _ALREADY_SO, DdlState.DONE
        if statement.kind is DdlKind.CREATE_DATABASE and now[statement.database or ""]:
            fitted = replace(fitted, sql=recovery.altered_database(fitted.sql))
        try:
            return fitted.logged, self._execute(fitted, session, ddl, lease)
        except TargetUnreachableError:
            raise
        except TargetError:
            self._await_jobs(recovery.subjects(statement, session))
            now = self._there(statement, session)
            if not recovery.made_already(self._at.db, rehearsal, statement, fitted.sql, now):
                raise
            return _ALREADY_SO, DdlState.DONE

    def _cannot_tell(self, now: recovery.Definitions) -> TargetError:
        names = ", ".join(name for name in now if not name.startswith("/"))
        return TargetError(
            f"{names} was changed by hand since this DDL began: whether it was executed can't be told",
            where=self._at.name,
            hint="look at the table",
        )

    def _await_jobs(self, tables: Sequence[TableName]) -> None:
        """Wait for DDL that goes on by itself: none does where a statement ends with its connection."""

    def _end_running(self, lease: Lease, tables: Sequence[TableName]) -> None:
        """Note what has gone on by itself and is done now: nothing does."""

    def _fitted(self, sql: str, ddl: DdlEvent) -> Adapted:
        server = replace(server_of(self._at.db), computes=ddl.dumped)
        statement = read_statement(sql)
        if (table := self._altered(statement, ddl)) is not None:
            server = replace(server, types=self._types(table), foreign_keys=self._foreign_keys(sql, table))
            if "CHECK" in sql.upper():
                counted = frozenset(str(name).lower() for (name,) in self._at.db.query(COUNTED, table))
                server = replace(server, automatic=counted)
        if may_compute(sql):
            collation = self._at.db.value(TABLE_COLLATION, table) if table else self._collation(statement, ddl)
            server = replace(server, collation=str(collation or ""))
        sql, notes = self._members_kept(sql, statement, table, ddl)
        fitted = adapted(sql, server)
        fitted.notes.extend(notes)
        return fitted

    def _members_kept(
        self, sql: str, statement: Statement, table: TableName | None, ddl: DdlEvent
    ) -> tuple[str, list[str]]:
        """See `lasting_members`."""
        if sql.isascii() or statement.kind not in {DdlKind.CREATE_TABLE, DdlKind.ALTER_TABLE}:
            return sql, []
        if table is not None:
            collation = self._at.db.value(TABLE_COLLATION, table)
        else:
            collation = own_collation(sql) or self._collation(statement, ddl)
        charset = str(collation or "").partition("_")[0]
        return lasting_members(sql, charset, self._at.db.holds_text)

    def _collation(self, statement: Statement, ddl: DdlEvent) -> object:
        """Of the database in which a statement makes a table; None for another statement."""
        if statement.kind is not DdlKind.CREATE_TABLE:
            return None
        return self._at.db.value(DATABASE_COLLATION, (statement.tables[0].database or ddl.own_database,))

    def _altered(self, statement: Statement, ddl: DdlEvent) -> TableName | None:
        """The table that an ALTER TABLE changes."""
        if statement.kind is not DdlKind.ALTER_TABLE:
            return None
        reference, catalog = statement.tables[0], self._at.catalog()
        database = reference.database or recovery.session_database(statement, ddl, catalog) or ""
        return catalog.spelled(TableName(database, reference.table))

    def _types(self, table: TableName) -> dict[str, TypeDef]:
        """Of its columns, by their names in lower case."""
        rows = self._at.db.query(TYPES, table)
        return {str(name).lower(): TypeDef(str(base).lower(), charset=charset or "") for name, base, charset in rows}

    def _foreign_keys(self, sql: str, table: TableName) -> tuple[str, ...] | None:
        """The names of its foreign keys, if a statement may drop one: those before it, also where it has run."""
        if "FOREIGN" not in sql.upper():
            return None
        if self._torn is not None:
            return foreign_keys_in(self._torn.before.get(str(table)) or "")
        return tuple(str(name) for (name,) in self._at.db.query(FOREIGN_KEYS, table))

    def _has_rows(self, statement: Statement, ddl: DdlEvent) -> bool:
        table = self._at.catalog().spelled(
            named(statement.placed(ddl.own_database, lambda _: ddl.own_database).tables[0])
        )
        known = self._at.catalog().get(table) is not None
        return known and bool(self._at.db.value(f"SELECT EXISTS (SELECT 1 FROM {place_of(table)})"))  # noqa: S608 quoted

    def _change(self, sql: str, lease: Lease) -> None:
        """Execute what commits by itself, over the connection that has just found itself the leader's."""
        self._at.confirm(lease)
        self._at.db.run(sql)

    def _execute(self, fitted: Adapted, session: str | None, ddl: DdlEvent, lease: Lease) -> DdlState:
        """Execute the statement; whether it is done then, or goes on by itself."""
        for note in fitted.notes:
            log.warning("DDL is executed with a difference", what=note, database=ddl.database, table=ddl.table)
        if session is not None:
            self._at.db.run(f"USE {quoted(session)}")
        if fitted.sql:
            with self._at.db.set_for_now(self._settings(fitted.sql, ddl)):
                loose = self._check_conversions(fitted.sql, session, lease)
                for sql in self._prepared(fitted.sql, session):
                    self._change(sql, lease)
                with self._at.db.loosely() if loose else nullcontext():
                    self._change(self._moving_rows(fitted.sql, session) or fitted.sql, lease)
        return DdlState.DONE

    def _settings(self, sql: str, ddl: DdlEvent) -> Settings:
        """Of the session in which the statement runs."""
        if not sql:
            return {}
        settings = recovery.session_settings(read_statement(sql), ddl, self._rules.time_zone, self._at.catalog())
        rounds = self._at.db.is_mariadb and sql.upper().startswith("ALTER TABLE")
        return {**settings, "sql_mode": ROUNDING_MODE} if rounds else settings

    def _prepared(self, sql: str, session: str | None) -> Iterable[str]:
        """What has to be done to rows first, where the server converts them in another way than upstream."""
        return prepared(sql, session, self._at.catalog())

    def _check_conversions(self, sql: str, session: str | None, lease: Lease) -> bool:
        """See `check_conversions`; the session's database is as it was."""
        loose = check_conversions(self._at.db, lease.changefeed, sql, session, self._at.catalog())
        if session is not None:
            self._at.db.run(f"USE {quoted(session)}")
        return loose

    def _moving_rows(self, sql: str, session: str | None) -> str | None:
        """What is executed instead, where the server's own partitions hold other rows than upstream's."""
        return by_key(self._at.db.query, read_statement(sql), session, self._at.catalog())


def _filled(columns: Iterable[ColumnDef], filling: Filling) -> Iterator[str]:
    """What the DDL log says of rows that are there. Raises TargetError where the moment is not known."""
    for column in columns:
        if not filling.moment and not filling.knows(column):
            raise unknown_here(column.name, column.default.expression if column.default else "", filling.untold)
        yield filling.note(column)
