"""The MySQL-family target."""

import time
from collections.abc import Iterable, Sequence
from dataclasses import replace
from datetime import UTC, datetime

import structlog
import xxhash

from ordering.drift import Met
from ordering.errors import TargetError, TargetUnreachableError
from ordering.events import DdlEvent, TableName
from ordering.progress import Progress
from ordering.timestamps import physical_ms
from sinks.ddl.defaults import moment_note, unknown_here
from sinks.ddl.names import respelled
from sinks.ddl.statement import DdlKind, Statement, named, read_statement
from sinks.ddl_log import DdlState, Entered, milliseconds_since
from sinks.instances import Dialect
from sinks.mysql import ddl as rules
from sinks.mysql import leftovers
from sinks.mysql.adapt import Adapted, adapted, server_of
from sinks.mysql.catalog import quoted, read_catalog
from sinks.mysql.checking import check_engines, check_rights, told_of_tables
from sinks.mysql.connection import ROUNDING_MODE, MysqlConnection
from sinks.mysql.converting import check_conversions
from sinks.mysql.copies import delete_by_content
from sinks.mysql.encode import MysqlEncoder
from sinks.mysql.partitions import by_key
from sinks.mysql.preparing import prepared
from sinks.mysql.reading import MysqlReader
from sinks.mysql.rehearsal import Rehearsal, Settings
from sinks.mysql.write import MysqlWriter, place_of
from sinks.quarantine import QuarantineTypes
from sinks.saving import Row
from sinks.schema import Catalog
from sinks.server import CHECKPOINT, DDL, INSTANCE, QUARANTINE, ServerTarget
from sinks.spool import Group
from sinks.target import PROGRESS_DATABASE, Lease, Observer, Step
from sinks.uri import TargetUri
from sinks.values import ValueRules

log = structlog.get_logger()
_INSTANCES = Dialect(INSTANCE, "(UNIX_TIMESTAMP(NOW(6)) + 0E0)")
_TABLES = (
    f"CREATE DATABASE IF NOT EXISTS {PROGRESS_DATABASE} CHARACTER SET utf8mb4 COLLATE utf8mb4_bin",
    f"""CREATE TABLE IF NOT EXISTS {PROGRESS_DATABASE}.checkpoint (
  changefeed VARCHAR(191) NOT NULL PRIMARY KEY, checkpoint_ts BIGINT UNSIGNED NOT NULL, offsets LONGTEXT NOT NULL,
  state LONGTEXT NOT NULL, epoch BIGINT NOT NULL, updated_at DATETIME(6) NOT NULL
) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin""",
    f"""CREATE TABLE IF NOT EXISTS {PROGRESS_DATABASE}.window_start (
  changefeed VARCHAR(191) NOT NULL PRIMARY KEY, digest VARCHAR(32) NOT NULL, offsets LONGTEXT NOT NULL,
  state LONGTEXT NOT NULL
) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin""",
    f"""CREATE TABLE IF NOT EXISTS {PROGRESS_DATABASE}.writer (
  changefeed VARCHAR(191) NOT NULL, part INT NOT NULL, phase VARCHAR(64) NOT NULL, attempt BIGINT NOT NULL,
  PRIMARY KEY (changefeed, part)
) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin""",
    f"""CREATE TABLE IF NOT EXISTS {PROGRESS_DATABASE}.ddl (
  id BIGINT NOT NULL AUTO_INCREMENT PRIMARY KEY, changefeed VARCHAR(191) NOT NULL, commit_ts BIGINT UNSIGNED NOT NULL,
  `database` VARCHAR(64) NOT NULL, name VARCHAR(64) NOT NULL, statement LONGTEXT NOT NULL, executed LONGTEXT NOT NULL,
  state VARCHAR(16) NOT NULL, before_it LONGTEXT NOT NULL, updated_at DATETIME(6) NOT NULL, duration_ms BIGINT,
  reason LONGTEXT NOT NULL
) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin""",
    f"{_INSTANCES.creation} CHARACTER SET utf8mb4 COLLATE utf8mb4_bin",
)
_ALREADY_SO = "-- nothing: it was so already"
LOCK_S = 30
"""How long a killed connection may take to let go of its named lock."""


