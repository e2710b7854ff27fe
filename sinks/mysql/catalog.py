"""Reads tables, columns and unique keys from information_schema; quotes names."""

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import groupby
from typing import Any, Protocol

from ordering.events import TableName
from sinks.rows.column_fit import Holds, members_of
from sinks.rows.schema import (
    Catalog,
    Column,
    Shape,
    TableSchema,
    Unfit,
    by_shape,
    choose_handle_key,
    trigger_acts,
    valid_indexes,
)


class Query(Protocol):
    """Executes a query with `%s` for bound values, where there are any."""

    def __call__(self, sql: str, parameters: Sequence[Any] | None = None, /) -> Iterable[tuple[Any, ...]]:
        """All rows."""


_SYSTEM = "('mysql', 'information_schema', 'performance_schema', 'sys', 'ticdc_reconciler')"
_DATABASES = f"SELECT SCHEMA_NAME FROM information_schema.SCHEMATA WHERE SCHEMA_NAME NOT IN {_SYSTEM}"  # noqa: S608 a constant
_COLUMNS = f"""
SELECT TABLE_SCHEMA, TABLE_NAME, COLUMN_NAME, COLUMN_TYPE, IS_NULLABLE, EXTRA, COLLATION_NAME,
  COLUMN_DEFAULT IS NOT NULL
FROM information_schema.COLUMNS WHERE TABLE_SCHEMA NOT IN {_SYSTEM}
ORDER BY TABLE_SCHEMA, TABLE_NAME, ORDINAL_POSITION"""  # noqa: S608 a constant
_VERSIONED = "SYSTEM VERSIONED"
"""MariaDB's type of a table that keeps the history of its rows."""
_TABLES = f"""
SELECT TABLE_SCHEMA, TABLE_NAME, ENGINE, TABLE_TYPE FROM information_schema.TABLES
WHERE TABLE_TYPE IN ('BASE TABLE', '{_VERSIONED}') AND TABLE_SCHEMA NOT IN {_SYSTEM}"""  # noqa: S608 a constant
"""By itself: a server that joins it with the columns opens each table once a column."""
_UNIQUES = f"""
SELECT TABLE_SCHEMA, TABLE_NAME, INDEX_NAME, COLUMN_NAME, SUB_PART FROM information_schema.STATISTICS
WHERE NON_UNIQUE = 0 AND TABLE_SCHEMA NOT IN {_SYSTEM}
ORDER BY TABLE_SCHEMA, TABLE_NAME, INDEX_NAME, SEQ_IN_INDEX"""  # noqa: S608 a constant
_PREDICATES = """
SELECT 1 FROM information_schema.COLUMNS
WHERE TABLE_SCHEMA = 'INFORMATION_SCHEMA' AND TABLE_NAME = 'TIDB_INDEXES' AND COLUMN_NAME = 'PREDICATE'"""
"""Whether the server has indexes over a part of the rows: TiDB since 8.5."""
_PARTIAL = f"""
SELECT TABLE_SCHEMA, TABLE_NAME, KEY_NAME FROM information_schema.TIDB_INDEXES
WHERE NON_UNIQUE = 0 AND PREDICATE <> '' AND TABLE_SCHEMA NOT IN {_SYSTEM}"""  # noqa: S608 a constant
_JSON_CHECKS = f"""
SELECT CONSTRAINT_SCHEMA, TABLE_NAME, CONSTRAINT_NAME FROM information_schema.CHECK_CONSTRAINTS
WHERE LEVEL = 'Column' AND CHECK_CLAUSE LIKE 'json\\_valid(%' AND CONSTRAINT_SCHEMA NOT IN {_SYSTEM}"""  # noqa: S608 a constant
"""MariaDB's JSON is a LONGTEXT with this constraint, named after the column."""
_TRIGGERS = f"""
SELECT EVENT_OBJECT_SCHEMA, EVENT_OBJECT_TABLE, TRIGGER_NAME, CONCAT(ACTION_TIMING, ' ', EVENT_MANIPULATION)
FROM information_schema.TRIGGERS WHERE EVENT_OBJECT_SCHEMA NOT IN {_SYSTEM} ORDER BY 1, 2, 3"""  # noqa: S608 a constant
"""Servers show those alone that the user has the right TRIGGER for."""
_CHANGING = {"BEFORE INSERT", "BEFORE UPDATE"}
"""Triggers that may set other values than those that are written (MySQL documentation, "Trigger Syntax")."""
ENGINE = "InnoDB"
"""The one in whose transactions rows and progress commit together."""
_BEGINNING = "the beginning of PRIMARY"
"""A primary key over a prefix tells rows apart that have another key, and takes rows for one that upstream may not."""
_MADE_KEY = "my_row_id"
"""The key that MySQL gives a table without one (sql_generate_invisible_primary_key); upstream has no such column."""
_COLLATION = 6
"""Where a row of `_COLUMNS` holds the collation."""
_HOLDING_BLANKS = ("varchar", "text", "tinytext", "mediumtext", "longtext")
"""Types whose values may end with blanks: a CHAR holds none there, an ENUM or SET only its members."""
_INTEGERS = ("tinyint", "smallint", "mediumint", "int", "bigint", "year")
_NAMED = {shape.value for shape in Shape} - {Shape.TEXT.value, "integer", "bytes", "exact", "real"}
_HOLDS = {
    **dict.fromkeys(("char", *_HOLDING_BLANKS), Holds.TEXT),
    "decimal": Holds.EXACT,
    "float": Holds.SINGLE,
    "year": Holds.YEAR,
    "uuid": Holds.UUID,
    "vector": Holds.VECTOR,
}
"""What is not plain from a column's shape."""
_BYTES = ("binary", "varbinary", "blob", "tinyblob", "mediumblob", "longblob")


