"""The dialect: what `sinks.dialect.Dialect` asks for. DuckDB knows neither savepoints nor locks of rows."""

from collections.abc import Callable, Sequence

from ordering.drift import Met
from ordering.errors import TargetError
from ordering.events import DdlEvent, TableName
from ordering.progress import Progress
from sinks.bookkeeping.tables import BookTypes
from sinks.compare.digests import TableReader
from sinks.ddl.name_resolution import older_database, respelled
from sinks.ddl.parse.statement import read_statement
from sinks.ddl_execution import TransactionalDdl
from sinks.leadership import EpochsAlone
from sinks.rows.schema import Catalog, Column, Shape, TableSchema, choose_handle_key, valid_indexes
from sinks.rows.spool import Group
from sinks.rows.values import ValueRules
from sinks.sqlite.encoder import SqliteEncoder, decode_rows
from sinks.target_session import TargetSession
from sinks.uri import TargetUri
from tests.sinks.new_target.ddl import place, quoted, translated
from tests.sinks.new_target.session import DuckSession

_SHAPES = {"BIGINT": Shape.INTEGER, "UBIGINT": Shape.EXACT, "DOUBLE": Shape.REAL, "BLOB": Shape.BYTES}
_COLUMNS = """SELECT schema_name, table_name, column_name, data_type, is_nullable, column_default IS NOT NULL
FROM duckdb_columns() WHERE NOT internal AND schema_name NOT IN ('main', 'ticdc_reconciler')
ORDER BY table_oid, column_index"""
_KEYS = """SELECT schema_name, table_name, constraint_type, constraint_column_names FROM duckdb_constraints()
WHERE constraint_type IN ('PRIMARY KEY', 'UNIQUE') ORDER BY constraint_index"""
_EMPTY = "SELECT schema_name FROM duckdb_schemas() WHERE NOT internal"


class DuckDialect:
    books = BookTypes(
        short="VARCHAR",
        text="VARCHAR",
        binary="BLOB",
        tso="UBIGINT",
        moment="TIMESTAMP",
        identity="BIGINT DEFAULT nextval('ticdc_reconciler.ddl_id')",
        clock="epoch(now())",
        first=("CREATE SCHEMA IF NOT EXISTS ticdc_reconciler", "CREATE SEQUENCE IF NOT EXISTS ticdc_reconciler.ddl_id"),
    )
    has_savepoints = False

    def __init__(self, uri: TargetUri, rules: ValueRules) -> None:
        self.name, self._path = f"DuckDB in {uri.path}", uri.path
        self.encoder = SqliteEncoder(rules)  # msgpack of numbers, texts and bytes

    def connect(self) -> DuckSession:
        return DuckSession(self._path)

    def connect_beside(self) -> DuckSession:
        return self.connect()

    def prepare(self, at: TargetSession[DuckSession]) -> None:
        if not at.book.has("quarantine"):
            with at.transaction():
                at.book.make()
                at.books.quarantine.make()

    def check(self, at: TargetSession[DuckSession]) -> Sequence[str]:
        return [f"{self.name}: version {at.db.value('SELECT version()')}"]

    def leadership(self, at: TargetSession[DuckSession]) -> EpochsAlone:  # noqa: ARG002 the protocol's
        return EpochsAlone()

    def ddl(self, at: TargetSession[DuckSession]) -> TransactionalDdl[DuckSession]:
        return TransactionalDdl(at, execute)

    def catalog(self, session: DuckSession) -> Catalog:
        columns: dict[TableName, dict[str, Column]] = {}
        for database, table, name, kind, nullable, filled in session.query(_COLUMNS):
            column = Column(name, kind, _SHAPES.get(kind, Shape.TEXT), nullable, filled=filled)
            columns.setdefault(TableName(database, table), {})[name] = column
        primary: dict[TableName, tuple[str, ...]] = {}
        uniques: dict[TableName, dict[str, tuple[str, ...]]] = {name: {} for name in columns}
        for database, table, kind, key in session.query(_KEYS):
            of = TableName(database, table)
            if of in columns and kind == "PRIMARY KEY":
                primary[of] = tuple(key)
            elif of in columns:
                uniques[of][f"unique {len(uniques[of])}"] = tuple(key)
        tables = {name: _schema(name, columns[name], primary.get(name, ()), uniques[name]) for name in columns}
        return Catalog(tables, empty=frozenset(name for (name,) in session.query(_EMPTY)))

    def delete(self, session: DuckSession, group: Group, schema: TableSchema) -> Met:
        if group.first.by_content:
            raise TargetError(f"table {schema.name} has no key", hint="DuckDB takes no such tables")
        deleted = _delete(session, group, schema, group.first.columns)
        return Met(deleted, deleted)

    def write(self, session: DuckSession, group: Group, schema: TableSchema) -> Met:
        names = group.first.columns
        met = 0 if group.first.plain_insert else _delete(session, group, schema, schema.handle_key)
        marks = ", ".join("?" * len(names))
        insert = f"INSERT INTO {place(schema.name)} ({', '.join(map(quoted, names))}) VALUES ({marks})"
        for payload in group.payloads():
            session.many(insert, decode_rows(payload))
        return Met(met, met)

    def finish_rows(self, session: DuckSession, progress: Progress, confirm: Callable[[], None]) -> None:
        """Rows are written at once."""

    def is_empty(self, session: DuckSession, table: TableName) -> bool:
        return not session.query(f"SELECT 1 FROM {place(table)} LIMIT 1")

    def reader(self, at: TargetSession[DuckSession]) -> TableReader:  # noqa: ARG002 the protocol's
        raise TargetError("DuckDB is not compared", where=self.name)


def execute(session: DuckSession, ddl: DdlEvent, catalog: Catalog) -> Sequence[str]:
    statement = read_statement(respelled(ddl.statement, ddl.database, catalog))
    own = catalog.database(ddl.database)
    placed = statement.placed(own, lambda old: older_database(statement, old, ddl, catalog))
    executed = list(translated(placed))
    for sql in executed:
        session.run(sql)
    return executed


def _schema(
    name: TableName, columns: dict[str, Column], primary: tuple[str, ...], uniques: dict[str, tuple[str, ...]]
) -> TableSchema:
    keys = (*uniques.values(), *([primary] if primary else []))
    handle = choose_handle_key(primary, uniques, columns)
    valid = valid_indexes(primary, uniques, columns)
    return TableSchema(name, tuple(columns.values()), handle, keys, valid, unique_indexes=uniques)


def _delete(session: DuckSession, group: Group, schema: TableSchema, key: Sequence[str]) -> int:
    """Delete the rows of these keys, which are among the group's columns."""
    places = [group.first.columns.index(name) for name in key]
    statement = f"DELETE FROM {place(schema.name)} WHERE {' AND '.join(f'{quoted(name)} = ?' for name in key)}"
    rows = (row for payload in group.payloads() for row in decode_rows(payload))
    return session.many(statement, ([row[at] for at in places] for row in rows))
