"""Reads the tables of all attached databases; names files and databases."""

import re
import sqlite3
from collections.abc import Collection, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from urllib.parse import quote, unquote

from ordering.errors import TargetError
from ordering.events import TableName
from sinks.private_files import make_file
from sinks.rows.column_fit import Holds
from sinks.rows.schema import (
    Catalog,
    Column,
    Shape,
    TableSchema,
    Unfit,
    by_shape,
    choose_handle_key,
    computes,
    trigger_acts,
    valid_indexes,
)
from sinks.sqlite.ddl.schema_text import Check, checks_in, quoted

_GENERATED = (2, 3)
_VIRTUAL = 2
_SAFE = " $@!#,;=+()[]{}~"
_PREFIX = re.compile(r'substr\("((?:[^"]|"")*)", 1, \d+\)')
"""How a prefix of a column is indexed (`sinks.sqlite.ddl.indexes`)."""
_TEXTS = ("CHAR", "CLOB", "TEXT")
"""Parts of a declared type that give its column the affinity TEXT."""
_OWN_NAMES = {"main", "temp"}
_VIRTUAL_TABLE = re.compile(r"\s*CREATE\s+VIRTUAL\b", re.IGNORECASE)
_PASSES_OVER = re.compile(r"\bRAISE\b\W*\bIGNORE\b", re.IGNORECASE)


def quoted_database(database: str) -> str:
    """A database as statements name it: under its name, but for those that SQLite gives to databases of its own."""
    return quoted(f"{database} (upstream)" if database.lower() in _OWN_NAMES else database)


def place_of(table: TableName) -> str:
    """A table as statements name it."""
    return f"{quoted_database(table.database)}.{quoted(table.table)}"


def file_of(directory: Path, database: str) -> Path:
    """The file of a database; characters that file names can't hold are percent-encoded."""
    name = "".join(char if char > "\x7f" else quote(char, safe=_SAFE) for char in database)
    return directory / f"{name}.sqlite"


@contextmanager
def _as_refusal(path: Path) -> Iterator[None]:
    """What the file system refuses, as TargetError: a name that is too long, a disk that is full or read-only."""
    try:
        yield
    except OSError as error:
        raise TargetError(f"a database's file is refused: {error.strerror}", where=str(path)) from error


def make_database(directory: Path, database: str) -> None:
    """Make the file of a database, unless it is there. Raises TargetError."""
    path = file_of(directory, database)
    with _as_refusal(path):
        make_file(path)


def remove_database(directory: Path, database: str) -> None:
    """Remove a database that nobody has attached: its file, then what SQLite may have left beside it.

    A journal that stayed would be played back into a database of the same name that is made later. Raises TargetError.
    """
    path = file_of(directory, database)
    with _as_refusal(path):
        for name in (path.name, f"{path.name}-journal", f"{path.name}-wal", f"{path.name}-shm"):
            path.with_name(name).unlink(missing_ok=True)


def databases_in(directory: Path) -> list[str]:
    """The databases that have a file."""
    return sorted(unquote(path.stem) for path in directory.glob("*.sqlite"))


def read_catalog(connection: sqlite3.Connection, databases: Collection[str]) -> Catalog:
    """All tables of these attached databases."""
    tables = {name: table for database in databases for name, table in read_tables(connection, database).items()}
    return Catalog(tables, index_name, frozenset(databases), holds, is_of_ddl=is_of_ddl)


def read_tables(connection: sqlite3.Connection, database: str, only: str | None = None) -> dict[TableName, TableSchema]:
    """The tables of an attached database. `only`: the one of this name."""
    tables: dict[TableName, TableSchema] = {}
    found = connection.execute(
        f"SELECT name, sql FROM {quoted_database(database)}.sqlite_master"  # noqa: S608 quoted
        " WHERE type = 'table' AND name NOT LIKE 'sqlite\\_%' ESCAPE '\\' AND name = COALESCE(?, name)",
        (only,),
    ).fetchall()
    triggers = _triggers(connection, database)
    for table, sql in found:
        name = TableName(database, table)
        read = _read_table(connection, name, {check.column: check for check in checks_in(sql)})
        own = triggers.get(table, [])
        fact, remedy = _unfit(sql) or _passing(own) or ("", "")
        acting = (*(trigger_acts(name, trigger) for trigger, _ in own), *computes(name, read.columns))
        tables[name] = replace(read, unfit=fact, remedy=remedy, acting=acting)
    return tables


def holds(column: Column) -> Holds:
    """What a column's values mean: of a DATE or TIME the affinity is NUMERIC, of JSON there is only the text."""
    if column.shape is Shape.JSON:
        return Holds.JSON_TEXT
    is_clock = column.shape is Shape.TEXT and not any(part in column.type.upper() for part in _TEXTS)
    return Holds.CLOCK if is_clock else by_shape(column)


def _unfit(sql: str) -> Unfit | None:
    if _VIRTUAL_TABLE.match(sql) is None:
        return None
    return Unfit("is a virtual table, which keeps rows as it likes", "make it a table of SQLite's own")


def _triggers(connection: sqlite3.Connection, database: str) -> dict[str, list[tuple[str, str]]]:
    """Name and text of each trigger, by table."""
    found: dict[str, list[tuple[str, str]]] = {}
    look = f"SELECT tbl_name, name, sql FROM {quoted_database(database)}.sqlite_master WHERE type = 'trigger'"  # noqa: S608 quoted
    for table, name, sql in connection.execute(look):
        found.setdefault(table, []).append((name, sql))
    return found


