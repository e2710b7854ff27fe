"""A consumer on the library that confluent-kafka brings with it, librdkafka, without confluent-kafka's Python objects.

It does what `confluent_kafka.Consumer` does, by the same calls in the same order, and gives messages where they lie.
The library is found in the dependencies of the extension module that is loaded already. Where it is another one than
the extension was built for, or refuses a setting, the reason is told and confluent-kafka's own consumer is used.
"""

import ctypes
import os
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from typing import Any, NamedTuple

import confluent_kafka
from confluent_kafka import KafkaError, KafkaException, TopicPartition

from consumer.native import Core
from consumer.native.kafka_messages import CoreBatch, RawMessage, Shelf

_KNOWN = range(0x02000000, 0x03000000)
"""Versions of librdkafka whose public structures and calls are those used here."""
_CONSUMER = 1
"""`RD_KAFKA_CONSUMER`."""
_ERROR_BYTES = 512
_FATAL = KafkaError._FATAL  # noqa: SLF001 the library's public constant
_OnError = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_int, ctypes.c_char_p, ctypes.c_void_p)
_pointer, _int, _text = ctypes.c_void_p, ctypes.c_int, ctypes.c_char_p
_message = ctypes.POINTER(RawMessage)
_PROTOTYPES: dict[str, tuple[Any, tuple[Any, ...]]] = {
    "rd_kafka_version": (_int, ()),
    "rd_kafka_conf_new": (_pointer, ()),
    "rd_kafka_conf_destroy": (None, (_pointer,)),
    "rd_kafka_conf_set": (_int, (_pointer, _text, _text, _text, ctypes.c_size_t)),
    "rd_kafka_conf_set_error_cb": (None, (_pointer, _OnError)),
    "rd_kafka_new": (_pointer, (_int, _pointer, _text, ctypes.c_size_t)),
    "rd_kafka_poll_set_consumer": (_int, (_pointer,)),
    "rd_kafka_queue_get_consumer": (_pointer, (_pointer,)),
    "rd_kafka_queue_destroy": (None, (_pointer,)),
    "rd_kafka_consumer_close": (_int, (_pointer,)),
    "rd_kafka_destroy": (None, (_pointer,)),
    "rd_kafka_topic_partition_list_new": (_pointer, (_int,)),
    "rd_kafka_topic_partition_list_add": (_pointer, (_pointer, _text, ctypes.c_int32)),
    "rd_kafka_topic_partition_list_set_offset": (_int, (_pointer, _text, ctypes.c_int32, ctypes.c_int64)),
    "rd_kafka_topic_partition_list_destroy": (None, (_pointer,)),
    "rd_kafka_assign": (_int, (_pointer, _pointer)),
    "rd_kafka_incremental_unassign": (_pointer, (_pointer, _pointer)),
    "rd_kafka_error_code": (_int, (_pointer,)),
    "rd_kafka_error_string": (_text, (_pointer,)),
    "rd_kafka_error_destroy": (None, (_pointer,)),
    "rd_kafka_consume_batch_queue": (ctypes.c_ssize_t, (_pointer, _int, _pointer, ctypes.c_size_t)),
    "rd_kafka_consumer_poll": (_message, (_pointer, _int)),
    "rd_kafka_last_error": (_int, ()),
    "rd_kafka_err2str": (_text, (_int,)),
    "rd_kafka_topic_name": (_text, (_pointer,)),
    "rd_kafka_message_errstr": (_text, (_message,)),
    "rd_kafka_message_timestamp": (ctypes.c_int64, (_message, ctypes.POINTER(_int))),
    "rd_kafka_message_leader_epoch": (ctypes.c_int32, (_message,)),
    "rd_kafka_message_destroy": (None, (_message,)),
}


class ClientChoice(NamedTuple):
    """Kafka's client library, or why it can't be used without Python's objects."""

    library: Any
    why: str = ""


class RefusedSetting(ValueError):  # noqa: N818 confluent-kafka tells what is wrong with it
    """The library does not take the settings, or there is none."""


@cache
def kafka_library() -> ClientChoice:
    """The library that confluent-kafka uses in this process."""
    try:
        library = ctypes.CDLL(confluent_kafka.cimpl.__file__)
        for name, (result, arguments) in _PROTOTYPES.items():
            function = getattr(library, name)
            function.restype, function.argtypes = result, arguments
    except (OSError, AttributeError) as error:
        return ClientChoice(None, f"the library of confluent-kafka can't be called: {error}")
    version, of_python = library.rd_kafka_version(), confluent_kafka.libversion()[1]
    if version not in _KNOWN or version != of_python:
        return ClientChoice(None, f"librdkafka is of version {version:#010x}, confluent-kafka of {of_python:#010x}")
    return ClientChoice(library)


def _as_text(value: Any) -> bytes:
    """A setting's value as confluent-kafka hands it on. Raises RefusedSetting for what is no plain value."""
    if isinstance(value, bool):
        return b"true" if value else b"false"
    if not isinstance(value, str | int | float):
        raise RefusedSetting(type(value).__name__)
    return str(value).encode()


