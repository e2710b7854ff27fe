"""Rows on their way from a Spark task to the target: encoded once, in the task, as the target loads them."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from ordering.errors import TargetError
from ordering.events import Half, TableName
from sinks.schema import Column, TableSchema

Texts = Sequence[str | None]


@dataclass(frozen=True, slots=True)
class Chunk:
    """Some rows of one table: keys to delete or full rows to write, in the dialect's encoding."""

    table: TableName
    half: Half
    columns: tuple[str, ...]
    rows: int
    payload: bytes
    plain_insert: bool = False
    """Writes only: no row with these keys is left, so a conflict is an error (R5)."""


class Encoder(Protocol):
    """A dialect's encoding of rows; stateless, runs inside Spark's tasks."""

    def encode(self, columns: Sequence[Column], rows: Sequence[Texts]) -> bytes:
        """Texts as sent (one sequence a row, in the order of `columns`) to what the sink loads."""
        ...


def writable(schema: TableSchema, sent: Sequence[str]) -> list[int]:
    """Which of the sent columns are written: all but those that the target generates.

    Raises TargetError for a column that the target's table lacks.
    """
    missing = [name for name in sent if schema.column(name) is None]
    if missing:
        raise TargetError(
            f"the target's table {schema.name} has no column {', '.join(map(repr, missing))}",
            hint="a DDL was missed or the target was changed by hand: add the column as it is upstream, then run again",
        )
    return [i for i, name in enumerate(sent) if not _generated(schema, name)]


def _generated(schema: TableSchema, name: str) -> bool:
    column = schema.column(name)
    return column is not None and column.generated
