"""Whether a topic's log is still the one that was read, and whether it holds all that a changefeed needs (R8).

Both ends of a log may move. Its end goes back where an unclean leader election, or a restored broker, loses messages:
an end before what was read tells so, and where the log has grown again, the leader's epochs do (KIP-320): what was read
while epoch E led is still there if E's messages reach at least as far. Its beginning goes forward as retention deletes.

Both may happen while a window is read, and the log may have grown beyond the window's ends again when a task gets
there: each offset is given out then, and the messages are others. So what was read is compared before it is committed.
A range ends at an offset that the leader of epoch E named. If the message before that offset is of E, the range is what
E's leader had, for a leader writes each offset once and no other one writes in its epoch: nobody has to be asked. Where
it is not, or offsets behind it hold nothing, the leader of now is asked of the epochs that were read, and of E.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import NamedTuple, Protocol

from consumer.kafka.account import Epochs
from consumer.kafka.admin import End, Topic
from consumer.kafka.reader import Messages
from consumer.tasks.report import Report
from ordering.errors import BeginningLostError, InputError
from ordering.events import Partition
from ordering.progress import PartitionProgress, TopicProgress
from ordering.sources.archive import FILES
from ordering.sources.retention import may_lack
from ordering.timestamps import utc_text

LOST = (
    "messages that were read are gone: a leader without them was elected (unclean.leader.election.enable), or a broker"
    " was restored. Compare the target with the upstream (`reconciler verify`), load the tables that differ again, or"
    " rebuild the target from a dump and begin at its TSO"
)

NONE_KNOWN: Mapping[str, TopicProgress] = {}
_COMPACTED = (
    "set cleanup.policy of the topic to delete, rebuild the target from a dump and set start-ts to its position. If"
    " nothing but transactions left them empty, setting it is enough"
)


class LogControl(Protocol):
    """What Kafka's control plane is asked about logs; see `KafkaAdmin`."""

    def topics(self, names: Iterable[str]) -> list[Topic]:
        """The topics that are there."""
        ...

    def begins(self, partitions: Iterable[Partition]) -> dict[Partition, int]:
        """Where they begin."""
        ...

    def stable_ends(self, partitions: Iterable[Partition]) -> dict[Partition, End]:
        """Where they end."""
        ...

    def epoch_ends(self, epochs: Mapping[Partition, int]) -> dict[Partition, int | None]:
        """Up to where an epoch's leader wrote."""
        ...


class LogRead(NamedTuple):
    """A partition that was read up to `stop`, before an offset that the leader of `named` has told."""

    partition: Partition
    stop: int
    named: int | None
    epochs: Epochs
    """The leaders that wrote what was read (`epochs_upto`)."""


def check_kept(control: LogControl, reached: Mapping[Partition, End], ends: Mapping[Partition, End]) -> None:
    """Raise InputError where a log is not the one any more that was read up to `reached`, at the epoch given there."""
    for p, at in sorted(reached.items()):
        if ends[p].offset < at.offset:
            raise _lost(p, at.offset, ends[p].offset)
    changed = {p: at.epoch for p, at in reached.items() if at.epoch is not None and _other(at.epoch, ends[p].epoch)}
    for p, end in sorted(control.epoch_ends(changed).items()):
        if end is None or end < reached[p].offset:
            raise _lost(p, reached[p].offset, end)


def check_same_log(
    control: LogControl, reports: Iterable[Report], topics: Mapping[str, TopicProgress], *, ask: bool = False
) -> None:
    """Raise InputError where a log was replaced while a window was read; the ranges of `reports` were read to the end.

    `ask`: also what the messages prove, for some were looked at once more since.
    """
    whole = [report for report in reports if report.range.epoch is not None and not report.segment]
    read = [LogRead(one.range.partition, one.stop, one.range.epoch, one.epochs) for one in whole]
    if read:
        check_read(control, read, topics, ask=ask)


