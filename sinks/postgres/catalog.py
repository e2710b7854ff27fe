"""Reads tables, columns, keys and the members of ENUM and SET columns from PostgreSQL's catalog."""

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from itertools import groupby
from typing import Any, NamedTuple

from ordering.events import TableName
from sinks.postgres.names import index_name, is_of_ddl, literal, place, quoted
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

NOTHING: Mapping[TableName, Any] = {}
Query = Callable[[str], Iterable[tuple[Any, ...]]]

OURS = "n.nspname NOT IN ('public', 'information_schema', 'ticdc_reconciler') AND n.nspname NOT LIKE 'pg\\_%%'"
"""Schemas that mirror databases."""
_DOMAINS = """
WITH RECURSIVE domain AS (
  SELECT oid, typbasetype AS base, typtypmod AS typmod FROM pg_type WHERE typtype = 'd'
  UNION ALL SELECT d.oid, t.typbasetype, t.typtypmod FROM domain d JOIN pg_type t ON t.oid = d.base AND t.typtype = 'd')
"""
"""Domains with what they are made of; a domain over a domain has several lines, the last of which is of a base type."""
_COLUMNS = f"""{_DOMAINS}
SELECT n.nspname, c.relname, a.attname,
       format_type(COALESCE(d.base, a.atttypid), COALESCE(d.typmod, a.atttypmod)), a.attnotnull, a.attgenerated <> '',
       a.atthasdef OR a.attidentity <> '', COALESCE(NOT o.collisdeterministic, false) OR t.typname = 'citext',
       (SELECT array_agg(e.enumlabel::text ORDER BY e.enumsortorder) FROM pg_enum e WHERE e.enumtypid = t.oid)
FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
  JOIN pg_attribute a ON a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped
  LEFT JOIN domain d ON d.oid = a.atttypid AND NOT EXISTS (SELECT FROM domain u WHERE u.oid = d.base)
  JOIN pg_type t ON t.oid = COALESCE(d.base, a.atttypid)
  LEFT JOIN pg_collation o ON o.oid = a.attcollation
WHERE c.relkind IN ('r', 'p') AND NOT c.relispartition AND {OURS}
ORDER BY n.nspname, c.relname, a.attnum"""  # noqa: S608 a constant
_SCHEMAS = f"SELECT n.nspname FROM pg_namespace n WHERE {OURS}"  # noqa: S608 a constant
_KEYS = f"""
SELECT n.nspname, c.relname, x.relname, i.indisprimary, i.indpred IS NULL AND i.indisunique AND i.indisvalid,
       ARRAY(SELECT COALESCE(a.attname::text, '')
             FROM unnest(i.indkey::smallint[], i.indcollation::oid[]) WITH ORDINALITY AS k(attnum, coll, number)
               LEFT JOIN pg_collation o ON o.oid = k.coll
               LEFT JOIN pg_attribute a ON a.attrelid = i.indrelid AND a.attnum = k.attnum
                 AND (k.coll = a.attcollation OR COALESCE(o.collisdeterministic, true))
             WHERE k.number <= i.indnkeyatts ORDER BY k.number),
       ARRAY(SELECT pg_get_indexdef(i.indexrelid, number, false) FROM generate_series(1, i.indnkeyatts) number)
FROM pg_index i JOIN pg_class x ON x.oid = i.indexrelid JOIN pg_class c ON c.oid = i.indrelid
  JOIN pg_namespace n ON n.oid = c.relnamespace
WHERE (i.indisunique OR i.indisexclusion) AND i.indislive AND {OURS}
ORDER BY i.indexrelid"""  # noqa: S608 a constant
_MEMBERS = f"""
SELECT n.nspname, c.relname, a.attname, pg_get_constraintdef(x.oid)
FROM pg_constraint x JOIN pg_class c ON c.oid = x.conrelid JOIN pg_namespace n ON n.oid = c.relnamespace
  JOIN pg_attribute a ON a.attrelid = c.oid AND a.attnum = x.conkey[1]
WHERE x.contype = 'c' AND array_length(x.conkey, 1) = 1 AND {OURS}"""  # noqa: S608 a constant
_CHECK = re.compile(r"CHECK \(\(+(array_position\()?ARRAY\[")
_LITERAL = re.compile(r"'((?:[^']|'')*)'::text(?:, )?")
_SHAPES = {
    "smallint": Shape.INTEGER,
    "integer": Shape.INTEGER,
    "bigint": Shape.INTEGER,
    "real": Shape.REAL,
    "double precision": Shape.REAL,
    "bytea": Shape.BYTES,
    "bit": Shape.BIT,
    "bit varying": Shape.BIT,
    "date": Shape.DATE,
    "timestamp without time zone": Shape.DATETIME,
    "timestamp with time zone": Shape.TIMESTAMP,
    "interval": Shape.TIME,
    "json": Shape.JSON,
    "jsonb": Shape.JSON,
}
_HOLDS = {
    **dict.fromkeys(("text", "character varying", "character", "bpchar", "name", '"char"'), Holds.TEXT),
    "numeric": Holds.EXACT,
    "real": Holds.SINGLE,
    "boolean": Holds.TRUTH,
    "uuid": Holds.UUID,
    "json": Holds.JSON_TEXT,
    "time without time zone": Holds.TIME,
}
"""What is not plain from a column's shape."""
_BEGINNING = re.compile(r"""\(?(?:"left"|"substring")\(\(?(?:"((?:[^"]|"")+)"|(\w+))\)?(?:::text)?, (?:1, )?\d+\)\)?""")

