"""Deletes and writes the rows of a unit: multi-row statements where they are few, LOAD DATA where they are many.

Three ways lead into a table. REPLACE where no other unique key and no column of the target's own can be hurt; plain
INSERT where all touched keys were deleted before (R5). By a temporary table of the same column types where the target
has columns that upstream lacks, for they keep their values, and where an ENUM holds the invalid value '', which a
strict server takes only from there.
"""

from collections.abc import Iterator
from contextlib import contextmanager

from ordering.errors import TargetError
from ordering.events import TableName
from sinks.mysql.catalog import quoted
from sinks.mysql.connection import SQL_MODE, MysqlConnection
from sinks.schema import Column, Shape, TableSchema
from sinks.spool import Group
from sinks.tabbed import decode_rows
from sinks.target import PROGRESS_DATABASE

_BULK_ROWS = 200
"""From so many rows on LOAD DATA is faster than a multi-row statement."""
_STATEMENT_ROWS = 1000
_STATEMENT_BYTES = 1 << 20
"""Few rows may be large too; a server takes no statement above its `max_allowed_packet`."""
_NUMBERS = (Shape.BIT, Shape.ENUM, Shape.SET)
_EXPRESSIONS = {Shape.BYTES: "UNHEX({})", **dict.fromkeys(_NUMBERS, "CAST({} AS UNSIGNED)")}
NUMBER = "bigint unsigned"
"""The type in which an ENUM's number waits."""
_TRUNCATED = 1265
_DUPLICATE = 1062
_KEYS = f"{PROGRESS_DATABASE}.deleted_keys"
_STAGE = f"{PROGRESS_DATABASE}.staged_rows"
_LOOKED_UP = {Shape.INTEGER, Shape.TEXT, Shape.BYTES, Shape.DATE, Shape.DATETIME, Shape.TIMESTAMP}
"""Shapes whose texts a server compares with a column exactly; a FLOAT is found only among others of its type."""


