"""The MySQL-family target."""

from collections.abc import Callable, Sequence

from ordering.drift import Met
from ordering.errors import TargetError
from ordering.events import TableName
from ordering.progress import Progress
from sinks.bookkeeping.applied import MYSQL_VIEW, VIEW
from sinks.bookkeeping.tables import PROGRESS_DATABASE, BookTypes
from sinks.mysql.catalog import place_of, quoted, read_catalog
from sinks.mysql.connection import MysqlConnection
from sinks.mysql.ddl.execution import MysqlDdl
from sinks.mysql.delete_copies import delete_by_content
from sinks.mysql.digests import MysqlReader
from sinks.mysql.encoder import MysqlEncoder
from sinks.mysql.named_lock import NamedLock
from sinks.mysql.preflight import check_engines, check_rights, told_of_tables
from sinks.mysql.writer import MysqlWriter
from sinks.rows.schema import Catalog, TableSchema
from sinks.rows.spool import Group
from sinks.rows.values import ValueRules
from sinks.target_session import TargetSession
from sinks.uri import TargetUri

_BINARY = " CHARACTER SET utf8mb4 COLLATE utf8mb4_bin"


class MysqlDialect:
    """MySQL or MariaDB: database `d`, table `t` as upstream. See `sinks.dialect.Dialect`."""

    books = BookTypes(
        short="VARCHAR(249)",
        text="LONGTEXT",
        binary="LONGBLOB",
        tso="BIGINT UNSIGNED",
        moment="DATETIME(6)",
        identity="BIGINT NOT NULL AUTO_INCREMENT",
        clock="(UNIX_TIMESTAMP(NOW(6)) + 0E0)",
        quote="`",
        tail=_BINARY,
        first=(f"CREATE DATABASE IF NOT EXISTS {PROGRESS_DATABASE}{_BINARY}",),
        moment_format="%Y-%m-%d %H:%M:%S.%f",
        row_locks=True,
        text_default="",
    )
    has_savepoints = True

    def __init__(self, uri: TargetUri, rules: ValueRules) -> None:
        self.name = f"{uri.kind} at {uri.place}"
        self.encoder = MysqlEncoder(rules)
        self._uri, self._rules = uri, rules

    def connect(self) -> MysqlConnection:
        """See `Connector.connect`."""
        return MysqlConnection(self._uri)

    def connect_beside(self) -> MysqlConnection:
        """See `Dialect.connect_beside`."""
        return self.connect()

    def prepare(self, at: TargetSession[MysqlConnection]) -> None:
        """See `Dialect.prepare`; DDL commits by itself here."""
        at.book.make()
        at.books.ddl_log.complete()
        at.books.quarantine.make()
        _make_view(at)
        check_engines(at.db)

    def check(self, at: TargetSession[MysqlConnection]) -> list[str]:
        """See `Dialect.check`."""
        version = at.db.value("SELECT VERSION()")
        engine = "LOAD DATA LOCAL" if at.db.takes_load_data else "multi-row statements (local_infile is off: slower)"
        lines = [f"{self.name}: version {version}, rows are written by {engine}", check_rights(at.db)]
        check_engines(at.db)
        return [*lines, *told_of_tables(at.db, at.catalog())]

    def catalog(self, session: MysqlConnection) -> Catalog:
        """See `Connector.catalog`."""
        return read_catalog(session.query, session.made_indexes, mariadb=session.is_mariadb)

    def leadership(self, at: TargetSession[MysqlConnection]) -> NamedLock:
        """See `Dialect.leadership`."""
        return NamedLock(at)

    def ddl(self, at: TargetSession[MysqlConnection]) -> MysqlDdl:
        """See `Dialect.ddl`."""
        return MysqlDdl(at, self._rules)

    def delete(self, session: MysqlConnection, group: Group, schema: TableSchema) -> Met:
        """See `Dialect.delete`."""
        if group.first.by_content:
            return delete_by_content(session, group, schema)
        return MysqlWriter(session).delete(group, schema)

    def write(self, session: MysqlConnection, group: Group, schema: TableSchema) -> Met:
        """See `Dialect.write`."""
        return MysqlWriter(session).write(group, schema)

    def finish_rows(self, session: MysqlConnection, progress: Progress, confirm: Callable[[], None]) -> None:
        """See `Connector.finish_rows`: rows are written at once."""

    def is_empty(self, session: MysqlConnection, table: TableName) -> bool:
        """See `Dialect.is_empty`."""
        return not session.query(f"SELECT 1 FROM {place_of(table)} LIMIT 1")  # noqa: S608 quoted

    def spelled(self, table: TableName, columns: Sequence[str]) -> tuple[str, list[str]]:
        """See `Dialect.spelled`."""
        return place_of(table), [quoted(column) for column in columns]

    def reader(self, at: TargetSession[MysqlConnection]) -> MysqlReader:
        """See `Dialect.reader`."""
        return MysqlReader(at.db)


def _make_view(at: TargetSession[MysqlConnection]) -> None:
    if at.book.has(VIEW):
        return
    try:
        at.db.run(MYSQL_VIEW.format(database=PROGRESS_DATABASE))
    except TargetError:
        if not at.book.has(VIEW):  # else another instance has made it just now
            raise
