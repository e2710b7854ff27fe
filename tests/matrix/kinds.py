"""Types of keys: values that are close to each other, as messages spell them, and what a target must hold for one."""

import random
import struct
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from typing import Any

MOST = 3000
"""Values that a pool holds at most."""
MEMBERS = ("1", "0", "3", "2", "a", "b c", "é")
Texts = Callable[[random.Random], list[str]]
Meaning = Callable[[Any], object]


def number(value: Any) -> object:
    """A number by its value; bits and bytes as the number that they spell."""
    if isinstance(value, bytes):
        return Decimal(int.from_bytes(value))
    return Decimal(str(value))


def bits(value: Any) -> object:
    """A BIT: a number in messages, a text of digits in PostgreSQL, bytes in the MySQL family."""
    return number(int(value, 2) if isinstance(value, str) and len(value) in {8, 64} else value)


def double(value: Any) -> object:
    """A float; 0 and -0 are told apart."""
    return repr(float(value))


def single(value: Any) -> object:
    """A 32-bit float."""
    return repr(struct.unpack("f", struct.pack("f", float(value)))[0])


def text(value: Any) -> object:
    """A text, or what spells one (a UUID)."""
    return value.decode() if isinstance(value, bytes) else str(value)


def data(value: Any) -> object:
    """Bytes: in messages one code point each."""
    return value.encode("latin-1") if isinstance(value, str) else bytes(value)


def padded(value: Any) -> object:
    """A BINARY(8)."""
    return bytes(data(value)).ljust(8, b"\0")  # type: ignore[call-overload]


def moment(value: Any) -> object:
    """A date with or without a time, without zeros at its end; an instant in UTC."""
    if isinstance(value, datetime):
        value = value if value.tzinfo is None else value.astimezone(UTC).replace(tzinfo=None)
    found = str(value)
    return found.rstrip("0").rstrip(".") if "." in found else found


def span(value: Any) -> object:
    """A TIME in microseconds."""
    if isinstance(value, timedelta):
        return value // timedelta(microseconds=1)
    value = str(value)
    sign, bare = (-1, value[1:]) if value.startswith("-") else (1, value)
    hours, minutes, seconds = bare.split(":")
    return sign * int((Decimal(hours) * 3600 + int(minutes) * 60 + Decimal(seconds)) * 1_000_000)


def _close(numbers: Sequence[int]) -> Texts:
    return lambda _: [str(n) for n in numbers]


