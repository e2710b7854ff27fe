"""Lines of the storage sink's CSV files in the compiled core: as Canal-JSON, one behind the other.

`consumer.storage.csv_file` tells what is right: the core takes lines as nearly all are, and stops at any other one.
"""

import ctypes
from array import array
from collections.abc import Sequence
from enum import IntEnum
from typing import NamedTuple

from consumer.native import CRASHED, NO_MEMORY, USUAL, Core, crashed, there

_NUMBERS = "I"


class CsvKind(IntEnum):
    """How a column's fields are read."""

    TEXT = 0
    WHOLE = 1
    REAL = 2
    ENUM = 3
    SET = 4


class CsvColumn(NamedTuple):
    """A column: `name` as JSON, with its colon; `members` of an ENUM or SET."""

    kind: CsvKind
    name: bytes
    members: Sequence[bytes] = ()


class CsvLayout(NamedTuple):
    """How a table's lines are written. `head`: an event up to its type; `meta`: fields before the columns.

    Without `meta` there are four or five, as each line shows; without `terminator` lines end with CRLF or LF.
    """

    table: bytes
    database: bytes
    head: bytes
    delimiter: bytes
    null: bytes
    terminator: bytes
    quote: bytes
    meta: int
    columns: Sequence[CsvColumn]


class CsvEvents(NamedTuple):
    """What a call took: events one behind the other, and of each its length and the number of its line.

    Numbers count from 0 at the line with which the call began. `at`: where in the file it ended, `lines` further on.
    """

    joined: bytes
    lens: "array[int]"
    numbers: "array[int]"
    at: int
    lines: int
    is_usual: bool
    """Whether nothing was met that Python has to take."""


class _Span(ctypes.Structure):
    _fields_ = (("bytes", ctypes.c_char_p), ("len", ctypes.c_size_t))


class _Column(ctypes.Structure):
    _fields_ = (
        ("kind", ctypes.c_uint32),
        ("members", ctypes.c_uint32),
        ("name", _Span),
        ("texts", ctypes.c_char_p),
        ("ends", ctypes.c_void_p),
    )


class _Table(ctypes.Structure):
    _fields_ = (
        ("table", _Span),
        ("database", _Span),
        ("head", _Span),
        ("delimiter", _Span),
        ("null", _Span),
        ("terminator", _Span),
        ("columns", ctypes.POINTER(_Column)),
        ("count", ctypes.c_uint32),
        ("meta", ctypes.c_uint32),
        ("quote", ctypes.c_uint8),
    )


class _Taken(ctypes.Structure):
    _fields_ = (
        ("lens", ctypes.c_void_p),
        ("numbers", ctypes.c_void_p),
        ("most", ctypes.c_uint32),
        ("count", ctypes.c_uint32),
        ("at", ctypes.c_uint64),
        ("lines", ctypes.c_uint32),
        ("bytes", ctypes.c_void_p),
        ("size", ctypes.c_uint64),
    )


class CsvLines:
    """Reads files of one table. Not for several threads."""

    def __init__(self, core: Core, layout: CsvLayout, most: int) -> None:
        """Take at most so many events in a call. Raises MemoryError."""
        self._library, self._most = core.library, most
        self._kept: list[object] = [layout]
        columns = (_Column * len(layout.columns))(*map(self._column, layout.columns))
        texts = layout.table, layout.database, layout.head, layout.delimiter, layout.null, layout.terminator
        self._table = _Table(*map(_span, texts), columns, len(columns), layout.meta, layout.quote[0])
        self._pointer = there(self._library.core_csv_new(len(columns)))

    def __del__(self) -> None:
        if pointer := getattr(self, "_pointer", None):
            self._library.core_csv_free(pointer)

    def _column(self, column: CsvColumn) -> _Column:
        ends = array(_NUMBERS)
        for member in column.members:
            ends.append((ends[-1] if ends else 0) + len(member))
        self._kept.append(ends)
        place = ends.buffer_info()[0] if ends else None
        return _Column(column.kind, len(ends), _span(column.name), b"".join(column.members), place)

    def take(self, file: bytes, at: int) -> CsvEvents:
        """Take lines of a file from a place on, up to the first that is not usual. Raises CoreCrash, MemoryError."""
        lens, numbers = (array(_NUMBERS, bytes(4 * self._most)) for _ in range(2))
        taken = _Taken(lens.buffer_info()[0], numbers.buffer_info()[0], self._most, at=at)
        status = self._library.core_csv(
            self._pointer, ctypes.byref(self._table), file, len(file), ctypes.byref(taken)
        )  # fmt: skip
        if status == CRASHED:
            self._pointer = 0  # what it points to may be broken
            raise crashed(0)
        if status == NO_MEMORY:
            raise MemoryError
        joined = ctypes.string_at(taken.bytes, taken.size) if taken.size else b""
        count = taken.count
        return CsvEvents(joined, lens[:count], numbers[:count], taken.at, taken.lines, status == USUAL)


def _span(text: bytes) -> _Span:
    return _Span(text, len(text))
