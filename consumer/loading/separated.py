"""Reads rows out of separated values (CSV), as Dumpling writes them.

Strings stand in delimiters, numbers and NULL do not; what would end a string is escaped by a backslash, or, with
`--escape-backslash=false`, doubled. The first line names the columns (`--no-header`: it does not).
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass

from consumer.loading.inserts import Row, Value
from consumer.loading.pieces import CHUNK, Pieces
from ordering.errors import ConfigError

_MEANT = {b"0": b"\0", b"n": b"\n", b"r": b"\r"}
_ESCAPE = re.compile(rb"\\(.)", re.DOTALL)
_ENDS = rb"(\r?\n)"


@dataclass(frozen=True, slots=True)
class Form:
    """How values are separated: Dumpling's options of the same names, and its defaults. Raises ConfigError."""

    separator: str = ","
    delimiter: str = '"'
    null: str = r"\N"
    header: bool = True
    escapes: bool = True

    def __post_init__(self) -> None:
        if not self.separator or len(self.delimiter) > 1 or "\\" in self.separator + self.delimiter:
            raise ConfigError("the separator of CSV must not be empty, its delimiter is one character or none")

    def field(self) -> bytes:
        """The expression of one value: in delimiters (group 1), or bare (group 2)."""
        separator, quote = re.escape(self.separator.encode()), re.escape(self.delimiter.encode())
        escaped = rb"\\." if self.escapes else rb"\\"
        bare = rb"((?:(?!" + separator + rb")[^\r\n\\" + quote + rb"]|" + escaped + rb")*+)"
        if len(self.separator) == 1:
            bare = rb"((?:[^\r\n\\" + separator + quote + rb"]++|" + escaped + rb")*+)"
        if not self.delimiter:
            return rb"(?:(?!)()|" + bare + rb")"
        inner = rb"[^\\" + quote + rb"]++|\\.|" if self.escapes else rb"[^" + quote + rb"]++|"
        return quote + rb"((?:" + inner + quote + quote + rb")*+)" + quote + rb"|" + bare


class SeparatedRows:
    """The rows of a file. `columns`: as `InsertRows` has them."""

    def __init__(self, pieces: Pieces, columns: tuple[str, ...], form: Form) -> None:
        """`pieces` has to end with a newline."""
        self._pieces, self._form = pieces, form
        self.columns = columns
        self.time_zone: str | None = None
        self._null = form.null.encode()
        self._quote = form.delimiter.encode()

    def rows(self) -> Iterator[Row]:
        """All rows. Raises InputError where the file is not as expected, or ends too early."""
        pieces, field = self._pieces, self._form.field()
        if pieces.exhausted:
            return
        if self._form.header:
            self.columns = tuple(self._header(field))
        if not self.columns:
            raise pieces.wrong("it does not name its columns, and no definition of its table was dumped")
        parts = re.escape(self._form.separator.encode()).join([rb"(?:" + field + rb")"] * len(self.columns))
        pattern = re.compile(parts + _ENDS, re.DOTALL)
        while not pieces.exhausted:
            match = pieces.match(pattern)
            if match is None:
                raise pieces.wrong(f"no row of {len(self.columns)} values can be read")
            found = match.groups()
            yield [self._value(found[i], found[i + 1]) for i in range(0, len(found) - 1, 2)]

    def _header(self, field: bytes) -> Iterator[str]:
        ends = rb"(\r?\n|" + re.escape(self._form.separator.encode()) + rb")"
        pattern = re.compile(rb"(?:" + field + rb")" + ends, re.DOTALL)
        while True:
            match = self._pieces.match(pattern, CHUNK)
            if match is None:
                raise self._pieces.wrong("its first line does not name columns")
            yield (self._value(match[1], match[2]) or b"").decode("utf-8", "replace")
            if match[3].endswith(b"\n"):
                return

    def _value(self, quoted: bytes | None, bare: bytes | None) -> Value:
        if quoted is None:
            if bare == self._null:
                return None
            return self._plain(bare or b"")
        if self._quote in quoted and not self._form.escapes:
            quoted = quoted.replace(self._quote * 2, self._quote)
        return self._plain(quoted)

    def _plain(self, text: bytes) -> bytes:
        return _ESCAPE.sub(_meant, text) if self._form.escapes and b"\\" in text else text


def _meant(match: "re.Match[bytes]") -> bytes:
    return _MEANT.get(match[1], match[1])
