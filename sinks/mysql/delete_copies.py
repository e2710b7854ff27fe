"""Finds rows by their whole content, exactly: no collation, no rounding, NULL equals NULL."""

import struct
from collections.abc import Sequence
from typing import Any

from ordering.drift import Met
from sinks.mysql.catalog import place_of, quoted
from sinks.mysql.connection import MysqlConnection
from sinks.rows.delete_copies import delete_copies
from sinks.rows.schema import Column, Shape, TableSchema
from sinks.rows.spool import Group
from sinks.rows.tsv import decode_rows

_BY_SHAPE = {
    Shape.INTEGER: "{} <=> %s",
    Shape.REAL: "{} <=> %s",
    Shape.BYTES: "{} <=> UNHEX(%s)",
    Shape.TIME: "{} <=> CAST(%s AS TIME(6))",
    **dict.fromkeys((Shape.DATE, Shape.DATETIME, Shape.TIMESTAMP), "{} <=> %s"),
    **dict.fromkeys((Shape.BIT, Shape.ENUM, Shape.SET), "CAST({} AS UNSIGNED) <=> %s"),
}
_BY_TYPE = {
    "json": "CAST({} AS CHAR) <=> CAST(CAST(%s AS JSON) AS CHAR)",  # 1 and 1.0 are equal as JSON
    "year": "CAST({} AS CHAR) <=> CAST(%s AS CHAR)",  # a number is taken for a year of two digits
}
_SHOWN = "CAST({} AS CHAR) + 0e0 <=> %s"
"""A DOUBLE(9,2) holds -0.05 as -0.050000000000000044."""
_BYTEWISE = "CAST(CAST({} AS CHAR) AS BINARY) <=> CAST(%s AS BINARY)"
_WHOLE = (Shape.INTEGER, Shape.BIT, Shape.ENUM, Shape.SET)


def delete_by_content(db: MysqlConnection, group: Group, schema: TableSchema) -> Met:
    """Delete a copy for each row of the group. Raises TargetError."""
    columns = [c for name in group.first.columns if (c := schema.column(name)) is not None]
    match = " AND ".join(map(_match, columns))
    sql = f"DELETE FROM {place_of(schema.name).replace('%', '%%')} WHERE {match} LIMIT %s"  # noqa: S608 quoted

    def delete(row: Sequence[Any], count: int) -> int:
        return db.run(sql, [*(_bound(c, text) for c, text in zip(columns, row, strict=True)), count])

    rows = (row for payload in group.payloads() for row in decode_rows(payload))
    return delete_copies(schema.name, rows, delete)


def _base(column: Column) -> str:
    return column.type.lower().partition("(")[0].partition(" ")[0]


def _match(column: Column) -> str:
    if _base(column) == "decimal":
        digits = column.type.partition("(")[2].partition(")")[0]
        return f"{quoted(column.name).replace('%', '%%')} <=> CAST(%s AS DECIMAL({digits}))"
    if _base(column) == "double" and "(" in column.type:
        return _SHOWN.replace("{}", quoted(column.name).replace("%", "%%"))
    form = _BY_TYPE.get(_base(column)) or _BY_SHAPE.get(column.shape, _BYTEWISE)
    # the driver takes a percent sign in a name for a place holder
    return form.replace("{}", quoted(column.name).replace("%", "%%"))


def _bound(column: Column, text: str | None) -> str | int | float | None:
    if text is None:
        return None
    if column.shape in _WHOLE and _base(column) != "year":
        return int(text)
    if column.shape is not Shape.REAL:
        return text
    if _base(column) != "float":
        return float(text)
    (near,) = struct.unpack("f", struct.pack("f", float(text)))  # held in 32 bits and compared in 64
    return float(near)