class MysqlTarget(ServerTarget[MysqlConnection]):
    """MySQL or MariaDB: database `d`, table `t` as upstream."""

    _database_column = "`database`"
    _quarantine_types = QuarantineTypes(
        QUARANTINE,
        short="VARCHAR(249)",
        text="LONGTEXT",
        binary="LONGBLOB",
        tso="BIGINT UNSIGNED",
        quote="`",
        tail=" CHARACTER SET utf8mb4 COLLATE utf8mb4_bin",
    )
    _instances = _INSTANCES
    _reads_features = False
    """Whether the server reads what stands in TiDB's own comments."""
    _free_s = 0
    """How long to wait for a named lock to find out whether it is free."""

    def __init__(self, uri: TargetUri, rules: ValueRules) -> None:
        super().__init__(uri, rules)
        self.encoder = MysqlEncoder(rules)

    def _connected(self) -> MysqlConnection:
        return MysqlConnection(self._uri)

    def reader(self) -> MysqlReader:
        """See `Target.reader`."""
        return MysqlReader(self._db)

    def _writer(self) -> MysqlWriter:
        return MysqlWriter(self._db)

    def connect(self) -> None:
        """See `Target.connect`."""
        for statement in _TABLES:
            self._db.run(statement)
        if self._lacks_ddl_columns():
            self._db.run(f"ALTER TABLE {DDL} ADD COLUMN duration_ms BIGINT, ADD COLUMN reason LONGTEXT NOT NULL")
        self._make_quarantine()
        check_engines(self._db)
        self._catalog = None

    def check(self) -> list[str]:
        """See `Target.check`."""
        version = self._db.value("SELECT VERSION()")
        engine = "LOAD DATA LOCAL" if self._db.takes_load_data else "multi-row statements (local_infile is off: slower)"
        lines = [f"{self.name}: version {version}, rows are written by {engine}", check_rights(self._db)]
        check_engines(self._db)
        return [*lines, *told_of_tables(self._db, self.catalog())]

    def _read_catalog(self) -> Catalog:
        return read_catalog(self._db.query, self._db.made_indexes, mariadb=self._db.is_mariadb)

    def _has_table(self, name: str) -> bool:
        look = "SELECT COUNT(*) FROM information_schema.TABLES WHERE TABLE_SCHEMA = %s AND TABLE_NAME = %s"
        return bool(self._db.value(look, (PROGRESS_DATABASE, name)))

    def try_lead(self, changefeed: str) -> bool:
        """See `Target.try_lead`: the server lets go of a named lock when its connection ends."""
        return self._locks(lock_name(changefeed), self._free_s)

    def _fence(self, holder: str) -> None:
        """See `Target._fence`: a connection holds a named lock, so the server knows which one it is."""
        name = lock_name(holder)
        connection = self._db.value("SELECT IS_USED_LOCK(%s)", (name,))
        if connection is not None and connection != self._db.value("SELECT CONNECTION_ID()"):
            self._db.end_connection(int(connection))
        if not self._locks(name, LOCK_S):
            raise self._does_not_end(connection)

    def is_led(self, changefeed: str) -> bool:
        """See `Target.is_led`."""
        holder = self._db.value("SELECT IS_USED_LOCK(%s)", (lock_name(changefeed),))
        return holder is not None and holder != self._db.value("SELECT CONNECTION_ID()")

    def _locks(self, name: str, seconds: int) -> bool:
        return bool(self._db.value("SELECT GET_LOCK(%s, %s)", (name, seconds)) == 1)

    def _does_not_end(self, connection: int | None) -> TargetError:
        return TargetUnreachableError(f"the former connection {connection} does not end", where=self.name)

    def _release(self, holder: str) -> None:
        self._db.value("SELECT RELEASE_LOCK(%s)", (lock_name(holder),))

    def _log_now(self) -> str:
        return _now()

    def _add_row(self, changefeed: str) -> None:
        self._db.run(f"INSERT INTO {CHECKPOINT} VALUES (%s, 0, '{{}}', '{{}}', 0, %s)", (changefeed, _now()))  # noqa: S608 a constant

    def _begin(self) -> None:
        self._db.run("START TRANSACTION")

    def _save_point(self) -> None:
        self._db.run("SAVEPOINT group_of_rows")

    def _back_to_point(self) -> None:
        self._db.run("ROLLBACK TO SAVEPOINT group_of_rows")

    def _commit(self) -> None:
        self._db.commit()

    def _put(self, row: Row, changefeed: str) -> None:
        self._db.run(
            f"UPDATE {CHECKPOINT} SET checkpoint_ts = %s, offsets = %s, state = %s, updated_at = %s"  # noqa: S608 a constant
            " WHERE changefeed = %s",
            (row.checkpoint_ts, row.offsets, row.state, _now(), changefeed),
        )

    def _delete(self, group: Group) -> Met:
        if group.first.by_content:
            return delete_by_content(self._db, group, self._schema(group.first.table))
        return self._writer().delete(group, self._schema(group.first.table))

    def _write(self, group: Group) -> Met:
        return self._writer().write(group, self._schema(group.first.table))

    def execute_ddl(self, ddl: DdlEvent, progress: Progress, lease: Lease, observe: Observer) -> None:
        """See `Target.execute_ddl`; how it survives crashes stands in `sinks.mysql.ddl`."""
        self.forget_catalog()
        sql = respelled(ddl.statement, ddl.database, self.catalog(), features=self._reads_features)
        statement = read_statement(sql)
        fitted = self._fitted(sql, dumped=ddl.dumped)
        volatile = rules.volatile_columns(statement)
        if volatile and self._has_rows(statement, ddl):
            if not self._rules.moment(physical_ms(ddl.commit_ts)):
                raise unknown_here(*volatile[0])
            fitted.notes.extend(moment_note(column) for column, _ in volatile)
        entered = self._entered(ddl, statement, lease, fitted)
        observe(Step.DDL_RECORDED)
        begun = time.monotonic()
        session, settings = entered.before.get(rules.SESSION), self._settings(fitted.sql, ddl)
        rehearsal = Rehearsal(self._db, lease.changefeed, session, settings)
        executed, state = self._made(ddl, statement, fitted, entered, rehearsal, lease)
        self.forget_catalog()
        observe(Step.DDL_EXECUTED)
        with self._transaction():
            self.check_epoch(lease)
            self._close_line(entered.id, state, milliseconds_since(begun), executed)
            self._save(progress, lease)
        observe(Step.DDL_DONE)

    def _entered(self, ddl: DdlEvent, statement: Statement, lease: Lease, fitted: Adapted) -> Entered:
        """The intent of this DDL, found from before a crash or written now, with what is there before it."""
        torn = self._torn(ddl, lease.changefeed)
        if torn is not None:
            self._await_jobs(rules.subjects(statement, torn.before.get(rules.SESSION)))
            return torn
        session = rules.session_database(statement, ddl, self.catalog())
        self._await_jobs(rules.subjects(statement, session))
        self._end_running(lease, rules.subjects(statement, session))
        for left_over in leftovers.drops(self._db.query, statement, session, self.catalog()):
            self._change(left_over, lease)
        with self._transaction():
            self.check_epoch(lease)
            return self._enter(ddl, fitted.logged, lease.changefeed, self._there(statement, session))

    def _there(self, statement: Statement, session: str | None) -> rules.Definitions:
        """What is there of what the statement is about."""
        found = rules.definitions(self._db, statement, session)
        sides = rules.exchanged(statement, session)
        return {**found, rules.ROWS: self._sides(*sides)} if sides else found

    def _sides(self, table: TableName, partition: str, other: TableName) -> list[str]:
        """What tells the rows of an exchange's two sides apart."""
        return [rules.checksum(self._db, table, partition), rules.checksum(self._db, other)]

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
        session = entered.before.get(rules.SESSION)
        now = self._there(statement, session)
        if entered.torn:
            match rules.fate(rehearsal, statement, fitted.sql, entered.before, now):
                case rules.Fate.RAN:
                    return fitted.logged, DdlState.DONE
                case rules.Fate.UNKNOWN:
                    raise self._cannot_tell(now)
        there = leftovers.all_there(self._db.query, statement, session, self.catalog())
        if there or rules.already_so(statement, now):
            return _ALREADY_SO, DdlState.DONE
        if statement.kind is DdlKind.CREATE_DATABASE and now[statement.database or ""]:
            fitted = replace(fitted, sql=rules.altered_database(fitted.sql))
        try:
            return fitted.logged, self._execute(fitted, session, ddl, lease)
        except TargetUnreachableError:
            raise
        except TargetError:
            self._await_jobs(rules.subjects(statement, session))
            now = self._there(statement, session)
            if not rules.made_already(self._db, rehearsal, statement, fitted.sql, now):
                raise
            return _ALREADY_SO, DdlState.DONE

    def _cannot_tell(self, now: rules.Definitions) -> TargetError:
        names = ", ".join(name for name in now if not name.startswith("/"))
        return TargetError(
            f"{names} was changed by hand since this DDL began: whether it was executed can't be told",
            where=self.name,
            hint="look at the table",
        )

    def _await_jobs(self, tables: Sequence[TableName]) -> None:
        """Wait for DDL that goes on by itself: none does where a statement ends with its connection."""

    def _end_running(self, lease: Lease, tables: Sequence[TableName]) -> None:
        """Note what has gone on by itself and is done now: nothing does."""

    def _fitted(self, sql: str, *, dumped: bool) -> Adapted:
        return adapted(sql, replace(server_of(self._db), computes=dumped))

    def _has_rows(self, statement: Statement, ddl: DdlEvent) -> bool:
        table = self.catalog().spelled(named(statement.placed(ddl.database, lambda _: ddl.database).tables[0]))
        known = self.catalog().get(table) is not None
        return known and bool(self._db.value(f"SELECT EXISTS (SELECT 1 FROM {place_of(table)})"))  # noqa: S608 quoted

    def _change(self, sql: str, lease: Lease) -> None:
        """Execute what commits by itself, over the connection that has just found itself the leader's."""
        self._confirm(lease)
        self._db.run(sql)

    def _execute(self, fitted: Adapted, session: str | None, ddl: DdlEvent, lease: Lease) -> DdlState:
        """Execute the statement; whether it is done then, or goes on by itself."""
        for note in fitted.notes:
            log.warning("DDL is executed with a difference", what=note)
        if session is not None:
            self._db.run(f"USE {quoted(session)}")
        if fitted.sql:
            with self._db.set_for_now(self._settings(fitted.sql, ddl)):
                self._check_conversions(fitted.sql, session, lease)
                for sql in self._prepared(fitted.sql, session):
                    self._change(sql, lease)
                self._change(self._moving_rows(fitted.sql, session) or fitted.sql, lease)
        return DdlState.DONE

    def _settings(self, sql: str, ddl: DdlEvent) -> Settings:
        """Of the session in which the statement runs."""
        if not sql:
            return {}
        settings = rules.session_settings(read_statement(sql), ddl, self._rules.time_zone, self.catalog())
        rounds = self._db.is_mariadb and sql.upper().startswith("ALTER TABLE")
        return {**settings, "sql_mode": ROUNDING_MODE} if rounds else settings

    def _prepared(self, sql: str, session: str | None) -> Iterable[str]:
        """What has to be done to rows first, where the server converts them in another way than upstream."""
        return prepared(sql, session, self.catalog())

    def _check_conversions(self, sql: str, session: str | None, lease: Lease) -> None:
        """See `check_conversions`; the session's database is as it was."""
        check_conversions(self._db, lease.changefeed, sql, session, self.catalog())
        if session is not None:
            self._db.run(f"USE {quoted(session)}")

    def _moving_rows(self, sql: str, session: str | None) -> str | None:
        """What is executed instead, where the server's own partitions hold other rows than upstream's."""
        return by_key(self._db.query, read_statement(sql), session, self.catalog())


def _now() -> str:
    return datetime.now(UTC).strftime("%Y-%m-%d %H:%M:%S.%f")


def lock_name(holder: str) -> str:
    """The name of a lock; they have 64 characters at most."""
    return f"ticdc-reconciler {xxhash.xxh3_64_hexdigest(holder.encode())}"
