"""What MODIFY COLUMN does to the rows that are there, as MySQL converts them (MySQL documentation, "CAST").

Upstream had converted every row without an error before it sent the statement. What can't be spelled here exactly is
done by way of texts (`sinks.postgres.ddl.rewrite_rows`).
"""

import re
from collections.abc import Callable

from sinks.ddl.model import TypeDef
from sinks.ddl.rows.default_values import BYTES, INTEGERS, REALS
from sinks.ddl.rows.modify_column import keeps_values, loses_characters
from sinks.ddl.rows.out_of_range import bytes_held, number_range
from sinks.postgres.catalog import base_type
from sinks.postgres.names import literal, zone
from sinks.postgres.types import type_of
from sinks.rows.schema import Column, Shape

_WHOLE = {"smallint", "integer", "bigint"}
_NUMBERS = {*_WHOLE, "numeric"}
_REALS = {"real", "double precision"}
_TEXTS = {"text", "character varying"}
_TEXT_TYPES = {"char", "varchar", "tinytext", "text", "mediumtext", "longtext"}
_TEMPORAL = {Shape.DATE: {"date", "datetime"}, Shape.DATETIME: {"datetime", "date"}, Shape.TIME: {"time"}}
_WIDTH = re.compile(r"\((\d+)\)")
_FRACTION = re.compile(r"\((\d)\)")
_NUMBER = r"^[[:space:]]*[-+]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][-+]?[0-9]+)?[[:space:]]*$"
_MICROSECOND_DIGITS = 6
PADDED = {"binary", "char"}
"""Types whose values are padded or stripped, which PostgreSQL's types don't tell."""
Rule = Callable[[str, Column, TypeDef, str], str | None]


def converted(old: Column, kind: TypeDef, source: str, time_zone: str, known: TypeDef | None) -> str | None:
    """An expression over the column `source` (quoted) that gives the new values; None where no cast is exact.

    `known`: the type upstream, where it is known.
    """
    if known is not None and keeps_values(known, kind) and kind.base not in PADDED:
        return f"{source}::{type_of(kind)}"
    if loses_characters(known or guessed(old), kind):
        return None
    rule = _RULES.get(old.shape, _of_scalar)
    return rule(source, old, kind, time_zone)


_GUESSED = {
    Shape.BYTES: TypeDef("longblob"), Shape.BIT: TypeDef("bit", (64,)), Shape.DATE: TypeDef("date"),
    Shape.DATETIME: TypeDef("datetime", (6,)), Shape.TIMESTAMP: TypeDef("timestamp", (6,)),
    Shape.TIME: TypeDef("time", (6,)), Shape.JSON: TypeDef("json"),
}  # fmt: skip


def guessed(column: Column) -> TypeDef:
    """A type whose values are spelled like the column's, where the one upstream is not known."""
    if column.members:
        return TypeDef("enum" if column.shape is Shape.ENUM else "set", members=column.members)
    base = base_type(column.type)
    by_type = {"real": TypeDef("float"), "double precision": TypeDef("double"), "numeric": TypeDef("decimal", (65, 30))}
    return _GUESSED.get(column.shape) or by_type.get(base) or TypeDef("bigint" if base in _WHOLE else "longtext")


def _of_scalar(source: str, old: Column, kind: TypeDef, _zone: str) -> str | None:
    """Integers, decimals, floats and texts."""
    base, goal = base_type(old.type), type_of(kind)
    if base in _TEXTS:
        return _of_text(source, kind, goal)
    if base in _NUMBERS:
        return _of_number(source, kind, goal)
    return f"{source}::{goal}" if base in _REALS and _is_plain_real(kind) else None


def _is_plain_real(kind: TypeDef) -> bool:
    """Whether it changes no value, as FLOAT(M,D) and UNSIGNED do."""
    return kind.base in REALS and not kind.numbers and not kind.unsigned


def _of_number(source: str, kind: TypeDef, goal: str) -> str | None:
    if kind.base in INTEGERS | {"decimal"}:
        return _within(f"{source}::numeric", kind, goal)
    if _is_plain_real(kind):
        return f"{source}::{goal}"
    if kind.base in _TEXT_TYPES:
        return f"{source}::text::{goal}"
    return None


def _as_text(source: str, kind: TypeDef, goal: str) -> str | None:
    """A text cut as upstream cuts it: a CHAR before the spaces at its end go. None where bytes are counted."""
    if kind.base == "char":
        return f"rtrim(({source})::{goal}, ' ')::{goal}"
    return None if bytes_held(kind) else f"({source})::{goal}"


def _of_text(source: str, kind: TypeDef, goal: str) -> str | None:
    if kind.base in _TEXT_TYPES:
        return _as_text(source, kind, goal)
    if kind.base in INTEGERS | {"decimal"}:
        return _within(f"{_number_in(source)}::numeric", kind, goal)
    if _is_plain_real(kind):
        return f"({_number_in(source)}::{goal} + 0::{goal})"  # TiDB stores no zero with a sign
    if kind.base in BYTES:
        return _padded(f"convert_to({source}, 'UTF8')", kind)
    return None


