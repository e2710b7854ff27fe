"""Offsets that hold no message are no error where the topic's policy says that nothing was compacted (R8)."""

from collections.abc import Iterable, Mapping

import pytest

from consumer.source.continuity import check_uncompacted
from consumer.tasks.report import Report
from ordering.errors import InputError
from ordering.events import Partition
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
