"""Kafka's messages where its client library has put them: runs of one partition, and a Python object only on demand.

They are given back with the next call for messages; whoever asks for one later gets a ValueError, not what lies there
then.
"""

import ctypes
from bisect import bisect_left
from collections.abc import Callable, Iterator, Sequence
from typing import Any, overload

from confluent_kafka import KafkaError

from consumer.native import Batch, Core


class RawMessage(ctypes.Structure):
    """`rd_kafka_message_t`, see native/kafka.h."""

    _fields_ = (
        ("err", ctypes.c_int),
        ("topic", ctypes.c_void_p),
        ("partition", ctypes.c_int32),
        ("payload", ctypes.c_void_p),
        ("len", ctypes.c_size_t),
        ("key", ctypes.c_void_p),
        ("key_len", ctypes.c_size_t),
        ("offset", ctypes.c_int64),
        ("private", ctypes.c_void_p),
    )


class _RawRun(ctypes.Structure):
    _fields_ = (("begin", ctypes.c_uint32), ("count", ctypes.c_uint32))


class Shelf:
    """Room for the messages of one call at a time."""

    def __init__(self, core: Core, library: Any, room: int) -> None:
        self._core, self.library, self._room = core.library, library, room
        self.messages = (ctypes.POINTER(RawMessage) * room)()
        self._runs = (_RawRun * room)()
        self._destroy = ctypes.cast(library.rd_kafka_message_destroy, ctypes.c_void_p)
        self._count = 0
        self.turn = 0
        """Which call's messages lie here."""

    def filled(self, fill: "Callable[[Any, int], int]") -> "CoreBatch":
        """What a call puts here, who is told how much room there is and tells how many; what lay here is given back."""
        self.clear()
        self._count = fill(self.messages, self._room)
        return CoreBatch(self, self._count)

    def clear(self) -> None:
        """Give back what lies here."""
        count, self._count = self._count, 0
        self.turn += 1
        self._core.core_give_back(self.messages, count, self._destroy)

    def runs(self, count: int) -> list[tuple[int, int]]:
        """(begin, end) of the runs among the first messages."""
        found = self._core.core_runs(self.messages, count, self._runs)
        return [(run.begin, run.begin + run.count) for run in self._runs[:found]]

    def topic_of(self, raw: RawMessage) -> str | None:
        """The topic's name; errors that are about none have none."""
        return self.library.rd_kafka_topic_name(raw.topic).decode() if raw.topic else None


class CoreMessage:
    """One message, or what came in its place, with what of confluent-kafka's is asked for."""

    __slots__ = ("_at", "_shelf", "_turn")

    def __init__(self, shelf: Shelf, turn: int, at: int) -> None:
        self._shelf, self._turn, self._at = shelf, turn, at

    def _raw(self) -> Any:
        if self._turn != self._shelf.turn:
            raise ValueError("this message was given back already")
        return self._shelf.messages[self._at].contents

    def topic(self) -> Any:
        """Its topic."""
        return self._shelf.topic_of(self._raw())

    def partition(self) -> int:
        """Its partition."""
        return int(self._raw().partition)

    def offset(self) -> int:
        """Where it lies in its partition."""
        return int(self._raw().offset)

    def error(self) -> KafkaError | None:
        """What came in place of a message."""
        raw = self._raw()
        if not raw.err:
            return None
        return KafkaError(raw.err, self._shelf.library.rd_kafka_message_errstr(ctypes.byref(raw)).decode())

    def timestamp(self) -> tuple[int, int]:
        """Its kind, and milliseconds since 1970."""
        kind = ctypes.c_int()
        ms = self._shelf.library.rd_kafka_message_timestamp(ctypes.byref(self._raw()), ctypes.byref(kind))
        return kind.value, ms

    def leader_epoch(self) -> int | None:
        """Of the leader that wrote it, where it is known."""
        epoch = int(self._shelf.library.rd_kafka_message_leader_epoch(ctypes.byref(self._raw())))
        return None if epoch < 0 else epoch

    def key(self) -> bytes | None:
        """Its key, copied."""
        raw = self._raw()
        return ctypes.string_at(raw.key, raw.key_len) if raw.key else None

    def value(self) -> bytes | None:
        """Its bytes, copied."""
        raw = self._raw()
        return ctypes.string_at(raw.payload, raw.len) if raw.payload else None


class CoreRun(Sequence[CoreMessage]):
    """Messages of one partition at rising offsets, for the core to take where they lie (`CoreSource`)."""

    __slots__ = ("_begin", "_end", "_shelf", "_turn")

    def __init__(self, shelf: Shelf, turn: int, begin: int, end: int) -> None:
        self._shelf, self._turn, self._begin, self._end = shelf, turn, begin, end

    def __len__(self) -> int:
        return self._end - self._begin

    @overload
    def __getitem__(self, at: int) -> CoreMessage: ...

    @overload
    def __getitem__(self, at: slice) -> "CoreRun": ...

    def __getitem__(self, at: int | slice) -> "CoreMessage | CoreRun":
        places = range(self._begin, self._end)[at]
        if isinstance(places, int):
            return CoreMessage(self._shelf, self._turn, places)
        if places.step != 1:
            raise ValueError("a run has no gaps")
        return CoreRun(self._shelf, self._turn, places.start, places.stop)

    def __iter__(self) -> Iterator[CoreMessage]:
        return (CoreMessage(self._shelf, self._turn, at) for at in range(self._begin, self._end))

    def within(self, low: int, high: int) -> "CoreRun":
        """Those at the offsets [low, high)."""
        begin, end = (bisect_left(self, offset, key=CoreMessage.offset) for offset in (low, max(low, high)))
        return self[begin:end]

    def fill(self, batch: Batch, begin: int) -> None:
        """See `CoreSource.fill`."""
        if self._turn != self._shelf.turn:
            raise ValueError("these messages were given back already")
        width = ctypes.sizeof(ctypes.c_void_p)
        batch.messages = ctypes.addressof(self._shelf.messages) + (self._begin + begin) * width


class CoreBatch:
    """The messages of one call."""

    def __init__(self, shelf: Shelf, count: int) -> None:
        self._shelf, self._turn, self._count = shelf, shelf.turn, count

    def __len__(self) -> int:
        return self._count

    def runs(self) -> Iterator[CoreRun]:
        """The messages in runs; an event or an error is alone."""
        for begin, end in self._shelf.runs(self._count):
            yield CoreRun(self._shelf, self._turn, begin, end)
