"""Identifiers: always quoted, never cut. PostgreSQL's are 63 bytes long at most and cut silently beyond that."""

from datetime import UTC

import xxhash

from ordering.errors import TargetError
from ordering.events import TableName, folded
from sinks.rows.values import zone_of

LONGEST_BYTES = 63
_RESERVED = frozenset({"public", "information_schema", "ticdc_reconciler"})
_TABLE_DIGITS = 10
_INDEX_DIGITS = 6


def checked(name: str) -> str:
    """The name, if PostgreSQL can hold it. Raises TargetError."""
    if fits(name):
        return name
    size = len(name.encode())
    if size > LONGEST_BYTES:
        raise TargetError(
            f"the name {name!r} has {size} bytes, PostgreSQL's names have {LONGEST_BYTES} at most",
            hint="rename it upstream, leave the table out with filter.rules, or use another target",
        )
    raise TargetError(f"PostgreSQL can't hold the name {name!r}", hint="rename it upstream")


def fits(name: str) -> bool:
    """Whether PostgreSQL can hold a name."""
    return 0 < len(name.encode()) <= LONGEST_BYTES and "\0" not in name


def is_reserved(schema: str) -> bool:
    """Whether a schema is the server's own, or the reconciler's."""
    return schema.lower() in _RESERVED or schema.lower().startswith("pg_")


def quoted(name: str) -> str:
    """A name as an identifier. Raises TargetError for one that is too long."""
    return '"' + checked(name).replace('"', '""') + '"'


def place(table: TableName) -> str:
    """A table with its schema."""
    return f"{quoted(table.database)}.{quoted(table.table)}"


def literal(text: str) -> str:
    """A text as a literal that holds under either setting of standard_conforming_strings."""
    if "\0" in text:
        raise TargetError(f"PostgreSQL's texts can't hold U+0000: {text[:100]!r}")
    body = text.replace("'", "''")
    return "E'" + body.replace("\\", "\\\\") + "'" if "\\" in body else f"'{body}'"


def zone(name: str) -> str:
    """A time zone for AT TIME ZONE: an offset as an interval, for texts count to the west, as in POSIX."""
    if zone_of(name) is UTC:
        return "'UTC'"
    return f"INTERVAL {literal(name)}" if name.startswith(("+", "-")) else literal(name)


def index_name(table: TableName, index: str) -> str:
    """The name of an upstream index: in PostgreSQL tables and indexes of a schema share their names.

    So that no index takes another's or a table's name, digits made of its table and its own whole name follow it.
    Upstream's index names don't tell case apart.
    """
    index = folded(index)
    own = _digits(index, _INDEX_DIGITS)
    return f"{_cut(index, LONGEST_BYTES - _TABLE_DIGITS - _INDEX_DIGITS - 2)}_{own}{table_mark(table)}"


def renamed_index(name: str, old: TableName, new: TableName) -> str | None:
    """The name of a table's index once the table has another name; None for one that is not made by us."""
    return name.removesuffix(table_mark(old)) + table_mark(new) if name.endswith(table_mark(old)) else None


def is_of_ddl(table: TableName, index: str) -> bool:
    """Whether a DDL has made an index, by its name here."""
    return index.endswith(table_mark(table))


def table_mark(table: TableName) -> str:
    """How the names of a table's indexes end."""
    return "_" + _digits(f"{table.database}\0{table.table}", _TABLE_DIGITS)


def _digits(text: str, count: int) -> str:
    return xxhash.xxh3_64_hexdigest(text.encode())[:count]


def _cut(text: str, size: int) -> str:
    return text.encode()[:size].decode(errors="ignore")
