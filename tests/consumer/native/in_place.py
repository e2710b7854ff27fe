"""Messages as Kafka's client library would have put them, each in memory of its own that is as long as it is."""

import ctypes
import os
from collections.abc import Sequence
from typing import Any

from confluent_kafka import KafkaError

from consumer.native import Core
from consumer.native.kafka_messages import CoreBatch, RawMessage, Shelf

_LIBC = ctypes.CDLL(None)
_LIBC.malloc.restype, _LIBC.malloc.argtypes = ctypes.c_void_p, (ctypes.c_size_t,)
_LIBC.free.restype, _LIBC.free.argtypes = None, (ctypes.c_void_p,)


class FakeLibrary:
    """What a shelf asks librdkafka for. `given`: messages that nobody has given back yet."""

    def __init__(self) -> None:
        self.given: set[int] = set()
        self.names: dict[str, ctypes.Array[ctypes.c_char]] = {}
        self.rd_kafka_message_destroy = ctypes.CFUNCTYPE(None, ctypes.c_void_p)(self._destroyed)

    def rd_kafka_topic_name(self, topic: int) -> bytes:
        return ctypes.string_at(topic)

    def rd_kafka_message_errstr(self, _message: Any) -> bytes:
        return b"told"

    def rd_kafka_message_leader_epoch(self, message: Any) -> int:
        return int(message._obj.offset) // 7

    def made(self, topic: str, partition: int, offset: int, value: bytes | None, error: int = 0) -> Any:
        """A message."""
        at = _LIBC.malloc(ctypes.sizeof(RawMessage))
        self.given.add(at)
        name = self.names.setdefault(topic, ctypes.create_string_buffer(topic.encode()))
        made = ctypes.cast(at, ctypes.POINTER(RawMessage))
        made[0] = RawMessage(err=error, topic=ctypes.addressof(name), partition=partition, offset=offset)
        if value is not None:
            made[0].payload, made[0].len = _LIBC.malloc(max(1, len(value))), len(value)
            ctypes.memmove(made[0].payload, value, len(value))
        return made

    def _destroyed(self, at: int) -> None:
        if at not in self.given:
            os.abort()  # given back twice
        self.given.remove(at)
        made = ctypes.cast(at, ctypes.POINTER(RawMessage))
        _LIBC.free(made[0].payload)
        _LIBC.free(at)


Told = tuple[str, int, int, bytes | None, int]
"""Topic, partition, offset, value, error."""
END = int(KafkaError._PARTITION_EOF)


class FakeShelf:
    """Where messages of a test are put."""

    def __init__(self, core: Core, room: int = 2_000) -> None:
        self.library = FakeLibrary()
        self.shelf = Shelf(core, self.library, room)

    def batch(self, told: Sequence[Told]) -> CoreBatch:
        """The messages of one call; those of the one before are given back."""

        def fill(to: Any, room: int) -> int:
            assert len(told) <= room
            for at, one in enumerate(told):
                to[at] = self.library.made(*one)
            return len(told)

        found = self.shelf.filled(fill)
        assert len(self.library.given) == len(told)
        return found
