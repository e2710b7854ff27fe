"""Iceberg behind the documented protocol; tables and progress move in one transaction of the catalog's database."""

from collections.abc import Callable, Sequence

from ordering.drift import Met
from ordering.errors import TargetError, TargetUnreachableError
from ordering.events import DdlEvent, TableName
from ordering.progress import Progress
from sinks.compare.digests import TableReader
from sinks.ddl.name_resolution import older_database, respelled
from sinks.ddl.parse.statement import read_statement
from sinks.ddl.rows.default_values import filling_of
from sinks.ddl_execution import TransactionalDdl
from sinks.iceberg.catalogs import TABLES, Catalogs
from sinks.iceberg.ddl import execute
from sinks.iceberg.encoder import IcebergEncoder
from sinks.iceberg.files import files_of
from sinks.iceberg.session import LakeSession
from sinks.leadership import Leadership
from sinks.rows.chunk import Encoder
from sinks.rows.schema import Catalog, TableSchema
from sinks.rows.spool import Group
from sinks.rows.values import ValueRules
from sinks.sqlite.encoder import decode_rows
from sinks.target_session import TargetSession
from sinks.uri import TargetUri


class IcebergDialect:
    """See `sinks.dialect.Dialect`."""

    has_savepoints = False

    def __init__(self, uri: TargetUri, rules: ValueRules, catalogs: Catalogs) -> None:
        self.name = f"{uri.kind} at {uri.place}"
        self.books = catalogs.books
        self._uri, self._rules, self._catalogs, self._values = uri, rules, catalogs, IcebergEncoder(rules)
        self.encoder: Encoder = self._values

    def connect(self) -> LakeSession:
        """A new connection to the catalog."""
        files = files_of(self._uri.warehouse, self._uri.objects)
        database = self._catalogs.open()
        try:
            files.make()
        except OSError as error:
            database.close()
            raise TargetUnreachableError(f"can't make the warehouse: {error}", where=files.root) from error
        return LakeSession(database, files)

    def connect_beside(self) -> LakeSession:
        """See `Dialect.connect_beside`."""
        return self.connect()

    def prepare(self, at: TargetSession[LakeSession]) -> None:
        """See `Dialect.prepare`."""
        if not all(map(at.book.has, ("instance", "ddl", "quarantine", "stop"))):
            with at.transaction():
                at.db.database.make_alone()
                at.book.make()
                at.books.quarantine.make()
        at.books.ddl_log.complete()  # an earlier version may have copied into the same database
        at.db.database.make_catalog()

    def leadership(self, at: TargetSession[LakeSession]) -> Leadership:
        """See `Dialect.leadership`."""
        return self._catalogs.leadership(at)

    def ddl(self, at: TargetSession[LakeSession]) -> TransactionalDdl[LakeSession]:
        """See `Dialect.ddl`."""
        return TransactionalDdl(at, self._execute)

    def check(self, at: TargetSession[LakeSession]) -> Sequence[str]:
        """The catalog can be read, and the warehouse listed."""
        session = at.db
        self._catalogs.check(session.database)
        session.check_warehouse()
        found = len(session.names()) if session.has_table(TABLES) else 0
        return [f"{session.where}: {found} tables"]

    def catalog(self, session: LakeSession) -> Catalog:
        """All tables that were made by DDL of upstream."""
        tables = {table.name: table.described() for table in session.tables()}
        return Catalog(tables, empty=frozenset(session.databases()))

    def delete(self, session: LakeSession, group: Group, schema: TableSchema) -> Met:
        """Note what is to go; the commit finds it."""
        _check_key(group, schema)
        for payload in group.payloads():
            session.table(schema.name).delete(group.first.columns, decode_rows(payload))
        return Met(0, group.rows)

    def write(self, session: LakeSession, group: Group, schema: TableSchema) -> Met:
        """Note what is to be there; the commit writes it."""
        _check_key(group, schema)
        for payload in group.payloads():
            session.table(schema.name).write(group.first.columns, decode_rows(payload))
        return Met(0, group.rows)

    def finish_rows(self, session: LakeSession, progress: Progress, confirm: Callable[[], None]) -> None:
        """Write files, for which nobody has to wait; then move pointers, under the catalog's lock."""
        session.write_files(progress.checkpoint_ts)
        if session.database.begin_to_write():
            confirm()
        session.move_pointers()

    def is_empty(self, session: LakeSession, table: TableName) -> bool:
        """Refused: files of a dump are written by several processes, and a table changes in one transaction."""
        hint = "begin with a topic that holds all rows, or load another target"
        raise TargetError(f"`load` does not write Iceberg (table {table})", where=session.where, hint=hint)

    def _execute(self, session: LakeSession, ddl: DdlEvent, catalog: Catalog) -> Sequence[str]:
        """Change metadata, in the transaction that saves the progress."""
        statement = read_statement(respelled(ddl.statement, ddl.own_database, catalog))
        own = catalog.database(ddl.own_database)
        placed = statement.placed(own, lambda old: older_database(statement, old, ddl, catalog))
        return execute(session, placed, self._values, filling_of(ddl, self._rules), ddl.sql, catalog)

    def spelled(self, table: TableName, columns: Sequence[str]) -> tuple[str, list[str]]:
        """Refused: see `consumer.config.model`."""
        named = ", ".join(columns)
        raise TargetError(f"tables are not merged in Iceberg ({table}: {named})", hint="choose another target")

    def reader(self, at: TargetSession[LakeSession]) -> TableReader:
        """None yet: compare with another reader."""
        raise TargetError("`verify` and `prove` do not read Iceberg", where=at.name)


def _check_key(group: Group, schema: TableSchema) -> None:
    if group.first.by_content or not schema.handle_key:
        hint = "Iceberg takes no such tables here: give it a key upstream, or leave it out with filter.rules"
        raise TargetError(f"table {schema.name} has no key", hint=hint)