def quoted(name: str) -> str:
    """A name as an identifier. MySQL doubles the backticks inside."""
    return "`" + name.replace("`", "``") + "`"


def place_of(table: TableName) -> str:
    """A table as statements name it."""
    return f"{quoted(table.database)}.{quoted(table.table)}"


def shape_of(column_type: str) -> Shape:
    """How texts from messages become values of a column of this type."""
    base = _base(column_type)
    if base in _INTEGERS:
        return Shape.INTEGER
    if base in _BYTES:
        return Shape.BYTES
    if base in {"float", "double"}:
        return Shape.REAL
    return Shape(base) if base in _NAMED else Shape.TEXT


Look = Callable[[str, tuple[str, str]], Iterable[tuple[Any, ...]]]
"""The rows of one of the queries above. The names are those of its columns for database and table."""
_NAMES = ("TABLE_SCHEMA", "TABLE_NAME")
_CHECKED = ("CONSTRAINT_SCHEMA", "TABLE_NAME")
_TRIGGERED = ("EVENT_OBJECT_SCHEMA", "EVENT_OBJECT_TABLE")
MadeIndexes = Callable[[TableName], Sequence[str]]
"""The names of a table's indexes in the order in which they were made."""


def read_catalog(query: Query, made: MadeIndexes, *, mariadb: bool) -> Catalog:
    """All base tables but the system's and our own."""
    tables = _tables(query, lambda sql, _: query(sql), made, mariadb=mariadb)
    empty = frozenset(database for (database,) in query(_DATABASES))
    return Catalog(tables, empty=empty, holds=holds, shows_members=False)


def read_table(query: Query, made: MadeIndexes, name: TableName, *, mariadb: bool) -> dict[TableName, TableSchema]:
    """The table of that name, as the server spells it; nothing where there is none."""

    def of_it(sql: str, names: tuple[str, str]) -> Iterable[tuple[Any, ...]]:
        only = "NOT IN {} AND {} = %s AND {} = %s".format(_SYSTEM, *names)
        return query(sql.replace("%", "%%").replace(f"NOT IN {_SYSTEM}", only), tuple(name))

    return _tables(query, of_it, made, mariadb=mariadb)