class CoreConsumer:
    """See `confluent_kafka.Consumer`. Not for several threads."""

    def __init__(
        self, core: Core, settings: Mapping[str, Any], on_error: Callable[[KafkaError], None], room: int
    ) -> None:
        """Raise RefusedSetting. `room`: messages of a call at most."""
        self._made_client = self._queue = 0
        self._process = os.getpid()
        found = kafka_library()
        if found.library is None:
            raise RefusedSetting(found.why)
        self._library, self._on_error = found.library, on_error
        self._fatal: KafkaError | None = None
        self._told = _OnError(self._tell)  # kept as long as the client is
        self._shelf = Shelf(core, self._library, room)
        self._made_client = self._made(settings)
        self._library.rd_kafka_poll_set_consumer(self._client)
        self._queue = self._library.rd_kafka_queue_get_consumer(self._client)

    def __del__(self) -> None:
        self.close()

    @property
    def _client(self) -> int:
        if not self._made_client:
            raise RuntimeError("this consumer is closed")
        return self._made_client

    def _made(self, settings: Mapping[str, Any]) -> int:
        library, why = self._library, ctypes.create_string_buffer(_ERROR_BYTES)
        conf, client = library.rd_kafka_conf_new(), None
        try:
            for name, value in settings.items():
                if library.rd_kafka_conf_set(conf, name.encode(), _as_text(value), why, _ERROR_BYTES) != 0:
                    raise RefusedSetting(why.value.decode(errors="replace"))
            library.rd_kafka_conf_set_error_cb(conf, self._told)
            client = library.rd_kafka_new(_CONSUMER, conf, why, _ERROR_BYTES)
            if not client:
                raise RefusedSetting(why.value.decode(errors="replace"))
            return int(client)
        finally:
            if not client:
                library.rd_kafka_conf_destroy(conf)  # else it belongs to the client

    def _tell(self, _client: int, code: int, reason: bytes | None, _opaque: int) -> None:
        error = KafkaError(code, (reason or b"").decode(errors="replace"))
        if code == _FATAL:
            self._fatal = error
        else:
            self._on_error(error)

    def assign(self, places: Sequence[TopicPartition]) -> None:
        """Read these partitions, from their offsets on, and no others. Raises KafkaException."""
        listed = self._listed(places)
        try:
            self._check(self._library.rd_kafka_assign(self._client, listed))
        finally:
            self._library.rd_kafka_topic_partition_list_destroy(listed)

    def unassign(self) -> None:
        """Read nothing. Raises KafkaException."""
        client = self._client
        self._shelf.clear()
        self._check(self._library.rd_kafka_assign(client, None))

    def incremental_unassign(self, places: Sequence[TopicPartition]) -> None:
        """Read no further in these. Raises KafkaException."""
        listed = self._listed(places)
        try:
            error = self._library.rd_kafka_incremental_unassign(self._client, listed)
        finally:
            self._library.rd_kafka_topic_partition_list_destroy(listed)
        if error:
            code = self._library.rd_kafka_error_code(error)
            told = self._library.rd_kafka_error_string(error).decode(errors="replace")
            self._library.rd_kafka_error_destroy(error)
            raise KafkaException(KafkaError(code, told))

    def _listed(self, places: Sequence[TopicPartition]) -> int:
        library = self._library
        listed = library.rd_kafka_topic_partition_list_new(len(places))
        for place in places:
            name = place.topic.encode()
            library.rd_kafka_topic_partition_list_add(listed, name, place.partition)
            library.rd_kafka_topic_partition_list_set_offset(listed, name, place.partition, place.offset)
        return int(listed)

    def consume(self, count: int, seconds: float) -> CoreBatch:
        """So many messages at most, as they come within a time; those of the call before are given back.

        Raises KafkaException.
        """
        given, _open = 0, self._client

        def fill(to: Any, room: int) -> int:
            nonlocal given
            wait_ms = int(seconds * 1000)
            given = int(self._library.rd_kafka_consume_batch_queue(self._queue, wait_ms, to, min(count, room)))
            return max(0, given)

        found = self._shelf.filled(fill)
        self._check_fatal()
        if given < 0:
            self._check(self._library.rd_kafka_last_error())
        return found

    def poll(self, seconds: float) -> CoreBatch:
        """The next message, or none; those of the call before are given back. Raises KafkaException."""

        def fill(to: Any, _room: int) -> int:
            message = self._library.rd_kafka_consumer_poll(self._client, int(seconds * 1000))
            if message:
                to[0] = message
            return int(bool(message))

        found = self._shelf.filled(fill)
        self._check_fatal()
        return found

    def _check_fatal(self) -> None:
        if self._fatal is not None:
            raise KafkaException(self._fatal)

    def _check(self, code: int) -> None:
        if code:
            raise KafkaException(KafkaError(code, self._library.rd_kafka_err2str(code).decode()))

    def close(self) -> None:
        """Close the connections; what was given is given back. In a process that was forked since it does nothing."""
        client, self._made_client = self._made_client, 0
        if not client or os.getpid() != self._process:
            return
        self._shelf.clear()
        self._library.rd_kafka_consumer_close(client)
        self._library.rd_kafka_queue_destroy(self._queue)
        self._library.rd_kafka_destroy(client)
