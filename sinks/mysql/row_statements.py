"""Which statements a group's rows become where LOAD DATA is not used: bounded in rows and in bytes."""

from collections.abc import Iterable, Iterator, Sequence

from ordering.errors import TargetError
from ordering.events import TableName
from sinks.mysql.connection import MysqlConnection, size_of
from sinks.rows.schema import Column, Shape
from sinks.rows.spool import Group
from sinks.rows.tsv import decode_rows

STATEMENT_ROWS = 1000
STATEMENT_BYTES = 4 << 20
"""More in one statement is no quicker; the server's `max_allowed_packet` may be less."""
_NUMBERS = (Shape.BIT, Shape.ENUM, Shape.SET)
EXPRESSIONS = {Shape.BYTES: "UNHEX({})", **dict.fromkeys(_NUMBERS, "CAST({} AS UNSIGNED)")}


def mark(column: Column) -> str:
    """What stands for a column's value in a statement."""
    return EXPRESSIONS.get(column.shape, "{}").format("%s")


def bound(column: Column, text: str | None) -> str | int | None:
    """A value as it is bound."""
    return int(text) if text is not None and column.shape in (Shape.INTEGER, *_NUMBERS) else text


def rows_of(group: Group) -> Iterator[list[str | None]]:
    """The rows of a group."""
    return (row for payload in group.payloads() for row in decode_rows(payload))


def literals(db: MysqlConnection, columns: Sequence[Column], rows: Iterable[Sequence[str | None]]) -> Iterator[str]:
    """Rows as literals, one beside the other."""
    marks = ", ".join(map(mark, columns))
    for row in rows:
        yield db.spelled(marks, (bound(c, text) for c, text in zip(columns, row, strict=True)))


def parts(db: MysqlConnection, table: TableName, spelled: Iterable[str], around: int) -> Iterator[list[str]]:
    """Rows in their order, so many together as a statement takes; `around`: the bytes of a statement without any.

    Raises TargetError for a row that no statement can hold.
    """
    room = min(STATEMENT_BYTES, db.statement_bytes - around)
    part: list[str] = []
    size = 0
    for text in spelled:
        own = size_of(text) + len("(), ")
        if own > db.statement_bytes - around:
            raise _too_large(db, table, own + around)
        if part and (len(part) == STATEMENT_ROWS or size + own > room):
            yield part
            part, size = [], 0
        part.append(text)
        size += own
    if part:
        yield part


def _too_large(db: MysqlConnection, table: TableName, size: int) -> TargetError:
    return TargetError(
        f"a row of {table} takes a statement of {size} bytes: the server takes {db.statement_bytes}",
        where=db.where,
        hint="raise the server's max_allowed_packet, or set its local_infile = 1",
    )
