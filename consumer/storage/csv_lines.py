"""The events of a CSV file: the compiled core takes the lines that are as nearly all are, `CsvTable` any other one."""

from array import array
from collections.abc import Iterator

import msgspec

from consumer.native import MOST_APART, MOST_COLUMNS, Core
from consumer.native.csv_lines import CsvColumn, CsvEvents, CsvKind, CsvLayout, CsvLines
from consumer.storage.csv_file import HEADER, IS_UPDATE, CsvRules, CsvTable, lines_of
from consumer.storage.csv_values import BARE, REAL, WHOLE
from consumer.storage.line_run import FileLines, lines_joined
from consumer.storage.schema_file import FileColumn
from ordering.errors import InputError

LINES_AT_ONCE = 5_000
"""Of a run."""
_encode = msgspec.json.Encoder().encode


def layout_of(table: CsvTable, rules: CsvRules) -> CsvLayout | None:
    """How the core reads a table's lines; None where it does not."""
    others = rules.delimiter + rules.terminator
    if len(rules.quote) != 1 or not rules.quote.isascii() or rules.quote in others:
        return None
    if rules.null.isdigit() or rules.null in IS_UPDATE or not 0 < len(table.columns) <= MOST_COLUMNS:
        return None  # what looks like a commitTs, or like is-update, would be NULL
    columns = [found for column in table.columns if (found := _column(column)) is not None]
    if len(columns) < len(table.columns):
        return None
    texts = table.table.table, table.table.database, rules.delimiter, rules.null, rules.terminator, rules.quote
    name, database, delimiter, null, terminator, quote = (text.encode() for text in texts)
    return CsvLayout(name, database, table.head, delimiter, null, terminator, quote, table.meta, columns)


def _column(column: FileColumn) -> CsvColumn | None:
    base, name = column.type.partition(" ")[0], _encode(column.name) + b":"
    if base in ("ENUM", "SET"):
        members = tuple(member.encode() for member in column.members or ())
        return CsvColumn(CsvKind.ENUM if base == "ENUM" else CsvKind.SET, name, members)
    if base in REAL or base in WHOLE:
        return CsvColumn(CsvKind.REAL if base in REAL else CsvKind.WHOLE, name)
    return None if "BLOB" in base or "BINARY" in base or base in BARE else CsvColumn(CsvKind.TEXT, name)


class CsvFile:
    """One file of a table, read once."""

    def __init__(self, content: bytes, table: CsvTable, rules: CsvRules, core: Core | None) -> None:
        """Raise InputError with the line where a text is no UTF-8."""
        try:
            self._text = content.decode()
        except UnicodeDecodeError as error:
            number = content.count(b"\n", 0, error.start) + 1
            raise InputError(f"a text is no UTF-8: {error.reason}", where=f"line {number}") from None
        self._content, self._table, self._rules, self._core = content, table, rules, core
        self._is_ascii = len(content) == len(self._text)
        self._char = self._byte = 0
        self._number = 1

    def runs(self) -> Iterator[FileLines]:
        """The events of all lines. Raises InputError with the line, CoreCrash and MemoryError."""
        if self._text.startswith(HEADER):
            yield from self._in_python(1)
        lines, apart = self._lines(), 1
        while self._char < len(self._text):
            if lines is None:
                yield from self._in_python(len(self._text))
                break
            taken = lines.take(self._content, self._byte)
            if taken.lens:
                yield FileLines(taken.joined, taken.lens, array("I", [self._number + n for n in taken.numbers]))
            self._passed(taken)
            if not taken.is_usual:
                apart = 1 if len(taken.lens) >= apart else min(2 * apart, MOST_APART)
                yield from self._in_python(apart)
        self._table.check_ended()
        self._table.check_binary()

    def _lines(self) -> CsvLines | None:
        layout = layout_of(self._table, self._rules)
        return CsvLines(self._core, layout, LINES_AT_ONCE) if self._core is not None and layout is not None else None

    def _passed(self, taken: CsvEvents) -> None:
        passed = self._content[self._byte : taken.at]
        self._char += len(passed) if self._is_ascii else len(passed.decode())
        self._byte = taken.at
        self._number += taken.lines

    def _in_python(self, most: int) -> Iterator[FileLines]:
        """Take so many lines, and those that belong to the last of them."""
        numbers: list[int] = []
        found: list[bytes] = []
        begun = self._char
        for count, line in enumerate(lines_of(self._text, self._rules, begun, self._number), 1):
            canal = self._table.canal(line)
            self._char, self._number = line.end, line.next_number
            if canal is not None:
                numbers.append(line.number)
                found.append(canal)
            if len(found) >= LINES_AT_ONCE:
                self._table.check_binary()
                yield lines_joined(found, numbers)
                numbers, found = [], []
            if count >= most and not self._table.is_half:
                break
        self._byte += self._char - begun if self._is_ascii else len(self._text[begun : self._char].encode())
        self._table.check_binary()
        if found:
            yield lines_joined(found, numbers)
