"""Lines of a file in the form that tasks read, one behind the other: a Python object is made for one that is asked for.

The compiled core takes them where they lie, as it takes messages of Kafka (`CoreSource`).
"""

import ctypes
from array import array
from collections.abc import Iterator, Sequence
from itertools import accumulate
from typing import Any, NamedTuple, overload

from consumer.codec import canal_json
from consumer.codec.canal_json import Plain
from consumer.native import Batch
from ordering.errors import InputError
from ordering.events import Position


class Lines(NamedTuple):
    """Events one behind the other, and of each its length, and the number of the line in its file."""

    joined: bytes
    lens: "array[int]"
    numbers: Sequence[int]


def lines_joined(events: Sequence[bytes], numbers: Sequence[int]) -> Lines:
    """Lines of events that are apart."""
    return Lines(b"".join(events), array("I", map(len, events)), numbers)


class LineRun(Sequence[Plain]):
    """Lines of one file, whose number is the offset of all of them."""

    def __init__(self, lines: Lines, at: int, where: str, within: range | None = None) -> None:
        self._lines, self.at, self._where = lines, at, where
        self._starts = array("Q", accumulate(lines.lens, initial=0))
        self._within = range(len(lines.lens)) if within is None else within

    def __len__(self) -> int:
        return len(self._within)

    @overload
    def __getitem__(self, at: int) -> Plain: ...

    @overload
    def __getitem__(self, at: slice) -> "LineRun": ...

    def __getitem__(self, at: int | slice) -> "Plain | LineRun":
        found = self._within[at]
        return self._line(found) if isinstance(found, int) else LineRun(self._lines, self.at, self._where, found)

    def __iter__(self) -> Iterator[Plain]:
        return map(self._line, self._within)

    def _line(self, number: int) -> Plain:
        return Plain(self.at, self._lines.joined[self._starts[number] : self._starts[number + 1]])

    def fill(self, batch: Batch, begin: int) -> None:
        """See `CoreSource.fill`. Offsets are told only where the file does not count as new."""
        first = self._within[begin]
        place = ctypes.cast(ctypes.c_char_p(self._lines.joined), ctypes.c_void_p).value or 0
        lens = self._lines.lens
        batch.bytes, batch.lens = place + self._starts[first], lens.buffer_info()[0] + first * lens.itemsize
        if not batch.count_from <= self.at < batch.count_to:
            self._offsets = array("q", [self.at]) * len(self)
            batch.offsets = self._offsets.buffer_info()[0]

    def located(self, error: InputError, limit: int) -> InputError:
        """The error with file and line, where a line by itself can't be read; else with the file."""
        for number, line in zip(self._within, self, strict=True):
            position = Position("", 0, line.at)
            try:
                message = canal_json.decode(canal_json.plain(line.content, position, limit), position)
                if not message.is_ddl:
                    canal_json.check_row(message, position)
                    canal_json.decode_image((message.data or [])[0])
            except (InputError, *canal_json.UNREADABLE):
                where = f"{self._where}, line {self._lines.numbers[number]}"
                return InputError(error.fact, where=where, hint=error.hint)
        return InputError(error.fact, where=self._where, hint=error.hint)


def located(error: InputError, run: Sequence[Any], limit: int) -> InputError:
    """The error of a run, with file and line where it is one of a file."""
    return run.located(error, limit) if isinstance(run, LineRun) else error
