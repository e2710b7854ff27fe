"""Finds rows by their whole content: each column IS the value, byte by byte, and one row of those is the next copy."""

import sqlite3
from collections.abc import Callable, Sequence
from typing import Any

from ordering.drift import Met
from ordering.errors import TargetError
from sinks.rows.chained import chained
from sinks.rows.delete_copies import delete_copies
from sinks.rows.schema import TableSchema
from sinks.rows.spool import Group
from sinks.sqlite.ddl.schema_text import quoted
from sinks.sqlite.encoder import decode_rows

_ROW_IDS = ("rowid", "_rowid_", "oid")


Run = Callable[[str, tuple[object, ...]], sqlite3.Cursor]


def delete_by_content(run: Run, place: str, group: Group, schema: TableSchema) -> Met:
    """Delete a copy for each row of the group. `place`: the table, as statements name it. Raises TargetError."""
    taken = {column.name.lower() for column in schema.columns}
    row_id = next((name for name in _ROW_IDS if name not in taken), None)
    if row_id is None:
        raise TargetError(
            f"table {schema.name} has no key, and its columns take all names of SQLite's row id: {', '.join(_ROW_IDS)}",
            hint="give the table a key upstream, or leave it out with filter.rules",
        )
    match = chained(" AND ", [f"{quoted(name)} IS ? COLLATE BINARY" for name in group.first.columns])
    sql = f"DELETE FROM {place} WHERE {row_id} IN (SELECT {row_id} FROM {place} WHERE {match} LIMIT ?)"  # noqa: S608 quoted

    def delete(row: Sequence[Any], count: int) -> int:
        return run(sql, (*row, count)).rowcount

    rows = (row for payload in group.payloads() for row in decode_rows(payload))
    return delete_copies(schema.name, rows, delete)
