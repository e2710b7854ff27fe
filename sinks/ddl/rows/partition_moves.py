"""What clauses about partitions do to rows, as statements for targets without partitions."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from ordering.errors import TargetError
from sinks.ddl.kept_definitions import Known
from sinks.ddl.parse.partitions import PartitionChange
from sinks.ddl.rows.partition_condition import Speller, rows_of
from sinks.rows.chained import chained

_EXCHANGED = "ticdc_reconciler_exchanged"


@dataclass(frozen=True, slots=True)
class TablePlace:
    """A table as statements name it, and its columns that are written, quoted.

    `overriding`: what lets values be written that the target would make by itself.
    """

    name: str
    columns: Sequence[str]
    overriding: str = ""


def moved_rows(
    change: PartitionChange,
    known: Known | None,
    own: TablePlace,
    other: TablePlace | None,
    speller_of: Callable[[Known], Speller],
) -> Iterator[str]:
    """Delete or swap the rows of partitions. Raises TargetError where it is not known which they are."""
    if change.removed is None:
        yield f"DELETE FROM {own.name}"  # noqa: S608 quoted
        return
    names = [change.exchanged[0]] if change.exchanged else list(change.removed)
    if not names:
        return
    if known is None or known.partitions is None:
        raise TargetError(
            f"which rows are in partition {', '.join(names)} of {own.name} is not known: this changefeed has not"
            " seen its CREATE TABLE, or its form of partitions has no counterpart here",
            hint="delete or move these rows in the target by hand, and leave this DDL out with a filter",
        )
    partitions, speller = known.partitions, speller_of(known)
    where = chained(" OR ", [f"({rows_of(partitions, name, speller)})" for name in names])
    if other is None:
        yield f"DELETE FROM {own.name} WHERE {where}"  # noqa: S608 quoted
    else:
        yield from _swapped(own, other, where)


def _swapped(own: TablePlace, other: TablePlace, where: str) -> Iterator[str]:
    names = ", ".join(own.columns)
    yield f"CREATE TEMPORARY TABLE {_EXCHANGED} AS SELECT {names} FROM {own.name} WHERE {where}"  # noqa: S608 quoted
    yield f"DELETE FROM {own.name} WHERE {where}"  # noqa: S608 quoted
    yield f"INSERT INTO {own.name} ({names}){own.overriding} SELECT {names} FROM {other.name}"  # noqa: S608 quoted
    yield f"DELETE FROM {other.name}"  # noqa: S608 quoted
    yield f"INSERT INTO {other.name} ({names}){other.overriding} SELECT {names} FROM {_EXCHANGED}"  # noqa: S608 quoted
    yield f"DROP TABLE {_EXCHANGED}"
