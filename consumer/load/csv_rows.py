"""Reads rows out of separated values (CSV), as Dumpling writes them.

Strings stand in delimiters, numbers and NULL do not; what would end a string is escaped by a backslash, or, with
`--escape-backslash=false`, doubled. The first line names the columns (`--no-header`: it does not). Dumpling ends every
line, also the last: one that lacks its end was cut off, maybe within a number that would look whole.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass

from consumer.load.column_tokens import Notation, Row, Value
from consumer.load.sql_rows import meant_by
from consumer.load.stream import CHUNK, Pieces, RowPattern
from ordering.errors import ConfigError

_MEANT = {b"0": b"\0", b"n": b"\n", b"r": b"\r"}
_ESCAPE = re.compile(rb"\\(.)", re.DOTALL)
_ENDS = rb"\r?\n"
_NUMBER = re.compile(r"[-+]?[0-9.]+(?:[eE][-+]?[0-9]+)?")


@dataclass(frozen=True, slots=True)
class CsvForm:
    """How values are separated: Dumpling's options of the same names, and its defaults. Raises ConfigError."""

    separator: str = ","
    delimiter: str = '"'
    null: str = r"\N"
    header: bool = True
    escapes: bool = True

    def __post_init__(self) -> None:
        if not self.separator or len(self.delimiter) > 1 or "\\" in self.separator + self.delimiter:
            raise ConfigError("the separator of CSV must not be empty, its delimiter is one character or none")
        if not self.delimiter and not (self.escapes and self.null.startswith("\\")):
            hint = r"dump with a delimiter, or with backslashes and \N for NULL"
            raise ConfigError(f"without a delimiter the text {self.null!r} and NULL are the same", hint=hint)
        if _NUMBER.fullmatch(self.null):
            hint = "dump with another --csv-null-value"
            raise ConfigError(f"the number {self.null} and NULL are the same", hint=hint)

    def field(self) -> bytes:
        """The expression of one value: in delimiters, or bare."""
        separator, quote = re.escape(self.separator.encode()), re.escape(self.delimiter.encode())
        escaped = rb"\\." if self.escapes else rb"\\"
        bare = rb"(?:(?!" + separator + rb")[^\r\n\\" + quote + rb"]|" + escaped + rb")*+"
        if len(self.separator) == 1:
            bare = rb"(?:[^\r\n\\" + separator + quote + rb"]++|" + escaped + rb")*+"
        if not self.delimiter:
            return bare
        inner = rb"[^\\" + quote + rb"]++|\\.|" if self.escapes else rb"[^" + quote + rb"]++|"
        return rb"(?:" + quote + rb"(?:" + inner + quote + quote + rb")*+" + quote + rb"|" + bare + rb")"


class SeparatedRows:
    """The rows of a file. `columns`: as `InsertRows` has them."""

    def __init__(self, pieces: Pieces, columns: tuple[str, ...], form: CsvForm) -> None:
        self._pieces, self._form = pieces, form
        self.columns = columns
        self.time_zone: str | None = None
        self.head: Row | None = None
        """The line that names the columns."""
        self._null = form.null.encode()
        special = {form.delimiter[:1].encode(), form.separator[:1].encode(), b"\\"} - {b""}
        self._meant = {**_MEANT, **{char: char for char in special}}
        self._quote = form.delimiter.encode()

    @property
    def notation(self) -> Notation:
        """How its values are written."""
        return Notation(self._quote, self._form.escapes, self._null, self._value, delimited=bool(self._quote))

    def rows(self) -> Iterator[Row]:
        """All rows. Raises InputError where the file is not as expected, or ends too early."""
        pieces, field = self._pieces, rb"(" + self._form.field() + rb")"
        if pieces.exhausted:
            return
        if self._form.header:
            self.columns = tuple(self._header(field))
        if not self.columns:
            raise pieces.wrong("it does not name its columns, and no definition of its table was dumped")
        row = re.escape(self._form.separator.encode()).join([field] * len(self.columns)) + _ENDS
        one, many = RowPattern.of(row)
        while not pieces.exhausted:
            found = pieces.rows(many)
            for values in found:
                yield values[:-1]
            if not found:
                match = pieces.match(one)
                if match is None:
                    raise pieces.wrong(f"no row of {len(self.columns)} values and a line's end can be read")
                yield match.groups()

    def _header(self, field: bytes) -> Iterator[str]:
        ends = rb"(" + _ENDS + rb"|" + re.escape(self._form.separator.encode()) + rb")"
        pattern = re.compile(field + ends, re.DOTALL)
        while True:
            match = self._pieces.match(pattern, CHUNK)
            if match is None:
                raise self._pieces.wrong("its first line does not name columns")
            self.head = (*(self.head or ()), match[1])
            yield (self._value(match[1]) or b"").decode("utf-8", "replace")
            if match[2].endswith(b"\n"):
                return

    def _value(self, token: bytes) -> Value:
        quote = self._quote
        if not quote or token[:1] != quote:
            return None if token == self._null else self._plain(token)
        quoted = token[1:-1]
        if not self._form.escapes:
            return quoted.replace(quote * 2, quote)
        if quote * 2 in quoted.replace(b"\\" + quote, b""):
            raise ValueError("a delimiter is doubled: was it dumped with --escape-backslash=false?")
        return self._plain(quoted)

    def _plain(self, text: bytes) -> bytes:
        if not (self._form.escapes and b"\\" in text):
            return text
        return _ESCAPE.sub(lambda match: meant_by(match[1], self._meant), text)
