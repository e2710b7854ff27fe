"""The PostgreSQL target: see the package's docstring for the layout."""

import time
from functools import partial

import xxhash

from ordering.drift import Met
from ordering.errors import TargetBusyError, TargetUnreachableError
from ordering.events import DdlEvent, TableName
from ordering.progress import Progress
from ordering.timestamps import physical_ms
from sinks.ddl.known import TABLE
from sinks.ddl.names import older_database, respelled, session_of
from sinks.ddl.statement import Circumstances, read_statement
from sinks.ddl_log import DdlRecord, DdlState, milliseconds_since
from sinks.instances import Dialect
from sinks.postgres import checking, concurrent
from sinks.postgres.catalog import read_catalog
from sinks.postgres.conditions import firing_triggers, unfit_tables
from sinks.postgres.connection import PostgresConnection
from sinks.postgres.copies import delete_by_content
from sinks.postgres.ddl import DEFINITION, Translation, definitions_in
from sinks.postgres.encode import PostgresEncoder
from sinks.postgres.reading import PostgresReader
from sinks.postgres.write import Writer
from sinks.quarantine import QuarantineTypes
from sinks.saving import Row
from sinks.schema import Catalog
from sinks.server import CHECKPOINT, INSTANCE, QUARANTINE, ServerTarget
from sinks.spool import Group
from sinks.target import PROGRESS_DATABASE, Lease, Observer, Step
from sinks.uri import TargetUri
from sinks.values import ValueRules

_INSTANCES = Dialect(INSTANCE, "extract(epoch FROM clock_timestamp())::float8")
_TABLES = (
    f"CREATE SCHEMA IF NOT EXISTS {PROGRESS_DATABASE}",
    f"""CREATE TABLE IF NOT EXISTS {PROGRESS_DATABASE}.checkpoint (
  changefeed text PRIMARY KEY, checkpoint_ts bigint NOT NULL, offsets text NOT NULL, state text NOT NULL,
  epoch bigint NOT NULL, updated_at timestamptz NOT NULL)""",
    f"""CREATE TABLE IF NOT EXISTS {PROGRESS_DATABASE}.window_start (
  changefeed text PRIMARY KEY, digest text NOT NULL, offsets text NOT NULL, state text NOT NULL)""",
    f"""CREATE TABLE IF NOT EXISTS {PROGRESS_DATABASE}.writer (
  changefeed text NOT NULL, part integer NOT NULL, phase text NOT NULL, attempt bigint NOT NULL,
  PRIMARY KEY (changefeed, part))""",
    f"""CREATE TABLE IF NOT EXISTS {PROGRESS_DATABASE}.ddl (
  id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, changefeed text NOT NULL, commit_ts bigint NOT NULL,
  database text NOT NULL, name text NOT NULL, statement text NOT NULL, executed text NOT NULL, state text NOT NULL,
  updated_at timestamptz NOT NULL, before_it text NOT NULL DEFAULT '', duration_ms bigint,
  reason text NOT NULL DEFAULT '')""",
    f"CREATE TABLE IF NOT EXISTS {DEFINITION} {TABLE}",
    _INSTANCES.creation,
)
_MENDED = (
    f"ALTER TABLE {PROGRESS_DATABASE}.ddl ADD COLUMN IF NOT EXISTS before_it text NOT NULL DEFAULT '',"
    " ADD COLUMN IF NOT EXISTS duration_ms bigint, ADD COLUMN IF NOT EXISTS reason text NOT NULL DEFAULT ''"
)
_MAKING = 0x7469_6364_6300_0001
"""An advisory lock: of two that make the tables at once one would be told that they exist."""
_APART = "apart"
"""What an intent holds if its statements run outside of the transaction."""
_HOLDERS = (
    "locktype = 'advisory' AND granted AND objsubid = 1 AND classid = %s AND objid = %s"
    " AND database = (SELECT oid FROM pg_database WHERE datname = current_database())"
)
"""Finds an advisory lock's holders by the halves of its key (PostgreSQL manual, "pg_locks")."""


