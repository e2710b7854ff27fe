"""Reads rows out of INSERT statements, as Dumpling writes them, without holding more than a row's bytes.

Values are MySQL's literals: NULL, numbers, strings with backslash escapes and doubled quotes (or doubled quotes alone,
`--escape-backslash=false`), hexadecimal and bit strings, each maybe behind a character set (`_binary 'x'`).
"""

import re
from collections.abc import Callable, Iterator, Mapping
from functools import lru_cache

from consumer.load.column_tokens import Notation, Row, Value
from consumer.load.stream import CHUNK, Pieces, RowPattern
from ordering.errors import InputError

_BACKSLASHED = rb"'(?:[^'\\]++|\\.|'')*+'"
_DOUBLED = rb"'(?:[^']++|'')*+'"
_PASSED = re.compile(rb"(?:[\s;]++|/\*(?P<comment>(?:[^*]++|\*(?!/))*+)\*/|--[^\n]*+\n|SET\b[^;]*+;)", re.IGNORECASE)
_NAME = rb"`((?:[^`]++|``)*+)`"
_HEAD = re.compile(
    rb"(?:INSERT|REPLACE)\s++(?:IGNORE\s++)?(?:INTO\s++)?(?:" + _NAME + rb"\s*+\.\s*+)?" + _NAME + rb"\s*+"
    rb"(?:\(((?:[^`)]++|`(?:[^`]++|``)*+`)*+)\)\s*+)?VALUES\s*+(?=\()",
    re.IGNORECASE,
)
_COLUMN = re.compile(rb"`((?:[^`]++|``)*+)`|([^`,\s]++)")
_ZONE = re.compile(r"SET\s+TIME_ZONE\s*=\s*'([^']*)'", re.IGNORECASE)
_ESCAPE = re.compile(rb"\\(.)|''", re.DOTALL)
_MEANT = {b"0": b"\0", b"n": b"\n", b"r": b"\r", b"t": b"\t", b"b": b"\b", b"Z": b"\x1a"}
_ITSELF = {b"\\", b"'", b'"'}
_QUOTE, _BACKSLASH = ord("'"), b"\\"


@lru_cache(16)
def _row(count: int, escapes: bool) -> RowPattern:
    """A row of so many values and what ends it: each value as it is written, then a comma or a semicolon."""
    text = _BACKSLASHED if escapes else _DOUBLED
    value = (
        rb"(NULL|(?:_[0-9a-z]++\s*+)?(?:"
        + text
        + rb"|[xb]'[0-9a-f]*+'|0x[0-9a-f]++)|[-+]?[.0-9][-+.0-9e]*+|TRUE|FALSE)"
    )
    row = rb"\s*+\(\s*+" + rb"\s*+,\s*+".join([value] * count) + rb"\s*+\)\s*+([,;])"
    return RowPattern.of(row, re.DOTALL | re.IGNORECASE)


