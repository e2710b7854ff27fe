"""Numbers as other formats write them, as Canal-JSON has them; none is read as a float, so none loses a digit.

Members of ENUM and SET stand there as names or numbers.
"""

import re
from collections.abc import Mapping
from decimal import Decimal
from math import isfinite
from struct import Struct

_NUMBER = re.compile(r"-?\d{1,400}(?:\.\d{1,400})?(?:[eE][+-]?\d{1,3})?", re.ASCII)
"""As Go prints a FLOAT or DOUBLE: a longer exponent would be none, and its digits fill the memory."""
_WHOLE = re.compile(r"-?\d{1,20}", re.ASCII)
_SHOWN = 40
_SINGLE = Struct("<f")
_FLOAT_DIGITS = range(1, 10)
"""Nine always tell a FLOAT from the next; the smallest ones need but one."""


def plain_number(text: str) -> str:
    """A number without an exponent. Raises ValueError."""
    if not _NUMBER.fullmatch(text):
        message = f"a number was expected, not {text[:_SHOWN]!r}"
        raise ValueError(message)
    return format(Decimal(text), "f") if "e" in text or "E" in text else text


def whole_number(text: str) -> str:
    """A whole number of up to 64 bits. Raises ValueError."""
    if not _WHOLE.fullmatch(text):
        message = f"a whole number was expected, not {text[:_SHOWN]!r}"
        raise ValueError(message)
    return text


def plain_double(number: float) -> str:
    """The shortest digits that name a DOUBLE, without an exponent. Raises ValueError."""
    return _digits(number, repr(number))


def plain_float(number: float) -> str:
    """The shortest digits that name a FLOAT, without an exponent. Raises ValueError."""
    for digits in _FLOAT_DIGITS:
        text = f"{number:.{digits}g}"
        if not isfinite(number) or _same_float(text, number):
            break
    return _digits(number, text)


def _same_float(text: str, number: float) -> bool:
    try:
        return bool(_SINGLE.unpack(_SINGLE.pack(float(text)))[0] == number)
    except OverflowError:
        return False


def _digits(number: float, text: str) -> str:
    if not isfinite(number):
        message = f"a number was expected, not {number!r}"
        raise ValueError(message)
    return format(Decimal(text), "f").removesuffix(".0")


def members_of(allowed: str, *, is_enum: bool) -> dict[str, int]:
    """The place of each member in a schema's `allowed`, as far as its spelling there tells exactly one.

    Commas of an ENUM's members are escaped there.
    """
    names = allowed.split(",")
    if is_enum:
        names, open_ = [], ""
        for part in allowed.split(","):
            joined = open_ + part
            open_ = joined[:-1] + "," if joined.endswith("\\") else ""
            names += [] if open_ else [joined]
        if open_ or "\\" in allowed.replace("\\,", ""):
            return {}  # a backslash at a member's end looks like an escaped comma
    return {name: number for number, name in enumerate(names) if names.count(name) == 1 and "'" not in name}


def enum_text(text: str, members: Mapping[str, int]) -> str:
    """The member's name, which a target refuses if it lacks it; its number where the name is empty or looks like one.

    "" may also be what TiDB stores for an invalid one: 0. Raises ValueError where nobody knows which it is.
    """
    if (text == "" or text.isdigit()) and text in members:
        return str(members[text] + 1)
    return "0" if text == "" else _name(text)


def set_text(text: str, members: Mapping[str, int]) -> str:
    """As `enum_text`, of a SET."""
    names = text.split(",") if text else []
    if not any(name.isdigit() for name in names):
        return text or "0"
    if all(name in members for name in names):
        return str(sum(1 << members[name] for name in names))
    return ",".join(map(_name, names))


def _name(text: str) -> str:
    if text.isdigit():
        message = f"{text[:_SHOWN]!r} is a member's name that looks like a number, and its schema does not tell which"
        raise ValueError(message)
    return text
