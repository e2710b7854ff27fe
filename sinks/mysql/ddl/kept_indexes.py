"""Indexes that upstream has dropped and the target has kept: TiCDC does not replicate the loss of a last valid index.

A later statement that makes one of the same name finds the old one dropped by a DDL of its own (`consumer.ddl`), but
for one that the same statement drops. That goes before the intent is recorded: after a crash in between it is simply
gone. One that is as wanted is left alone; any other one is an operator's, and never dropped.
"""

import re
from collections.abc import Callable, Iterator
from typing import Any

from ordering.errors import TargetError
from ordering.events import TableName, folded
from sinks.ddl.model import AddIndex, DropIndex, IndexDef, IndexKind
from sinks.ddl.parse.statement import DdlKind, Statement, named
from sinks.ddl.parse.tables import read_changes, read_index
from sinks.mysql.catalog import quoted
from sinks.rows.schema import Catalog

Query = Callable[[str, tuple[Any, ...]], list[tuple[Any, ...]]]
_PARTS = """
SELECT NON_UNIQUE, COLUMN_NAME, SUB_PART FROM information_schema.STATISTICS
WHERE TABLE_SCHEMA = %s AND TABLE_NAME = %s AND LOWER(INDEX_NAME) = LOWER(%s) ORDER BY SEQ_IN_INDEX"""

_PLAIN = re.compile(r"^ *(?:FULLTEXT |SPATIAL |VECTOR )?KEY `((?:[^`]|``)+)`", re.MULTILINE)
"""A line of a table's definition about an index that is not unique."""


def plain_indexes(definition: str) -> set[str]:
    """The names, folded, of a table's indexes that are not unique: of the others this is known without the target."""
    return {folded(name.replace("``", "`")) for name in _PLAIN.findall(definition)}


def drops(
    query: Query, statement: Statement, sent: Statement, session: str | None, catalog: Catalog, *, has_partial: bool
) -> Iterator[str]:
    """Statements that drop what is left over. `sent`: the statement with what TiCDC leaves out of it.

    `has_partial`: whether the server has indexes over a part of the rows; others are not given the statement at all.
    Raises TargetError for an index that no statement of upstream's has made.
    """
    left_out = {change.name.lower() for change in _changes(sent) if isinstance(change, DropIndex)}
    for name, index in _made(statement, session, catalog):
        there = _parts(query, name, index)
        if there not in ([], _wanted(index)):
            if index.known_as.lower() not in left_out:
                if has_partial and index.kind is IndexKind.OTHER and there[1:] == _wanted(index)[1:]:
                    continue  # over which rows it is, the server knows: it refuses the name
                raise _not_upstreams(name, index, there)
            key = "PRIMARY KEY" if index.kind is IndexKind.PRIMARY else f"INDEX {quoted(index.known_as)}"
            yield f"ALTER TABLE {quoted(name.database)}.{quoted(name.table)} DROP {key}"


def _not_upstreams(table: TableName, index: IndexDef, there: list[Any]) -> TargetError:
    columns = ", ".join(column or "an expression" for column in there[1:])
    return TargetError(
        f"upstream makes index {index.known_as!r} of {table}, and the target has another one of that name, over"
        f" {columns}",
        hint="rename it in the target, or drop it if rows may be equal in these columns, then start again",
    )


def has_index(query: Query, table: TableName, index: str) -> bool:
    """Whether a table has an index of this name."""
    return bool(query(_PARTS, (*table, index)))


def all_there(query: Query, statement: Statement, session: str | None, catalog: Catalog) -> bool:
    """Whether all that the statement makes is there, as it would be made."""
    clauses = 1 if statement.kind is DdlKind.CREATE_INDEX else len(_changes(statement))
    made = list(_made(statement, session, catalog))
    return 0 < len(made) == clauses and all(_parts(query, name, index) == _wanted(index) for name, index in made)


def _changes(statement: Statement) -> list[Any]:
    return list(read_changes(statement.sql)) if statement.kind is DdlKind.ALTER_TABLE else []


def _made(statement: Statement, session: str | None, catalog: Catalog) -> Iterator[tuple[TableName, IndexDef]]:
    """The indexes that a statement makes under names of its own, and their table."""
    changes = _changes(statement)
    indexes = [change.index for change in changes if isinstance(change, AddIndex)]
    if statement.kind is DdlKind.CREATE_INDEX:
        indexes = [read_index(statement.sql)]
    dropped = {change.name.lower() for change in changes if isinstance(change, DropIndex)}
    for index in indexes:
        if index.if_missing:
            continue  # one of its name is upstream's
        if (index.name or index.kind is IndexKind.PRIMARY) and index.known_as.lower() not in dropped:
            (table,) = map(named, statement.placed(session or "", lambda _: session or "").tables)
            yield catalog.spelled(table), index


def _parts(query: Query, table: TableName, index: IndexDef) -> list[Any]:
    """Whether it is unique, and its columns; the beginning of one that is wanted whole is another one."""
    rows = query(_PARTS, (*table, index.known_as))
    whole = {part.column.lower() for part in index.parts if part.length is None and index.kind.unique}
    parts = ((column.lower() if column else None, length) for _, column, length in rows)
    told = [f"{column}({length})" if length and column in whole else column for column, length in parts]
    return [not int(rows[0][0]), *told] if rows else []


def _wanted(index: IndexDef) -> list[Any]:
    return [index.kind.unique, *(part.column.lower() or None for part in index.parts)]
