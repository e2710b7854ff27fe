"""CSV files of the storage sink as Canal-JSON has their rows.

A line: `op, table, schema, commit-ts[, is-update], columns...`. Texts are quoted, or escaped where there is no quote;
numbers and NULL stand bare, so a quoted text never is NULL. An UPDATE with its old row comes as `D` and `I`. Which
columns there are, and their types, say the schema file of the directory, and the header where there is one. Source:
TiCDC's `pkg/sink/codec/csv/csv_message.go`.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache

import msgspec

from consumer.codec.canal_json import ONLY_NEW
from consumer.storage.csv_values import BARE, Convert, conversion, from_base64, from_hex, type_of
from consumer.storage.schema_file import FileColumn, TableFile
from ordering.errors import InputError

_encode = msgspec.json.Encoder().encode
HEADER = "ticdc-meta$"
"""With this the header begins, where there is one."""
_LEAST = 4
"""Fields before the columns, at least."""
_META = ("operation", "table", "schema", "commit-ts", "is-update")
_KINDS = {"I": "INSERT", "U": "UPDATE", "D": "DELETE"}
_ESCAPED = "\\rn"
"""What stands behind a backslash where there are no quotes, besides what the delimiter consists of."""
_ESCAPE = re.compile(r"\\(.)")
_LINE_ENDS = {"r": "\r", "n": "\n"}
_LAST_TSO = 2**63 - 1
_TSO = re.compile(r"\d{1,20}", re.ASCII)
_SHOWN = 80
_NO_COMMIT_TS = (
    "set include-commit-ts = true in [sink.csv] of the changefeed, and begin with a new directory: without it nobody"
    " knows the order of rows"
)
_HALVES = "with output-old-value, TiCDC writes an UPDATE as a D and an I: the file is truncated, or was changed"
_HEADER_HINT = (
    "the columns of files without a header are known only if the schema file names them all: set output-field-header ="
    " true in [sink.csv] of the changefeed where tables have virtual columns, or columns are left out"
)

_SETTINGS_HINT = "[source.csv] has to say what [sink.csv] of the changefeed does: delimiter, quote, null"
_BINARY_HINT = (
    "set source.csv.binary-encoding-method to what binary-encoding-method in [sink.csv] of the changefeed is; base64 is"
    " TiCDC's default"
)
_HEX = re.compile(r"(?:[0-9a-f]{4})+")
"""Texts that are hexadecimal, as TiCDC writes it, and base64 too."""
IS_UPDATE = ("true", "false")
"""How `is-update` is spelled."""


class Bare(str):
    """A field without quotes, where texts have them: a number, or NULL spelled otherwise than configured."""

    __slots__ = ()


class CsvRules(msgspec.Struct, frozen=True):
    """How the changefeed's `[sink.csv]` says that files are written."""

    delimiter: str = ","
    quote: str = '"'
    null: str = "\\N"
    terminator: str = ""
    """"": CRLF or LF."""
    binary: str = ""
    """"": base64, and refused where hexadecimal digits would be read so."""


@dataclass(frozen=True, slots=True)
class CsvLine:
    """A line of a file, and the number of its first one: quoted texts may hold line ends. `end`: in characters."""

    number: int
    fields: list[str | None]
    end: int = 0
    next_number: int = 0


@lru_cache(16)
def _pattern(rules: CsvRules) -> re.Pattern[str]:
    """A field and what ends it: delimiter, line end, or nothing where the file ends within it."""
    delimiter = re.escape(rules.delimiter)
    end = re.escape(rules.terminator) if rules.terminator else r"\r?\n"
    if rules.quote:
        quote = re.escape(rules.quote)
        quoted = rf"{quote}(?P<quoted>[^{quote}]*(?:{quote}{quote}[^{quote}]*)*){quote}"
        bare = rf"(?P<bare>(?:(?!{delimiter}|{end}|{quote}).)*)"
        return re.compile(rf"(?:{quoted}|{bare})(?:(?P<more>{delimiter})|{end})", re.DOTALL)
    null = re.escape(rules.null)
    text = rf"(?:\\[{re.escape(_ESCAPED + rules.delimiter)}]|(?!{delimiter}|{end})[^\\\r\n])*"
    return re.compile(rf"(?P<bare>{null}|{text})(?:(?P<more>{delimiter})|{end})")


def _unescaped(text: str) -> str:
    return _ESCAPE.sub(lambda found: _LINE_ENDS.get(found[1], found[1]), text) if "\\" in text else text


