"""Events that were brought into Canal-JSON, one behind the other: a Python object is made for one that is asked for.

The compiled core takes them where they lie, as it takes messages of Kafka (`CoreSource`).
"""

import ctypes
from array import array
from collections.abc import Iterator, Sequence
from itertools import accumulate
from typing import Self, overload

from consumer.codec.canal_json import Plain
from consumer.native import Batch


class JoinedRun(Sequence[Plain]):
    """Events at rising offsets, or at one. `joined`: their bytes; `lens`: the length of each."""

    def __init__(self, joined: bytes, lens: "array[int]", offsets: "array[int] | int") -> None:
        self._joined, self._lens, self._offsets = joined, lens, offsets
        self._starts = array("Q", accumulate(lens, initial=0))
        self._within = range(len(lens))

    def __len__(self) -> int:
        return len(self._within)

    @overload
    def __getitem__(self, at: int) -> Plain: ...

    @overload
    def __getitem__(self, at: slice) -> Self: ...

    def __getitem__(self, at: int | slice) -> Plain | Self:
        found = self._within[at]
        if isinstance(found, int):
            return self._event(found)
        part = type(self).__new__(type(self))
        part.__dict__.update(self.__dict__, _within=found)
        return part

    def __iter__(self) -> Iterator[Plain]:
        return map(self._event, self._within)

    def _event(self, number: int) -> Plain:
        offset = self._offsets if isinstance(self._offsets, int) else self._offsets[number]
        return Plain(offset, self._joined[self._starts[number] : self._starts[number + 1]])

    def fill(self, batch: Batch, begin: int) -> None:
        """See `CoreSource.fill`. Offsets are told only where not all events count as new."""
        first = self._within[begin]
        place = ctypes.cast(ctypes.c_char_p(self._joined), ctypes.c_void_p).value or 0
        batch.bytes = place + self._starts[first]
        batch.lens = self._lens.buffer_info()[0] + first * self._lens.itemsize
        if not (batch.count_from <= self[begin].at and self[-1].at < batch.count_to):
            if isinstance(self._offsets, int):
                self._offsets = array("q", [self._offsets]) * len(self._lens)
            batch.offsets = self._offsets.buffer_info()[0] + first * self._offsets.itemsize
