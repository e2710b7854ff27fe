"""Whether a log is still the one that was read (R8).

Offsets that hold no message are no error where the topic's policy says that nothing was compacted.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

import pytest

from consumer.kafka.admin import End, Topic
from consumer.source.continuity import LogRead, check_kept, check_read, check_uncompacted
from consumer.tasks.report import Report
from ordering.errors import InputError
from ordering.events import Partition
from ordering.progress import TopicProgress
from ordering.window import Range


def read(messages: int) -> Report:
    return Report(Range(Partition("t", 0), 5, 9, 5), 9, messages)


def unasked(_topics: Iterable[str]) -> Mapping[str, str]:
    raise AssertionError("nobody needs the policy")


def whole(_partition: Partition, _start: int, _stop: int) -> None:
    """The headers explain each offset."""


def test_where_each_offset_holds_a_message_nothing_is_asked() -> None:
    check_uncompacted([read(4)], unasked, whole)


def test_offsets_that_transactions_left_empty() -> None:
    check_uncompacted([read(3)], lambda _: {"t": "delete"}, whole)


def test_offsets_that_were_compacted_before_the_policy_was_changed_back() -> None:
    with pytest.raises(InputError, match="from offset 7 on") as caught:
        check_uncompacted([read(3)], lambda _: {"t": "delete"}, lambda _partition, _start, _stop: 7)
    assert caught.value.where == "topic=t partition=0 offset=7"


@pytest.mark.parametrize("policies", [{"t": "compact"}, {"t": "compact,delete"}, {}], ids=["compact", "both", "unseen"])
def test_offsets_that_compaction_may_have_left_empty(policies: Mapping[str, str]) -> None:
    with pytest.raises(InputError) as caught:
        check_uncompacted([read(3)], lambda _: policies, whole)
    assert caught.value.where == "topic=t partition=0 offset=5"
    assert "1 offsets between 5 and 9" in caught.value.fact


P = Partition("t", 0)


@dataclass
class Elections:
    """Answers of a broker: up to where the leader of each epoch wrote. `asked`: the epochs that were asked for."""

    upto: Mapping[int, int | None]
    asked: list[int] = field(default_factory=list)

    def topics(self, names: Iterable[str]) -> list[Topic]:
        return [Topic(name, "id", (P,)) for name in names]

    def begins(self, partitions: Iterable[Partition]) -> dict[Partition, int]:
        return dict.fromkeys(partitions, 0)

    def stable_ends(self, partitions: Iterable[Partition]) -> dict[Partition, End]:
        return dict.fromkeys(partitions, End(0))

    def epoch_ends(self, epochs: Mapping[Partition, int]) -> dict[Partition, int | None]:
        self.asked += epochs.values()
        return {p: self.upto[epoch] for p, epoch in epochs.items()}


@pytest.mark.parametrize("epoch", [None, 3])
def test_a_log_that_ends_below_what_was_read_is_another_one_whoever_leads(epoch: int | None) -> None:
    with pytest.raises(InputError, match="lost its end"):
        check_kept(Elections({}), {P: End(10, epoch)}, {P: End(7, epoch)})
    check_kept(Elections({}), {P: End(10, epoch)}, {P: End(10, epoch)})


@pytest.mark.parametrize(("wrote", "same"), [(4, True), (9, True), (3, False), (None, False)])
def test_what_an_earlier_leader_wrote_is_asked_of_the_log(wrote: int | None, same: bool) -> None:
    """The messages up to 4 name epoch 3, those up to 10 the leader that told the end: only that one is proven."""
    read = [LogRead(P, 10, 5, ((3, 4), (5, 10)))]
    control = Elections({3: wrote})
    topics = {"t": TopicProgress("id")}
    if same:
        check_read(control, read, topics)
    else:
        with pytest.raises(InputError, match="lost its end"):
            check_read(control, read, topics)
    assert control.asked == [3]
