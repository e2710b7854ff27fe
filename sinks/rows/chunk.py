"""Rows on their way from a Spark task to the target: encoded once, in the task, as the target loads them."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from ordering.errors import TableMismatchError
from ordering.events import RowOp, TableName, folded
from sinks.rows.schema import Column, TableSchema

Texts = Sequence[str | None]
_SHOWN = 10
"""Names that an error lists."""


@dataclass(frozen=True, slots=True)
class Chunk:
    """Some rows of one table: keys to delete or full rows to write, in the dialect's encoding."""

    table: TableName
    half: RowOp
    columns: tuple[str, ...]
    rows: int
    payload: bytes
    plain_insert: bool = False
    """Writes only: no row with these keys is left, so a conflict is an error (R5)."""
    by_content: bool = False
    """Deletes only, of a table without a key: for each row one that equals it in all columns is to go."""
    met: int | None = None
    """Of its rows so many were there before, as the events say (`ordering.drift`); None: that is not judged."""


class Encoder(Protocol):
    """A dialect's encoding of rows; stateless, runs inside Spark's tasks."""

    def encode(self, columns: Sequence[Column], rows: Sequence[Texts]) -> bytes:
        """Texts as sent (one sequence a row, in the order of `columns`) to what the sink loads.

        Raises ValueError for a text that the column can't hold, or that the target would change without a word.
        """
        ...

    def split(self, payload: bytes) -> list[bytes]:
        """A payload's rows, each as `encode` makes it of that row alone."""
        ...

    def joined(self, rows: Sequence[bytes]) -> bytes:
        """The payload of rows that `split` took apart."""
        ...


def writable(schema: TableSchema, sent: Sequence[str], *, deleted_first: bool) -> list[int]:
    """Which of the sent columns are written: all but those that the target generates.

    Raises TableMismatchError for a column that the target's table lacks, or upstream's, as far as DDLs have told, for
    columns of its own that can't be kept, and for a table that can't be written exactly.
    """
    schema.check_fit()
    missing = [name for name in sent if schema.column(name) is None]
    if missing:
        raise TableMismatchError(
            f"the target's table {schema.name} has no column {', '.join(map(repr, missing[:_SHOWN]))}",
            hint="a DDL was missed or the target was changed by hand: add the column as it is upstream, then run again",
        )
    _check_lacked(schema, sent)
    _check_own_columns(schema, sent, deleted_first=deleted_first)
    return [i for i, name in enumerate(sent) if not _generated(schema, name)]


def _check_lacked(schema: TableSchema, sent: Sequence[str]) -> None:
    """No DDL has given the shard such a column, so the last DROP COLUMN of another shard would delete its values."""
    unknown = [name for name in sent if folded(name) in schema.lacked]
    if unknown:
        raise TableMismatchError(
            f"a row of {schema.name} has the column {', '.join(map(repr, unknown[:_SHOWN]))}, which only other tables"
            f" merged in {schema.here} have, as their DDLs say: a DDL that gave it the column, or the table its name,"
            " was left out, or is not in the topics",
            hint="what the table's rows should hold is not known: see that every DDL of the shards is sent and followed"
            " (filters), and load them again under another changefeed id",
        )


def _check_own_columns(schema: TableSchema, sent: Sequence[str], *, deleted_first: bool) -> None:
    """Columns that upstream lacks keep their values as long as their rows are only updated."""
    lost = schema.lost_columns(sent)
    unfilled = [column.name for column in schema.own_columns(sent) if not (column.nullable or column.filled)]
    if unfilled:
        raise TableMismatchError(
            f"the target's table {schema.name} has the column {', '.join(map(repr, unfilled))}, NOT NULL without"
            " default, which upstream lacks: no row can be inserted",
            hint="give the column a default, let it be NULL, or drop it",
        )
    if deleted_first and lost:
        raise TableMismatchError(
            f"the target's table {schema.name} has columns that upstream lacks"
            f" ({', '.join(repr(column.name) for column in lost)}) and unique keys besides its row key, or a row key"
            " with a collation: such rows are deleted and inserted again, and would lose the values of these columns",
            hint="keep these columns in a table of their own, or drop the other unique keys in the target",
        )


def _generated(schema: TableSchema, name: str) -> bool:
    column = schema.column(name)
    return column is not None and column.generated
