"""The MySQL-family target."""

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from typing import Any

import orjson
import xxhash

from ordering.errors import TargetError, TargetUnreachableError
from ordering.events import DdlEvent, TableName
from ordering.progress import Progress
from sinks.ddl.statement import Statement, read_statement
from sinks.mysql import ddl as rules
from sinks.mysql.catalog import quoted, read_catalog
from sinks.mysql.connection import MysqlConnection
from sinks.mysql.encode import MysqlEncoder, decode_rows
from sinks.schema import Catalog, Column, Shape
from sinks.spool import Group
from sinks.target import PROGRESS_DATABASE, DdlRecord, Lease, Observer, Step, Stored, Target
from sinks.uri import TargetUri
from sinks.values import ValueRules

_TABLES = (
    f"CREATE DATABASE IF NOT EXISTS {PROGRESS_DATABASE} CHARACTER SET utf8mb4 COLLATE utf8mb4_bin",
    f"""CREATE TABLE IF NOT EXISTS {PROGRESS_DATABASE}.checkpoint (
  changefeed VARCHAR(191) NOT NULL PRIMARY KEY, checkpoint_ts BIGINT UNSIGNED NOT NULL, offsets LONGTEXT NOT NULL,
  state LONGTEXT NOT NULL, epoch BIGINT NOT NULL, updated_at DATETIME(6) NOT NULL
) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin""",
    f"""CREATE TABLE IF NOT EXISTS {PROGRESS_DATABASE}.ddl (
  id BIGINT NOT NULL AUTO_INCREMENT PRIMARY KEY, changefeed VARCHAR(191) NOT NULL, commit_ts BIGINT UNSIGNED NOT NULL,
  `database` VARCHAR(64) NOT NULL, name VARCHAR(64) NOT NULL, statement LONGTEXT NOT NULL, executed LONGTEXT NOT NULL,
  state VARCHAR(16) NOT NULL, before_it LONGTEXT NOT NULL, updated_at DATETIME(6) NOT NULL
) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin""",
)
_CHECKPOINT = f"{PROGRESS_DATABASE}.checkpoint"
_DDL = f"{PROGRESS_DATABASE}.ddl"
_BULK_ROWS = 200
"""From so many rows on LOAD DATA is faster than a multi-row statement."""
_STATEMENT_ROWS = 1000
_FENCE_S = 30
_RECORD = ("commit_ts", "database", "table", "sql", "executed", "state")
_EXPRESSIONS = {Shape.BYTES: "UNHEX({})", **dict.fromkeys((Shape.BIT, Shape.ENUM, Shape.SET), "{} + 0")}


