"""What of Kafka's log lies between two checkpoints, read once more; or why that does not tell what happened.

The log may be another one by now than the run read: what it lost is in the target, and what took its place is not. So
what is read again is held against the progress, which knows the topics' ids and the leaders (`check_read`).
"""

from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass

from consumer.codec import canal_json
from consumer.config.changefeed_filter import read_filter
from consumer.config.model import Config
from consumer.formats.message_format import Untaken
from consumer.kafka.account import Epochs, check_account, epochs_upto, messages_in
from consumer.kafka.admin import KafkaAdmin
from consumer.kafka.properties import reader_settings
from consumer.kafka.reader import Readers
from consumer.proof.state import ProofState, lineage_of
from consumer.source.continuity import LogControl, LogRead, check_beginnings, check_read, first_times
from consumer.tasks.second_look import BoundedReaders
from consumer.wiring import schemas_of, target_of
from ordering.errors import InputError
from ordering.events import Partition, Position
from ordering.progress import Progress
from ordering.window import Range

OffsetRange = tuple[Partition, int, int]

RESET = "the progress was reset or rewound since the last proof"
LEFT_OUT = "event filters leave out events, or messages were quarantined: `reconciler verify` compares the tables"
NO_LOG = "files are not read again for a proof"
STAYS_SO = (LEFT_OUT, NO_LOG)


def _no_pace(_messages: int) -> None:
    """As fast as they come."""


@dataclass(frozen=True, slots=True)
class EventsLog:
    """The changefeed's topics. `control` and `readers`: None for Kafka's own; `pace` is told of messages read."""

    config: Config
    control: LogControl | None = None
    readers: Readers | None = None
    pace: Callable[[int], None] = _no_pace

    def spans(self, state: ProofState | None, progress: Progress) -> tuple[list[OffsetRange], str]:
        """What lies between a proof and the present progress; or why that does not tell what happened."""
        if state is None:
            return [], "this is the first proof"
        if self.config.source.storage or progress.archived:
            return [], NO_LOG
        if state.lineage != lineage_of(progress) or state.checkpoint_ts > progress.checkpoint_ts:
            return [], RESET
        if any(progress.topics[name].id != known for name, known in state.topics.items() if name in progress.topics):
            return [], "a topic was deleted and created again since the last proof"
        if progress.counts.quarantined or read_filter(self.config.filter).leaves_out_rows(progress.filter_digest):
            return [], LEFT_OUT
        return self._kept(state, progress)

    def _kept(self, state: ProofState, progress: Progress) -> tuple[list[OffsetRange], str]:
        with self._controlled() as control:
            gone = _gone(control, progress)
            there = {p: at for p, at in progress.partitions.items() if p.topic not in gone}
            begins = control.begins(there)
        for p in progress.partitions.keys() - there.keys():
            if state.starts.get(p, 0) < progress.partitions[p].read_to:
                return [], f"a topic was deleted that holds messages since the last proof ({p.topic})"
        first = {p: (begins.get(p, 0), at.read_to) for p, at in there.items() if p not in state.starts}
        if lost := self._lost_beginning(first, state.checkpoint_ts):
            return [], lost
        spans = []
        for partition, now in there.items():
            begin = begins.get(partition, 0)
            start = state.starts.get(partition, begin)
            if begin > start and now.read_to > start:
                return [], f"retention deleted messages since the last proof ({partition})"
            if max(start, begin) < now.read_to:
                spans.append((partition, max(start, begin), now.read_to))
        if sum(stop - start for _, start, stop in spans) > self.config.limits.window_rows:
            return [], "there are more messages since the last proof than limits.window-rows"
        return spans, ""

    def _lost_beginning(self, first: dict[Partition, tuple[int, int]], low: int) -> str:
        """Whether events above `low` may be gone from partitions that are read from their beginning."""
        readers = self._own_readers()
        begins = {partition: begin for partition, (begin, stop) in first.items() if stop}
        try:
            check_beginnings(begins, low, lambda cut: first_times(readers.get(), {p: first[p] for p in cut}))
        except InputError as error:
            return f"retention deleted messages since the last proof ({error.where})"
        finally:
            readers.forget()
        return ""

    def _own_readers(self) -> Readers:
        settings = reader_settings(self.config.source.bootstrap_servers, self.config.source.kafka)
        return self.readers or BoundedReaders(settings, self.config.limits.message_bytes)

    @contextmanager
    def _controlled(self) -> Iterator[LogControl]:
        if self.control is not None:
            yield self.control
            return
        with closing(KafkaAdmin(self.config.source.bootstrap_servers, self.config.source.kafka)) as control:
            yield control

    def messages(self, spans: list[OffsetRange], progress: Progress) -> Iterator[tuple[Position, bytes | None]]:
        """The messages, decompressed; of a log that is not the one of `progress` any more not without an error.

        Raises SourceError and InputError.
        """
        if not spans:
            return
        readers, limit = self._own_readers(), self.config.limits.message_bytes
        with closing(target_of(self.config)) as target:
            told = schemas_of(self.config, target).format
            reader = told.reading(readers.get(), limit)
        taken = dict.fromkeys((partition for partition, *_ in spans), 0)
        try:
            for partition, run in reader.read(spans):
                taken[partition] += messages_in(run) if told.sends_batches else len(run)
                for message in run:
                    position = Position(*partition, message.offset())
                    try:
                        value = message.value()
                    except Untaken as untaken:
                        if untaken.row is None:
                            continue
                        raise untaken.refused(str(position)) from None
                    yield position, canal_json.plain(value, position, limit)
                    self.pace(1)
            for partition, start, stop in spans:
                check_account(Range(partition, start, stop, start), reader.reached(partition), taken[partition])
            self._check_same([(p, stop, reader.reached(p).epochs) for p, _, stop in spans], progress)
        finally:
            readers.forget()

    def _check_same(self, read: list[tuple[Partition, int, Epochs]], progress: Progress) -> None:
        named = {partition: one.epoch for partition, one in progress.partitions.items()}
        found = [LogRead(p, stop, named[p], epochs_upto(epochs, stop)) for p, stop, epochs in read]
        with self._controlled() as control:
            check_read(control, found, progress.topics)


def _gone(control: LogControl, progress: Progress) -> set[str]:
    """Topics that are not there any more, or that have ended and made room for others of their names."""
    names = {partition.topic for partition in progress.partitions}
    there = {topic.name: topic.id for topic in control.topics(names)}
    done = {name for name in names if progress.topics[name].ended or progress.topics[name].retired}
    return {name for name in names if name not in there or (name in done and there[name] != progress.topics[name].id)}
