"""The clauses of ALTER TABLE as PostgreSQL's statements, and how a column is written down."""

from collections.abc import Iterator
from dataclasses import replace

from ordering.events import TableName
from sinks.ddl.kept_definitions import Known
from sinks.ddl.model import (
    AddColumn,
    AddIndex,
    Change,
    ChangeColumn,
    ColumnDef,
    Default,
    DropColumn,
    DropIndex,
    IndexDef,
    IndexKind,
    RenameColumn,
    RenameIndex,
    SetComment,
    SetDefault,
    TypeDef,
)
from sinks.ddl.rows.default_values import DATES, Filling, shown
from sinks.ddl.rows.modify_column import keeps_values
from sinks.ddl.rows.null_moments import fills_in_now, not_sent
from sinks.postgres.catalog import members_check, members_of
from sinks.postgres.connection import PostgresConnection
from sinks.postgres.ddl.convert_column import PADDED, converted, guessed
from sinks.postgres.ddl.indexes import created, has_index, note
from sinks.postgres.ddl.rewrite_rows import rewritten
from sinks.postgres.encoder import spelling
from sinks.postgres.names import index_name, literal, place, quoted, renamed_index
from sinks.postgres.types import column_of, default_of, type_of, value_of
from sinks.rows.schema import Column, Shape
from sinks.rows.values import ValueRules

_TEXTS = ("text", "character")
"""How the types of texts begin."""


def column_clause(column: ColumnDef, rules: ValueRules, *, in_key: bool) -> str:
    """A column in a CREATE TABLE. A stored generated column is a plain one: its values are sent."""
    text = f"{quoted(column.name)} {type_of(column.type)}"
    if not is_nullable(column, rules, in_key=in_key):
        text += " NOT NULL"
    default = None if column.default is None else default_of(column, column.default, rules)
    return text if default is None else f"{text} DEFAULT {default}"


def is_nullable(column: ColumnDef, rules: ValueRules, *, in_key: bool) -> bool:
    """Whether the target's column takes NULL; also one whose invalid dates land so, if it is in no key."""
    lands_null = rules.invalid_dates == "null" and column.type.base in DATES and not in_key
    return column.nullable or lands_null


def members_clause(column: ColumnDef) -> str:
    """The check that holds the members of an ENUM or SET; the server names it."""
    return f"CHECK ({members_check(column.name, column.type.members, several=column.type.base == 'set')})"


def comments(table: TableName, columns: list[ColumnDef]) -> Iterator[str]:
    """The comments of these columns."""
    for column in columns:
        if column.comment:
            yield f"COMMENT ON COLUMN {place(table)}.{quoted(column.name)} IS {literal(column.comment)}"


