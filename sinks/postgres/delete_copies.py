"""Finds rows by their whole content: IS NOT DISTINCT FROM in the column's type, and by ctid so many of them."""

from collections.abc import Sequence
from typing import Any

from ordering.drift import Met
from sinks.postgres.catalog import base_type
from sinks.postgres.connection import PostgresConnection
from sinks.postgres.names import place, quoted
from sinks.rows.delete_copies import delete_copies
from sinks.rows.schema import Column, Shape, TableSchema
from sinks.rows.spool import Group
from sinks.rows.tsv import decode_rows


def delete_by_content(db: PostgresConnection, group: Group, schema: TableSchema) -> Met:
    """Delete a copy for each row of the group. Raises TargetError."""
    columns = [c for name in group.first.columns if (c := schema.column(name)) is not None]
    # psycopg takes a percent sign in a name for a place holder
    table, match = place(schema.name).replace("%", "%%"), " AND ".join(map(_match, columns))
    some = f"SELECT ctid FROM {table} WHERE {match} LIMIT %s"  # noqa: S608 quoted
    # partitions number their rows alike: the row itself has to match too
    sql = f"DELETE FROM {table} WHERE ctid = ANY (ARRAY({some})) AND {match}"  # noqa: S608 quoted

    def delete(row: Sequence[Any], count: int) -> int:
        return db.run(sql, [*row, count, *row])

    rows = (row for payload in group.payloads() for row in decode_rows(payload))
    return delete_copies(schema.name, rows, delete)


def _match(column: Column) -> str:
    name = quoted(column.name).replace("%", "%%")
    kind, value = base_type(column.type), f"%s::{column.type.replace('%', '%%')}"
    if column.shape is Shape.JSON:  # one type has no equality, to the other 1.0 is 1
        return f"{name}::text IS NOT DISTINCT FROM ({value})::text"
    if column.folds or kind in {"text", "character varying"}:
        return f'{name}::text COLLATE "C" IS NOT DISTINCT FROM %s::text'
    if column.shape is Shape.REAL:  # to whom 0 is -0
        return f"{name}::text IS NOT DISTINCT FROM ({value})::text"
    return f"{name} IS NOT DISTINCT FROM {value}"