def _passing(triggers: Iterable[tuple[str, str]]) -> Unfit | None:
    """Why a table can't be written whose trigger passes rows over without a word."""
    for name, sql in triggers:
        if _PASSES_OVER.search(sql):
            return Unfit(
                f"has the trigger {name!r}, whose RAISE(IGNORE) passes rows over without a word",
                f"run on the target: DROP TRIGGER {quoted(name)}, or let it RAISE(ABORT, ...)",
            )
    return None


def read_table(connection: sqlite3.Connection, table: TableName) -> TableSchema:
    """One table as it is now."""
    sql = texts_of(connection, table)[""]
    return _read_table(connection, table, {check.column: check for check in checks_in(sql)})


def index_name(table: TableName, index: str) -> str:
    """The name of an upstream index: in SQLite the names of indexes are global to a file."""
    return f"{table.table}.{index}"


def is_of_ddl(table: TableName, index: str) -> bool:
    """Whether a DDL has made an index, by its name here."""
    return index.lower().startswith(index_name(table, "").lower())


def texts_of(connection: sqlite3.Connection, table: TableName) -> dict[str, str]:
    """The SQL text of a table (under "") and its indexes."""
    found = connection.execute(
        f"SELECT type, name, sql FROM {quoted_database(table.database)}.sqlite_master"  # noqa: S608 quoted
        " WHERE tbl_name = ? AND type IN ('table', 'index') AND sql IS NOT NULL ORDER BY type DESC, rowid",
        (table.table,),
    )
    return {"" if kind == "table" else name: sql for kind, name, sql in found}


def shape_of(kind: str) -> Shape:
    """How texts become values of a column that is declared so (SQLite documentation, "Determination Of Affinity")."""
    name = kind.upper()
    is_instant = name.startswith("TIMESTAMP") and "WITHOUT" not in name  # also with digits, or a zone
    if is_instant or not name:
        return Shape.TIMESTAMP if name else Shape.EXACT
    if "INT" in name:
        return Shape.INTEGER
    if any(part in name for part in _TEXTS):
        return Shape.TEXT
    if "BLOB" in name:
        return Shape.BYTES
    if any(part in name for part in ("REAL", "FLOA", "DOUB")):
        return Shape.REAL
    # of other texts, NUMERIC affinity makes numbers, and so rounds: only whole numbers are safe there
    return Shape.TEXT if name.startswith(("DATE", "TIME")) else Shape.INTEGER


def _read_table(connection: sqlite3.Connection, name: TableName, checks: dict[str, Check]) -> TableSchema:
    uniques, folding, own = _unique_indexes(connection, name)
    spread = _with_prefixes(connection, name, uniques)
    columns, primary = [], {}
    pragma = f"PRAGMA {quoted_database(name.database)}.table_xinfo({quoted(name.table)})"
    for _, column, kind, not_null, default, pk, hidden in connection.execute(pragma):
        check = checks.get(column)
        columns.append(
            Column(
                column,
                kind,
                shape_of(kind) if check is None else check.shape,
                nullable=not (not_null or pk),
                generated=hidden in _GENERATED,
                members=() if check is None else check.members,
                virtual=hidden == _VIRTUAL,
                folds=column in folding,
                filled=default is not None,
            )
        )
        if pk:
            primary[pk] = column
    key = tuple(primary[i] for i in sorted(primary))
    named = {c.name: c for c in columns}
    handle = choose_handle_key(key, spread, named)
    unique = {index: parts for index, parts in spread.items() if index != own}
    valid = valid_indexes(key, unique, named)
    keys = tuple({*uniques.values(), *([key] if key else [])})
    return TableSchema(name, tuple(columns), handle, keys, valid, unique_indexes=unique)


def _unique_indexes(
    connection: sqlite3.Connection, name: TableName
) -> tuple[dict[str, tuple[str, ...]], set[str], str]:
    """The unique indexes, the columns that they compare other than byte by byte, and the primary key's own index.

    They are in the order in which they were made: SQLite lists the last one first.
    """
    found: dict[str, tuple[str, ...]] = {}
    folding: set[str] = set()
    own = ""
    listing = f"PRAGMA {quoted_database(name.database)}.index_list({quoted(name.table)})"
    for _, index, unique, origin, partial in reversed(connection.execute(listing).fetchall()):
        own = index if origin == "pk" else own
        if unique:
            look = f"PRAGMA {quoted_database(name.database)}.index_xinfo({quoted(index)})"
            parts = [part for part in connection.execute(look).fetchall() if part[5]]
            found[index] = tuple(part[2] or "" for part in parts) + (("",) if partial else ())
            folding |= {part[2] for part in parts if part[2] and part[4] != "BINARY"}
    return found, folding, own


def _with_prefixes(
    connection: sqlite3.Connection, name: TableName, uniques: dict[str, tuple[str, ...]]
) -> dict[str, tuple[str, ...]]:
    """The unique indexes, where one is over the beginning of a column with that column: upstream takes it for a key."""
    if all(all(parts) for parts in uniques.values()):
        return uniques
    texts = texts_of(connection, name)
    return {
        index: parts if all(parts) else _columns_of(parts, texts.get(index, "")) for index, parts in uniques.items()
    }


def _columns_of(parts: tuple[str, ...], text: str) -> tuple[str, ...]:
    begun = [match[1].replace('""', '"') for match in _PREFIX.finditer(text)]
    if parts.count("") != len(begun):
        return parts
    rest = iter(begun)
    return tuple(part or next(rest) for part in parts)