def lines_of(text: str, rules: CsvRules, at: int = 0, number: int = 1) -> Iterator[CsvLine]:
    """The lines of a file from a place on; a header is one field. Raises InputError with the line for no such CSV."""
    match, quote, size = _pattern(rules).match, rules.quote, len(text)
    if at == 0 and text.startswith(HEADER):  # its names are never quoted or escaped
        end = re.compile(re.escape(rules.terminator) if rules.terminator else r"\r?\n").search(text)
        if end is None:
            raise _broken(text, 0, 1)
        yield CsvLine(1, [text[: end.start()]], end.end(), 2)
        at, number = end.end(), 2
    while at < size:
        fields: list[str | None] = []
        start, more = at, True
        while more:
            found = match(text, at)
            if found is None:
                raise _broken(text, at, number)
            bare = found["bare"]
            if bare is None:
                quoted = found["quoted"]
                fields.append(quoted.replace(quote + quote, quote) if quote in quoted else quoted)
            elif bare == rules.null:
                fields.append(None)
            else:
                fields.append(Bare(bare) if quote else _unescaped(bare))
            at, more = found.end(), found["more"] is not None
        following = number + text.count("\n", start, at)
        yield CsvLine(number, fields, at, following)
        number = following


def _broken(text: str, at: int, number: int) -> InputError:
    rest = text[at : at + _SHOWN]
    where = f"line {number}"
    if "\n" not in text[at:]:
        return InputError(f"the file ends within a line: {rest!r}", where=where, hint="half written, or truncated")
    return InputError(f"no CSV as configured: {rest!r}", where=where, hint=_SETTINGS_HINT)


