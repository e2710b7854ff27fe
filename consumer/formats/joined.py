"""Key and value of a message as one, for formats in which both say what it is about, and how such formats are read."""

from abc import ABC, abstractmethod
from struct import Struct
from typing import Any

from consumer.codec.canal_json import Plain
from consumer.formats.translated import TranslatedMessages
from consumer.kafka.reader import Messages
from ordering.errors import InputError
from ordering.events import Partition, Position

_NUMBER = Struct(">Q")


def joined(key: bytes | None, value: bytes | None) -> bytes | None:
    """Key and value as one; None of a message that has neither."""
    if key is None and value is None:
        return None
    return _NUMBER.pack(len(key or b"")) + (key or b"") + (value or b"")


def apart(content: bytes) -> tuple[bytes, bytes]:
    """Key and value again."""
    (length,) = _NUMBER.unpack_from(content)
    return content[_NUMBER.size : _NUMBER.size + length], content[_NUMBER.size + length :]


class KeyedEvents(ABC):
    """Brings messages of a key and a value into the form that tasks read."""

    def canal(self, content: bytes | None, at: Position, limit: int) -> bytes:
        """The event of a message as Canal-JSON, from what `joined` made of it. Raises as `event`."""
        if content is None:
            hint = "something other than TiCDC writes to this topic"
            raise InputError("message is a tombstone (no key, no value)", where=str(at), hint=hint)
        return self.event(*apart(content), at, limit)

    def event(self, key: bytes, value: bytes, at: Position, limit: int) -> bytes:
        """The same of a key and a value. Raises InputError with the position, and what `told` raises."""
        size = len(key) + len(value)
        if size > limit:
            hint = "raise limits.message-bytes if the message is genuine"
            raise InputError(f"message holds {size} bytes, limits.message-bytes is {limit}", where=str(at), hint=hint)
        return self.told(key, value, at, limit)

    @abstractmethod
    def told(self, key: bytes, value: bytes, at: Position, limit: int) -> bytes:
        """The event of a message that is within the limit. Raises InputError with the position."""
        ...


def keyed_messages(reader: Messages, events: KeyedEvents, limit: int) -> TranslatedMessages:
    """The messages of a reader in the form that tasks read, one for one. `read` raises what `events` raises too."""

    def events_of(message: Any, partition: Partition) -> list[Plain]:
        offset, key, value = message.offset(), message.key(), message.value()
        at = Position(*partition, offset)
        if key is None and value is None:
            return [Plain(offset, events.canal(None, at, limit))]
        return [Plain(offset, events.event(key or b"", value or b"", at, limit))]

    return TranslatedMessages(reader, events_of)
