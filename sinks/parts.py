"""How Spark's tasks write a window in `row` consistency: over connections of their own, a chunk a transaction.

They need a permit, a row of `ticdc_reconciler.writer` for each part of a phase's rows, which every such transaction
locks:

    permits + window recorded -> tasks delete -> new permits -> tasks write -> no permits + progress

A permit that was replaced or withdrawn, and one that a later attempt has taken over, allows nothing any more: so a lost
attempt that goes on writes nothing behind its retry, nor anything behind the end of its phase.
"""

from abc import abstractmethod
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import NamedTuple

from ordering.drift import NO_DRIFT, Drifts, summed
from ordering.errors import LeadershipLostError, TargetBusyError
from sinks.chunk import Chunk
from sinks.saving import ProgressSaving
from sinks.spool import Spool

_TRIES = 10
"""How often a task's transaction is tried that lost a deadlock or waited too long for a lock."""


@dataclass(frozen=True, slots=True)
class Phase:
    """The right of a phase's tasks to write: `parts` permits under one name that no other phase has."""

    changefeed: str
    name: str
    parts: int


@dataclass(frozen=True, slots=True)
class Attempt:
    """One try of a task at a part of a phase; of two tries the one with the higher number wins."""

    phase: Phase
    part: int
    number: int


class PartDone(NamedTuple):
    """What an attempt has written: how many rows, and what they have shown of drift."""

    rows: int
    drifts: Drifts


class PartWriting(ProgressSaving):
    """The transactions of a target, and what tasks may do in them. See `sinks.target.Target`."""

    name: str
    """For people: kind, host and port or path; never a password."""

    @abstractmethod
    def _begin(self) -> None: ...

    @abstractmethod
    def _commit(self) -> None: ...

    @abstractmethod
    def _rollback(self) -> None: ...

    @abstractmethod
    def _fence(self, holder: str) -> None:
        """End the connection that holds this name, if there is one: what it runs must not go on. Then hold it here.

        The leader holds the changefeed's name; a task that writes holds its part's.
        """

    @abstractmethod
    def _release(self, holder: str) -> None:
        """Hold this name no more."""

    @abstractmethod
    def _set_permits(self, changefeed: str, name: str, parts: int) -> None:
        """Replace the changefeed's permits by parts 0 to `parts` - 1 under this name, not taken by any attempt yet."""

    @abstractmethod
    def _permits(self, changefeed: str) -> list[int]:
        """The parts for which there are permits."""

    @abstractmethod
    def _locked_permit(self, changefeed: str, part: int) -> tuple[str, int] | None:
        """Lock a permit; its name and the attempt that has it (0: none)."""

    @abstractmethod
    def _take_permit(self, changefeed: str, part: int, attempt: int) -> None: ...

    @abstractmethod
    def _write_groups(self, spool: Spool) -> Drifts:
        """All deletes, then all writes; what they have shown of drift."""

    @contextmanager
    def _transaction(self) -> Iterator[None]:
        """A transaction around what is done inside: all of it, or nothing."""
        self._begin()
        try:
            yield
            self._commit()
        except BaseException:
            self._forget_saved()
            self._rollback()
            raise

    def _end_writers(self, changefeed: str) -> None:
        """End what tasks of the last leader still write: they hold locks for which everyone else would wait."""
        for part in self._permits(changefeed):
            self._fence(_writer(changefeed, part))
            self._release(_writer(changefeed, part))

    def take_over(self, attempt: Attempt) -> bool:
        """Become the one who writes a part; whether another attempt of this phase was before.

        Raises LeadershipLostError if the phase is over, or a later attempt has the part.
        """
        self._fence(_writer(attempt.phase.changefeed, attempt.part))
        with self._transaction():
            before = self._check_permit(attempt, attempt.number)
            self._take_permit(attempt.phase.changefeed, attempt.part, attempt.number)
        return before > 0

    def write_part(self, attempt: Attempt, chunks: Iterable[Chunk]) -> PartDone:
        """Write a part's chunks that was taken over, each in a transaction of its own.

        Raises LeadershipLostError once the phase is over, or another attempt has taken the part over.
        """
        rows, found = 0, NO_DRIFT
        for chunk in chunks:
            with Spool() as spool:
                spool.add(chunk)
                found = summed([*found.items(), *self._write_chunk(attempt, spool).items()])
                rows += spool.rows
        return PartDone(rows, found)

    def _write_chunk(self, attempt: Attempt, spool: Spool) -> Drifts:
        for left in reversed(range(_TRIES)):
            try:
                with self._transaction():
                    self._check_permit(attempt)
                    found = self._write_groups(spool)
            except TargetBusyError:
                if not left:
                    raise
            else:
                return found
        raise AssertionError

    def _check_permit(self, attempt: Attempt, highest: int | None = None) -> int:
        """Lock the permit; it has to be this attempt's, or (`highest`) of one that is not above. Whose it is."""
        found = self._locked_permit(attempt.phase.changefeed, attempt.part)
        name, holder = found or ("", 0)
        if name != attempt.phase.name or (holder > highest if highest is not None else holder != attempt.number):
            raise LeadershipLostError(
                f"attempt {attempt.number} of part {attempt.part} may not write any more: another one does, or its"
                " phase is over",
                where=self.name,
            )
        return holder


def _writer(changefeed: str, part: int) -> str:
    """The name that a task's connection holds."""
    return f"{changefeed}/{part}"