def check_read(
    control: LogControl, read: Iterable[LogRead], topics: Mapping[str, TopicProgress], *, ask: bool = False
) -> None:
    """Raise InputError where what was read is not what the logs held when their ends were named. `ask`: as above."""
    read = list(read)
    check_topics(control.topics({one.partition.topic for one in read}), topics)
    wanted: dict[Partition, dict[int, int]] = {}
    for one in read:
        epochs = wanted.setdefault(one.partition, {})
        for epoch, upto in _unproven(one, ask=ask):
            epochs[epoch] = max(upto, epochs.get(epoch, upto))
    while asked := {p: max(epochs) for p, epochs in wanted.items() if epochs}:
        ends = control.epoch_ends(asked)
        for p, epoch in sorted(asked.items()):
            upto, end = wanted[p].pop(epoch), ends[p]
            if end is None or end < upto:
                raise _lost(p, upto, end)


def _unproven(read: LogRead, *, ask: bool) -> Iterator[tuple[int, int]]:
    """Epochs, and up to where the log is to hold what their leaders had, as far as no message proves that."""
    named, told = read.named, read.epochs
    if named is None:
        return
    yield from ((epoch, upto) for epoch, upto in told if epoch not in (None, named))
    if ask or told[-1:] != ((named, read.stop),):
        yield named, read.stop


def check_gone(found: Iterable[Topic], known: Mapping[str, TopicProgress]) -> None:
    """Raise BeginningLostError for a topic that was read and is not there: what it held may not have been applied."""
    present = {topic.name for topic in found}
    for name, topic in sorted(known.items()):
        if name not in present and not (topic.ended or topic.retired or topic.id == FILES):
            raise BeginningLostError(
                "a topic of this changefeed is gone",
                where=f"topic={name}",
                hint="if its tables are gone for good, or it is no longer in source.topics:"
                " `reconciler topic retire CONFIG TOPIC`; else set source.archive to files that have all of what came"
                " after the checkpoint",
            )


def check_topics(found: Iterable[Topic], known: Mapping[str, TopicProgress]) -> None:
    """Raise InputError for a topic that is another one than that which was read: it was created again."""
    for topic in found:
        if topic.id != known[topic.name].id:
            raise created_again(topic, known[topic.name])


def created_again(topic: Topic, before: TopicProgress) -> InputError:
    """The error of a topic that took the place of the one that is known."""
    fact = f"topic {topic.name} was deleted and created again (id {topic.id}, it was {before.id})"
    where = f"topic={topic.name}"
    if before.retired:
        hint = (
            "use `reconciler topic retire CONFIG TOPIC` once more: the old one is forgotten, and what the new one"
            " holds now is judged as a new topic's; `reconciler topic return CONFIG TOPIC` lets it count"
        )
        return InputError(fact, where=where, hint=hint)
    hint = (
        "offsets of the old topic mean nothing in the new one: set source.archive to files that have all of what came"
        " after the checkpoint, rebuild the target, or reset the progress"
    )
    return BeginningLostError(fact, where=where, hint=hint)


def _other(epoch: int, now: int | None) -> bool:
    return now is not None and now != epoch


def _lost(partition: Partition, read_to: int, end: int | None) -> InputError:
    at = "has another history" if end is None else f"ends, or went on otherwise, at {end}"
    return InputError(
        f"the log lost its end: it was read up to offset {read_to}, and {at}",
        where=f"{partition} offset={read_to if end is None else end}",
        hint=LOST,
    )


def check_beginnings(
    begins: Mapping[Partition, int],
    start_ts: int,
    first_times: Callable[[Mapping[Partition, int]], Mapping[Partition, int]],
) -> None:
    """Raise BeginningLostError unless nothing above `start_ts` was deleted from partitions that are read from there on.

    See `may_lack`. `first_times`: asked for these times of the partitions whose beginning was deleted.
    """
    cut = {p: begin for p, begin in begins.items() if begin > 0}
    for p in may_lack(cut, first_times(cut) if cut and start_ts else {}, start_ts):
        raise _cut(p, cut[p], start_ts)