def _tables(query: Query, look: Look, made: MadeIndexes, *, mariadb: bool) -> dict[TableName, TableSchema]:
    uniques: dict[TableName, _Keys] = {}
    partial = {tuple(row) for row in look(_PARTIAL, _NAMES)} if not mariadb and list(query(_PREDICATES)) else set()
    for database, table, index, part, prefix in look(_UNIQUES, _NAMES):
        keys = uniques.setdefault(TableName(database, table), _Keys())
        column = "" if (database, table, index) in partial else part  # rows may be equal in it, as in an expression
        whole = column and (prefix is None or index == "PRIMARY")
        keys.whole[index] = (*keys.whole.get(index, ()), column if whole else "")
        if whole and prefix is not None:
            keys.whole[_BEGINNING] = ("",)
        keys.spread[index] = (*keys.spread.get(index, ()), column or "")
    json = {tuple(row) for row in look(_JSON_CHECKS, _CHECKED)} if mariadb else set()
    tables, base = {}, {(row[0], row[1]): (str(row[2]), str(row[3])) for row in look(_TABLES, _NAMES)}
    columns_of = [row for row in look(_COLUMNS, _NAMES) if tuple(row[:2]) in base]
    triggers = _triggers(look(_TRIGGERS, _TRIGGERED))
    padding = _padding(query, {row[_COLLATION] for row in columns_of if row[_COLLATION]})
    for (database, table), rows in groupby(columns_of, key=lambda row: (row[0], row[1])):
        name = TableName(database, table)
        named = _without_made_key(rows, uniques.get(name, _Keys()))
        columns = [_column(*row[2:], is_json=tuple(row[:3]) in json, pads=row[_COLLATION] in padding) for row in named]
        unfit = _unfit_kind(name, *base[database, table]) or _unfit_trigger(name, triggers.get(name, ()))
        table_read = _table(name, columns, uniques.get(name, _Keys()), made)
        acting = tuple(trigger_acts(name, trigger) for trigger, _ in triggers.get(name, ()))
        fact, remedy = unfit or ("", "")
        tables[name] = replace(table_read, unfit=fact, remedy=remedy, acting=acting)
    return tables


def _without_made_key(rows: Iterable[tuple[Any, ...]], keys: "_Keys") -> Iterator[tuple[Any, ...]]:
    """A table's columns but for the one that the server has added as its primary key, which tells no rows apart."""
    for row in rows:
        extra = str(row[5]).upper()
        if row[2] == _MADE_KEY and "INVISIBLE" in extra and "AUTO_INCREMENT" in extra:
            keys.drop("PRIMARY")
        else:
            yield row


def holds(column: Column) -> Holds:
    """What a column's values mean; MariaDB's JSON is a text that is checked."""
    base = _base(column.type)
    if column.shape is Shape.JSON and base != Shape.JSON.value:
        return Holds.JSON_TEXT
    known = _HOLDS.get(base)
    return known or (Holds.OTHER if column.shape is Shape.TEXT else by_shape(column))


def _base(column_type: str) -> str:
    return column_type.lower().partition("(")[0].partition(" ")[0]


@dataclass(slots=True)
class _Keys:
    """A table's unique indexes; in `spread` an index over the beginning of a column names that column."""

    whole: dict[str, tuple[str, ...]] = field(default_factory=dict)
    spread: dict[str, tuple[str, ...]] = field(default_factory=dict)

    def drop(self, index: str) -> None:
        """Forget an index."""
        self.whole.pop(index, None)
        self.spread.pop(index, None)


