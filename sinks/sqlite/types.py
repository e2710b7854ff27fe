"""Which type, constraint and default a column of TiDB's has in SQLite.

INTEGER, REAL, TEXT, BLOB; no type for integers that pass 64 bits (no affinity would round them); TIMESTAMP where the
encoder has to know that a text is an instant (its affinity leaves such texts as they are).
"""

import re

from ordering.errors import TargetError
from sinks.ddl.model import ColumnDef, Default, TypeDef
from sinks.ddl.rows.default_values import BYTES, INTEGERS, REALS, held
from sinks.rows.schema import Column, Shape
from sinks.sqlite.ddl.schema_text import checked, literal, quoted
from sinks.sqlite.encoder import SqliteEncoder, Value

_TEXTS = {
    "decimal", "char", "varchar", "tinytext", "text", "mediumtext", "longtext", "date", "datetime", "time", "vector",
}  # fmt: skip
_SHAPES = {
    "enum": Shape.ENUM,
    "set": Shape.SET,
    "json": Shape.JSON,
    "timestamp": Shape.TIMESTAMP,
    "bit": Shape.EXACT,
    "year": Shape.INTEGER,
    **dict.fromkeys(_TEXTS, Shape.TEXT),
    **dict.fromkeys(INTEGERS, Shape.INTEGER),
    **dict.fromkeys(REALS, Shape.REAL),
    **dict.fromkeys(BYTES, Shape.BYTES),
}
_DECLARED = {
    Shape.INTEGER: "INTEGER",
    Shape.REAL: "REAL",
    Shape.BYTES: "BLOB",
    Shape.EXACT: "",
    Shape.TIMESTAMP: "TIMESTAMP",
}
_NOW = re.compile(r"(CURRENT_TIMESTAMP|NOW|LOCALTIME|LOCALTIMESTAMP)\s*(\(\s*(\d?)\s*\))?", re.IGNORECASE)


def column_of(column: ColumnDef) -> Column:
    """The column as the target holds it. Raises TargetError for a type that is not known."""
    kind = column.type
    exact = kind.base == "bigint" and kind.unsigned
    shape = Shape.EXACT if exact else _SHAPES.get(kind.base)
    if shape is None:
        raise TargetError(
            f"column {column.name!r} has the type {kind}, which TiDB's documentation does not know",
            hint="leave the table out with filter rules",
        )
    declared = _DECLARED.get(shape, "TEXT")
    return Column(column.name, declared, shape, column.nullable, members=kind.members)


def type_clause(column: Column) -> str:
    """Name, type and constraint."""
    parts = (quoted(column.name), column.type, checked(column.name, column.shape, column.members))
    return " ".join(filter(None, parts))


def default_clause(column: ColumnDef, encoder: SqliteEncoder) -> str:
    """What SQLite gives a row that someone else inserts; "" where it can't express the default."""
    default = column.default
    if default is None or (default.value is None and not default.expression):
        return ""
    if default.expression:
        return _computed(column.type, default)
    try:
        return f" DEFAULT {literal(value_of(column, held(column.type, default.value or ''), encoder))}"
    except TargetError:
        return ""  # rows that are there are looked at by `shown`, which refuses it


def _computed(kind: TypeDef, default: Default) -> str:
    match = _NOW.fullmatch(default.expression)
    if match is None or kind.base not in {"datetime", "timestamp"}:
        return ""
    digits = int(match[3] or 0)
    if not digits:
        return " DEFAULT CURRENT_TIMESTAMP"
    # SQLite's clock has milliseconds
    text = f"substr(strftime('%Y-%m-%d %H:%M:%f', 'now') || '000', 1, {len('2026-01-02 03:04:05.') + digits})"
    return f" DEFAULT ({text})"


def value_of(column: ColumnDef, text: str | None, encoder: SqliteEncoder) -> Value:
    """What a text of a message becomes in this column. Raises TargetError."""
    try:
        return None if text is None else encoder.value(column_of(column), text)
    except ValueError as error:
        raise TargetError(f"the default of column {column.name!r} is no value of its type: {error}") from error
