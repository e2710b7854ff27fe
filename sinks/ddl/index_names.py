"""Whether an index that upstream drops or renames is the target's of that name.

Upstream names an index that has no name by its first column, or by that and a number where the name is taken. A target
that left out the one which took it has named the other one in another way; a table made by hand has any names. A DROP
by upstream's name then finds nothing, and a unique index stays that upstream has no more: in a table without a primary
key rows that are equal in it would replace each other. Pure.
"""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence

from ordering.errors import TargetError
from ordering.events import folded
from sinks.ddl.model import DropIndex, RenameIndex
from sinks.ddl.parse.statement import DdlKind, Statement
from sinks.ddl.parse.tables import read_changes, read_dropped_index
from sinks.rows.schema import Catalog, TableSchema

_NUMBERED = re.compile(r"(.+)_\d+")


def check_names(
    statement: Statement,
    table: TableSchema | None,
    catalog: Catalog,
    has: Callable[[str], bool],
    is_ours: Callable[[str], bool],
) -> None:
    """Raise TargetError for a DROP or RENAME INDEX that may be about a unique index of another name here.

    `table`: before the statement. `has`: whether it has an index of upstream's name, also one that is not unique.
    `is_ours`: whether an index was made by a DDL, by its name in the target; others may be upstream's by any name.
    """
    gone = list(_gone(statement))
    if table is None or not gone:
        return
    own = {name: folded(catalog.index_name(table.here, name)) for name, _ in gone}
    unique = {folded(name): columns for name, columns in table.unique_indexes.items()}
    left = {name: columns for name, columns in unique.items() if name not in own.values()}
    for name, drops in gone:
        if _is_there(name, own[name], table, unique):
            others = _twins(name, own[name], unique, table, catalog) if own[name] in unique else []
        else:
            others = [*bearing(name, left), *(_telling(table, left, is_ours) if drops else [])]
            others = [] if others and has(name) else others
        if others:
            raise TargetError(
                f"upstream drops or renames index {name!r} of {table.here}, and the target's unique index over"
                f" {', '.join(others[0])} may be that one",
                hint="if it is, drop it by hand, or rename it as upstream does, and settle this DDL by `reconciler ddl"
                " done`; if it is not, by `reconciler ddl skip`, once the other clauses are done by hand",
            )


def _is_there(name: str, own: str, table: TableSchema, unique: Mapping[str, Sequence[str]]) -> bool:
    return "PRIMARY" in table.valid_indexes if folded(name) == "primary" else own in unique


def _telling(
    table: TableSchema, unique: Mapping[str, Sequence[str]], is_ours: Callable[[str], bool]
) -> list[Sequence[str]]:
    """The columns of those indexes by which rows may be told apart here, and that somebody may have made by hand."""
    if "PRIMARY" in table.valid_indexes:
        return []
    valid = {folded(name) for name in table.valid_indexes if not is_ours(name)}
    return [columns for name, columns in unique.items() if name in valid]


def bearing(name: str, unique: Mapping[str, Sequence[str]]) -> list[Sequence[str]]:
    """The columns of those unique indexes that upstream may know by this name, for it is made of their first column."""
    numbered = _NUMBERED.fullmatch(folded(name))
    firsts = {folded(name), *([numbered[1]] if numbered else [])}
    return [columns for columns in unique.values() if columns and folded(columns[0]) in firsts]


def _gone(statement: Statement) -> Iterator[tuple[str, bool]]:
    """The names that indexes lose, and whether they are dropped."""
    if statement.kind is DdlKind.DROP_INDEX:
        yield read_dropped_index(statement.sql), True
    for change in read_changes(statement.sql) if statement.kind is DdlKind.ALTER_TABLE else ():
        if isinstance(change, DropIndex):
            yield change.name, True
        elif isinstance(change, RenameIndex):
            yield change.old, False


def _twins(
    name: str, own: str, unique: Mapping[str, Sequence[str]], table: TableSchema, catalog: Catalog
) -> list[Sequence[str]]:
    """Of an index with a name that upstream chooses: another one over the same columns with such a name."""
    first = unique[own][0] if unique[own] else ""
    chosen = {first, *(f"{first}_{number}" for number in range(2, len(unique) + 3))}
    theirs = {folded(catalog.index_name(table.here, one)) for one in chosen}
    if not first or folded(name) not in map(folded, chosen):
        return []
    return [found for other, found in unique.items() if other != own and other in theirs and found == unique[own]]