class PostgresTarget(ServerTarget[PostgresConnection]):
    """A PostgreSQL database: schema `d`, table `t`."""

    _definition_table = DEFINITION
    _quarantine_types = QuarantineTypes(QUARANTINE, short="text", text="text", binary="bytea", tso="bigint")
    _instances = _INSTANCES

    def __init__(self, uri: TargetUri, rules: ValueRules) -> None:
        super().__init__(uri, rules)
        self.encoder = PostgresEncoder(rules)
        self._pointed = False

    def connect(self) -> None:
        """See `Target.connect`."""
        checking.refuse_what_acts_on_rows(self._db)
        if not all(map(self._has_table, ("instance", "definition", "quarantine"))):
            with self._transaction():
                self._db.value("SELECT pg_advisory_xact_lock(%s)", (_MAKING,))
                for statement in _TABLES:
                    self._db.run(statement)
                self._make_quarantine()
        if self._lacks_ddl_columns():
            self._db.run(_MENDED)
        self._catalog = None

    def check(self) -> list[str]:
        """See `Target.check`."""
        return checking.findings(self._db, self.name)

    def _connected(self) -> PostgresConnection:
        return PostgresConnection(self._uri)

    def reader(self) -> PostgresReader:
        """See `Target.reader`."""
        return PostgresReader(self._db)

    def _read_catalog(self) -> Catalog:
        return read_catalog(self._db.query, unfit_tables(self._db), firing_triggers(self._db))

    def _has_table(self, name: str) -> bool:
        return self._db.value("SELECT to_regclass(%s) IS NOT NULL", (f"{PROGRESS_DATABASE}.{name}",)) is True

    def try_lead(self, changefeed: str) -> bool:
        """See `Target.try_lead`: the server lets go of an advisory lock when its session ends."""
        key = _lock(changefeed)
        holders = self._db.query(f"SELECT pid = pg_backend_pid() FROM pg_locks WHERE {_HOLDERS}", _halves(key))  # noqa: S608 a constant
        if any(ours for (ours,) in holders):
            return True  # asked for again it would have to be let go of twice
        return not holders and self._db.value("SELECT pg_try_advisory_lock(%s)", (key,)) is True

    def _fence(self, holder: str) -> None:
        """See `Target._fence`: a connection holds an advisory lock, so the server knows which one it is."""
        key = _lock(holder)
        found = f"SELECT pid, pid = pg_backend_pid() FROM pg_locks WHERE {_HOLDERS}"  # noqa: S608 a constant
        holders = self._db.query(found, _halves(key))
        if any(ours for _, ours in holders):
            return
        for pid, _ in holders:
            self._db.value("SELECT pg_terminate_backend(%s)", (pid,))
        try:
            self._db.value("SELECT pg_advisory_lock(%s)", (key,))
        except TargetBusyError as error:
            pids = ", ".join(str(pid) for pid, _ in holders)
            raise TargetUnreachableError(f"the former connection {pids} does not end", where=self.name) from error

    def is_led(self, changefeed: str) -> bool:
        """See `Target.is_led`."""
        found = f"SELECT count(*) FROM pg_locks WHERE {_HOLDERS} AND pid <> pg_backend_pid()"  # noqa: S608 a constant
        return bool(self._db.value(found, _halves(_lock(changefeed))))

    def _release(self, holder: str) -> None:
        self._db.value("SELECT pg_advisory_unlock(%s)", (_lock(holder),))

    def _add_row(self, changefeed: str) -> None:
        self._db.run(f"INSERT INTO {CHECKPOINT} VALUES (%s, 0, '{{}}', '{{}}', 0, now())", (changefeed,))  # noqa: S608 a constant

    def _begin(self) -> None:
        self._db.run("BEGIN")
        self._pointed = False

    def _save_point(self) -> None:
        # one that is set again would lie on the former, which would stay
        self._db.run("RELEASE SAVEPOINT rows; SAVEPOINT rows" if self._pointed else "SAVEPOINT rows")
        self._pointed = True

    def _back_to_point(self) -> None:
        self._db.run("ROLLBACK TO SAVEPOINT rows")

    def _commit(self) -> None:
        self._db.run("COMMIT")

    def _put(self, row: Row, changefeed: str) -> None:
        self._db.run(
            f"UPDATE {CHECKPOINT} SET checkpoint_ts = %s, offsets = %s, state = %s, updated_at = clock_timestamp()"  # noqa: S608 a constant
            " WHERE changefeed = %s",
            (row.checkpoint_ts, row.offsets, row.state, changefeed),
        )

    def _writer(self, table: TableName) -> Writer:
        return Writer(self._db, self._schema(table))

    def _delete(self, group: Group) -> Met:
        if group.first.by_content:
            return delete_by_content(self._db, group, self._schema(group.first.table))
        return self._writer(group.first.table).delete(group)

    def _write(self, group: Group) -> Met:
        return self._writer(group.first.table).write(group)

    def _follow(self, line: DdlRecord) -> None:
        definitions_in(self._db).follow_made(line.sql, self.catalog().database(line.database))

    def execute_ddl(self, ddl: DdlEvent, progress: Progress, lease: Lease, observe: Observer) -> None:
        """See `Target.execute_ddl`: the statements, that they are done and the progress are one transaction."""
        self.forget_catalog()
        statement = read_statement(respelled(ddl.statement, ddl.database, self.catalog()))
        own = self.catalog().database(ddl.database)
        placed = statement.placed(own, lambda old: older_database(statement, old, ddl, self.catalog()))
        session = session_of(placed, ddl, self.catalog(), lambda: definitions_in(self._db).views())
        circumstances = Circumstances(session, self._rules.moment(physical_ms(ddl.commit_ts)))
        translation = Translation(placed, self.catalog(), self._db, self._rules, circumstances)
        with self._transaction():
            self.check_epoch(lease)
            entered = self._torn(ddl, lease.changefeed)
            entered = entered or self._enter(ddl, "", lease.changefeed, self._apart(translation))
        observe(Step.DDL_RECORDED)
        begun = time.monotonic()
        apart, confirm = entered.before.get(_APART), partial(self._confirm, lease)
        try:
            made = concurrent.build(self._db, apart, confirm, torn=entered.torn) if apart else ""
            with self._transaction():
                self.check_epoch(lease)
                if made:
                    translation.follow()
                executed = made or "; ".join(translation.executed())
                observe(Step.DDL_EXECUTED)
                self._save(progress, lease)
                self._close_line(entered.id, DdlState.DONE, milliseconds_since(begun), executed)
        finally:
            self.forget_catalog()
        observe(Step.DDL_DONE)

    def _apart(self, translation: Translation) -> dict[str, list[str]]:
        """The statements that are to be executed outside of the transaction, where that is wanted and can be."""
        if not self._uri.concurrent_indexes:
            return {}
        statements = translation.indexes()
        return {_APART: statements} if concurrent.only_indexes(self._db, statements) else {}


def _lock(holder: str) -> int:
    """The key of an advisory lock: a signed number of 64 bits."""
    digest = xxhash.xxh3_64_intdigest(f"ticdc-reconciler {holder}".encode())
    return digest - (1 << 64) if digest >> 63 else digest


def _halves(key: int) -> tuple[int, int]:
    """A lock's key as pg_locks shows it."""
    return key >> 32 & 0xFFFFFFFF, key & 0xFFFFFFFF
