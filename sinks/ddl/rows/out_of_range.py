"""What TiDB makes of a converted value that its new type does not hold: the nearest one, or the value cut.

It does so in sessions without strict mode, others refuse such a statement; a message does not name the mode. Rules by
recordings of TiDB (`conversions-loose`).
"""

import struct
from collections.abc import Callable
from decimal import Decimal

from sinks.ddl.model import TypeDef

_BITS = {"tinyint": 8, "smallint": 16, "mediumint": 24, "int": 32, "bigint": 64}
_CHARACTERS = {"char", "varchar"}
_BYTES = {"binary", "varbinary"}
_TINY, _USUAL = 255, 65_535
_MOST_BYTES = 4
"""Of a character."""
_FIRST_YEAR, _LAST_YEAR = 1901, 2155
_MOST_INTEGER = (1 << 63) - 1
_DECIMAL_DIGITS = 10


def fitting(kind: TypeDef) -> Callable[[str], str] | None:
    """Of a converted value, spelled as messages spell it, what the type holds; None where every value fits."""
    if kind.base in _BITS:
        return _within(*integer_range(kind))
    if kind.base == "decimal":
        most = _most(kind.number(0, _DECIMAL_DIGITS), kind.number(1, 0))
        return _within(Decimal((0, (0,), -kind.number(1, 0))) if kind.unsigned else -most, most)
    if kind.base in {"float", "double"}:
        return _real(kind)
    if kind.base == "bit":
        return _within(Decimal(0), Decimal((1 << kind.number(0, 1)) - 1))
    if kind.base in _CHARACTERS:
        return _cut(kind.number(0, 1))
    return _fitting_bytes(kind)


def _fitting_bytes(kind: TypeDef) -> Callable[[str], str] | None:
    size = kind.number(0, 1) if kind.base in _BYTES else bytes_held(kind)
    if size is None:
        return None
    return _cut_text(size) if kind.base.endswith("text") else _cut(size)


def bytes_held(kind: TypeDef) -> int | None:
    """How many bytes a TEXT or BLOB holds; None for larger kinds, which are never full here, and for other types.

    With a length upstream makes it the smallest kind that holds so many characters, or bytes.
    """
    if kind.base in {"tinytext", "tinyblob"}:
        return _TINY
    if kind.base not in {"text", "blob"}:
        return None
    wanted = kind.number(0, 0) * (_MOST_BYTES if kind.base == "text" else 1)
    return next((size for size in (_TINY, _USUAL) if wanted <= size), None) if kind.numbers else _USUAL


def integer_range(kind: TypeDef) -> tuple[Decimal, Decimal]:
    """The least and the largest value of an integer type."""
    bits = _BITS[kind.base]
    least, most = (0, (1 << bits) - 1) if kind.unsigned else (-(1 << bits - 1), (1 << bits - 1) - 1)
    return Decimal(least), Decimal(most)


def number_range(kind: TypeDef) -> tuple[Decimal, Decimal]:
    """The least and the largest value of an integer type or a DECIMAL."""
    if kind.base in _BITS:
        return integer_range(kind)
    most = _most(kind.number(0, _DECIMAL_DIGITS), kind.number(1, 0))
    return (Decimal(0) if kind.unsigned else -most), most


def fitting_year(number: int) -> int:
    """A year of four digits, or 0."""
    if number <= 0 or number > _MOST_INTEGER:
        return 0
    return min(max(number, _FIRST_YEAR), _LAST_YEAR)


def shortest(number: float) -> str:
    """The shortest text that reads back as the same 32-bit float, the nearest to it of these."""
    number = single(number)
    texts = (f"{number:.{digits}g}" for digits in range(1, 10))
    text = next(text for text in texts if single(float(text)) == number)
    return plain(Decimal(text))


def single(number: float) -> float:
    """The nearest 32-bit float."""
    found: float = struct.unpack("f", struct.pack("f", number))[0]
    return found


def plain(number: Decimal) -> str:
    """Without an exponent; a zero without a sign."""
    return format(number or abs(number), "f")


def _most(digits: int, scale: int) -> Decimal:
    return Decimal((0, (9,) * digits, -scale))


def _within(least: Decimal, most: Decimal) -> Callable[[str], str]:
    def fitted(text: str) -> str:
        number = Decimal(text)
        return text if least <= number <= most else plain(least if number < least else most)

    return fitted


def _real(kind: TypeDef) -> Callable[[str], str] | None:
    """A FLOAT's and DOUBLE's size is bounded by (M,D)."""
    if not kind.numbers and not kind.unsigned:
        return None
    most = _most(*kind.numbers[:2]) if len(kind.numbers) > 1 else Decimal("Infinity")
    within = _within(Decimal(0) if kind.unsigned else -most, most)
    return (lambda text: shortest(float(within(text)))) if kind.base == "float" else within


def _cut(longest: int) -> Callable[[str], str]:
    return lambda text: text[:longest]


def _cut_text(size: int) -> Callable[[str], str]:
    """Whole characters only."""
    return lambda text: text.encode()[:size].decode(errors="ignore")
