"""Which members of an ENUM or SET a text names, as TiDB reads it (pingcap/tidb, `pkg/types/enum.go`, `set.go`)."""

import re
from collections.abc import Sequence

from sinks.ddl.collations import folded
from sinks.ddl.model import TypeDef

_NUMBER = re.compile(r"0[xX][0-9a-fA-F]+|0[bB][01]+|0[oO]?[0-7]+|0|[1-9][0-9]*")
"""What Go reads as a whole number of any base: 010 is 8."""


def enum_number(kind: TypeDef, text: str, collation: str) -> int:
    """The number of the member of that name, or of that number. Raises ValueError for none, or if it is not known."""
    found = _place(kind.members, text, collation)
    number = _whole(text) if found is None else found + 1
    if number is None or not 0 < number <= len(kind.members):
        raise _unnamed(text, collation)
    return number


def set_number(kind: TypeDef, text: str, collation: str) -> int:
    """The bits of the members of these names, or those of a number. Raises ValueError likewise."""
    names = {name for name in text.split(",") if name}
    places = {name: _place(kind.members, name, collation) for name in names}
    if None not in places.values():
        return sum({1 << place for place in places.values() if place is not None})
    number = _whole(text)
    if number is None or number >= 1 << len(kind.members):
        raise _unnamed(next(name for name, place in places.items() if place is None), collation)
    return number


def _place(members: Sequence[str], name: str, collation: str) -> int | None:
    if name in members:
        return members.index(name)
    wanted = folded(name, collation)
    spelled = [folded(member, collation) for member in members]
    if wanted in spelled and wanted is not None:
        return spelled.index(wanted)
    if None in {wanted, *spelled}:
        message = f"whether {collation} takes {name[:50]!r} for a member is not known"
        raise ValueError(message)
    return None


def _whole(text: str) -> int | None:
    if _NUMBER.fullmatch(text) is None:
        return None
    is_octal = len(text) > 1 and text[0] == "0" and text[1].isdigit()
    return int(text, 8) if is_octal else int(text, 0)


def _unnamed(name: str, collation: str) -> ValueError:
    return ValueError(f"{name[:50]!r} is not in list of the members{f' under {collation}' if collation else ''}")
