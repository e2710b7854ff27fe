"""The parts of a shard's table, and what defines each: two shards are merged where these are equal. Pure."""

import re
from collections.abc import Iterator, Mapping
from dataclasses import replace

from ordering.events import folded
from sinks.ddl.model import Change, ColumnDef, IndexDef, IndexKind, Passed, SetComment, TableDef

COLLATION = "default collation"
"""The part that is no column: what new columns of text have."""
_COLLATING = ("CONVERT", "DEFAULT", "CHARACTER", "CHARSET", "COLLATE")


def is_of_rows(change: Change) -> bool:
    """Whether a clause changes columns or keys; what says how a table is stored is passed over."""
    return not (
        isinstance(change, SetComment)
        or (isinstance(change, Passed) and not change.text.upper().startswith(_COLLATING))
    )


def fills_itself(column: ColumnDef) -> bool:
    """Whether the target has one value, the same at any time, for rows that lack a column."""
    computed = column.generated is not None or column.automatic or column.on_update
    default = column.default
    if computed or (default is not None and default.expression):
        return False
    return column.nullable or (default is not None and default.value is not None)


def parts_of(table: TableDef) -> dict[str, str]:
    """All parts of a table."""
    key = set(map(folded, table.primary_key))
    columns = (replace(one, nullable=one.nullable and folded(one.name) not in key) for one in table.columns)
    found = {column_part(column): column_definition(column) for column in columns}
    found.update((index_part(index), index_definition(index)) for index in table.indexes)
    return {**found, COLLATION: table.collation}


def column_part(column: ColumnDef) -> str:
    """What a column is called among parts."""
    return f"column {folded(column.name)}"


def index_part(index: IndexDef) -> str:
    """What an index is called among parts."""
    name = "" if index.kind is IndexKind.PRIMARY else f" {folded(index.known_as)}"
    return f"{index.kind.value}{name}"


def indexes_over(parts: Mapping[str, str], column: str) -> list[str]:
    """The indexes that go with a column: those over it alone."""
    own = re.compile(re.escape(column) + r"(\(\d+\))?( DESC)?", re.ASCII)
    return [part for part, told in parts.items() if part.startswith("index ") and own.fullmatch(told)]


def index_definition(index: IndexDef) -> str:
    """What an index is over."""
    return ", ".join(
        f"{folded(part.column) or part.expression}{f'({part.length})' if part.length else ''}"
        f"{' DESC' if part.descending else ''}"
        for part in index.parts
    )


def column_definition(column: ColumnDef) -> str:
    """What makes two columns hold the same; no comment, and not where it stands."""
    return " ".join(_words(column))


def _words(column: ColumnDef) -> Iterator[str]:
    yield str(column.type)
    if column.type.charset or column.type.collation:
        yield f"{column.type.charset or '-'}/{column.type.collation or '-'}"
    yield "NULL" if column.nullable else "NOT NULL"
    if column.default is not None and (column.default.expression or column.default.value is not None):
        yield f"DEFAULT {column.default.expression or repr(column.default.value)}"
    if column.generated is not None:
        yield f"AS ({column.generated.expression}){' STORED' if column.generated.stored else ''}"
    if column.on_update:
        yield f"ON UPDATE {column.on_update}"
    if column.automatic:
        yield "AUTO_INCREMENT"
