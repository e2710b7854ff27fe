"""Kafka's data plane, through confluent-kafka: reads offset ranges, several partitions at once.

A consumer is kept per process and reused from task to task, for connecting costs more than a small window.
"""

import time
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from confluent_kafka import Consumer, KafkaError, KafkaException, Message, TopicPartition

from ordering.errors import InputError, SourceError, SourceUnreachableError
from ordering.events import Partition

_BATCH = 2_000
_POLL_S = 0.5
SILENCE_S = 30.0
"""So long without any answer counts as out of reach."""

_REFUSED = {
    KafkaError._AUTHENTICATION,  # noqa: SLF001 the library's public constant
    KafkaError.SASL_AUTHENTICATION_FAILED,
    KafkaError.TOPIC_AUTHORIZATION_FAILED,
    KafkaError.GROUP_AUTHORIZATION_FAILED,
}
_EOF = KafkaError._PARTITION_EOF  # noqa: SLF001
_RESET = {KafkaError._AUTO_OFFSET_RESET, KafkaError.OFFSET_OUT_OF_RANGE}  # noqa: SLF001


class Reader:
    """One consumer; not for several threads."""

    def __init__(self, settings: Mapping[str, Any]) -> None:
        self._bootstrap = settings["bootstrap.servers"]
        self._fault: KafkaError | None = None
        try:
            self._consumer = Consumer({**settings, "error_cb": self._on_error})
        except KafkaException as error:
            raise SourceError(f"[source.kafka] is refused: {error.args[0].str()}", where=self._bootstrap) from error

    def _on_error(self, error: KafkaError) -> None:
        self._fault = error

    def read(self, spans: Iterable[tuple[Partition, int, int]]) -> Iterator[Message]:
        """Messages of the offset ranges [start, stop), in order within each; ends when each reached its stop or its
        partition's end. `done` before takes a partition out. Raises SourceUnreachableError, SourceError, InputError.
        """
        self._stops = {partition: stop for partition, start, stop in spans if stop > start}
        starts = [TopicPartition(p.topic, p.partition, s) for p, s, stop in spans if stop > s]
        if not starts:
            return
        self._fault = None
        self._consumer.assign(starts)
        heard = time.monotonic()
        try:
            while self._stops:
                batch = self._consumer.consume(_BATCH, _POLL_S)
                if batch:
                    heard = time.monotonic()
                elif time.monotonic() - heard > SILENCE_S or self._refused():
                    raise self._silent()
                yield from self._within(batch)
        finally:
            self._consumer.unassign()

    def done(self, partition: Partition) -> None:
        """Read no further in this partition; messages that were fetched already are dropped."""
        if self._stops.pop(partition, None) is not None and self._stops:
            self._consumer.incremental_unassign([TopicPartition(partition.topic, partition.partition)])

    def _within(self, batch: Iterable[Message]) -> Iterator[Message]:
        stops = self._stops
        for message in batch:
            error = message.error()
            partition = Partition(message.topic(), message.partition())
            if error is not None:
                self._on_message_error(error, partition)
                continue
            stop = stops.get(partition)
            if stop is None:
                continue
            offset = message.offset()
            if offset < stop:
                yield message
            if offset >= stop - 1:
                self.done(partition)

    def _on_message_error(self, error: KafkaError, partition: Partition) -> None:
        if error.code() == _EOF:
            self.done(partition)
        elif error.code() in _RESET:
            raise InputError(
                "Kafka no longer has the offset to read on from: retention deleted it",
                where=str(partition),
                hint="raise the topic's retention; rebuild the target from a dump, then set start-ts to its position",
            )
        elif error.code() in _REFUSED:
            raise SourceError(f"Kafka refuses us: {error.str()}", where=f"{self._bootstrap} {partition}")
        else:
            raise SourceUnreachableError(f"Kafka can't be read: {error.str()}", where=f"{self._bootstrap} {partition}")

    def _refused(self) -> bool:
        return self._fault is not None and self._fault.code() in _REFUSED

    def _silent(self) -> SourceError:
        detail = self._fault.str() if self._fault is not None else f"no answer for {SILENCE_S:.0f} s"
        kind = SourceError if self._refused() else SourceUnreachableError
        return kind(
            f"Kafka can't be read: {detail}", where=self._bootstrap, hint="check the brokers and [source.kafka]"
        )

    def close(self) -> None:
        """Close the connections."""
        self._consumer.close()


_kept: dict[str, Reader] = {}


def kept_reader(settings: Mapping[str, Any]) -> Reader:
    """This process's reader for these settings."""
    name = repr(sorted(settings.items()))
    if name not in _kept:
        _kept[name] = Reader(settings)
    return _kept[name]


def forget_readers() -> None:
    """Close what this process keeps; after an error the next task connects anew."""
    while _kept:
        _kept.popitem()[1].close()