_EXACT = {
    "smallint", "integer", "bigint", "numeric", "real", "double precision", "boolean", "uuid", "bytea", "bit", "date",
    "timestamp without time zone", "timestamp with time zone", "time without time zone", "interval",
    "character", "character varying", "text", "name",
}  # fmt: skip
"""Of these types keys may be: under their equality no two values of upstream are one (R11)."""
_MODIFIER = re.compile(r"\([\d,-]+\)")


class _Key(NamedTuple):
    """An index that rows can collide on: in the order of being made.

    `columns`: "" stands for an expression. `spread`: the same, but for the beginning of a column that column.
    """

    name: str
    primary: bool
    plain: bool
    columns: tuple[str, ...]
    spread: tuple[str, ...]

    @property
    def parts(self) -> tuple[str, ...]:
        """What it is unique over: with more than its columns where it does not tell all rows apart by them alone."""
        return self.columns if self.plain else (*self.columns, "")


def members_check(column: str, members: tuple[str, ...], *, several: bool) -> str:
    """The condition under which a column holds a member (ENUM) or members (SET); '' is upstream's invalid value."""
    array, name = f"ARRAY[{', '.join(f'{literal(m)}::text' for m in members)}]", quoted(column)
    return (
        f"{array} @> string_to_array({name}, ',')" if several else f"array_position({array}, {name}) > 0 OR {name} = ''"
    )


def members_of(definition: str) -> tuple[Shape, tuple[str, ...]] | None:
    """What a check constraint says, as the server spells it, if it is one of members."""
    head = _CHECK.match(definition)
    if head is None:
        return None
    found, at = [], head.end()
    while text := _LITERAL.match(definition, at):
        found.append(text[1].replace("''", "'"))
        at = text.end()
    return Shape.ENUM if head[1] else Shape.SET, tuple(found)


def of_one(sql: str) -> str:
    """A query for `OURS`, about the table alone whose schema and name are bound to its first two `%s`."""
    return sql.replace(OURS, f"{OURS} AND n.nspname = %s AND c.relname = %s")


def read_catalog(
    query: Query, unfit: Mapping[TableName, Unfit] = NOTHING, triggers: Mapping[TableName, Sequence[str]] = NOTHING
) -> Catalog:
    """All tables of the schemas that mirror databases. `unfit`: those that can't be written; `triggers`: that fire."""
    tables = read_tables(query, unfit, triggers)
    return Catalog(tables, index_name, frozenset(schema for (schema,) in query(_SCHEMAS)), holds, is_of_ddl=is_of_ddl)