def check_uncompacted(
    reports: Iterable[Report],
    policies: Callable[[Iterable[str]], Mapping[str, str]],
    first_gap: Callable[[Partition, int, int], int | None],
) -> None:
    """Raise InputError where offsets hold nothing and compaction may have taken away what they held.

    It drops every message that has no key, as TiCDC's have none, and the log still begins and ends where it did. Marks
    of transactions leave offsets empty, too; the headers of the log's batches tell them apart, also where compaction
    was switched off again. `policies`: `cleanup.policy` of some topics, as far as we may see it.
    """
    holed = [report for report in reports if report.empty_offsets]
    told = policies({report.range.partition.topic for report in holed}) if holed else {}
    for report in holed:
        policy = told.get(report.range.partition.topic)
        if policy is None or "compact" in policy:
            raise _compacted(report, policy)
        if (gap := first_gap(report.range.partition, report.range.start, report.stop)) is not None:
            raise _thinned(report, gap)


def _compacted(report: Report, policy: str | None) -> InputError:
    is_known = f"cleanup.policy is {policy!r}" if policy else "we may not see the topic's cleanup.policy"
    return InputError(
        f"{report.empty_offsets} offsets between {report.range.start} and {report.stop} hold no message, and"
        f" {is_known}: compaction may have taken away what they held",
        where=f"{report.range.partition} offset={report.range.start}",
        hint=_COMPACTED if policy else "grant DESCRIBE_CONFIGS on the topic: where it is 'delete' this is no error",
    )


def _thinned(report: Report, gap: int) -> InputError:
    return InputError(
        f"messages were taken out of the log from offset {gap} on, before {report.stop}: the topic was compacted,"
        " though its cleanup.policy does not say so any more",
        where=f"{report.range.partition} offset={gap}",
        hint="rows are lost: rebuild the target from a dump and set start-ts to its position",
    )


def _cut(partition: Partition, begin: int, start_ts: int) -> BeginningLostError:
    since = f"start-ts {start_ts} ({utc_text(start_ts)} UTC)" if start_ts else "the topic began"
    return BeginningLostError(
        f"the log begins after start-ts: retention deleted offsets before {begin}, and rows since {since} may have been"
        " among them",
        where=f"{partition} offset={begin}",
        hint="take a newer dump, and its position as start-ts (`reconciler progress reset CONFIG --yes` lets it count)"
        "; or set source.archive to files of a changefeed that has all of it; or, if the target holds all that was"
        ' deleted, set source.unproven-beginning = "accept" for one run',
    )


def first_times(reader: Messages, spans: Mapping[Partition, tuple[int, int]]) -> dict[Partition, int]:
    """Kafka's time of the first message of each [low, high), in ms since 1970, where there is one that has a time."""
    return {partition: ms for partition, kind, ms in _firsts(reader, spans) if kind and ms > 0}


def _firsts(reader: Messages, spans: Mapping[Partition, tuple[int, int]]) -> Iterator[tuple[Partition, int, int]]:
    seen: set[Partition] = set()
    for partition, run in reader.read([(p, low, high) for p, (low, high) in spans.items()]):
        if partition not in seen:
            seen.add(partition)
            reader.done(partition)
            yield partition, *run[0].timestamp()


def check_retention(partition: Partition, begin: int, at: PartitionProgress) -> None:
    """Raise BeginningLostError where the log begins behind what is needed next."""
    if begin > at.start:
        raise BeginningLostError(
            f"retention deleted messages not applied yet: offset {at.start} is gone, the log begins at {begin}",
            where=f"{partition} offset={at.start}",
            hint="rebuild the target from a dump and set start-ts to its position, or set source.archive to files that"
            " have all of it (`reconciler help storage`); raise the topic's retention",
        )
