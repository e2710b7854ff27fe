"""What topics begin with: the DDLs of a new changefeed, and messages of a protocol that is not the config's."""

from collections.abc import Iterator, Mapping

from consumer.codec import canal_json
from consumer.formats.message_format import MessageFormat
from consumer.kafka.reader import Messages
from consumer.tasks.report import RawDdl
from consumer.tasks.second_look import ddls_of
from ordering.errors import AnotherProtocolError, InputError
from ordering.events import Partition, Position

MOST = 64
"""Times as many messages are looked through for DDLs at most, while some are found near the end of what was."""

_LOOK = 100
"""Offsets of a partition that are looked at for its first message: the ends of transactions hold none."""


def first_ddls(
    reader: Messages,
    message_format: MessageFormat,
    spans: Mapping[Partition, tuple[int, int]],
    limit: int,
    first_look: int,
) -> Iterator[RawDdl]:
    """The DDLs at the beginning of each [start, end), mostly its CREATE TABLEs; further on where some are found.

    Known before the first window is read, they divide it into segments; met only in it, they have it read twice.
    Nothing else depends on what is found here: the window's own reading tells of every DDL and of every bad message.

    `limit`: bytes of a message; `first_look`: messages of all partitions together that are looked through at first.
    """
    messages = message_format.reading(reader, limit)
    left, each, looked = dict(spans), max(1, first_look // max(1, len(spans))), 0
    while left and looked < MOST * first_look:
        now = [(p, start, min(end, start + each)) for p, (start, end) in left.items()]
        last: dict[Partition, int] = {}
        for partition, run in messages.read(now):
            for ddl in ddls_of(partition, run, limit):
                last[partition] = ddl.position.offset
                yield ddl
        looked += sum(stop - start for _, start, stop in now)
        goes_on = {p for p, start, stop in now if stop < spans[p][1] and 2 * last.get(p, -1) >= start + stop}
        left = {p: (stop, spans[p][1]) for p, _, stop in now if p in goes_on}
        each *= 2


def check_protocol(
    reader: Messages, message_format: MessageFormat, spans: Mapping[Partition, tuple[int, int]], limit: int
) -> None:
    """Look at the first message of each [start, end). Raises AnotherProtocolError; what else is wrong is not judged.

    Most other protocols send no watermarks. Nothing of such a topic is ever read by tasks, so a run would wait for ever
    without a word; here its first messages are looked at before it waits.
    """
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
