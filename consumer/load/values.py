"""From a dump's values to the texts that messages hold: so what is loaded lands exactly as what the pipeline writes.

Messages hold binary strings as one code point a byte, BIT, ENUM and SET as numbers, floats without an exponent.
"""

from collections.abc import Iterable
from decimal import Decimal, InvalidOperation

import numpy as np

from consumer.load.column_tokens import Convert, Plain, numbers, strings
from sinks.ddl.model import ColumnDef
from sinks.rows.schema import Column, Shape

_SHAPES = {Shape.INTEGER: "int", Shape.REAL: "double", Shape.BYTES: "blob", Shape.BIT: "bit"}


def converter(defined: ColumnDef | None, column: Column) -> Convert:
    """How a column's values are told: by its definition upstream or, where none was dumped, by the target's column."""
    members = defined.type.members if defined is not None else column.members
    kind = defined.type.base if defined is not None else _SHAPES.get(column.shape, column.shape.value)
    if kind.endswith(("binary", "blob")):
        return lambda value: value.decode("latin-1")
    if kind == "enum":
        return lambda value: _member(members, _text(value))
    if kind == "set":
        return lambda value: _mask(members, _text(value))
    return _RULES.get(kind, _text)


def may_be_rounded(convert: Convert, tokens: Iterable[bytes], null: bytes) -> bool:
    """Whether a dump may tell fewer digits than upstream holds: TiDB shows six of a FLOAT with an exponent."""
    return convert is _float and any(b"e" in token.lower() for token in tokens if token != null)


def plain_of(convert: Convert) -> Plain | None:
    """What tells a column's texts at once where a converter would leave each value as it is."""
    return _PLAIN.get(convert)


def _text(value: bytes) -> str:
    return value.decode("utf-8")


def _whole(value: bytes) -> str:
    """A number; ZEROFILL puts zeros before it, which messages lack."""
    text = value.decode("ascii")
    if text[:1] not in {"0", "-"}:
        return text
    sign = "-" if text[0] == "-" else ""
    digits = text[len(sign) :].lstrip("0")
    return sign + (digits if digits[:1].isdigit() else "0" + digits)


def _real(value: bytes) -> str:
    text = value.decode("ascii")
    if "e" not in text and "E" not in text:
        return text
    try:
        return format(Decimal(text), "f")
    except InvalidOperation as error:
        message = f"{text!r} is no number"
        raise ValueError(message) from error


def _float(value: bytes) -> str:
    """A 32-bit float: of very small and large ones messages hold the shortest text, a SELECT six digits."""
    text = value.decode("ascii")
    if "e" not in text and "E" not in text:
        return text
    return str(np.format_float_positional(np.float32(text), trim="-"))


def _member(members: tuple[str, ...], name: str) -> str:
    if name in members:
        return str(members.index(name) + 1)
    if name:
        message = f"{name[:50]!r} is none of the {len(members)} members"
        raise ValueError(message)
    return "0"


def _mask(members: tuple[str, ...], names: str) -> str:
    return str(sum(1 << int(_member(members, name)) - 1 for name in names.split(","))) if names else "0"


_RULES: dict[str, Convert] = {
    "bit": lambda value: str(int.from_bytes(value)),
    "float": _float,
    "double": _real,
    "real": _real,
    **dict.fromkeys(("tinyint", "smallint", "mediumint", "int", "bigint", "decimal"), _whole),
}
_PLAIN: dict[Convert, Plain] = {_text: strings, _whole: numbers, _real: numbers, _float: numbers}