class InsertRows:
    """The rows of a file of INSERT statements.

    `columns`: their names, known once `rows` gave the first; those of the table where the statements name none.
    """

    def __init__(self, pieces: Pieces, table: str, columns: tuple[str, ...], *, escapes: bool = True) -> None:
        self._pieces, self._table, self._escapes = pieces, table, escapes
        self.columns = columns
        self.head: Row | None = None
        self.time_zone: str | None = None
        """The one that the file says its TIMESTAMP values are in."""
        self._first: tuple[str, ...] | None = None

    @property
    def notation(self) -> Notation:
        """How its values are written."""
        return Notation(b"'", self._escapes, b"NULL", self._value if self._escapes else self._doubled)

    def rows(self) -> Iterator[Row]:
        """All rows. Raises InputError where the file is not as expected, or ends too early."""
        while self._head():
            one, many = _row(len(self.columns), self._escapes)
            end = b","
            while end == b",":
                found, end = self._following(many) or self._next(one)
                yield from found

    def _following(self, pattern: "re.Pattern[bytes]") -> tuple[list[Row], bytes] | None:
        """Rows of the statement that follow as far as it is read, and what ends the last of them."""
        pieces = self._pieces
        before = pieces.at
        found = pieces.rows(pattern)
        if any(row[-2] == b";" for row in found[:-1]):  # what stands behind it is not of this statement
            pieces.at = before
            return None
        return ([row[:-2] for row in found], found[-1][-2]) if found else None

    def _next(self, pattern: "re.Pattern[bytes]") -> tuple[list[Row], bytes]:
        """As `_following`, of one row, for which more may have to be read."""
        match = self._pieces.match(pattern)
        if match is None:
            raise self._pieces.wrong(f"no row of {len(self.columns)} values can be read")
        *values, end = match.groups()
        return [tuple(values)], end

    def _head(self) -> bool:
        """Step to the first row of the next statement; False at the end."""
        pieces = self._pieces
        while not pieces.exhausted:
            match = pieces.match(_HEAD, CHUNK) if pieces.data[pieces.at : pieces.at + 1] in b"IiRr" else None
            if match is not None:
                self._take(match)
                return True
            match = pieces.match(_PASSED, CHUNK)
            if match is None:
                raise pieces.wrong("no INSERT statement")
            if self._first is not None and match[0].strip(b" \t\r\n;"):
                raise pieces.wrong("what stands at a file's beginning comes again: two files are in one")
            zone = _ZONE.search((match["comment"] or match[0]).decode("utf-8", "replace"))
            self.time_zone = zone[1] if zone else self.time_zone
        return False

    def _take(self, match: "re.Match[bytes]") -> None:
        table = _name(match[2])
        if table != self._table:
            raise self._pieces.wrong(f"it inserts into {table!r}, its name says {self._table!r}")
        named = match[3]
        columns = self.columns
        if named is not None:
            columns = tuple(_name(quoted) if quoted else plain.decode() for quoted, plain in _COLUMN.findall(named))
        if not columns:
            raise InputError(
                "the dump neither defines this table nor names the columns of its rows",
                where=f"file={self._pieces.name}",
                hint="dump with definitions (without --no-schemas), or with --complete-insert",
            )
        if columns != (self._first or columns):
            raise self._pieces.wrong("its statements name different columns")
        self._first = self.columns = columns

    def _value(self, token: bytes) -> Value:
        if token[0] == _QUOTE:
            text = token[1:-1]
            return _ESCAPE.sub(_meant, text) if _BACKSLASH in text or b"'" in text else text
        return _other(token, self._value)

    def _doubled(self, token: bytes) -> Value:
        if token[0] == _QUOTE:
            return token[1:-1].replace(b"''", b"'")
        return _other(token, self._doubled)


def _other(token: bytes, text: Callable[[bytes], Value]) -> Value:
    """What is no plain string."""
    head = token[:2].lower()
    if head == b"nu":
        return None
    if head == b"x'":
        return bytes.fromhex(token[2:-1].decode())
    if head == b"0x":
        return bytes.fromhex(token[2:].decode().zfill(len(token) - 2 + len(token) % 2))
    if head == b"b'":
        digits = token[2:-1]
        return int(digits or b"0", 2).to_bytes(-(-len(digits) // 8))
    if head[:1] == b"_":
        return text(token[_literal_at(token) :])
    return {b"tr": b"1", b"fa": b"0"}.get(head, token)


def _literal_at(token: bytes) -> int:
    """Where the literal begins behind a character set."""
    match = re.match(rb"_[0-9a-z]+?\s*(?=[xb]?'|0x)", token, re.IGNORECASE)
    return match.end() if match else len(token)


def _meant(match: "re.Match[bytes]") -> bytes:
    escaped = match[1]
    if escaped is None or escaped in _ITSELF:
        return escaped or b"'"
    return meant_by(escaped, _MEANT)


def meant_by(escaped: bytes, known: Mapping[bytes, bytes]) -> bytes:
    """What a character behind a backslash means. Raises ValueError where Dumpling writes none before it."""
    if escaped not in known:
        message = f"there is a backslash before {escaped!r}: was it dumped with --escape-backslash=false?"
        raise ValueError(message)
    return known[escaped]


def _name(quoted: bytes) -> str:
    return quoted.replace(b"``", b"`").decode("utf-8")
