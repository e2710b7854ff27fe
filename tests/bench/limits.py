"""What bounds a run: reading the topic alone, and reading, decoding and reducing it, without Spark and without target.

Both in as many processes as there are cores, each with partitions of its own, from when the first begins until the
last has ended.
"""

import os
import time
from collections.abc import Callable, Iterable
from concurrent.futures import ProcessPoolExecutor
from dataclasses import asdict, dataclass, replace
from functools import partial
from multiprocessing import get_context

from confluent_kafka import Consumer, TopicPartition

from consumer.filters.tables import table_filter
from consumer.kafka.properties import reader_settings
from consumer.kafka.reader import KafkaReaders, RangeReader
from consumer.native import Wanted
from consumer.tasks.order import ReadTask
from consumer.tasks.read_spec import ReadSpec
from ordering.events import Partition
from ordering.timestamps import MAX_TSO, CheckpointTs, ResolvedTs
from ordering.window import Range, Window

_READY_S = 60.0


@dataclass(frozen=True)
class Limits:
    """Seconds."""

    read_s: float
    reduce_s: float
    native: Wanted = "auto"

    def line(self) -> str:
        """For people and scripts."""
        mode = "" if self.native == "auto" else f" native={self.native}"
        return f"read_s={self.read_s:.2f} read_decode_reduce_s={self.reduce_s:.2f} ratio={self.ratio:.2f}{mode}"

    def as_json(self) -> dict[str, object]:
        """The same for a file of results."""
        return {**asdict(self), "ratio": round(self.ratio, 3)}

    @property
    def ratio(self) -> float:
        """How much longer it takes to make sense of what is read."""
        return self.reduce_s / self.read_s


def measured_limits(bootstrap: str, topic: str, native: Wanted = "auto") -> Limits:
    """Read a topic twice."""
    ranges = ranges_of(bootstrap, topic)
    return Limits(
        _seconds(_read, bootstrap, ranges), _seconds(partial(_reduce, native=native), bootstrap, ranges), native
    )


def ranges_of(bootstrap: str, topic: str) -> list[Range]:
    """All that a topic holds."""
    consumer = Consumer(reader_settings(bootstrap, {}))
    try:
        partitions = sorted(consumer.list_topics(topic, _READY_S).topics[topic].partitions)
        ends = {p: consumer.get_watermark_offsets(TopicPartition(topic, p), _READY_S) for p in partitions}
    finally:
        consumer.close()
    return [Range(Partition(topic, p), low, high, low) for p, (low, high) in ends.items()]


def _seconds(work: Callable[[str, list[Range]], None], bootstrap: str, ranges: list[Range]) -> float:
    count = min(os.cpu_count() or 1, len(ranges))
    with ProcessPoolExecutor(count, get_context("fork")) as pool:
        jobs = [pool.submit(_timed, work, bootstrap, ranges[i::count]) for i in range(count)]
        spans = [job.result() for job in jobs]
    return max(end for _, end in spans) - min(begin for begin, _ in spans)


def _timed(work: Callable[[str, list[Range]], None], bootstrap: str, ranges: list[Range]) -> tuple[float, float]:
    begun = time.monotonic()
    work(bootstrap, ranges)
    return begun, time.monotonic()


def _read(bootstrap: str, ranges: list[Range]) -> None:
    reader = RangeReader(reader_settings(bootstrap, {}))
    for _, run in reader.read([(part.partition, part.start, part.stop) for part in ranges]):
        for message in run:
            message.value()


def _reduce(bootstrap: str, ranges: Iterable[Range], native: Wanted = "auto") -> None:
    task = ReadTask(replace(whole(ranges), native=native), KafkaReaders(reader_settings(bootstrap, {}), native=native))
    for _ in task((0, (part,)) for part in ranges):
        pass


def whole(ranges: Iterable[Range]) -> ReadSpec:
    """One window of all there is."""
    low, high = CheckpointTs(0), ResolvedTs(MAX_TSO)
    window = Window(low, low, high, high, tuple(ranges))
    return ReadSpec(window, {}, table_filter(["*.*"]), buckets=8, message_bytes=1 << 30)
