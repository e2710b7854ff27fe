"""The DDLs with which the topics of a new changefeed begin, mostly its CREATE TABLEs.

Known before the first window is read, they divide it into segments; met only in it, they have it read twice. Nothing
else depends on what is found here: the window's own reading tells of every DDL, and of what is wrong with a message.
"""

from collections.abc import Iterator, Mapping

from consumer.formats.message_format import MessageFormat
from consumer.kafka.reader import Messages
from consumer.tasks.report import RawDdl
from consumer.tasks.second_look import ddls_of
from ordering.events import Partition

MOST = 64
"""Times as many are looked through at most, while DDLs are found near the end of what was looked through."""


def first_ddls(
    reader: Messages,
    message_format: MessageFormat,
    spans: Mapping[Partition, tuple[int, int]],
    limit: int,
    first_look: int,
) -> Iterator[RawDdl]:
    """Look through the beginning of each [start, end), further where DDLs are found.

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