class MysqlTarget(Target):
    """MySQL or MariaDB: database `d`, table `t` as upstream."""

    def __init__(self, uri: TargetUri, rules: ValueRules) -> None:
        self.name = f"{uri.kind} at {uri.place}"
        self.encoder = MysqlEncoder()
        self._uri, self._rules = uri, rules
        self._open: MysqlConnection | None = None
        self._catalog: Catalog | None = None

    @property
    def _db(self) -> MysqlConnection:
        if self._open is None:
            self._open = MysqlConnection(self._uri, self._rules.time_zone)
        return self._open

    def connect(self) -> None:
        """See `Target.connect`."""
        for statement in _TABLES:
            self._db.run(statement)
        self._catalog = None

    def close(self) -> None:
        """See `Target.close`."""
        if self._open is not None:
            self._open.close()
            self._open = None

    def check(self) -> list[str]:
        """See `Target.check`."""
        version = self._db.value("SELECT VERSION()")
        engine = "LOAD DATA LOCAL" if self._db.takes_load_data else "multi-row statements (local_infile is off: slower)"
        return [f"{self.name}: version {version}, rows are written by {engine}"]

    def catalog(self) -> Catalog:
        """See `Target.catalog`."""
        if self._catalog is None:
            self._catalog = read_catalog(self._db.query)
        return self._catalog

    def forget_catalog(self) -> None:
        """See `Target.forget_catalog`."""
        self._catalog = None

    def _has_progress_table(self) -> bool:
        look = "SELECT COUNT(*) FROM information_schema.TABLES WHERE TABLE_SCHEMA = %s AND TABLE_NAME = 'checkpoint'"
        return bool(self._db.value(look, (PROGRESS_DATABASE,)))

    def stored(self, changefeed: str) -> Stored | None:
        """See `Target.stored`."""
        if not self._has_progress_table():
            return None
        rows = self._db.query(
            f"SELECT checkpoint_ts, offsets, state, epoch, updated_at FROM {_CHECKPOINT} WHERE changefeed = %s",  # noqa: S608 a constant
            (changefeed,),
        )
        if not rows:
            return None
        checkpoint_ts, offsets, state, epoch, updated_at = rows[0]
        progress = Progress.restored(checkpoint_ts, orjson.loads(offsets), orjson.loads(state))
        return Stored(progress, epoch, updated_at.replace(tzinfo=UTC))

    def _fence(self, changefeed: str) -> None:
        """See `Target._fence`: the leader's connection holds a named lock, so the server knows which one it is."""
        name = f"ticdc-reconciler {xxhash.xxh3_64_hexdigest(changefeed.encode())}"
        holder = self._db.value("SELECT IS_USED_LOCK(%s)", (name,))
        if holder is not None and holder != self._db.value("SELECT CONNECTION_ID()"):
            self._db.end_connection(int(holder))
        if self._db.value("SELECT GET_LOCK(%s, %s)", (name, _FENCE_S)) != 1:
            raise TargetUnreachableError(f"the last leader's connection {holder} does not end", where=self.name)

    def _add_row(self, changefeed: str) -> None:
        self._db.run(f"INSERT INTO {_CHECKPOINT} VALUES (%s, 0, '{{}}', '{{}}', 0, %s)", (changefeed, _now()))  # noqa: S608 a constant

    def _raise_epoch(self, changefeed: str) -> None:
        self._db.run(f"UPDATE {_CHECKPOINT} SET epoch = epoch + 1 WHERE changefeed = %s", (changefeed,))  # noqa: S608 a constant

    def _begin(self) -> None:
        self._db.run("START TRANSACTION")

    def _locked_epoch(self, changefeed: str) -> int | None:
        return self._db.value(f"SELECT epoch FROM {_CHECKPOINT} WHERE changefeed = %s FOR UPDATE", (changefeed,))  # type: ignore[no-any-return]  # noqa: S608

    def _commit(self) -> None:
        self._db.commit()

    def _rollback(self) -> None:
        if self._open is not None:
            self._open.rollback()

    def _save(self, progress: Progress, lease: Lease) -> None:
        self._db.run(
            f"UPDATE {_CHECKPOINT} SET checkpoint_ts = %s, offsets = %s, state = %s, updated_at = %s"  # noqa: S608 a constant
            " WHERE changefeed = %s",
            (
                progress.checkpoint_ts,
                orjson.dumps(progress.offsets()).decode(),
                orjson.dumps(progress.state()).decode(),
                _now(),
                lease.changefeed,
            ),
        )

    def _columns(self, group: Group) -> list[Column]:
        schema = self.catalog().get(group.first.table)
        if schema is None:
            raise TargetError(f"table {group.first.table} is missing in the target", where=self.name)
        return [c for name in group.first.columns if (c := schema.column(name)) is not None]

    def _delete(self, group: Group) -> None:
        with _naming(group.first.table):
            self._delete_rows(group, self._columns(group))

    def _delete_rows(self, group: Group, columns: list[Column]) -> None:
        if group.rows < _BULK_ROWS and len(columns) == 1:
            marks = _mark(columns[0])
            where = f"{quoted(columns[0].name)} IN ("
            self._in_statements(group, columns, f"DELETE FROM {_place(group.first.table)} WHERE {where}", marks, ")")  # noqa: S608 quoted
            return
        self._delete_by_join(group, columns)

    def _delete_by_join(self, group: Group, columns: list[Column]) -> None:
        """Delete by a temporary table of keys: typed and collated as the table's own, and looked up by its index."""
        place, keys = _place(group.first.table), f"{PROGRESS_DATABASE}.deleted_keys"
        names = ", ".join(quoted(c.name) for c in columns)
        self._db.run(f"CREATE TEMPORARY TABLE {keys} ENGINE=InnoDB AS SELECT {names} FROM {place} LIMIT 0")  # noqa: S608 quoted
        try:
            self._insert("INSERT", keys, group, columns)
            # the table under its full name: an alias is looked for in the current database, and there may be none
            match = " AND ".join(f"{place}.{quoted(c.name)} = k.{quoted(c.name)}" for c in columns)
            self._db.run(f"DELETE {place} FROM {keys} k STRAIGHT_JOIN {place} ON {match}")
        finally:
            self._db.run(f"DROP TEMPORARY TABLE IF EXISTS {keys}")

    def _write(self, group: Group) -> None:
        verb = "INSERT" if group.first.plain_insert else "REPLACE"
        with _naming(group.first.table):
            self._insert(verb, _place(group.first.table), group, self._columns(group))

    def _insert(self, verb: str, place: str, group: Group, columns: list[Column]) -> None:
        if group.rows >= _BULK_ROWS and self._db.takes_load_data:
            self._load_data(verb, place, group, columns)
            return
        names = ", ".join(quoted(c.name) for c in columns)
        marks = f"({', '.join(map(_mark, columns))})"
        self._in_statements(group, columns, f"{verb} INTO {place} ({names}) VALUES ", marks, "")

    def _load_data(self, verb: str, place: str, group: Group, columns: list[Column]) -> None:
        targets = [f"@v{i}" if c.shape in _EXPRESSIONS else quoted(c.name) for i, c in enumerate(columns)]
        settings = [
            f"{quoted(c.name)} = {_EXPRESSIONS[c.shape].format(f'@v{i}')}"
            for i, c in enumerate(columns)
            if c.shape in _EXPRESSIONS
        ]
        sql = f"LOAD DATA LOCAL INFILE %s {'REPLACE ' if verb == 'REPLACE' else ''}INTO TABLE {place}"
        sql += f" CHARACTER SET utf8mb4 ({', '.join(targets)})"
        affected = self._db.load(sql + (f" SET {', '.join(settings)}" if settings else ""), group.path())
        if affected < group.rows:
            raise TargetError(
                f"only {affected} of {group.rows} rows were taken by {group.first.table}", where=self.name
            )

    def _in_statements(self, group: Group, columns: list[Column], head: str, marks: str, tail: str) -> None:
        """Multi-row statements with bound values, of at most so many rows each."""
        rows = [row for payload in group.payloads() for row in decode_rows(payload)]
        for start in range(0, len(rows), _STATEMENT_ROWS):
            part = rows[start : start + _STATEMENT_ROWS]
            sql = head + ", ".join([marks] * len(part)) + tail
            self._db.run(sql, [_bound(c, text) for row in part for c, text in zip(columns, row, strict=True)])

    def execute_ddl(self, ddl: DdlEvent, progress: Progress, lease: Lease, observe: Observer) -> None:
        """See `Target.execute_ddl`; how it survives crashes stands in `sinks.mysql.ddl`."""
        statement = read_statement(ddl.sql)
        self.forget_catalog()
        session = rules.session_database(statement, ddl, self.catalog())
        intent, before = self._recorded(ddl, statement, session, lease)
        observe(Step.DDL_RECORDED)
        now = rules.definitions(self._db, statement, session)
        if not (rules.ran(statement, before, now) or rules.already_so(statement, now)):
            self._execute(ddl.sql, session)
        self.forget_catalog()
        observe(Step.DDL_EXECUTED)
        self._begin()
        try:
            self.check_epoch(lease)
            self._db.run(f"UPDATE {_DDL} SET state = 'done', updated_at = %s WHERE id = %s", (_now(), intent))  # noqa: S608 a constant
            self._save(progress, lease)
            self._commit()
        except BaseException:
            self._rollback()
            raise
        observe(Step.DDL_DONE)

    def _recorded(
        self, ddl: DdlEvent, statement: Statement, session: str | None, lease: Lease
    ) -> tuple[int, dict[str, Any]]:
        """The intent of this DDL, found from before a crash or written now: its id and the definitions before it."""
        self._begin()
        try:
            self.check_epoch(lease)
            rows = self._db.query(
                f"SELECT id, before_it FROM {_DDL} WHERE changefeed = %s AND commit_ts = %s AND statement = %s"  # noqa: S608 a constant
                " AND `database` = %s AND state = 'intent'",
                (lease.changefeed, ddl.commit_ts, ddl.sql, ddl.database),
            )
            if not rows:
                before = rules.definitions(self._db, statement, session)
                self._db.run(
                    f"INSERT INTO {_DDL} (changefeed, commit_ts, `database`, name, statement, executed, state,"  # noqa: S608 a constant
                    " before_it, updated_at) VALUES (%s, %s, %s, %s, %s, %s, 'intent', %s, %s)",
                    (
                        lease.changefeed,
                        ddl.commit_ts,
                        ddl.database,
                        ddl.table,
                        ddl.sql,
                        ddl.sql,
                        orjson.dumps(before).decode(),
                        _now(),
                    ),
                )
                rows = [(self._db.value("SELECT LAST_INSERT_ID()"), orjson.dumps(before))]
            self._commit()
        except BaseException:
            self._rollback()
            raise
        return rows[0][0], orjson.loads(rows[0][1])

    def _execute(self, sql: str, session: str | None) -> None:
        if session is not None:
            self._db.run(f"USE {quoted(session)}")
        self._db.run(sql)

    def ddl_log(self, changefeed: str, limit: int) -> list[DdlRecord]:
        """See `Target.ddl_log`."""
        if not self._has_progress_table():
            return []
        rows = self._db.query(
            f"SELECT commit_ts, `database`, name, statement, executed, state, updated_at FROM {_DDL}"  # noqa: S608 a constant
            " WHERE changefeed = %s ORDER BY id DESC LIMIT %s",
            (changefeed, limit),
        )
        return [DdlRecord(**dict(zip(_RECORD, row[:6], strict=True)), updated_at=str(row[6])) for row in rows]


def _now() -> str:
    return datetime.now(UTC).strftime("%Y-%m-%d %H:%M:%S.%f")


def _place(table: TableName) -> str:
    return f"{quoted(table.database)}.{quoted(table.table)}"


@contextmanager
def _naming(table: TableName) -> Iterator[None]:
    """Name the table in what the server says of its rows."""
    try:
        yield
    except TargetError as error:
        hint = error.hint or "make the table's columns as they are upstream, then run again"
        raise type(error)(error.fact, where=f"{error.where}, table {table}", hint=hint) from error


def _mark(column: Column) -> str:
    return _EXPRESSIONS.get(column.shape, "{}").format("%s")


def _bound(column: Column, text: str | None) -> str | int | None:
    if text is None or column.shape not in {Shape.INTEGER, Shape.BIT, Shape.ENUM, Shape.SET}:
        return text
    try:
        return int(text)
    except ValueError:
        return text  # the target says what is wrong with it