class CsvTable:
    """Brings the lines of one table's version into the form that tasks read."""

    def __init__(self, table: TableFile, rules: CsvRules) -> None:
        self.table, self._rules = table, rules
        self._columns = list(table.columns or ())
        self._meta = _LEAST
        """Fields before the columns; more where the file says so."""
        self._is_told = False
        """Whether a header named the columns."""
        self._held: tuple[str, int, bytes] | None = None
        """Of the `D` of an UPDATE: its line, commitTs and image."""
        self._key = [column.name for column in self._columns if column.primary == "true"]
        self._line = ""
        self._is_base64 = rules.binary == "base64"
        """Whether that is said, or a value has shown it."""
        self._unsure = ""
        """The first line whose binary value may as well be hexadecimal."""
        self._made()

    def _made(self) -> None:
        kinds = {column.name: type_of(column) for column in self._columns}
        self._convert = [(_encode(c.name) + b":", self._conversion(c)) for c in self._columns]
        table = self.table
        told = {"database": table.database, "table": table.table, "pkNames": self._key or None, "isDdl": False}
        self._head = _encode({**told, "sql": "", "mysqlType": kinds})[:-1]

    def canal(self, line: CsvLine) -> bytes | None:
        """A line as Canal-JSON; None of a header. Raises InputError with the line."""
        fields = line.fields
        first = fields[0] or ""
        if line.number == 1 and first.startswith(HEADER):
            self._read_header(first)
            return None
        self._line = where = f"line {line.number}"
        kind = _KINDS.get(first)
        if kind is None:
            raise InputError(f"a line begins with {first[:_SHOWN]!r}, not I, U or D", where=where, hint=_SETTINGS_HINT)
        commit_ts = self._commit_ts(fields, where)
        meta = self._meta_fields(fields, where)
        if (fields[1], fields[2]) != (self.table.table, self.table.database):
            fact = f"a row of {fields[2]}.{fields[1]} lies in the directory of {self.table.database}.{self.table.table}"
            raise InputError(fact[:400], where=where)
        image = self._image(fields[meta:], where)
        if meta > len(_META) - 1 and fields[4] == "true":
            return self._updated(kind, commit_ts, image, where)
        self.check_ended()
        return self._event(kind, commit_ts, image, b"{}" if kind == "UPDATE" else b"")

    def _event(self, kind: str, commit_ts: int, image: bytes, old: bytes = b"") -> bytes:
        more = ONLY_NEW if old == b"{}" else b""
        return b'%b,"type":"%b","old":%b,"data":[%b],"_tidb":{"commitTs":%d%b}}' % (
            self._head, kind.encode(), b"[%b]" % old if old else b"null", image, commit_ts, more
        )  # fmt: skip

    def _updated(self, kind: str, commit_ts: int, image: bytes, where: str) -> bytes | None:
        """Take one of the two lines of an UPDATE: None of its `D`, the event of its `I`."""
        if kind == "DELETE":
            self.check_ended()
            self._held = (where, commit_ts, image)
            return None
        held, self._held = self._held, None
        if kind != "INSERT" or held is None or held[1] != commit_ts:
            raise InputError("a line of an UPDATE lacks the one before it, its D", where=where, hint=_HALVES)
        return self._event("UPDATE", commit_ts, image, held[2])

    @property
    def is_half(self) -> bool:
        """Whether the line that was taken last is the first of two."""
        return self._held is not None

    @property
    def columns(self) -> Sequence[FileColumn]:
        """Of each line, in their order."""
        return self._columns

    @property
    def head(self) -> bytes:
        """What each event begins with, up to its type."""
        return self._head

    @property
    def meta(self) -> int:
        """How many fields come before the columns, where a header has said so; else 0."""
        return self._meta if self._is_told else 0

    def check_ended(self) -> None:
        """Raise InputError where an UPDATE lacks its second line."""
        if self._held is not None:
            raise InputError("a line of an UPDATE lacks the one behind it, its I", where=self._held[0], hint=_HALVES)

    def check_binary(self) -> None:
        """Raise InputError where what was read has not told that its binary values are base64."""
        if self._unsure and not self._is_base64:
            table = f"{self.table.database}.{self.table.table}"
            fact = f"whether the binary values of {table} are base64 or hexadecimal can't be told"
            raise InputError(fact[:400], where=self._unsure, hint=_BINARY_HINT)

    def _conversion(self, column: FileColumn) -> Convert | None:
        base = column.type.partition(" ")[0]
        if "BLOB" in base or "BINARY" in base:
            return from_hex if self._rules.binary == "hex" else self._from_base64
        return conversion(base, column.members or ())

    def _from_base64(self, text: str) -> str:
        if not self._is_base64 and text:
            if _HEX.fullmatch(text) is None:
                self._is_base64 = True
            else:
                self._unsure = self._unsure or self._line
        return from_base64(text)

    def _read_header(self, text: str) -> None:
        delimiter = self._rules.delimiter
        names = text.split(delimiter)
        meta = [name.removeprefix(HEADER) for name in names[: len(_META)] if name.startswith(HEADER)]
        if meta != [name for name in _META if name in meta] or meta[:3] != list(_META[:3]):
            raise InputError(f"the header begins with {meta}", where="line 1", hint="not written by TiCDC")
        if "commit-ts" not in meta:
            raise InputError("the files lack commit-ts", where="line 1", hint=_NO_COMMIT_TS)
        self._columns = _named_columns(delimiter.join(names[len(meta) :]), self._columns, delimiter)
        self._meta, self._is_told = len(meta), True
        self._made()

    def _commit_ts(self, fields: Sequence[str | None], where: str) -> int:
        text = fields[3] if len(fields) > 3 else None  # noqa: PLR2004 its place
        if text is None or not _TSO.fullmatch(text) or not 0 < int(text) <= _LAST_TSO:
            raise InputError(f"a line lacks commit-ts: its fourth field is {(text or '')[:_SHOWN]!r}", where=where,
                             hint=_NO_COMMIT_TS)  # fmt: skip
        return int(text)

    def _meta_fields(self, fields: Sequence[str | None], where: str) -> int:
        """How many fields come before the columns."""
        more = len(fields) - len(self._columns)
        if self._is_told and more == self._meta:
            return more
        if not self._is_told and self._is_plain(more, fields):
            return more
        name = f"{self.table.database}.{self.table.table}"
        fact = f"a line holds {len(fields)} fields, for {len(self._columns)} columns of {name}"
        raise InputError(fact[:400], where=where, hint=_HEADER_HINT)

    def _is_plain(self, more: int, fields: Sequence[str | None]) -> bool:
        """Whether a line of a file without a header shows itself how many fields come before the columns.

        Without quotes, `is-update` and one column too few look like a first column that holds its text.
        """
        has_update = len(fields) > _LEAST and fields[_LEAST] in IS_UPDATE
        if more == _LEAST:
            return bool(self._rules.quote) or not has_update
        return more == _LEAST + 1 and has_update

    def _image(self, values: Sequence[str | None], where: str) -> bytes:
        parts = []
        for (name, convert), column, value in zip(self._convert, self._columns, values, strict=True):
            if isinstance(value, Bare):
                value = self._bare(value, column, where)  # noqa: PLW2901 as itself
            try:
                parts.append(name + (b"null" if value is None else _encode(convert(value) if convert else value)))
            except ValueError as error:
                fact = f"column {column.name} of {self.table.database}.{self.table.table} can't be read: {error}"
                raise InputError(fact[:400], where=where) from None
        return b"{%b}" % b",".join(parts)

    def _bare(self, value: Bare, column: FileColumn, where: str) -> str:
        """A value that stands without quotes, as all but texts do."""
        if column.type.partition(" ")[0] not in BARE:
            fact = f"column {column.name} of {self.table.database}.{self.table.table} holds a text without quotes"
            raise InputError(fact[:400], where=where, hint=_SETTINGS_HINT)
        return str(value)


def _named_columns(text: str, columns: Sequence[FileColumn], delimiter: str) -> list[FileColumn]:
    """The columns that a header names, in the order of the schema file: a name may hold the delimiter.

    Raises InputError where it names another, or where it can be read in two ways.
    """
    found: dict[int, list[FileColumn] | None] = {0: []}
    for column in columns:
        for at, before in sorted(found.items(), reverse=True):
            end = at + len(column.name)
            if text.startswith(column.name, at) and (end == len(text) or text.startswith(delimiter, end)):
                goes_on = end + len(delimiter)
                found[goes_on] = None if before is None or goes_on in found else [*before, column]
    whole = found.get(len(text) + len(delimiter), [])
    if whole is None:
        raise InputError("the header can be read in two ways: a column's name holds the delimiter", where="line 1")
    if not whole:
        left = text[max(found) :].split(delimiter, maxsplit=1)[0]
        fact = f"the header names column {left[:_SHOWN]!r}, which the schema file lacks there"
        raise InputError(fact, where="line 1")
    return whole
