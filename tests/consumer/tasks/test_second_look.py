"""A second look at messages is accounted for offset by offset, as the first one is (R12)."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import pytest

from consumer.codec.canal_json import Plain
from consumer.kafka.account import Reached
from consumer.tasks.read_spec import ReadSpec
from consumer.tasks.second_look import ContentTask, Readers, messages_of
from ordering.errors import SourceUnreachableError
from ordering.events import Partition
from ordering.timestamps import CheckpointTs, ResolvedTs
from ordering.window import Range, Window
from tests.service.messages import watermark

PLACE = Partition("t", 0)
PART = Range(PLACE, 0, 3, 0)


@dataclass(frozen=True)
class Log:
    """Three offsets, of which the reader gives out some messages, and says how far it came."""

    given: int
    told: Reached

    def get(self) -> "Log":
        return self

    def forget(self) -> None:
        """Nothing is kept."""

    def done(self, _partition: Partition) -> None:
        """Nothing is left out."""

    def reached(self, _partition: Partition) -> Reached:
        return self.told

    def read(self, spans: Sequence[tuple[Partition, int, int]]) -> Iterator[tuple[Partition, list[Plain]]]:
        for partition, *_ in spans:
            yield partition, [Plain(at, watermark(at, 0).value) for at in range(self.given)]


def spec() -> ReadSpec:
    window = Window(CheckpointTs(0), CheckpointTs(0), ResolvedTs(9), ResolvedTs(9), (PART,))
    return ReadSpec(window, {}, lambda *_: True, 1, 1 << 20)


def test_a_range_that_was_read_whole() -> None:
    readers: Readers = Log(2, Reached(3, 2))  # one offset holds nothing
    assert [at.offset for at, _ in messages_of(spec(), readers, [PART])] == [0, 1]


@pytest.mark.parametrize("told", [Reached(2, 2), Reached(3, 3)], ids=["ended before its stop", "one was not taken"])
def test_a_range_that_was_not_read_whole(told: Reached) -> None:
    readers: Readers = Log(2, told)
    with pytest.raises(SourceUnreachableError, match="a range up to offset 3 was read to"):
        list(ContentTask(spec(), readers, frozenset())([PART]))
