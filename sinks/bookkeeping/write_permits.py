"""How Spark's tasks write a window in `row` consistency: over connections of their own, a chunk a transaction.

They need a permit, a row of `ticdc_reconciler.writer` for each part of a phase's rows, which every such transaction
locks:

    permits + window recorded -> tasks delete -> new permits -> tasks write -> no permits + progress

A permit that was replaced or withdrawn, and one that a later attempt has taken over, allows nothing any more: so a lost
attempt that goes on writes nothing behind its retry, nor anything behind the end of its phase.
"""

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from itertools import chain
from typing import NamedTuple

from ordering.drift import NO_DRIFT, Drifts, summed
from ordering.errors import LeadershipLostError
from ordering.events import TableName
from sinks.bookkeeping.tables import Book
from sinks.rows.spool import RowCounts


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
    """What an attempt has written: how many rows of each table, and what they have shown of drift."""

    by_table: RowCounts
    drifts: Drifts

    @property
    def rows(self) -> int:
        """How many rows of all tables."""
        return sum(self.by_table.values())


NOTHING_DONE = PartDone({}, NO_DRIFT)


def all_done(parts: Iterable[PartDone]) -> PartDone:
    """What several parts come to."""
    done = list(parts)
    by_table: Counter[TableName] = Counter()
    for one in done:
        by_table.update(one.by_table)
    return PartDone(by_table, summed(chain.from_iterable(one.drifts.items() for one in done)))


class PermitTable:
    """The permits of all changefeeds of a target."""

    def __init__(self, book: Book) -> None:
        self._book = book

    @property
    def _table(self) -> str:
        return self._book.place("writer")

    def set(self, changefeed: str, phase: Phase | None = None) -> None:
        """Replace the changefeed's permits by this phase's, not taken by any attempt yet; None: by none."""
        self._book.run(f"DELETE FROM {self._table} WHERE changefeed = ?", (changefeed,))  # noqa: S608 a constant
        if phase is not None and phase.parts:
            marks = ", ".join(["(?, ?, ?, 0)"] * phase.parts)
            values = [value for part in range(phase.parts) for value in (changefeed, part, phase.name)]
            self._book.run(f"INSERT INTO {self._table} VALUES {marks}", values)  # noqa: S608 a constant

    def parts(self, changefeed: str) -> list[int]:
        """The parts for which there are permits."""
        rows = self._book.query(f"SELECT part FROM {self._table} WHERE changefeed = ?", (changefeed,))  # noqa: S608 a constant
        return [part for (part,) in rows]

    def locked(self, changefeed: str, part: int) -> tuple[str, int]:
        """Lock a permit; its name and the attempt that has it (0: none)."""
        rows = self._book.query(
            f"SELECT phase, attempt FROM {self._table} WHERE changefeed = ? AND part = ?{self._book.lock()}",  # noqa: S608 a constant
            (changefeed, part),
        )
        return (rows[0][0], rows[0][1]) if rows else ("", 0)

    def take(self, attempt: Attempt) -> None:
        """Note that this attempt has the permit of its part."""
        self._book.run(
            f"UPDATE {self._table} SET attempt = ? WHERE changefeed = ? AND part = ?",  # noqa: S608 a constant
            (attempt.number, attempt.phase.changefeed, attempt.part),
        )

    def check(self, attempt: Attempt, highest: int | None = None) -> int:
        """Lock the permit; it has to be this attempt's, or (`highest`) of one that is not above. Whose it is.

        Raises LeadershipLostError.
        """
        name, holder = self.locked(attempt.phase.changefeed, attempt.part)
        if name != attempt.phase.name or (holder > highest if highest is not None else holder != attempt.number):
            raise LeadershipLostError(
                f"attempt {attempt.number} of part {attempt.part} may not write any more: another one does, or its"
                " phase is over",
                where=self._book.where,
            )
        return holder
