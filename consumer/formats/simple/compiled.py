"""Rows of the Simple protocol with the compiled core, which takes a run of messages up to one that is not usual."""

from array import array
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from consumer.codec.joined_run import JoinedRun
from consumer.native import AT_ONCE, MOST_APART, Core, CoreCrash, CoreSource, crash_error, joined_parts
from consumer.native.kafka_messages import CoreRun
from consumer.native.simple_rows import RowLayout, SimpleRows
from ordering.events import Partition, Position

Singly = Callable[[Partition, Sequence[Any]], Iterator[Sequence[Any]]]


class CompiledTranslation:
    """Messages of one reading. `met`: the layouts of rows that Python met since it was last asked."""

    def __init__(self, core: Core, met: Callable[[], Sequence[RowLayout]], limit: int) -> None:
        self._rows, self._met, self._largest = SimpleRows(core), met, min(limit, AT_ONCE)

    def runs(self, run: Sequence[Any], partition: Partition, singly: Singly) -> Iterator[Sequence[Any]]:
        """The events of a run of messages; `singly` takes some in Python. Raises CoreError, and what that raises."""
        if isinstance(run, CoreRun):
            yield from self._runs(run, run, partition, singly)
            return
        for part, source in joined_parts(run):
            if source is None:  # a tombstone
                yield from singly(partition, part)
            else:
                yield from self._runs(part, source, partition, singly)

    def _runs(
        self, run: Sequence[Any], source: CoreSource, partition: Partition, singly: Singly
    ) -> Iterator[Sequence[Any]]:
        at, apart = 0, 1
        while at < len(run):
            try:
                taken = self._rows.take(source, at, self._largest)
            except CoreCrash as crash:
                raise crash_error("message", str(Position(*partition, run[crash.at].offset()))) from crash
            count = len(taken.lens)
            if count:
                offsets = taken.offsets or array("q", [message.offset() for message in run[at : at + count]])
                yield JoinedRun(taken.joined, taken.lens, offsets)
            at += count
            if not taken.is_usual:
                apart = 1 if count >= apart else apart
                yield from singly(partition, run[at : at + apart])
                at, apart = at + apart, 1 if self._learned() else min(2 * apart, MOST_APART)

    def _learned(self) -> bool:
        """Let the core take rows of the schemas that Python has met; whether there were any."""
        return sum(map(self._rows.learn, self._met())) > 0
