"""Values of CSV fields as Canal-JSON has them."""

import binascii
import re
from base64 import b64decode
from collections.abc import Callable, Sequence

from consumer.formats.numbers import plain_number, whole_number
from consumer.storage.schema_file import FileColumn

_SHOWN = 80
_HEX = re.compile(r"(?:[0-9a-f]{2})*")
"""As TiCDC writes it."""
WHOLE = {"TINYINT", "SMALLINT", "MEDIUMINT", "INT", "BIGINT", "YEAR", "BIT"}
REAL = {"FLOAT", "DOUBLE"}
BARE = WHOLE | REAL | {"INTEGER"}
"""Types whose values stand without quotes."""
Convert = Callable[[str], str]
_KIND_NAMES = {"INTEGER": "int", "VAR_STRING": "varchar"}


def type_of(column: FileColumn) -> str:
    """A column's type as Canal-JSON has it."""
    base, _, rest = column.type.partition(" ")
    unsigned = " unsigned" if rest == "UNSIGNED" and base not in ("YEAR", "BIT") else ""
    return _KIND_NAMES.get(base, base.lower()) + unsigned


def conversion(base: str, members: Sequence[str]) -> Convert | None:
    """What a column's fields become that are no binary values; None: they stay as they are."""
    if base == "ENUM":
        return _enum(members)
    if base == "SET":
        return _set(members)
    if base in REAL:
        return plain_number
    if base in WHOLE:
        return whole_number
    return None


def from_base64(text: str) -> str:
    """Bytes, each as the code point of its number. Raises ValueError."""
    try:
        return b64decode(text, validate=True).decode("latin-1")
    except binascii.Error:
        message = "a binary value is no base64 (source.csv.binary-encoding-method)"
        raise ValueError(message) from None


def from_hex(text: str) -> str:
    """Bytes, each as the code point of its number. Raises ValueError."""
    if not _HEX.fullmatch(text):
        message = "a binary value is not hexadecimal (source.csv.binary-encoding-method)"
        raise ValueError(message)
    return bytes.fromhex(text).decode("latin-1")


def _enum(members: Sequence[str]) -> Convert:
    numbers = {name: str(number) for number, name in reversed(list(enumerate(members, 1)))}

    def number_of(text: str) -> str:
        if text in numbers:
            return numbers[text]
        if text == "":  # what TiDB stores for an invalid member
            return "0"
        message = f"{text[:_SHOWN]!r} is no member of its ENUM"
        raise ValueError(message)

    return number_of


def _set(members: Sequence[str]) -> Convert:
    bits = {name: 1 << number for number, name in reversed(list(enumerate(members)))}

    def number_of(text: str) -> str:
        if text == "":
            return "0"
        found = 0
        for name in text.split(","):
            bit = bits.get(name, 0)
            if not bit or found & bit:
                what = "twice a member" if bit else "no member"
                message = f"{name[:_SHOWN]!r} is {what} of its SET"
                raise ValueError(message)
            found |= bit
        return str(found)

    return number_of
