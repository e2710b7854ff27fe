"""Secondary indexes in SQLite: `table.index`, for its index names are global to a file."""

import re
from collections.abc import Iterator

from ordering.events import TableName
from sinks.ddl.model import IndexDef, IndexKind, IndexPart
from sinks.sqlite.catalog import index_name, quoted_database
from sinks.sqlite.ddl.schema_text import body_of, quoted

_HEAD = re.compile(
    r"""(CREATE\s+(?:UNIQUE\s+)?(?:INDEX|TRIGGER))\s+("(?:[^"]|"")*"|`(?:[^`]|``)*`|'(?:[^']|'')*'|\[[^\]]*\]|\w+)\s+(.*)""",
    re.DOTALL | re.IGNORECASE,
)
NOTE = "-- "
"""How a line begins that tells what was left out, and why."""


def left_out(what: str) -> str:
    """The line of the DDL log about what is not executed."""
    return noted(f"left out: {what}")


def noted(what: str) -> str:
    """A line of the DDL log that is no statement."""
    return NOTE + " ".join(what.split())


def index_place(database: str, index: str) -> str:
    """An index or trigger as statements name it."""
    return f"{quoted_database(database)}.{quoted(index)}"


def name_of(table: TableName, index: str) -> str:
    """An upstream index as statements name it."""
    return index_place(table.database, index_name(table, index))


def remade(table: TableName, index: str, sql: str) -> str:
    """The text of an index for a table or an index of another name."""
    unique = "UNIQUE " if sql.upper().startswith("CREATE UNIQUE") else ""
    return f"CREATE {unique}INDEX {name_of(table, index)} ON {quoted(table.table)} {body_of(sql)}"


def made_again(database: str, sql: str) -> str:
    """The statement of an index's or a trigger's text, which SQLite keeps without the database."""
    kind, name, rest = _HEAD.match(sql).groups()  # type: ignore[union-attr]
    bare = name[1:-1].replace(name[0] * 2, name[0]) if name[0] in "\"'`" else name.strip("[]")
    return f"{kind} {index_place(database, bare)} {rest}"


def created(table: TableName, index: IndexDef, columns: set[str]) -> Iterator[str]:
    """A secondary index; a prefix becomes an expression, what SQLite can't index is left out."""
    if index.kind is IndexKind.PRIMARY:
        return
    unknown = any(part.expression or part.column.lower() not in columns for part in index.parts)
    if index.kind is IndexKind.OTHER or unknown:
        yield left_out(f"index {index.known_as!r} over what SQLite can't index")
        return
    unique = "UNIQUE " if index.kind is IndexKind.UNIQUE else ""
    parts = ", ".join(map(_part, index.parts))
    yield f"CREATE {unique}INDEX {name_of(table, index.known_as)} ON {quoted(table.table)} ({parts})"


def _part(part: IndexPart) -> str:
    text = quoted(part.column) if part.length is None else f"substr({quoted(part.column)}, 1, {part.length})"
    return f"{text} DESC" if part.descending else text
