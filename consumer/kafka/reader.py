"""Kafka's data plane, through confluent-kafka: reads offset ranges, several partitions at once.

A consumer is kept per process and reused from task to task, for connecting costs more than a small window.
"""

import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Any, Protocol

from confluent_kafka import Consumer, KafkaError, KafkaException, Message, TopicPartition

from consumer.kafka.account import EpochTrail, Reached
from consumer.kafka.allowance import memory_allowed
from consumer.kafka.properties import is_protected, reader_settings
from consumer.native import Core, Wanted, chosen
from consumer.native.forks import ClientHolder
from consumer.native.kafka_client import CoreConsumer, RefusedSetting
from consumer.native.kafka_messages import CoreBatch, CoreRun
from ordering.errors import BeginningLostError, PackedBatchError, SourceError, SourceUnreachableError
from ordering.events import Partition

_BATCH = 2_000
_POLL_S = 0.5
_LAST = 2**63
"""Behind all offsets."""
SILENCE_S = 30.0
"""So long without any answer counts as out of reach."""

_LOGIN_S = 5.0
"""So long a login may take to be refused."""

_REFUSED = {
    KafkaError._AUTHENTICATION,  # noqa: SLF001 the library's public constant
    KafkaError._SSL,  # noqa: SLF001
    KafkaError.SASL_AUTHENTICATION_FAILED,
    KafkaError.TOPIC_AUTHORIZATION_FAILED,
    KafkaError.GROUP_AUTHORIZATION_FAILED,
}
_NO_TOKEN = "Failed to acquire SASL OAUTHBEARER token"  # noqa: S105 a message
"""Who gives out tokens may only be away: where he refuses us, the control plane has said so before."""
_ALERT = "SSL alert number"
"""A broker's own word against our certificate, or against having none."""
_ALL_DOWN = KafkaError._ALL_BROKERS_DOWN  # noqa: SLF001
_EOF = KafkaError._PARTITION_EOF  # noqa: SLF001
_PACKED = KafkaError._BAD_COMPRESSION  # noqa: SLF001
_EMPTY = (
    "a log that is empty over long stretches, as compaction leaves it: set cleanup.policy of the topic to delete,"
    " rebuild the target from a dump and set start-ts to its position"
)
"""librdkafka asks for twice as much of a partition whenever an answer holds no message that it has to give out, and
takes the next one for too large once that is a GiB: it counts as long as it lives. A broker always gives a whole batch.
"""
_RESET = {KafkaError._AUTO_OFFSET_RESET, KafkaError.OFFSET_OUT_OF_RANGE}  # noqa: SLF001


def _is_refusal(error: KafkaError) -> bool:
    said = error.str()
    return (error.code() in _REFUSED or _ALERT in said) and _NO_TOKEN not in said


Run = list[Message] | CoreRun
"""Messages of one partition, at rising offsets."""


def _is_error(message: Message) -> bool:
    return message.error() is not None


def _within(run: Run, low: int, high: int) -> Run:
    """Those at the offsets [low, high)."""
    if isinstance(run, CoreRun):
        return run.within(low, high)
    return [message for message in run if low <= message.offset() < high]


def _place_of(message: Message) -> tuple[str, int, bool]:
    return message.topic(), message.partition(), message.error() is not None


def gone(partition: Partition, offset: int) -> BeginningLostError:
    """The error of an offset that the log does not hold any more."""
    return BeginningLostError(
        "Kafka no longer has the offset to read on from: retention deleted it, or the log lost its end",
        where=f"{partition} offset={offset}",
        hint="raise the topic's retention; rebuild the target from a dump, then set start-ts to its position",
    )