def read_tables(
    query: Query, unfit: Mapping[TableName, Unfit], triggers: Mapping[TableName, Sequence[str]]
) -> dict[TableName, TableSchema]:
    """As `read_catalog`, the tables alone. `query` may ask about one of them (`of_one`)."""
    members = {
        (TableName(schema, table), column): found
        for schema, table, column, definition in query(_MEMBERS)
        if (found := members_of(definition))
    }
    keys: dict[TableName, list[_Key]] = {}
    for schema, table, index, primary, plain, columns, texts in query(_KEYS):
        spread = tuple(column or _begun(text) for column, text in zip(columns, texts, strict=True))
        keys.setdefault(TableName(schema, table), []).append(_Key(index, primary, plain, tuple(columns), spread))
    tables = {}
    for (schema, table), rows in groupby(query(_COLUMNS), key=lambda row: (row[0], row[1])):
        name = TableName(schema, table)
        columns = [_column(row[2:], members.get((name, row[2]))) for row in rows]
        acting = (*(trigger_acts(name, trigger) for trigger in triggers.get(name, ())), *computes(name, columns))
        tables[name] = _fit(replace(_table(name, columns, keys.get(name, [])), acting=acting), unfit.get(name))
    return tables


def holds(column: Column) -> Holds:
    """What a column's values mean; of a type that no type of upstream is made into, `Holds.OTHER`."""
    kind = base_type(column.type)
    if column.shape is Shape.TEXT:
        return _HOLDS.get(kind, Holds.TEXT if kind.endswith("citext") else Holds.OTHER)
    return _HOLDS.get(kind, by_shape(column)) if column.shape in {Shape.REAL, Shape.JSON} else by_shape(column)


def _fit(table: TableSchema, unfit: Unfit | None) -> TableSchema:
    found = unfit or _unfit_key(table)
    return table if found is None else replace(table, unfit=found.fact, remedy=found.remedy)


def _column(row: tuple[Any, ...], checked: tuple[Shape, tuple[str, ...]] | None) -> Column:
    name, kind, not_null, generated, filled, folds, labels = row
    shape = _SHAPES.get(base_type(kind), Shape.TEXT)
    members: tuple[str, ...] = ()
    if labels:
        shape, members = Shape.ENUM, tuple(labels)
    elif checked and shape is Shape.TEXT:
        shape, members = checked
    return Column(name, kind, shape, not not_null, generated, members, folds=folds, filled=filled)


def _begun(text: str) -> str:
    """The column whose beginning an expression takes (`sinks.postgres.ddl.indexes`); "" of any other expression."""
    match = _BEGINNING.fullmatch(text)
    return "" if match is None else match[2] or match[1].replace('""', '"')


def _table(name: TableName, columns: list[Column], keys: list[_Key]) -> TableSchema:
    primary = next((key.columns for key in keys if key.primary), ())
    uniques = {key.name: key.spread for key in keys if key.plain and not key.primary}
    named = {c.name: c for c in columns}
    handle = choose_handle_key(primary, uniques, named)
    valid = valid_indexes(primary, uniques, named)
    unique = {key.name: key.spread for key in keys if not key.primary}
    return TableSchema(name, tuple(columns), handle, tuple(key.parts for key in keys), valid, unique_indexes=unique)


def base_type(kind: str) -> str:
    """A type without its length, precision and scale."""
    return kind if kind.startswith('"') else _MODIFIER.sub("", kind)


def _unfit_key(table: TableSchema) -> Unfit | None:
    """Why the table's key can't be compared exactly."""
    for name in table.handle_key:
        column = table.column(name)
        if column is not None and column.generated:
            return Unfit(f"computes its key's column {name!r} by itself", _altered(table, column, "DROP EXPRESSION"))
        if column is not None and not _is_exact(column):
            fact = f"has the key column {name!r} of type {column.type}, which is not compared as upstream compares it"
            return Unfit(fact, _altered(table, column, f"TYPE text USING {quoted(name)}::text"))
    return None


def has_equality(column: Column) -> bool:
    """Whether `=` is known to hold for values with one text: a point has none, and a box compares areas."""
    return _is_exact(column)


def _is_exact(column: Column) -> bool:
    """What folds is compared as a text too, see `sinks.postgres.writer`; an enum's values are its labels."""
    return base_type(column.type) in _EXACT or column.folds or column.shape is Shape.ENUM


def _altered(table: TableSchema, column: Column, change: str) -> str:
    return f"run on the target: ALTER TABLE {place(table.name)} ALTER COLUMN {quoted(column.name)} {change}"
