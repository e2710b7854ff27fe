"""Whether the target's columns hold what messages say of upstream's, before anything of a window is written. Pure."""

from collections.abc import Iterable, Iterator, Mapping

from consumer.tasks.report import Report
from ordering.errors import TableMismatchError
from ordering.events import Position, TableName
from sinks.ddl.model import ColumnDef
from sinks.rows.column_fit import Holds, unlike
from sinks.rows.schema import Catalog
from sinks.rows.values import is_utc

_SPELLED = {"decimal", "datetime", "time"}
"""Types whose values may end in zeros."""
_AS_TEXT = {Holds.TEXT, Holds.CLOCK, Holds.UNTYPED}
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


def refused_spellings(reports: Iterable[Report], catalog: Catalog) -> None:
    """Raise TableMismatchError for a key that the target holds as text, and that messages spell otherwise than it does.

    For a protocol that leaves out how many digits a column has: `1.5` of a DECIMAL would not find its row `1.50`.
    """
    seen: set[tuple[TableName, str]] = set()
    for report in reports:
        for name, offset, types in report.types:
            schema = catalog.get(name)
            keys = () if schema is None else {*schema.handle_key, *(one for key in schema.unique_keys for one in key)}
            new = {one for one in keys if types.get(one, "") in _SPELLED} - {one for at, one in seen if at == name}
            seen.update((name, one) for one in new)
            for one in sorted(new):
                column = None if schema is None else schema.column(one)
                if column is not None and catalog.holds(column) in _AS_TEXT:
                    fact = f"table {name}: the key column {one!r} is {types[one]} upstream and a text in the target"
                    hint = "messages of protocol=debezium lack zeros at its end, so its rows would not be found"
                    hint += "; leave the table out with filter.rules, or use another protocol or target"
                    raise TableMismatchError(fact, where=str(Position(*report.range.partition, offset)), hint=hint)


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