def _column(
    name: str,
    column_type: str,
    is_nullable: str,
    extra: str,
    collation: str | None,
    has_default: int,
    *,
    is_json: bool,
    pads: bool,
) -> Column:
    words = extra.upper().replace("DEFAULT_GENERATED", "")
    shape = Shape.JSON if is_json else shape_of(column_type)
    return Column(
        name,
        column_type,
        shape,
        is_nullable == "YES",
        generated="GENERATED" in words,
        members=members_of(column_type) if shape in {Shape.ENUM, Shape.SET} else (),
        virtual="VIRTUAL" in words,
        folds=collation is not None and not collation.endswith("_bin"),
        pads=pads and column_type.lower().startswith(_HOLDING_BLANKS),
        moved="ON UPDATE" in words,
        filled=bool(has_default) or "AUTO_INCREMENT" in words,
    )


def _padding(query: Query, collations: Collection[str]) -> frozenset[str]:
    """The `_bin` collations that take texts for equal that differ in the blanks at their end: all but a few do.

    The server is asked, for the name alone does not say it: utf8mb4_0900_bin pads in MariaDB and nowhere else, and
    TiDB's collations pad or not by `new_collations_enabled_on_first_bootstrap`.
    """
    names = sorted(name for name in collations if name.endswith("_bin"))
    if not names:
        return frozenset()
    found = query(" UNION ALL ".join(map(_blank_is_nothing, names)))
    return frozenset(name for name, is_equal in found if is_equal)


def _blank_is_nothing(collation: str) -> str:
    """A query: the collation's name, and whether it takes a text for the same with a blank at its end."""
    left, right = (
        f"CONVERT('{text}' USING {collation.partition('_')[0]}) COLLATE {quoted(collation)}" for text in ("a", "a ")
    )
    return f"SELECT '{collation}', {left} = {right}"


def to_innodb(name: TableName) -> str:
    """The statement that makes a table transactional."""
    return f"ALTER TABLE {quoted(name.database)}.{quoted(name.table)} ENGINE = InnoDB;"


def unfit_engine(name: TableName, engine: str) -> Unfit | None:
    """Why rows can't be written with a storage engine; None for the one that they can."""
    if engine.lower() == ENGINE.lower():
        return None
    fact = f"its storage engine is {engine}, so that its rows are not in one transaction with the progress"
    return Unfit(fact, to_innodb(name))


def _unfit_kind(name: TableName, engine: str, kind: str) -> Unfit | None:
    if kind == _VERSIONED:
        fact = "it keeps the history of its rows (SYSTEM VERSIONING), which repeated and rewritten rows would fill"
        return Unfit(fact, f"ALTER TABLE {place_of(name)} DROP SYSTEM VERSIONING;")
    return unfit_engine(name, engine)


def _triggers(rows: Iterable[tuple[Any, ...]]) -> dict[TableName, list[tuple[str, str]]]:
    found: dict[TableName, list[tuple[str, str]]] = {}
    for database, table, name, when in rows:
        found.setdefault(TableName(database, table), []).append((name, when))
    return found


def _unfit_trigger(table: TableName, triggers: Iterable[tuple[str, str]]) -> Unfit | None:
    for name, when in triggers:
        if when in _CHANGING:
            fact = f"has the trigger {name!r} ({when}), which may change what is written without a word"
            return Unfit(fact, f"run on the target: DROP TRIGGER {quoted(table.database)}.{quoted(name)};")
    return None


def _table(name: TableName, columns: list[Column], keys: _Keys, made: MadeIndexes) -> TableSchema:
    primary = keys.spread.get("PRIMARY", ())
    secondary = {index: key for index, key in keys.spread.items() if index != "PRIMARY"}
    named = {c.name: c for c in columns}
    if not primary and _is_tie(secondary):
        secondary = {index: secondary[index] for index in made(name) if index in secondary}
    handle = choose_handle_key(primary, secondary, named)
    valid = valid_indexes(primary, secondary, named)
    return TableSchema(name, tuple(columns), handle, tuple(keys.whole.values()), valid, unique_indexes=secondary)


def _is_tie(keys: Mapping[str, tuple[str, ...]]) -> bool:
    """Whether the order in which they were made may decide; it costs a question for the table alone."""
    return len({len(key) for key in keys.values()}) < len(keys)
