"""Whether what waits in partitions without a watermark is of the protocol that the config says.

Most other protocols send no watermarks. Nothing of such a topic is ever read by tasks, so a run would wait for ever
without a word; here its first messages are looked at before it waits.
"""

from collections.abc import Mapping

from consumer.codec import canal_json
from consumer.formats.message_format import MessageFormat
from consumer.kafka.reader import Messages
from ordering.errors import AnotherProtocolError, InputError
from ordering.events import Partition, Position

_LOOK = 100
"""Offsets of a partition that are looked at for its first message: the ends of transactions hold none."""


def check_protocol(
    reader: Messages, message_format: MessageFormat, spans: Mapping[Partition, tuple[int, int]], limit: int
) -> None:
    """Look at the first message of each [start, end). Raises AnotherProtocolError; what else is wrong is not judged."""
    first = [(p, start, min(end, start + _LOOK)) for p, (start, end) in sorted(spans.items())]
    seen: set[Partition] = set()
    for partition, run in reader.read(first):
        for message in run if partition not in seen else ():
            _look_at(message, Position(*partition, message.offset()), message_format, limit)
            seen.add(partition)
            reader.done(partition)
            break


def _look_at(message: object, position: Position, message_format: MessageFormat, limit: int) -> None:
    content = message_format.content(message.key(), message.value())  # type: ignore[attr-defined]
    try:
        for event in message_format.shown(content, position, limit):
            canal_json.decode(event, position)
    except AnotherProtocolError:
        raise
    except InputError:
        return  # a task, or the quarantine, says what is wrong with it once it counts
