"""Rows of the Open Protocol as Canal-JSON has them: each value comes with its type and flags.

Whole numbers, BIT, ENUM and SET come as numbers; TEXT and BLOB as base64; VARBINARY and BINARY as Go quotes texts
(`strconv.Quote`); the rest as in Canal-JSON. Numbers are never read as floats here, so none loses a digit.
"""

import binascii
import re
from base64 import b64decode
from collections.abc import Callable, Mapping

import msgspec

from consumer.formats.numbers import plain_number, whole_number

_BINARY, _HANDLE, _PRIMARY, _UNSIGNED = 1, 2, 8, 128
_encode = msgspec.json.Encoder().encode
_decode_text = msgspec.json.Decoder(str).decode
_ESCAPE = re.compile(r'\\(?:x([0-9a-f]{2})|u([0-9a-f]{4})|U([0-9a-f]{8})|([abfnrtv\\"]))|[^\\]+|(\\)', re.DOTALL)
_SHORT = {"a": 7, "b": 8, "f": 12, "n": 10, "r": 13, "t": 9, "v": 11, "\\": 92, '"': 34}
_NULL = b"null"

Convert = Callable[[bytes], bytes]


class OpenColumn(msgspec.Struct, gc=False):
    """A value with its type (MySQL's number) and flags."""

    type: int = msgspec.field(name="t")
    value: msgspec.Raw = msgspec.field(name="v")
    flags: int = msgspec.field(default=0, name="f")

    @property
    def is_key(self) -> bool:
        """Whether it is a column of the primary or the handle key."""
        return bool(self.flags & (_HANDLE | _PRIMARY))


def _whole(raw: bytes) -> bytes:
    return b'"%b"' % whole_number(raw.decode("ascii", "replace")).encode()


def _float(raw: bytes) -> bytes:
    return b'"%b"' % plain_number(raw.decode("ascii", "replace")).encode()


def _text(raw: bytes) -> bytes:
    if not raw.startswith(b'"'):
        message = f"a text was expected, not {raw[:40]!r}"
        raise ValueError(message)
    return raw


def _bytes_of(raw: bytes) -> bytes:
    try:
        return b64decode(_decode_text(raw), validate=True)
    except binascii.Error:
        message = "a binary value is no base64"
        raise ValueError(message) from None


def _base64_text(raw: bytes) -> bytes:
    return _encode(_bytes_of(raw).decode())


def _base64_binary(raw: bytes) -> bytes:
    return _encode(_bytes_of(raw).decode("latin-1"))


def unquoted(text: str) -> bytes:
    """The bytes that Go's `strconv.Quote` wrote so, without its quotes. Raises ValueError."""
    found = bytearray()
    for part in _ESCAPE.finditer(text):
        byte, short, long, letter, stray = part.groups()
        if stray:
            message = "a binary value is not quoted as Go does"
            raise ValueError(message)
        if byte:
            found.append(int(byte, 16))
        elif letter:
            found.append(_SHORT[letter])
        else:
            found += (chr(int(short or long, 16)) if short or long else part[0]).encode()
    return bytes(found)


def _quoted(raw: bytes) -> bytes:
    text = _decode_text(raw)
    return _encode(unquoted(text).decode("latin-1"))


_SIGNED: dict[int, tuple[str, Convert]] = {
    1: ("tinyint", _whole), 2: ("smallint", _whole), 3: ("int", _whole), 8: ("bigint", _whole),
    9: ("mediumint", _whole), 4: ("float", _float), 5: ("double", _float), 246: ("decimal", _text),
}  # fmt: skip
"""Types that the flag of unsigned ones is about, by MySQL's number."""
_PLAIN: dict[int, tuple[str, Convert]] = {
    13: ("year", _whole), 16: ("bit", _whole), 247: ("enum", _whole), 248: ("set", _whole), 6: ("null", _text),
    7: ("timestamp", _text), 10: ("date", _text), 14: ("date", _text), 11: ("time", _text), 12: ("datetime", _text),
    245: ("json", _text), 225: ("vector", _text),
}  # fmt: skip
_STRINGS: dict[int, tuple[tuple[str, Convert], tuple[str, Convert]]] = {
    15: (("varchar", _text), ("varbinary", _quoted)), 253: (("varchar", _text), ("varbinary", _quoted)),
    254: (("char", _text), ("binary", _quoted)),
    249: (("tinytext", _base64_text), ("tinyblob", _base64_binary)),
    250: (("mediumtext", _base64_text), ("mediumblob", _base64_binary)),
    251: (("longtext", _base64_text), ("longblob", _base64_binary)),
    252: (("text", _base64_text), ("blob", _base64_binary)),
}  # fmt: skip
"""As texts, and as bytes."""


def _kind(number: int, flags: int) -> tuple[str, Convert]:
    """A type's name as Canal-JSON has it, and how its values are brought into that form. Raises ValueError."""
    if number in _SIGNED:
        name, convert = _SIGNED[number]
        return name + (" unsigned" if flags & _UNSIGNED else ""), convert
    if number in _STRINGS:
        return _STRINGS[number][bool(flags & _BINARY)]
    if number not in _PLAIN:
        message = f"a column has the unknown type {number}"
        raise ValueError(message)
    return _PLAIN[number]


class OpenTable:
    """How rows with these columns are written in the form that tasks read."""

    def __init__(self, database: str, table: str, columns: tuple[tuple[str, int, int], ...]) -> None:
        kinds = [(name, *_kind(number, flags)) for name, number, flags in columns]
        self._columns = [(b"%b:" % _encode(name), convert) for name, _, convert in kinds]
        key = sorted(name for name, _, flags in columns if flags & _PRIMARY)
        told = {"database": database, "table": table, "pkNames": key or None, "isDdl": False, "sql": ""}
        self.head = _encode({**told, "mysqlType": {name: kind for name, kind, _ in kinds}})[:-1]

    def image(self, row: Mapping[str, OpenColumn]) -> bytes:
        """A row's image. Raises ValueError, and what a decoder raises."""
        parts = []
        for (name, convert), column in zip(self._columns, row.values(), strict=True):
            raw = bytes(column.value)
            parts.append(name + (raw if raw == _NULL else convert(raw)))
        return b"{%b}" % b",".join(parts)


class OpenTables:
    """The tables that were met, by the columns that their rows named."""

    _MOST = 10_000

    def __init__(self) -> None:
        self._known: dict[tuple[str, str, tuple[tuple[str, int, int], ...]], OpenTable] = {}

    def of(self, database: str, table: str, row: Mapping[str, OpenColumn]) -> OpenTable:
        """The table of a row. Raises ValueError for a type that nobody knows."""
        columns = tuple([(name, column.type, column.flags) for name, column in row.items()])
        found = self._known.get((database, table, columns))
        if found is None:
            if len(self._known) >= self._MOST:
                self._known.clear()
            found = self._known[database, table, columns] = OpenTable(database, table, columns)
        return found
