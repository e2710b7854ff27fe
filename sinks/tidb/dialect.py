"""The TiDB target: MySQL's, but for what TiDB does in another way."""

from collections.abc import Callable, Sequence
from dataclasses import replace

from ordering.drift import Met
from ordering.events import TableName
from ordering.progress import Progress
from sinks.mysql.connection import MysqlConnection
from sinks.mysql.delete_copies import delete_by_content
from sinks.mysql.dialect import MysqlDialect
from sinks.rows.schema import Catalog, TableSchema
from sinks.rows.spool import Group
from sinks.rows.values import ValueRules
from sinks.target_session import TargetSession
from sinks.tidb.connection import TidbConnection
from sinks.tidb.ddl import TidbDdl
from sinks.tidb.digests import TidbReader
from sinks.tidb.lock_holders import CREATION
from sinks.tidb.named_lock import TidbLock
from sinks.tidb.writer import TidbWriter
from sinks.uri import TargetUri


class TidbDialect:
    """TiDB: database `d`, table `t` as upstream. See `sinks.dialect.Dialect`."""

    books = MysqlDialect.books
    has_savepoints = MysqlDialect.has_savepoints

    def __init__(self, uri: TargetUri, rules: ValueRules) -> None:
        self._mysql = MysqlDialect(uri, rules)
        self.name, self.encoder = self._mysql.name, self._mysql.encoder
        self._uri, self._rules = uri, rules

    def connect(self) -> MysqlConnection:
        """See `Connector.connect`."""
        return self.connect_beside()

    def connect_beside(self) -> TidbConnection:
        """See `Dialect.connect_beside`."""
        return TidbConnection(self._uri)

    def prepare(self, at: TargetSession[MysqlConnection]) -> None:
        """See `Dialect.prepare`."""
        self._mysql.prepare(at)
        at.db.run(CREATION)

    def check(self, at: TargetSession[MysqlConnection]) -> list[str]:
        """See `Dialect.check`."""
        return self._mysql.check(at)

    def catalog(self, session: MysqlConnection) -> Catalog:
        """See `Connector.catalog`."""
        return replace(self._mysql.catalog(session), computes_alike=True, shows_members=True)

    def leadership(self, at: TargetSession[MysqlConnection]) -> TidbLock:
        """See `Dialect.leadership`."""
        return TidbLock(at)

    def ddl(self, at: TargetSession[MysqlConnection]) -> TidbDdl:
        """See `Dialect.ddl`."""
        return TidbDdl(at, self._rules, self.connect_beside)

    def delete(self, session: MysqlConnection, group: Group, schema: TableSchema) -> Met:
        """See `Dialect.delete`."""
        if group.first.by_content:
            return delete_by_content(session, group, schema)
        return TidbWriter(session).delete(group, schema)

    def write(self, session: MysqlConnection, group: Group, schema: TableSchema) -> Met:
        """See `Dialect.write`."""
        return TidbWriter(session).write(group, schema)

    def finish_rows(self, session: MysqlConnection, progress: Progress, confirm: Callable[[], None]) -> None:
        """See `Connector.finish_rows`: rows are written at once."""

    def is_empty(self, session: MysqlConnection, table: TableName) -> bool:
        """See `Dialect.is_empty`."""
        return self._mysql.is_empty(session, table)

    def spelled(self, table: TableName, columns: Sequence[str]) -> tuple[str, list[str]]:
        """See `Dialect.spelled`."""
        return self._mysql.spelled(table, columns)

    def reader(self, at: TargetSession[MysqlConnection]) -> TidbReader:
        """See `Dialect.reader`."""
        return TidbReader(at.db)