class MysqlWriter:
    """Writes groups over one connection, inside the caller's transaction."""

    def __init__(self, connection: MysqlConnection) -> None:
        self._db = connection

    def delete(self, group: Group, schema: TableSchema) -> None:
        """Delete rows by their keys. Raises TargetError."""
        columns = _columns(group, schema)
        with _naming(schema):
            if group.rows < _BULK_ROWS and len(columns) == 1 and columns[0].shape in _LOOKED_UP and not _folds(columns):
                head = f"DELETE FROM {place_of(schema.name)} WHERE {quoted(columns[0].name)} IN ("  # noqa: S608 quoted
                self._in_statements(group, columns, head, _mark(columns[0]), ")")
            else:
                self._delete_by_join(group, schema.name, columns)

    def _delete_by_join(self, group: Group, table: TableName, columns: list[Column]) -> None:
        """Delete by a temporary table of keys: typed and collated as the table's own, and looked up by its index."""
        place = place_of(table)
        with self._temporary(_KEYS, table, columns):
            self._insert("INSERT", _KEYS, group, columns)
            # the table under its full name: an alias is looked for in the current database, and there may be none
            match = [f"{place}.{quoted(c.name)} = k.{quoted(c.name)}" for c in columns]
            match += [f"BINARY {place}.{quoted(c.name)} = BINARY k.{quoted(c.name)}" for c in columns if c.folds]
            self._db.run(f"DELETE {place} FROM {_KEYS} k STRAIGHT_JOIN {place} ON {' AND '.join(match)}")

    def write(self, group: Group, schema: TableSchema) -> None:
        """Write full rows. Raises TargetError; also for a row that would take another one's place unseen."""
        columns = _columns(group, schema)
        with _naming(schema):
            if schema.own_columns(group.first.columns) and not group.first.plain_insert:
                self._by_stage(group, schema, columns)
            elif any(column.shape is Shape.ENUM for column in columns):
                self._with_enums(group, schema, columns)
            else:
                self._insert(_verb(group), place_of(schema.name), group, columns)

    def _with_enums(self, group: Group, schema: TableSchema, columns: list[Column]) -> None:
        self._db.run("SAVEPOINT before_enums")
        try:
            self._insert(_verb(group), place_of(schema.name), group, columns)
        except TargetError as error:
            if f" {_TRUNCATED} " not in error.fact:
                raise
            self._db.run("ROLLBACK TO SAVEPOINT before_enums")
            self._by_stage(group, schema, columns)

    def _by_stage(self, group: Group, schema: TableSchema, columns: list[Column]) -> None:
        """Load into a table of the same types, with numbers for ENUMs; strict there, so that it need not be after."""
        place, names = place_of(schema.name), _names(columns)
        update = "" if group.first.plain_insert else " ON DUPLICATE KEY UPDATE " + _updates(schema, columns)
        staged = [column if column.shape is not Shape.ENUM else _number(column) for column in columns]
        with self._temporary(_STAGE, schema.name, staged):
            self._insert("INSERT", _STAGE, group, staged)
            self._db.run("SET SESSION sql_mode = %s", (SQL_MODE.replace("STRICT_ALL_TABLES,", ""),))
            try:
                self._db.run(f"INSERT INTO {place} ({names}) SELECT {names} FROM {_STAGE} AS s{update}")  # noqa: S608 quoted
            finally:
                self._db.run("SET SESSION sql_mode = %s", (SQL_MODE,))

    @contextmanager
    def _temporary(self, name: str, table: TableName, columns: list[Column]) -> Iterator[None]:
        """A table with some columns of another, in its types; those that are to be numbers are numbers."""
        self._db.run(f"CREATE TEMPORARY TABLE {name} {self._like(table, columns)}")
        try:
            yield
        finally:
            self._db.run(f"DROP TEMPORARY TABLE IF EXISTS {name}")

    def _like(self, table: TableName, columns: list[Column]) -> str:
        names = [(quoted(column.name), column.type == NUMBER) for column in columns]
        typed = ", ".join(f"CAST({name} AS UNSIGNED) AS {name}" if is_number else name for name, is_number in names)
        return f"ENGINE=InnoDB AS SELECT {typed} FROM {place_of(table)} LIMIT 0"  # noqa: S608 quoted

    def _insert(self, verb: str, place: str, group: Group, columns: list[Column]) -> None:
        if (group.rows >= _BULK_ROWS or sum(group.sizes) > _STATEMENT_BYTES) and self._db.takes_load_data:
            self._load_data(verb, place, group, columns)
        else:
            self._by_statements(verb, place, group, columns)

    def _by_statements(self, verb: str, place: str, group: Group, columns: list[Column]) -> None:
        marks = f"({', '.join(map(_mark, columns))})"
        self._in_statements(group, columns, f"{verb} INTO {place} ({_names(columns)}) VALUES ", marks, "")

    def _load_data(self, verb: str, place: str, group: Group, columns: list[Column]) -> None:
        computed = [(f"@v{i}", column) for i, column in enumerate(columns) if column.shape in _EXPRESSIONS]
        variables = {column.name: variable for variable, column in computed}
        fields = ", ".join(variables.get(c.name) or quoted(c.name) for c in columns)
        settings = [f"{quoted(c.name)} = {_EXPRESSIONS[c.shape].format(variable)}" for variable, c in computed]
        replace = "REPLACE " if verb == "REPLACE" else ""
        sql = f"{replace}INTO TABLE {place} CHARACTER SET utf8mb4 ({fields})"
        affected = self._db.load(sql + (f" SET {', '.join(settings)}" if settings else ""), group.path())
        if affected < group.rows:
            raise TargetError(
                f"only {affected} of {group.rows} rows were taken by {group.first.table}", where=self._db.where
            )

    def _in_statements(self, group: Group, columns: list[Column], head: str, marks: str, tail: str) -> None:
        """Multi-row statements with bound values, of at most so many rows each."""
        head = head.replace("%", "%%")  # names are no place for values
        rows = [row for payload in group.payloads() for row in decode_rows(payload)]
        for start in range(0, len(rows), _STATEMENT_ROWS):
            part = rows[start : start + _STATEMENT_ROWS]
            sql = head + ", ".join([marks] * len(part)) + tail
            self._db.write(sql, [_bound(c, text) for row in part for c, text in zip(columns, row, strict=True)])


def place_of(table: TableName) -> str:
    """A table as statements name it."""
    return f"{quoted(table.database)}.{quoted(table.table)}"


def _columns(group: Group, schema: TableSchema) -> list[Column]:
    return [c for name in group.first.columns if (c := schema.column(name)) is not None]


def _folds(columns: list[Column]) -> bool:
    return any(column.folds for column in columns)


def _verb(group: Group) -> str:
    return "INSERT" if group.first.plain_insert else "REPLACE"


def _names(columns: list[Column]) -> str:
    return ", ".join(quoted(column.name) for column in columns)


def _number(column: Column) -> Column:
    return Column(column.name, NUMBER, Shape.INTEGER)


def _updates(schema: TableSchema, columns: list[Column]) -> str:
    """What a row that is there takes over; its key is its own already, and something has to be named."""
    others = [c for c in columns if c.name not in schema.handle_key] or columns[:1]
    return ", ".join(f"{quoted(c.name)} = s.{quoted(c.name)}" for c in others)


@contextmanager
def _naming(schema: TableSchema) -> Iterator[None]:
    """Name the table in what the server says of its rows."""
    try:
        yield
    except TargetError as error:
        hint = error.hint or schema.conflict_hint(is_conflict=f" {_DUPLICATE} " in error.fact)
        raise type(error)(error.fact, where=f"{error.where}, table {schema.name}", hint=hint) from error


def _mark(column: Column) -> str:
    return _EXPRESSIONS.get(column.shape, "{}").format("%s")


def _bound(column: Column, text: str | None) -> str | int | None:
    return int(text) if text is not None and column.shape in (Shape.INTEGER, *_NUMBERS) else text
