"""MySQL DDL for SQLite: statements translated through sqlglot's parse tree, one by one.

Types become INTEGER, REAL, TEXT, BLOB, or none for integers that pass 64 bits (no affinity would round them).
Secondary indexes are named `table.index`, for SQLite's index names are global to a file.
"""

from collections.abc import Callable, Iterator
from typing import Any

import sqlglot
from sqlglot import exp
from sqlglot.errors import ParseError

from ordering.errors import TargetError
from ordering.events import TableName
from sinks.ddl.statement import DdlKind, Statement, named
from sinks.schema import Catalog
from sinks.sqlite.catalog import quoted
from sinks.sqlite.defaults import default_of

T = exp.DataType.Type
_INTEGERS = {T.TINYINT, T.SMALLINT, T.MEDIUMINT, T.INT, T.BIGINT, T.UTINYINT, T.USMALLINT, T.UMEDIUMINT, T.UINT}
_INTEGERS |= {T.BOOLEAN, T.YEAR}
_EXACT = {T.UBIGINT, T.BIT}
_REALS = {T.FLOAT, T.DOUBLE}
_BYTES = {T.BINARY, T.VARBINARY, T.BLOB, T.TINYBLOB, T.MEDIUMBLOB, T.LONGBLOB}

HARMLESS = {"COMMENT", "AUTO_INCREMENT", "AUTO_ID_CACHE", "CONVERT", "DEFAULT", "CHARACTER", "CHARSET", "COLLATE"}
"""First words of ALTER TABLE clauses that change no row and that SQLite can't express."""


def translate(statement: Statement, catalog: Catalog) -> list[str]:
    """The statements for SQLite; none where it has nothing to do. Raises TargetError for what it can't do."""
    rules: dict[DdlKind, Callable[[Statement, Catalog], Iterator[str]]] = {
        DdlKind.CREATE_TABLE: _create_table,
        DdlKind.DROP_TABLE: _drop_table,
        DdlKind.TRUNCATE_TABLE: _truncate,
        DdlKind.RENAME_TABLE: _rename,
        DdlKind.ALTER_TABLE: _alter,
        DdlKind.CREATE_INDEX: _create_index,
        DdlKind.DROP_INDEX: _drop_index,
    }
    if statement.kind is DdlKind.ALTER_DATABASE:
        return []
    rule = rules.get(statement.kind)
    if rule is None:
        raise _unsupported(statement.sql)
    return list(rule(statement, catalog))


def _unsupported(sql: str, detail: str = "") -> TargetError:
    return TargetError(
        f"this DDL can't be executed on SQLite yet{detail}: {sql[:500]}",
        hint="make the change in the target by hand if it is needed there, or leave the table out with filter rules",
    )


def _parsed(sql: str) -> Any:
    try:
        return sqlglot.parse_one(_without_partitions(sql), read="mysql")
    except ParseError as error:
        raise _unsupported(sql, f" ({str(error).splitlines()[0]})") from error


def _without_partitions(sql: str) -> str:
    """The statement up to `PARTITION BY`: SQLite has no partitions, and they change no row here."""
    tokens = sqlglot.tokenize(f"DDL {sql}", read="mysql")
    for i, token in enumerate(tokens[:-1]):
        both = token.text.upper() == "PARTITION BY" or (
            token.text.upper() == "PARTITION" and tokens[i + 1].text.upper() == "BY"
        )
        if both:
            return sql[: token.start - 4]
    return sql


def _place(name: TableName) -> str:
    return f"{quoted(name.database)}.{quoted(name.table)}"


def _index_name(table: TableName, index: str) -> str:
    return f"{quoted(table.database)}.{quoted(f'{table.table}.{index}')}"


