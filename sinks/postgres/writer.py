"""Rows into tables.

Few rows: deleted by keys in arrays, then copied straight into the table. Many: copied into a temporary table, which
deletes by its keys and is inserted; measured, that takes half the time of INSERT ... ON CONFLICT, whether the rows were
there or not. Only where the target has columns of its own, whose values must stay, are rows updated in place.
"""

from collections.abc import Iterator
from contextlib import contextmanager

from ordering.drift import Met
from ordering.errors import TargetError
from ordering.events import TableName
from sinks.postgres.connection import PostgresConnection
from sinks.postgres.names import place, quoted
from sinks.rows.accounting import check_changed
from sinks.rows.schema import Column, TableSchema
from sinks.rows.spool import Group
from sinks.rows.tsv import decode_rows

BULK_ROWS = 1000
"""From so many rows on a temporary table is worth its making."""
_NOTHING = "NOTHING"
_ALIAS = '"ticdc_reconciler row"'
"""What an INSERT calls the table: one may be named `excluded`."""
_NAME = "ticdc_reconciler_rows"
_TEMPORARY = f"pg_temp.{_NAME}"


class Writer:
    """Deletes and writes groups of rows of one table, inside the caller's transaction."""

    def __init__(self, db: PostgresConnection, schema: TableSchema) -> None:
        self._db, self._schema, self._place = db, schema, place(schema.name)

    def delete(self, group: Group) -> Met:
        """Delete the rows with the group's keys."""
        columns = self._columns(group.first.columns)
        with _naming(self._schema.name):
            if group.rows < BULK_ROWS:
                return self._delete_few(group, columns, columns)
            with self._temporary(group, columns):
                return self._delete_by(group, columns)

    def write(self, group: Group) -> Met:
        """Write full rows; one that is there is replaced, unless the group says that none is."""
        columns = self._columns(group.first.columns)
        with _naming(self._schema.name):
            if group.first.plain_insert or (group.rows >= BULK_ROWS and self._is_empty()):
                self._copy(group, columns)
                met = Met(0, 0)
            elif self._schema.own_columns(group.first.columns):
                with self._temporary(group, columns):
                    self._insert(group, columns, self._on_conflict(columns))
                met = Met(0, group.rows)  # the server counts both alike
            elif group.rows < BULK_ROWS:
                met = self._delete_few(group, columns, self._columns(self._schema.handle_key))
                self._copy(group, columns)
            else:
                with self._temporary(group, columns):
                    met = self._delete_by(group, self._columns(self._schema.handle_key))
                    self._insert(group, columns, "")
        return met

    def _is_empty(self) -> bool:
        """Whether no row can be there that has to be replaced: so it is when a table is filled first."""
        return not self._db.query(f"SELECT 1 FROM {self._place} LIMIT 1")  # noqa: S608 quoted

    def _columns(self, names: tuple[str, ...]) -> list[Column]:
        return [c for name in names if (c := self._schema.column(name)) is not None]

    def _copy(self, group: Group, columns: list[Column]) -> None:
        copied = self._db.copy(f"COPY {self._place} ({_names(columns)}) FROM STDIN", group.payloads())
        self._check(copied, group, group.rows)

    def _insert(self, group: Group, columns: list[Column], end: str) -> None:
        names = _names(columns)
        chosen = f"SELECT {names} FROM {_TEMPORARY}{end}"  # noqa: S608 quoted
        into = f"INSERT INTO {self._place} AS {_ALIAS} ({names}) OVERRIDING SYSTEM VALUE"
        changed = self._db.run(f"{into} {chosen}")
        self._check(changed, group, 0 if end.endswith(_NOTHING) else group.rows)

    def _check(self, changed: int, group: Group, at_least: int = 0) -> None:
        rows = (row for payload in group.payloads() for row in decode_rows(payload))
        check_changed(changed, group.rows, self._schema.name, rows, self._db.where, at_least=at_least)

    def _on_conflict(self, columns: list[Column]) -> str:
        key = self._schema.handle_key
        others = [quoted(c.name) for c in columns if c.name not in key]
        action = "UPDATE SET " + ", ".join(f"{name} = excluded.{name}" for name in others) if others else _NOTHING
        return f" ON CONFLICT ({', '.join(map(quoted, key))}) DO {action}"

    def _delete_few(self, group: Group, columns: list[Column], key: list[Column]) -> Met:
        """Delete by the keys of the group's rows, which are bound as an array a column."""
        at = [columns.index(column) for column in key]
        rows = [row for payload in group.payloads() for row in decode_rows(payload)]
        arrays = ", ".join(["%s::text[]"] * len(key))
        names = ", ".join(f"k{i}" for i in range(len(key)))
        match = " AND ".join(_equal(c, f"k.k{i}::{c.type}", f"k.k{i}") for i, c in enumerate(key))
        # psycopg takes a percent sign for a place holder
        table, match = self._place.replace("%", "%%"), match.replace("%", "%%")
        sql = f"DELETE FROM {table} t USING unnest({arrays}) AS k({names}) WHERE {match}"  # noqa: S608 quoted
        deleted = self._db.run(sql, [[row[i] for row in rows] for i in at])
        self._check(deleted, group)
        return Met(deleted, deleted)

    @contextmanager
    def _temporary(self, group: Group, columns: list[Column]) -> Iterator[None]:
        """The group's rows in a temporary table whose columns have the types of the table's."""
        names = _names(columns)
        like = f"SELECT {names} FROM {self._place} WITH NO DATA"  # noqa: S608 quoted
        self._db.run(f"CREATE TEMPORARY TABLE {_NAME} ON COMMIT DROP AS {like}")
        self._db.copy(f"COPY {_TEMPORARY} ({names}) FROM STDIN", group.payloads())
        self._db.run(f"ANALYZE {_TEMPORARY}")
        yield
        self._db.run(f"DROP TABLE {_TEMPORARY}")

    def _delete_by(self, group: Group, key: list[Column]) -> Met:
        match = " AND ".join(_equal(c, f"k.{quoted(c.name)}", f"k.{quoted(c.name)}::text") for c in key)
        deleted = self._db.run(f"DELETE FROM {self._place} t USING {_TEMPORARY} k WHERE {match}")  # noqa: S608 quoted
        self._check(deleted, group)
        return Met(deleted, deleted)


def _names(columns: list[Column]) -> str:
    return ", ".join(quoted(c.name) for c in columns)


def _equal(column: Column, value: str, text: str) -> str:
    """A key's condition: under the column's own type with its length, and exactly so where its equality folds.

    No other type will do: `character` alone is one character long.
    """
    name = f"t.{quoted(column.name)}"
    exactly = f' AND {name}::text COLLATE "C" = {text}' if column.folds else ""
    return f"{name} = {value}{exactly}"


@contextmanager
def _naming(table: TableName) -> Iterator[None]:
    """Name the table in what the server says of its rows."""
    try:
        yield
    except TargetError as error:
        hint = error.hint or "make the table's columns as they are upstream, then run again"
        raise type(error)(error.fact, where=f"{error.where}, table {table}", hint=hint) from error