def _number_in(source: str) -> str:
    """A text, or one that no cast takes: the server has more numbers than upstream (`NaN`, `Infinity`, 0x10, 1_000).

    By bytes: a collation that folds case, of a column made by hand, knows no regular expressions.
    """
    return f"""(CASE WHEN {source} COLLATE "C" ~ '{_NUMBER}' THEN trim({source}) ELSE 'no number: ' || {source} END)"""


def _within(number: str, kind: TypeDef, goal: str) -> str:
    """A numeric, rounded half away from zero, or the nearest number that the type holds: both as upstream does."""
    low, high = number_range(kind)
    rounded = f"round({number}, {kind.number(1, 0) if kind.base == 'decimal' else 0})"
    # not LEAST and GREATEST, which pass over NULL
    return (
        f"CASE WHEN {rounded} > {high:f} THEN {high:f} WHEN {rounded} < {low:f} THEN {low:f} ELSE {rounded} END::{goal}"
    )


def _padded(source: str, kind: TypeDef) -> str:
    length = kind.number(0, 1)
    if kind.base != "binary":
        size = length if kind.base == "varbinary" else bytes_held(kind)
        return f"substring({source} FROM 1 FOR {size})" if size else source
    return f"substring({source} || decode(repeat('00', {length}), 'hex') FROM 1 FOR {length})"


def _of_bytes(source: str, _old: Column, kind: TypeDef, _zone: str) -> str | None:
    if kind.base in BYTES:
        return _padded(source, kind)
    return _as_text(f"convert_from({source}, 'UTF8')", kind, type_of(kind)) if kind.base in _TEXT_TYPES else None


def _of_bits(source: str, old: Column, kind: TypeDef, _zone: str) -> str | None:
    if kind.base == "bit":
        width = kind.number(0, 1)
        wider = width >= int((_WIDTH.search(old.type) or ["", "1"])[1])
        return f"right(lpad({source}::text, 64, '0'), {width})::bit({width})" if wider else None
    number = f"lpad({source}::text, 64, '0')::bit(64)::bigint"
    fits = kind.base in INTEGERS and not kind.unsigned and not old.type.endswith("(64)")
    return _within(f"{number}::numeric", kind, type_of(kind)) if fits else None


def _of_enum(source: str, old: Column, kind: TypeDef, _zone: str) -> str | None:
    if kind.base in _TEXT_TYPES:
        return _as_text(source, kind, type_of(kind))
    if kind.base == "enum" and set(old.members) <= set(kind.members):
        return f"{source}::{type_of(kind)}"
    if kind.base in INTEGERS:
        members = ", ".join(map(literal, old.members))
        return f"COALESCE(array_position(ARRAY[{members}]::text[], {source}), 0 * length({source}))::{type_of(kind)}"
    return None


def _of_set(source: str, old: Column, kind: TypeDef, _zone: str) -> str | None:
    """A set's text lists its members in their order, so that order must stay."""
    if kind.base == "set":
        kept = [member for member in kind.members if member in old.members]
        return source if kept == [member for member in old.members if member in kept] else None
    return _as_text(source, kind, type_of(kind)) if kind.base in _TEXT_TYPES else None


def _of_time(source: str, old: Column, kind: TypeDef, zone_name: str) -> str | None:
    """Dates and times; digits that are lost PostgreSQL rounds away from 2000-01-01, upstream up."""
    goal = type_of(kind)
    if _digits(old.type) > kind.number(0, 0) and kind.base != "date":
        return None
    if old.shape is Shape.TIMESTAMP:
        return {"timestamp": f"{source}::{goal}", "datetime": f"({source} AT TIME ZONE {zone(zone_name)})::{goal}"}.get(
            kind.base
        )
    if old.shape is Shape.DATETIME and kind.base == "timestamp":
        return f"({source} AT TIME ZONE {zone(zone_name)})::{goal}"
    if kind.base in _TEMPORAL[old.shape]:
        return f"{source}::{goal}"
    return None


def _digits(kind: str) -> int:
    """How many digits of a second a type of PostgreSQL's has."""
    found = _FRACTION.search(kind)
    return int(found[1]) if found else 0 if kind == "date" else _MICROSECOND_DIGITS


def _of_json(source: str, _old: Column, kind: TypeDef, _zone: str) -> str | None:
    return source if kind.base == "json" else None


_RULES: dict[Shape, Rule] = {
    Shape.BYTES: _of_bytes,
    Shape.BIT: _of_bits,
    Shape.ENUM: _of_enum,
    Shape.SET: _of_set,
    Shape.DATE: _of_time,
    Shape.DATETIME: _of_time,
    Shape.TIMESTAMP: _of_time,
    Shape.TIME: _of_time,
    Shape.JSON: _of_json,
}