def _create_table(statement: Statement, catalog: Catalog) -> Iterator[str]:
    name = named(statement.tables[0])
    if catalog.get(name):
        raise TargetError(f"table {name} is there already", hint="drop it, or set start-ts above this CREATE TABLE")
    if statement.like is not None:
        yield from _create_like(name, named(statement.like), catalog)
        return
    tree = _parsed(statement.sql)
    if not isinstance(tree, exp.Create) or not isinstance(tree.this, exp.Schema):
        raise _unsupported(statement.sql)
    definitions = tree.this.expressions
    columns = [c for c in definitions if isinstance(c, exp.ColumnDef)]
    primary = _primary_key(definitions)
    parts = [_column(c, primary) for c in columns]
    if len(primary) != 1 or not _is_rowid(columns, primary[0]):
        parts += [f"PRIMARY KEY ({', '.join(map(quoted, primary))})"] if primary else []
    yield f"CREATE TABLE {_place(name)} ({', '.join(parts)})"
    yield from _indexes(name, definitions)


def _create_like(name: TableName, model: TableName, catalog: Catalog) -> Iterator[str]:
    schema = catalog.get(model)
    if schema is None:
        raise TargetError(f"table {model} is missing in the target", hint=f"{name} is to be created like it")
    parts = [f"{quoted(c.name)} {c.type}{'' if c.nullable else ' NOT NULL'}" for c in schema.columns]
    parts += [f"PRIMARY KEY ({', '.join(map(quoted, schema.handle_key))})"] if schema.handle_key else []
    yield f"CREATE TABLE {_place(name)} ({', '.join(parts)})"


def _primary_key(definitions: list[exp.Expression]) -> list[str]:
    for part in definitions:
        if isinstance(part, exp.ColumnDef) and part.find(exp.PrimaryKeyColumnConstraint):
            return [part.name]
        key = part if isinstance(part, exp.PrimaryKey) else part.find(exp.PrimaryKey)
        if key is not None:
            return [_key_part(column) for column in key.expressions]
    return []


def _key_part(part: exp.Expression) -> str:
    inner = part.this if isinstance(part, exp.Ordered) else part
    if not isinstance(inner, exp.Column | exp.Identifier):
        raise _unsupported(part.sql(), " (an index over an expression or a prefix)")
    return str(inner.name)


def _is_rowid(columns: list[exp.ColumnDef], name: str) -> bool:
    return any(c.name == name and _type(c) == "INTEGER" for c in columns)


def _type(column: exp.ColumnDef) -> str:
    kind = column.args["kind"].this
    if kind in _INTEGERS:
        return "INTEGER"
    if kind in _REALS:
        return "REAL"
    if kind in _BYTES:
        return "BLOB"
    return "" if kind in _EXACT else "TEXT"


def _constraints(column: exp.ColumnDef) -> list[exp.Expression]:
    return [c.args["kind"] for c in column.args.get("constraints") or [] if c.args.get("kind") is not None]


def _column(column: exp.ColumnDef, primary: list[str]) -> str:
    text = f"{quoted(column.name)} {_type(column)}".rstrip()
    if primary == [column.name] and _type(column) == "INTEGER":
        return f"{text} PRIMARY KEY NOT NULL"
    if column.name in primary or not _is_nullable(column):
        text += " NOT NULL"
    return text + _default(column)


def _is_nullable(column: exp.ColumnDef) -> bool:
    kinds = _constraints(column)
    return not any(isinstance(k, exp.NotNullColumnConstraint) and not k.args.get("allow_null") for k in kinds)


def _default(column: exp.ColumnDef) -> str:
    """For rows that someone else inserts; upstream's come whole. What SQLite can't express is left out."""
    try:
        value = default_of(column, nullable=True)
    except TargetError:
        return ""
    return "" if value is None else f" DEFAULT {value}"


def _indexes(name: TableName, definitions: list[exp.Expression]) -> Iterator[str]:
    for part in definitions:
        if isinstance(part, exp.ColumnDef):
            if any(isinstance(k, exp.UniqueColumnConstraint) for k in _constraints(part)):
                yield _unique(name, part.name, [part.name])
            continue
        unique = part if isinstance(part, exp.UniqueColumnConstraint) else part.find(exp.UniqueColumnConstraint)
        if unique is not None and unique.this is not None:
            keys = [_key_part(c) for c in unique.this.expressions]
            yield _unique(name, unique.this.name or "_".join(keys), keys)


