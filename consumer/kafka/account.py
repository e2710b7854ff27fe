"""What became of a range of offsets: how far it was read, how many messages it gave, and which leaders wrote them."""

from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

from ordering.errors import SourceUnreachableError
from ordering.events import Partition
from ordering.window import Range

Epochs = tuple[tuple[int | None, int], ...]
"""(leader epoch, offset at which messages of it begin) as they were read; None where a message names no epoch."""


class Reached(NamedTuple):
    """How far a range was read: each offset before `offset` was given out, one of `messages`, or holds nothing."""

    offset: int
    messages: int
    epochs: Epochs = ()
    content: int = 0
    """Bytes of files."""


class EpochTrail:
    """The leader epochs of what is read, by partition."""

    def __init__(self) -> None:
        self._turns: dict[Partition, list[tuple[int | None, int]]] = {}
        self._behind: dict[Partition, int] = {}
        """The offset behind the last message that was noted."""

    def note(self, partition: Partition, epoch: int | None, first: int, last: int | None = None) -> None:
        """Note what wrote the messages at these offsets.

        Whose the marks of transactions between two leaders' messages are, nothing tells: they get a turn without epoch.
        """
        turns, behind = self._turns.setdefault(partition, []), self._behind.get(partition, first)
        if turns and turns[-1][0] not in (None, epoch) and behind < first:
            turns.append((None, behind))
        if not turns or turns[-1][0] != epoch:
            turns.append((epoch, first))
        self._behind[partition] = (first if last is None else last) + 1

    def note_run(self, partition: Partition, run: Sequence[Any]) -> None:
        """Note a run of messages at rising offsets. Epochs rise with them, so the first and the last tell of all."""
        first, last = run[0].leader_epoch(), run[-1].leader_epoch()
        if first == last:
            self.note(partition, first, run[0].offset(), run[-1].offset())
            return
        for message in run:
            self.note(partition, message.leader_epoch(), message.offset())

    def join(self, later: "EpochTrail", partition: Partition) -> None:
        """Take what another one has noted of what follows in a partition."""
        if turns := later._turns.get(partition):  # noqa: SLF001 its own class
            self.note(partition, *turns[0])
            self._turns[partition] += turns[1:]
            self._behind[partition] = later._behind[partition]  # noqa: SLF001

    def of(self, partition: Partition) -> Epochs:
        """What was noted of a partition."""
        return tuple(self._turns.get(partition, ()))


def epochs_upto(epochs: Epochs, stop: int) -> Epochs:
    """(leader epoch, offset behind its last message) of what was taken before an offset, itself behind a message."""
    some = [(epoch, begin) for epoch, begin in epochs if begin < stop]
    if not some:
        return ()
    ends = [*(begin for _, begin in some[1:]), stop]
    return tuple((epoch, end) for (epoch, _), end in zip(some, ends, strict=True))


def check_account(part: Range, reached: Reached, taken: int) -> None:
    """Raise SourceUnreachableError unless each offset of a range was taken or is known to hold nothing (R12)."""
    if (reached.offset, reached.messages) != (part.stop, taken):
        raise SourceUnreachableError(
            f"a range up to offset {part.stop} was read to {reached.offset}, and {taken} of {reached.messages}"
            " messages were taken",
            where=f"{part.partition} offset={reached.offset}",
            hint="nothing of it is applied, and it is read again",
        )


def messages_in(events: Iterable[Any]) -> int:
    """Of how many messages these events are: those of a batch share an offset, and come in one run."""
    return len({event.offset() for event in events})