class PostgresAlteration:
    """The changes of one ALTER TABLE; `columns` follow them."""

    def __init__(
        self,
        table: TableName,
        columns: dict[str, Column],
        db: PostgresConnection,
        rules: ValueRules,
        known: Known | None,
        filling: Filling,
    ) -> None:
        self._table, self._columns, self._db, self._rules, self._known = table, columns, db, rules, known
        self._filling = filling
        self._head = f"ALTER TABLE {place(table)}"

    def statements(self, change: Change) -> Iterator[str]:
        """What executes a change."""
        match change:
            case AddColumn(column, if_missing):
                yield from self._add(column, if_missing=if_missing)
            case DropColumn(name):
                yield f"{self._head} DROP COLUMN IF EXISTS {quoted(self._spelled(name))}"
                self._columns.pop(self._spelled(name), None)
            case ChangeColumn(old, column):
                yield from self._change(self._spelled(old), column)
            case RenameColumn(old, new):
                yield from self._rename(self._spelled(old), new)
            case SetDefault():
                yield from self._set_default(change)
            case AddIndex(index):
                yield from self._add_index(index)
            case DropIndex(name):
                yield from self._drop_index(name)
            case RenameIndex(old, new):
                yield from self._rename_index(old, new)
            case SetComment(text):
                yield f"COMMENT ON TABLE {place(self._table)} IS {literal(text)}"

    def _rename_index(self, old: str, new: str) -> Iterator[str]:
        before, after = (index_name(self._table, name) for name in (old, new))
        if before != after:  # of a name in another case it is the same, which PostgreSQL refuses
            yield f"ALTER INDEX IF EXISTS {self._in_schema(before)} RENAME TO {quoted(after)}"

    def _in_schema(self, index: str) -> str:
        return f"{quoted(self._table.database)}.{quoted(index)}"

    def _spelled(self, name: str) -> str:
        """A column as the table spells it: upstream's names don't tell case apart."""
        return next((own for own in self._columns if own.lower() == name.lower()), name)

    def _has_rows(self) -> bool:
        return bool(self._db.value(f"SELECT EXISTS (SELECT FROM {place(self._table)})"))  # noqa: S608 quoted

    def _has_null(self, column: str) -> bool:
        look = f"SELECT EXISTS (SELECT FROM {place(self._table)} WHERE {quoted(column)} IS NULL)"  # noqa: S608 quoted
        return bool(self._db.value(look))

    def _add_index(self, index: IndexDef) -> Iterator[str]:
        if index.if_missing and self._is_there(index.name):
            yield note(f"left out: index {index.name!r}, which is there")
            return
        spelled = index.with_columns({name.lower(): name for name in self._columns})
        yield from self._left_over(index)
        yield created(self._table, spelled.named(self._is_there), self._columns)

    def _add(self, column: ColumnDef, *, if_missing: bool) -> Iterator[str]:
        if if_missing and self._known and self._known.type_of(column.name):
            yield note(f"left out: column {column.name!r}, which upstream has")
            return
        if column.virtual:
            yield note(f"left out: virtual column {column.name!r}")
            return
        nullable = is_nullable(column, self._rules, in_key=False)
        clause = f"{self._head} ADD COLUMN {quoted(column.name)} {type_of(column.type)}"
        later = None if column.default is None else default_of(column, column.default, self._rules)
        has_rows = self._has_rows()
        value = value_of(column, shown(column, self._filling), self._rules) if has_rows else "NULL"
        if has_rows and (told := self._filling.note(column)):
            yield note(told)
        if value != "NULL":
            yield f"{clause}{'' if nullable else ' NOT NULL'} DEFAULT {value}"
        else:
            yield f"{clause}{'' if nullable else ' NOT NULL'}"
        if later != (None if value == "NULL" else value):
            yield self._default(column.name, later)
        if column.type.members:
            yield f"{self._head} ADD {members_clause(column)}"
        yield from comments(self._table, [column])
        self._columns[column.name] = column_of(column)

    def _default(self, name: str, default: str | None) -> str:
        change = "DROP DEFAULT" if default is None else f"SET DEFAULT {default}"
        return f"{self._head} ALTER COLUMN {quoted(name)} {change}"

    def _change(self, old: str, column: ColumnDef) -> Iterator[str]:
        before = self._columns.get(old)
        if before is None or column.virtual:
            yield note(f"left out: virtual column {old!r}")
            return
        after = column_of(column)
        known = self._known.type_of(old) if self._known else None
        if fills_in_now((known or guessed(before)).base, column) and self._has_null(old):
            raise not_sent(self._table, old)
        yield self._default(old, None)
        if before.members != after.members or before.shape is not after.shape:
            yield from self._drop_members(old)
        moves = before.type != after.type or before.shape is not after.shape or column.type.base in PADDED
        if moves or not (known is None or keeps_values(known, column.type)):
            yield from self._retyped(before, column, after.type, known)
        nullable = is_nullable(column, self._rules, in_key=self._in_key(old)) and not self._in_key(old, primary=True)
        yield f"{self._head} ALTER COLUMN {quoted(old)} {'DROP' if nullable else 'SET'} NOT NULL"
        if old != column.name:
            yield f"{self._head} RENAME COLUMN {quoted(old)} TO {quoted(column.name)}"
        if after.members and (before.members != after.members or before.shape is not after.shape):
            yield f"{self._head} ADD {members_clause(column)}"
        default = None if column.default is None else default_of(column, column.default, self._rules)
        if default is not None:
            yield self._default(column.name, default)
        yield f"COMMENT ON COLUMN {place(self._table)}.{quoted(column.name)} IS {literal(column.comment)}"
        self._columns = {(column.name if n == old else n): (after if n == old else c) for n, c in self._columns.items()}

    def _retyped(self, before: Column, column: ColumnDef, goal: str, known: TypeDef | None) -> Iterator[str]:
        """Convert rows: by a cast where that is exact, else by way of their texts; an empty table has none."""
        name = quoted(before.name)
        is_text, becomes_text = (kind.startswith(_TEXTS) for kind in (before.type, goal))
        if is_text != becomes_text and (is_text or before.shape is Shape.BYTES):
            yield from self._without_beginnings(before.name)
        using = converted(before, column.type, name, self._rules.time_zone, known)
        if using is None and self._has_rows():
            kind = known or guessed(before)
            source = replace(before, name=name)
            yield from rewritten(place(self._table), source, kind, column, self._db, self._rules)
        yield f"{self._head} ALTER COLUMN {name} TYPE {goal} USING {using or f'{name}::text::{goal}'}"

    def _without_beginnings(self, column: str) -> Iterator[str]:
        """Drop plain indexes over the beginning of a text or of bytes: the new type may have none."""
        look = (
            "SELECT DISTINCT c.relname FROM pg_index i JOIN pg_class c ON c.oid = i.indexrelid"
            " JOIN pg_depend d ON d.objid = i.indexrelid AND d.refobjid = i.indrelid"
            " JOIN pg_attribute a ON a.attrelid = i.indrelid AND a.attnum = d.refobjsubid"
            " WHERE i.indrelid = %s::regclass AND i.indexprs IS NOT NULL AND NOT i.indisunique AND a.attname = %s"
        )
        found = [str(index) for (index,) in self._db.query(look, (place(self._table), column))]
        for index in (one for one in found if renamed_index(one, self._table, self._table) is not None):
            yield f"DROP INDEX {self._in_schema(index)}"
            yield note(f"left out: index {index!r} over the beginning of {column!r}, whose type changes")

    def _in_key(self, name: str, *, primary: bool = False) -> bool:
        """Whether a column is in a unique key, or in the primary one."""
        look = (
            "SELECT count(*) FROM pg_index i JOIN pg_attribute a ON a.attrelid = i.indrelid"
            " AND a.attnum = ANY (i.indkey) WHERE i.indrelid = %s::regclass AND i.indisunique AND a.attname = %s"
            " AND (i.indisprimary OR NOT %s)"
        )
        return bool(self._db.value(look, (place(self._table), name, primary)))

    def _drop_members(self, column: str) -> Iterator[str]:
        look = (
            "SELECT x.conname, pg_get_constraintdef(x.oid) FROM pg_constraint x JOIN pg_attribute a"
            " ON a.attrelid = x.conrelid AND x.conkey = ARRAY[a.attnum]"
            " WHERE x.conrelid = %s::regclass AND x.contype = 'c' AND a.attname = %s"
        )
        for name, definition in self._db.query(look, (place(self._table), column)):
            if members_of(definition):
                yield f"{self._head} DROP CONSTRAINT {quoted(name)}"

    def _rename(self, old: str, new: str) -> Iterator[str]:
        if old not in self._columns:
            yield note(f"left out: virtual column {old!r}")
            return
        yield f"{self._head} RENAME COLUMN {quoted(old)} TO {quoted(new)}"
        self._columns = {(new if name == old else name): column for name, column in self._columns.items()}

    def _set_default(self, change: SetDefault) -> Iterator[str]:
        name = self._spelled(change.name)
        column = self._columns.get(name)
        if column is None:
            yield note(f"left out: virtual column {name!r}")
            return
        text = None if change.default is None else self._literal(column, change.default)
        yield self._default(name, text)

    def _literal(self, column: Column, default: Default) -> str | None:
        """A default of a column whose upstream type is not said; None for one that only that would settle."""
        if not isinstance(default.value, str) or column.shape is Shape.BIT:
            return None
        if column.members:
            return f"{literal(default.value)}::{column.type}"
        text = default.value.encode().decode("latin-1") if column.shape is Shape.BYTES else default.value
        try:
            spelled = spelling(column, self._rules)(text)
        except ValueError:
            return None
        return None if spelled is None else f"{literal(spelled)}::{column.type}"

    def _left_over(self, index: IndexDef) -> Iterator[str]:
        """What upstream has dropped and was kept here as the last valid index is in the way of one of its name."""
        primary = index.kind is IndexKind.PRIMARY
        if primary or (index.name and self._is_there(index.name)):
            yield from self._drop_index("PRIMARY" if primary else index.name)

    def _is_there(self, index: str) -> bool:
        return has_index(self._db, self._table, index)

    def _drop_index(self, name: str) -> Iterator[str]:
        if name.upper() != "PRIMARY":
            yield f"DROP INDEX IF EXISTS {self._in_schema(index_name(self._table, name))}"
            return
        look = "SELECT conname FROM pg_constraint WHERE conrelid = %s::regclass AND contype = 'p'"
        for (primary,) in self._db.query(look, (place(self._table),)):
            yield f"{self._head} DROP CONSTRAINT {quoted(primary)}"