def _unique(table: TableName, index: str, columns: list[str]) -> str:
    keys = ", ".join(map(quoted, columns))
    return f"CREATE UNIQUE INDEX {_index_name(table, index)} ON {quoted(table.table)} ({keys})"


def _drop_table(statement: Statement, catalog: Catalog) -> Iterator[str]:
    for reference in statement.tables:
        if catalog.get(named(reference)):
            yield f"DROP TABLE {_place(named(reference))}"


def _truncate(statement: Statement, _catalog: Catalog) -> Iterator[str]:
    yield f"DELETE FROM {_place(named(statement.tables[0]))}"  # noqa: S608 quoted


def _rename(statement: Statement, catalog: Catalog) -> Iterator[str]:
    for old, new in statement.renames:
        source, goal = named(old), named(new)
        if source.database == goal.database:
            yield f"ALTER TABLE {_place(source)} RENAME TO {quoted(goal.table)}"
            continue
        yield from _create_like(goal, source, catalog)
        yield f"INSERT INTO {_place(goal)} SELECT * FROM {_place(source)}"  # noqa: S608 quoted
        yield f"DROP TABLE {_place(source)}"


def _alter(statement: Statement, _catalog: Catalog) -> Iterator[str]:
    name = named(statement.tables[0])
    tree = _parsed(statement.sql)
    if not isinstance(tree, exp.Alter):
        raise _unsupported(statement.sql)
    for action in tree.args.get("actions") or []:
        yield from _action(name, action, statement.sql)


def _action(name: TableName, action: exp.Expression, sql: str) -> Iterator[str]:
    if isinstance(action, exp.ColumnDef):
        yield f"ALTER TABLE {_place(name)} ADD COLUMN {_added(action)}"
    elif isinstance(action, exp.Drop) and str(action.args.get("kind", "")).upper() == "COLUMN":
        yield f"ALTER TABLE {_place(name)} DROP COLUMN {quoted(_dropped(action))}"
    elif isinstance(action, exp.Drop) and str(action.args.get("kind", "")).upper() in {"INDEX", "KEY"}:
        yield f"DROP INDEX IF EXISTS {_index_name(name, _dropped(action))}"
    elif isinstance(action, exp.RenameColumn):
        yield (
            f"ALTER TABLE {_place(name)} RENAME COLUMN {quoted(action.this.name)} TO {quoted(action.args['to'].name)}"
        )
    elif isinstance(action, exp.AddConstraint):
        yield from _indexes(name, list(action.expressions))
    elif not isinstance(action, exp.SchemaCommentProperty | exp.AutoIncrementProperty | exp.RenameIndex):
        raise _unsupported(sql)


def _dropped(drop: exp.Expression) -> str:
    """The name of what a DROP drops: newer versions of sqlglot keep it in `tables`, older ones in `this`."""
    return str((drop.this or drop.args["tables"][0]).name)


def _added(column: exp.ColumnDef) -> str:
    """A column as ADD COLUMN takes it: rows that are there already show its default, or its type's zero."""
    nullable = _is_nullable(column)
    value = default_of(column, nullable=nullable)
    text = f"{quoted(column.name)} {_type(column)}".rstrip() + ("" if nullable else " NOT NULL")
    return text if value is None else f"{text} DEFAULT {value}"


def _create_index(statement: Statement, _catalog: Catalog) -> Iterator[str]:
    tree = _parsed(statement.sql)
    if not isinstance(tree, exp.Create) or not isinstance(tree.this, exp.Index):
        raise _unsupported(statement.sql)
    name, index = named(statement.tables[0]), tree.this
    if tree.args.get("unique"):
        yield _unique(name, index.name, [_key_part(c) for c in index.args["params"].args["columns"]])


def _drop_index(statement: Statement, _catalog: Catalog) -> Iterator[str]:
    tree = _parsed(statement.sql)
    yield f"DROP INDEX IF EXISTS {_index_name(named(statement.tables[0]), _dropped(tree))}"