def _decimals(whole: str, scale: int) -> Texts:
    return lambda _: [f"{sign}{whole}.{i:0{scale}}" for i in range(1, MOST // 2) for sign in ("", "-")]


def _doubles(_: random.Random) -> list[str]:
    return [*(format(Decimal(repr(1e15 + i / 8)), "f") for i in range(MOST)), "0.1", "0.30000000000000004", "0.3"]


def _singles(_: random.Random) -> list[str]:
    return [*(str(16777000 - i) for i in range(1200)), *(repr(single_of(i)) for i in range(1, 1200))]


def single_of(i: int) -> float:
    """A 32-bit float near 0.1."""
    found: float = struct.unpack("f", struct.pack("f", 0.1 + i / 10_000))[0]
    return float(f"{found:.9g}")


_TAILS = (
    "", "A", "a", "é", "e", "e\u0301", "ß", "ss", "1", "01", "1.0", "1e0", "\u0131",
    "i", "I", "中", "😀", "\t", "\\", "%s", "'", "\\N",
)  # fmt: skip
_PREFIXES = ("", "x" * 30, "0", "0x", "-", "é" * 5)


def _letters(random_: random.Random) -> list[str]:
    found = [prefix + tail for prefix in _PREFIXES for tail in _TAILS]
    found += [f"{prefix}{i}{tail}" for i in range(25) for prefix in _PREFIXES for tail in _TAILS[1:]]
    random_.shuffle(found)
    return list(dict.fromkeys(found))[:MOST]


def _blanks(random_: random.Random) -> list[str]:
    """Texts that differ in what stands at their end too."""
    bare = _letters(random_)[: MOST // 3]
    found = [text + tail for text in bare for tail in ("", " ", "  ")]
    random_.shuffle(found)
    return found


def _nulls(random_: random.Random) -> list[str]:
    return [text + tail for text in _letters(random_)[: MOST // 3] for tail in ("", "\0", "\0\0")]


def _ended(random_: random.Random) -> list[str]:
    """Distinct but for blanks; about half of them have some."""
    return [text + " " * random_.choice((0, 1, 2)) for text in _letters(random_)]


def _folded(random_: random.Random) -> list[str]:
    """Distinct whatever case and accents count for."""
    cases: tuple[Callable[[str], str], ...] = (str.lower, str.upper, str.title)
    return [random_.choice(cases)(f"k{i:x}é") + " " * random_.choice((0, 1)) for i in range(MOST)]


def _binary(_: random.Random) -> list[str]:
    tails = ("", "\0", " ", "\0\0", "A", "a", "\xe9", "\xc3\xa9", "\\", "\t", "\n", "'", "\xff")
    return [f"{chr(i % 256)}{'k' * (i // 256)}{tail}" for i in range(MOST // len(tails)) for tail in tails]


def _fixed(_: random.Random) -> list[str]:
    return [f"{chr(i % 256)}{chr(i // 256)}k" + ("\0" * 5 if i % 2 else " \0\0\0\0") for i in range(MOST)]


def _moments(digits: int) -> Texts:
    def found(_: random.Random) -> list[str]:
        if not digits:
            return [str(datetime(2026, 1, 1) + timedelta(seconds=i)) for i in range(MOST)]  # noqa: DTZ001
        return [f"2026-01-01 00:00:0{i % 10}.{i // 10:0{digits}}" for i in range(MOST)]

    return found


def _zeros(random_: random.Random) -> list[str]:
    zero = ["0000-00-00 00:00:00.000000", "2026-00-00 00:00:00.000000", "2026-01-00 00:00:00.000001"]
    return zero + _moments(6)(random_)[: MOST - 3]


def _dates(_: random.Random) -> list[str]:
    return [str(date(1000, 1, 1) + timedelta(days=i * 1000)) for i in range(MOST)]


def _spans(_: random.Random) -> list[str]:
    return [f"{sign}{i % 830:02}:00:00.{i:06}" for i in range(1, MOST // 2) for sign in ("", "-")]


def _uuids(random_: random.Random) -> list[str]:
    return [f"{random_.getrandbits(8):08x}-0000-4000-8000-{i:012x}" for i in range(MOST)]


@dataclass(frozen=True, slots=True)
class Kind:
    """An upstream type. `sent` is its name in messages; `meaning` makes what was sent and what was read comparable."""

    declared: str
    sent: str
    texts: Texts
    meaning: Meaning
    beyond: frozenset[str] = frozenset()
    """Targets that can't hold some of the values, and say so."""


POSTGRES = frozenset({"postgres"})
KINDS: dict[str, Kind] = {
    "tinyint": Kind("TINYINT", "tinyint", _close(range(-128, 128)), number),
    "int": Kind("INT", "int", _close(range(2**31 - MOST, 2**31)), number),
    "bigint": Kind(
        "BIGINT", "bigint", _close([*range(2**53 - 700, 2**53 + 700), *range(-(2**63), -(2**63) + 700)]), number
    ),
    "unsigned": Kind("BIGINT UNSIGNED", "bigint unsigned", _close(range(2**64 - MOST, 2**64)), number),
    "year": Kind("YEAR", "year", _close([0, *range(1901, 2156)]), number),
    "bit8": Kind("BIT(8)", "bit", _close(range(256)), bits),
    "bit64": Kind("BIT(64)", "bit", _close(range(2**64 - MOST, 2**64)), bits),
    "decimal": Kind("DECIMAL(20,0)", "decimal", _close(range(1234567890123456700, 1234567890123456700 + MOST)), number),
    "fraction": Kind("DECIMAL(40,20)", "decimal", _decimals("12345678901234567", 20), number),
    "double": Kind("DOUBLE", "double", _doubles, double),
    "float": Kind("FLOAT", "float", _singles, single),
    "char": Kind("CHAR(36) COLLATE utf8mb4_bin", "char", _letters, text),
    "uuid": Kind("CHAR(36) COLLATE utf8mb4_bin", "char", _uuids, text),
    "varchar": Kind("VARCHAR(60) COLLATE utf8mb4_bin", "varchar", _ended, text),
    "nopad": Kind("VARCHAR(60) COLLATE utf8mb4_0900_bin", "varchar", _blanks, text),
    "nul": Kind("VARCHAR(60) COLLATE utf8mb4_bin", "varchar", _nulls, text, POSTGRES),
    "folding": Kind("VARCHAR(60) COLLATE utf8mb4_general_ci", "varchar", _folded, text),
    "varbinary": Kind("VARBINARY(60)", "varbinary", _binary, data),
    "binary": Kind("BINARY(8)", "binary", _fixed, padded),
    "date": Kind("DATE", "date", _dates, moment),
    "datetime": Kind("DATETIME", "datetime", _moments(0), moment),
    "datetime6": Kind("DATETIME(6)", "datetime", _moments(6), moment),
    "zero": Kind("DATETIME(6)", "datetime", _zeros, moment, POSTGRES),
    "timestamp": Kind("TIMESTAMP(6)", "timestamp", _moments(6), moment),
    "time": Kind("TIME(6)", "time", _spans, span),
    "enum": Kind("ENUM({})".format(",".join(f"'{m}'" for m in MEMBERS)), "enum", _close(range(1, 8)), text),
    "set": Kind("SET({})".format(",".join(f"'{m}'" for m in MEMBERS)), "set", _close(range(128)), text),
}


def held(kind: str, sent: str, *, as_number: bool = False) -> object:
    """What a target must hold for a value of a message; `as_number`: for an ENUM or SET its number."""
    found = KINDS[kind]
    if as_number and kind in {"enum", "set"}:
        return sent
    if kind == "enum":
        return MEMBERS[int(sent) - 1]
    if kind == "set":
        return ",".join(m for i, m in enumerate(MEMBERS) if int(sent) >> i & 1)
    if kind.startswith("bit"):
        return number(sent)
    return found.meaning(sent)