class RangeReader(ClientHolder):
    """One consumer; not for several threads. `may_take`: bytes of memory, where a process may end by taking more.

    With a `core` that can call Kafka's client library, messages stay where the library has put them: its runs are
    good until the next one is asked for. A process that is forked later connects by itself when it first reads.
    """

    without_core: str = ""
    """Why the core does not take the messages, though it was to."""

    def __init__(self, settings: Mapping[str, Any], may_take: int | None = None, core: Core | None = None) -> None:
        self._settings, self._bootstrap, self._may_take = settings, settings["bootstrap.servers"], may_take
        self._core = core
        self._fault: KafkaError | None = None
        self._stops: dict[Partition, int] = {}
        self._next: dict[Partition, int] = {}
        self._given: Counter[Partition] = Counter()
        self._epochs = EpochTrail()
        self._held: dict[Partition, int] = {}
        self._was_used = False
        self._in_doubt: list[tuple[Partition, int, int]] = []
        self._fresh: RangeReader | None = None
        self._hold(self._connected())

    @property
    def _consumer(self) -> Any:
        if self._is_forked:
            self._was_used = False
            self._hold(self._connected())
        return self._client

    def _connected(self) -> Any:
        """What reads; what the core's consumer does not take is left to confluent-kafka's, which says what is wrong."""
        if self._core is not None:
            try:
                return CoreConsumer(self._core, self._settings, self._on_error, _BATCH)
            except RefusedSetting as refused:
                self.without_core = f"messages come through Python: {refused}"
        try:
            return Consumer({**self._settings, "error_cb": self._on_error})
        except KafkaException as error:
            raise SourceError(f"[source.kafka] is refused: {error.args[0].str()}", where=self._bootstrap) from error

    def _on_error(self, error: KafkaError) -> None:
        if self._fault is None or not (self._refused() or error.code() == _ALL_DOWN):  # it only follows the reason
            self._fault = error

    def read(self, spans: Sequence[tuple[Partition, int, int]]) -> Iterator[tuple[Partition, Run]]:
        """Runs of messages of the offset ranges [start, stop), in order within each partition.

        Ends when each partition reached its stop; `done` before takes one out. An end that comes before the stop is
        waited at: behind it lie rows of an open transaction, or those that a follower does not have yet. Raises
        SourceUnreachableError, SourceError, InputError.
        """
        self._next = {partition: start for partition, start, _ in spans}
        self._given, self._epochs = Counter(), EpochTrail()
        spans = [span for span in spans if span[1] < span[2]]
        if not spans:
            return
        self._in_doubt, self._held = [], {}
        with memory_allowed(self._may_take):
            yield from self._assigned(spans)
        if self._in_doubt:
            yield from self._read_anew(self._in_doubt)

    def _assigned(self, spans: Sequence[tuple[Partition, int, int]]) -> Iterator[tuple[Partition, Run]]:
        """The runs, but for what is in doubt."""
        self._stops = {partition: stop for partition, _, stop in spans}
        self._fault = None
        self._consumer.assign([TopicPartition(p.topic, p.partition, start) for p, start, _ in spans])
        heard = time.monotonic()
        try:
            while self._stops:
                batch = self._consumer.consume(_BATCH, 0) or self._waited()
                if batch:
                    heard = time.monotonic()
                elif time.monotonic() - heard > SILENCE_S or self._refused():
                    raise self._silent()
                yield from self._runs(batch)
        finally:
            self._was_used = True
            self._consumer.unassign()

    def _read_anew(self, spans: Sequence[tuple[Partition, int, int]]) -> Iterator[tuple[Partition, Run]]:
        """The runs as a consumer tells them that had no assignment before: it can't tell of an earlier one."""
        self._fresh = RangeReader(self._settings, self._may_take, self._core)
        try:
            yield from self._fresh.read(spans)
        finally:
            fresh, self._fresh = self._fresh, None
            for partition, *_ in spans:
                reached = fresh.reached(partition)
                self._next[partition] = reached.offset
                self._given[partition] += reached.messages
                self._epochs.join(fresh._epochs, partition)  # noqa: SLF001 of its own class
            fresh.close()

    def reached(self, partition: Partition) -> Reached:
        """How far this partition's range was read."""
        return Reached(self._next[partition], self._given[partition], self._epochs.of(partition))

    def _waited(self) -> list[Message] | CoreBatch:
        """The next message, as soon as it comes: `consume` with a timeout would wait for a whole batch."""
        found = self._consumer.poll(_POLL_S)
        if isinstance(found, CoreBatch):
            return found
        return [] if found is None else [found]

    def done(self, partition: Partition) -> None:
        """Read no further in this partition; messages that were fetched already are dropped."""
        if self._fresh is not None:
            self._fresh.done(partition)
        if self._stops.pop(partition, None) is not None and self._stops:
            self._consumer.incremental_unassign([TopicPartition(partition.topic, partition.partition)])

    def _runs(self, batch: list[Message] | CoreBatch) -> Iterator[tuple[Partition, Run]]:
        """The batch in runs of one partition, without what lies at or behind a range's stop."""
        for run in batch.runs() if isinstance(batch, CoreBatch) else self._grouped(batch):
            partition = Partition(run[0].topic(), run[0].partition())
            if run[0].error() is not None:
                for message in run:
                    self._on_message_error(message, Partition(message.topic(), message.partition()))
            elif partition in self._stops:
                yield from self._bounded(partition, run)

    def _grouped(self, batch: list[Message]) -> Iterator[list[Message]]:
        for _, group in groupby(batch, key=_is_error if self._is_alone(batch) else _place_of):
            yield list(group)

    def _is_alone(self, batch: list[Message]) -> bool:
        """Whether the batch holds one partition only; most tasks read one: then only errors part the runs."""
        ends = {Partition(m.topic(), m.partition()) for m in (*batch[:1], *batch[-1:])}
        return len(self._stops) == 1 and ends <= self._stops.keys()

    def _bounded(self, partition: Partition, run: Run) -> Iterator[tuple[Partition, Run]]:
        stop, following = self._stops[partition], self._next[partition]
        if run[0].offset() < following:
            run = _within(run, following, _LAST)
        if not run:
            return
        last = run[-1].offset()
        if (run[0].offset(), last) != (following, following + len(run) - 1) and self._doubts(partition):
            return
        if last >= stop:
            run = _within(run, following, stop)
        self._next[partition] = min(last + 1, stop)
        if run:
            self._given[partition] += len(run)
            self._epochs.note_run(partition, run)
            yield partition, run
        if last >= stop - 1:
            self.done(partition)

    def _doubts(self, partition: Partition) -> bool:
        """Whether an end, or messages that don't follow on what was read, may be untrue; then it is read again.

        What a consumer tells of an earlier assignment can come when a new one has begun, and more than once. Where
        there was none, offsets that are left out hold nothing: they were compacted, or mark a transaction.
        """
        if self._was_used:
            self._in_doubt.append((partition, self._next[partition], self._stops[partition]))
            self.done(partition)
        return self._was_used

    def _on_end(self, partition: Partition, at: int) -> None:
        """Take the end of what can be read now: it ends the range if its stop does not lie behind."""
        if partition not in self._stops or self._doubts(partition):
            return
        if at < self._stops[partition]:
            self._held[partition] = at
            return
        self._next[partition] = self._stops[partition]
        self.done(partition)

    def _on_message_error(self, message: Message, partition: Partition) -> None:
        error = message.error()
        if error.code() == _EOF:
            self._on_end(partition, message.offset())
        elif error.code() in _RESET:
            if partition in self._stops and self._doubts(partition):
                return
            raise gone(partition, self._next.get(partition, message.offset()))
        elif error.code() == KafkaError.MSG_SIZE_TOO_LARGE:
            if partition in self._stops and not self._doubts(partition):
                raise SourceUnreachableError(f"Kafka can't be read: {error.str()}", where=str(partition), hint=_EMPTY)
        elif error.code() == _PACKED:
            raise PackedBatchError(f"a batch can't be unpacked: {error.str()}", where=str(partition))
        elif _is_refusal(error):
            raise SourceError(f"Kafka refuses us: {error.str()}", where=f"{self._bootstrap} {partition}")
        else:
            raise SourceUnreachableError(f"Kafka can't be read: {error.str()}", where=f"{self._bootstrap} {partition}")

    def _refused(self) -> bool:
        return self._fault is not None and _is_refusal(self._fault)

    def login(self, seconds: float) -> "Login":
        """How the brokers answer our login within some seconds; a refusal ends them."""
        limit = time.monotonic() + seconds
        while time.monotonic() < limit and not self._refused():
            self._consumer.poll(_POLL_S / 5)
        told = self._fault.str() if self._fault is not None else ""
        return Login(told, is_refused=self._refused())

    def _silent(self) -> SourceError:
        if self._fault is None and (held := sorted(self._held.keys() & self._stops.keys())):
            return self._held_back(held[0])
        detail = self._fault.str() if self._fault is not None else f"no answer for {SILENCE_S:.0f} s"
        kind = SourceError if self._refused() else SourceUnreachableError
        return kind(
            f"Kafka can't be read: {detail}", where=self._bootstrap, hint="check the brokers and [source.kafka]"
        )

    def _held_back(self, partition: Partition) -> SourceError:
        at, stop = self._held[partition], self._stops[partition]
        return SourceUnreachableError(
            f"Kafka gives out messages up to offset {at} only, {stop} was promised, and nothing for {SILENCE_S:.0f} s",
            where=f"{partition} offset={at}",
            hint="a transaction that a producer leaves open, or a replica that lags: check the topic's producers and"
            " `kafka-transactions.sh find-hanging`; without client.rack the leader is read",
        )

    def close(self) -> None:
        """Close the connections, where they were made."""
        if not self._is_forked:
            self._client.close()


