"""Netted rows of a bucket in the compiled core: by table, in slices, as lines that a target loads."""

import ctypes
from array import array
from collections.abc import Iterator, Sequence

from consumer.native import CRASHED, NO_MEMORY, USUAL, Core, crashed, seed, there
from sinks.rows.field_rules import FieldKind, FieldRule, ZonePart

_NUMBERS = "I"


class _ZonePart(ctypes.Structure):
    _fields_ = tuple((name, ctypes.c_int64) for name in ZonePart._fields)


class _Rule(ctypes.Structure):
    _fields_ = (
        ("kind", ctypes.c_uint32),
        ("flags", ctypes.c_uint32),
        ("size", ctypes.c_int64),
        ("digits", ctypes.c_int64),
        ("members", ctypes.c_char_p),
        ("ends", ctypes.c_void_p),
        ("zone", ctypes.c_void_p),
        ("zone_parts", ctypes.c_uint64),
    )


class LineRules:
    """The rules of some columns, as the core reads them."""

    def __init__(self, rules: Sequence[FieldRule]) -> None:
        self._kept: list[object] = []
        self.all = (_Rule * len(rules))(*map(self._rule, rules))
        self.fields = sum(rule.kind is not FieldKind.SKIPPED for rule in rules)
        """Of a line."""

    def _rule(self, rule: FieldRule) -> _Rule:
        members = [member.encode() for member in rule.members]
        ends = array(_NUMBERS, [sum(map(len, members[: i + 1])) for i in range(len(members))])
        zone = (_ZonePart * len(rule.zone))(*(_ZonePart(*part) for part in rule.zone))
        self._kept += [ends, zone]
        return _Rule(
            rule.kind, rule.flags, rule.size, rule.digits, b"".join(members),
            ends.buffer_info()[0] if members else None, ctypes.addressof(zone) if rule.zone else None, len(zone),
        )  # fmt: skip


class NetRows:
    """The last event of each row of some blocks. Not for several threads. Raises CoreCrash and MemoryError."""

    def __init__(self, core: Core) -> None:
        self._library = core.library
        self._pointer = there(self._library.core_new(seed()))
        self._rows = self.tables = 0

    def __del__(self) -> None:
        if pointer := getattr(self, "_pointer", None):
            self._library.core_free(pointer)

    def take(self, blocks: Sequence[bytes]) -> bool:
        """Net blocks of rows in MessagePack, and group them by table; once. False: they are not usual."""
        for block in blocks:
            if not self._done(self._library.core_add_block(self._pointer, block, len(block))):
                return False
        tables = ctypes.c_uint32()
        if not self._done(self._library.core_group(self._pointer, ctypes.byref(tables))):
            return False
        self.tables, self._rows = tables.value, int(self._library.core_rows(self._pointer))
        return True

    def slices(self, table: int, which: int, rows: int, size: int) -> "Iterator[array[int]]":
        """A table's rows in slices of at most so many rows; one ends with the row whose image makes it this large."""
        at = ctypes.c_uint32()
        room = array(_NUMBERS, bytes(4 * min(rows, self._rows)))
        while count := self._library.core_select(
            self._pointer, table, which, ctypes.byref(at), len(room), size, room.buffer_info()[0]
        ):
            yield room[:count]

    def missed(self, some: "array[int]") -> int:
        """How many of these rows were not there before (`ordering.drift.missed`)."""
        return int(self._library.core_missed(self._pointer, some.buffer_info()[0], len(some)))

    def halves(self, some: "array[int]") -> bytes:
        """These rows in MessagePack."""
        size = ctypes.c_uint64()
        place = self._library.core_halves(self._pointer, some.buffer_info()[0], len(some), ctypes.byref(size))
        return ctypes.string_at(there(place), size.value)

    def lines(self, some: "array[int]", rules: LineRules, *, images: bool) -> bytes | None:
        """The lines of these rows' images, or of their keys; None: one of them is not usual."""
        place, size = ctypes.c_void_p(), ctypes.c_uint64()
        found = self._library.core_lines(
            self._pointer, some.buffer_info()[0], len(some), rules.all, len(rules.all), images,
            ctypes.byref(place), ctypes.byref(size),
        )  # fmt: skip
        return ctypes.string_at(place, size.value) if self._done(found) else None

    def _done(self, status: int) -> bool:
        if status == CRASHED:
            self._pointer = 0  # what it points to may be broken
            raise crashed(0)
        if status == NO_MEMORY:
            raise MemoryError
        return status == USUAL
