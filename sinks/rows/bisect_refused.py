"""Finds the row that a target refuses among the thousands of one statement.

Not while all goes well: only after a refusal the group's rows are tried again in halves, between savepoints of a
transaction that is rolled back in the end. So each row is sent at most twice as often as there are halvings.
"""

from collections.abc import Callable, Sequence
from dataclasses import replace

from ordering.errors import NO_ROW_AT_FAULT, TargetError
from sinks.rows.chunk import Chunk, Encoder
from sinks.rows.spool import Group, Spool


class RowRefusedError(TargetError):
    """The target refuses this row, which is given as a chunk of its own."""

    def __init__(self, fact: str, *, where: str = "", hint: str = "", row: Chunk) -> None:
        self.row = row
        super().__init__(fact, where=where, hint=hint)

    def __reduce__(self) -> tuple[object, ...]:
        """Keep the row when the error crosses a process boundary."""
        return (_rebuild, (self.fact, self.where, self.hint, self.row))


def _rebuild(fact: str, where: str, hint: str, row: Chunk) -> RowRefusedError:
    return RowRefusedError(fact, where=where, hint=hint, row=row)


class Trial:
    """Tries rows: `put` writes a group, `save` sets a savepoint, `back` returns to it."""

    def __init__(
        self, encoder: Encoder, put: Callable[[Group], object], save: Callable[[], None], back: Callable[[], None]
    ) -> None:
        self._encoder, self._put, self._save, self._back = encoder, put, save, back

    def refused(self, group: Group, error: TargetError) -> TargetError:
        """What to raise instead of the refusal of a whole group; the error itself where no single row is at fault."""
        for payload in group.payloads():
            rows = self._encoder.split(payload)
            if self._error(group, rows) is not None:
                return self._narrowed(group, rows, error)
        return error

    def _narrowed(self, group: Group, rows: Sequence[bytes], error: TargetError) -> TargetError:
        """One of these rows is refused: which. Rows that are taken stay, for the next ones may collide with them."""
        while len(rows) > 1:
            half = rows[: len(rows) // 2]
            rows = rows[len(half) :] if self._error(group, half) is None else half
        own = self._error(group, rows)
        if own is None:
            return error
        return RowRefusedError(own.fact, where=own.where, hint=own.hint, row=self._chunk(group, rows))

    def _chunk(self, group: Group, rows: Sequence[bytes]) -> Chunk:
        return replace(group.first, rows=len(rows), payload=self._encoder.joined(rows))

    def _error(self, group: Group, rows: Sequence[bytes]) -> TargetError | None:
        """What the target says of these rows; None if it took them."""
        self._save()
        with Spool() as spool:
            spool.add(self._chunk(group, rows))
            try:
                self._put(spool.groups(group.first.half)[0])
            except NO_ROW_AT_FAULT:
                raise
            except TargetError as error:
                self._back()
                return error
        return None