@dataclass(frozen=True, slots=True)
class Login:
    """What came of trying to connect: what was said against it, and whether it will be said again."""

    told: str = ""
    is_refused: bool = False


def try_login(bootstrap: str, settings: Mapping[str, Any]) -> Login:
    """What the brokers say against our login or our certificates; nothing where neither is asked for.

    kafka-python takes a refusal for a broker out of reach when it connects first; librdkafka tells them apart.
    """
    if not is_protected(settings):
        return Login()
    reader = RangeReader(reader_settings(bootstrap, settings))
    try:
        return reader.login(_LOGIN_S)
    finally:
        reader.close()


class Messages(Protocol):
    """Reads offset ranges. A run is (partition, messages in offset order); a message has `offset()` and `value()`."""

    def read(self, spans: Sequence[tuple[Partition, int, int]]) -> Iterator[tuple[Partition, Sequence[Any]]]:
        """Runs of the ranges [start, stop); see `RangeReader.read`."""
        ...

    def done(self, partition: Partition) -> None:
        """Read no further in this partition."""
        ...

    def reached(self, partition: Partition) -> Reached:
        """How far this partition's range of the last `read` was read."""
        ...


class Readers(Protocol):
    """Where tasks get their reader from; travels to them."""

    def get(self) -> Messages:
        """A reader of this process."""
        ...

    def forget(self) -> None:
        """Drop it after an error: the next task connects again."""
        ...


_kept: dict[str, RangeReader] = {}


@dataclass(frozen=True, slots=True)
class KafkaReaders:
    """Readers of Kafka, one kept per process and settings."""

    settings: Mapping[str, Any]
    may_take: int | None = None
    """See `RangeReader`."""
    native: Wanted = False
    """Whether the compiled core takes the messages."""

    @property
    def brokers(self) -> str:
        """Where they connect to."""
        return str(self.settings["bootstrap.servers"])

    def get(self) -> RangeReader:
        """See `Readers.get`."""
        core = chosen(self.native).core
        name = repr((sorted(self.settings.items()), self.may_take, core is not None))
        if name not in _kept:
            _kept[name] = RangeReader(self.settings, self.may_take, core)
        return _kept[name]

    def forget(self) -> None:
        """See `Readers.forget`."""
        while _kept:
            _kept.popitem()[1].close()
