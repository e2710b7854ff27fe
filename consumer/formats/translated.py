"""A reader's messages, each brought by its format into the form that tasks read."""

from collections.abc import Callable, Iterator, Sequence
from typing import Any

from consumer.codec.canal_json import Plain
from consumer.formats.message_format import Refused, Untaken
from consumer.kafka.account import Reached
from consumer.kafka.reader import Messages
from ordering.errors import InputError
from ordering.events import Partition


class TranslatedMessages:
    """See `Messages`. `events_of` gives the events of one message, or raises InputError or Untaken."""

    def __init__(self, reader: Messages, events_of: Callable[[Any, Partition], Sequence[Plain]]) -> None:
        self._reader, self._events_of = reader, events_of
        self._done: set[Partition] = set()

    def read(self, spans: Sequence[tuple[Partition, int, int]]) -> Iterator[tuple[Partition, Sequence[Any]]]:
        """See `Messages.read`. What can't be taken comes in a run of its own, so that the others stay one."""
        self._done = set()
        for partition, run in self._reader.read(spans):
            for some in self._runs(partition, run):
                if partition in self._done:
                    break
                yield partition, some

    def _runs(self, partition: Partition, run: Sequence[Any]) -> Iterator[Sequence[Any]]:
        taken: list[Any] = []
        events_of = self._events_of
        for message in run:
            try:
                taken += events_of(message, partition)
            except (InputError, Untaken) as error:
                if taken:
                    yield taken
                    taken = []
                yield [Refused(message.offset(), error)]
        if taken:
            yield taken

    def done(self, partition: Partition) -> None:
        """See `Messages.done`."""
        self._done.add(partition)
        self._reader.done(partition)

    def reached(self, partition: Partition) -> Reached:
        """See `Messages.reached`."""
        return self._reader.reached(partition)
