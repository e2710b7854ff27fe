"""Whether the target's columns hold what messages say of upstream's, before anything of a window is written. Pure."""

from collections.abc import Iterable, Iterator, Mapping

from consumer.tasks.report import Report
from ordering.errors import TableMismatchError
from ordering.events import Position, TableName
from sinks.ddl.model import ColumnDef
from sinks.rows.column_fit import unlike
from sinks.rows.schema import Catalog
from sinks.rows.values import is_utc

_SHOWN = 100
"""Characters of a type in a message."""


def refused_types(reports: Iterable[Report], catalog: Catalog, zone: str) -> None:
    """Raise TableMismatchError for the first column in which upstream's values would mean something else."""
    seen: set[tuple[TableName, str, str]] = set()
    for report in reports:
        for name, offset, types in report.types:
            new = {column: kind for column, kind in types.items() if (name, column, kind) not in seen}
            seen.update((name, column, kind) for column, kind in new.items())
            for fact in misfits(name, new, catalog, zone):
                raise mismatch(fact, str(Position(*report.range.partition, offset)))


def mismatch(fact: str, where: str) -> TableMismatchError:
    """The error about a column that `misfits` found."""
    hint = (
        "make the column as it is upstream (ALTER TABLE on the target, or drop the table's copy and load it again), or"
        " leave the table out with filter.rules; `reconciler help targets` says which types hold which"
    )
    return TableMismatchError(fact, where=where, hint=hint)


def refused_definition(name: TableName, defined: Iterable[ColumnDef], catalog: Catalog, zone: str, where: str) -> None:
    """Raise TableMismatchError as `refused_types`, for columns as a dump defines them."""
    types = {column.name: f"{column.type.base}{_members(column.type.members)}" for column in defined}
    for fact in misfits(name, types, catalog, zone):
        raise mismatch(fact, where)


def _members(members: Iterable[str]) -> str:
    spelled = ",".join("'" + member.replace("'", "''") + "'" for member in members)
    return f"({spelled})" if spelled else ""


def misfits(name: TableName, types: Mapping[str, str], catalog: Catalog, zone: str) -> Iterator[str]:
    """What is wrong with the columns of a table for these types (`mysqlType`). A generated one is not written.

    `zone`: the one of TIMESTAMP texts.
    """
    schema = catalog.get(name)
    if schema is None:
        return
    for sent, kind in types.items():
        column = schema.column(sent)
        if column is None or (column.generated and sent not in schema.handle_key):
            continue
        if why := unlike(kind, catalog.holds(column), column.members, in_utc=is_utc(zone)):
            own = column.type[:_SHOWN] or "without a type"
            yield (
                f"table {name}: column {sent!r} is {kind[:_SHOWN]} upstream and {own} in the target, where its values"
                f" would mean something else: {why}"
            )
