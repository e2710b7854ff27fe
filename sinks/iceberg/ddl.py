"""A DDL of upstream on Iceberg's metadata.

Fields keep their ids, so a new name or a wider type needs no new data file. What the format can't do is
refused.
"""

import re
from collections.abc import Callable
from typing import Any

from pyiceberg.exceptions import ValidationError
from pyiceberg.schema import Schema
from pyiceberg.types import IcebergType, NestedField

from ordering.errors import TargetError
from ordering.events import folded
from sinks.ddl.index_names import check_names
from sinks.ddl.model import (
    AddColumn,
    AddIndex,
    Change,
    ChangeColumn,
    ChangePartitions,
    ColumnDef,
    DropColumn,
    DropIndex,
    IndexDef,
    IndexKind,
    Passed,
    RenameColumn,
    RenameIndex,
    SetComment,
    SetDefault,
    TableDef,
    TypeDef,
)
from sinks.ddl.parse.left_out import without_those_there
from sinks.ddl.parse.statement import DdlKind, Statement, named
from sinks.ddl.parse.tables import read_changes, read_dropped_index, read_index, read_table
from sinks.ddl.rows.default_values import Filling, shown
from sinks.iceberg.encoder import IcebergEncoder
from sinks.iceberg.session import LakeSession
from sinks.iceberg.table import COLUMNS, PLAIN, PRIMARY, UNIQUES, LakeTable
from sinks.iceberg.types import column_of, keeps_rows, maker, type_of
from sinks.rows.schema import Catalog

_Indexes = dict[str, list[int]]
"""The columns of indexes, by name."""


def execute(
    session: LakeSession, statement: Statement, encoder: IcebergEncoder, filling: Filling, given: str, catalog: Catalog
) -> list[str]:
    """Do what a statement with the database of every name says; what was done. Raises TargetError for others.

    `given`: the statement as it came. `filling`: what rows that are there show in new columns whose default upstream
    computes.
    """
    notes, sql = list[str](), statement.sql
    if statement.kind in {DdlKind.ALTER_TABLE, DdlKind.DROP_INDEX}:
        own = _own(statement, session)
        check_names(
            statement, catalog.get(own.name), catalog, lambda index: _may_have(own, folded(index)), lambda _: True
        )
    if statement.kind is DdlKind.ALTER_TABLE:
        table = session.table(named(statement.tables[0]))
        sql = without_those_there(sql, given, lambda index: _may_have(table, index))
        changes = read_changes(sql)
        try:
            for change in changes:
                if isinstance(change, AddColumn):
                    _add_column(table, change.column, encoder, filling)
                    notes += filter(None, [filling.note(change.column)])
                else:
                    _change(table, change)
        except ValueError as error:  # a column that is there already, or is not
            raise table.refuse(error) from error
    elif statement.kind in _DO:
        _DO[statement.kind](session, statement)
    else:
        hint = "make the change by hand, then `reconciler ddl done`"
        raise TargetError(f"Iceberg is not given this: {statement.sql[:200]}", hint=hint)
    return [sql, *notes]


def _create_table(session: LakeSession, statement: Statement) -> None:
    table = session.create(named(statement.tables[0]), Schema())
    if statement.like is None:
        _create(table, read_table(statement.sql))
    else:
        _copy(session.table(named(statement.like)), table)


def _drop_tables(session: LakeSession, statement: Statement) -> None:
    for reference in statement.tables:
        session.drop(named(reference))


def _rename_tables(session: LakeSession, statement: Statement) -> None:
    for old, new in statement.renames:
        session.rename(named(old), named(new))


def _own(statement: Statement, session: LakeSession) -> LakeTable:
    return session.table(named(statement.tables[0]))


_KEEPS_ROWS = re.compile(r"\s*(ADD|REORGANIZE|COALESCE|PARTITION\s+BY|REMOVE\s+PARTITIONING)\b", re.IGNORECASE)
"""Clauses about partitions after which the table has the rows that it had."""
_DO: dict[DdlKind, Callable[[LakeSession, Statement], None]] = {
    DdlKind.CREATE_DATABASE: lambda session, statement: session.create_database(statement.database or ""),
    DdlKind.DROP_DATABASE: lambda session, statement: session.drop_database(statement.database or ""),
    DdlKind.ALTER_DATABASE: lambda _session, _statement: None,  # a namespace has no character set
    DdlKind.CREATE_TABLE: _create_table,
    DdlKind.DROP_TABLE: _drop_tables,
    DdlKind.RENAME_TABLE: _rename_tables,
    DdlKind.TRUNCATE_TABLE: lambda session, statement: _own(statement, session).clear(),
    DdlKind.CREATE_INDEX: lambda session, statement: _add_index(_own(statement, session), read_index(statement.sql)),
    DdlKind.DROP_INDEX: lambda session, statement: _drop_index(
        _own(statement, session), read_dropped_index(statement.sql)
    ),
}


def _create(table: LakeTable, made: TableDef) -> None:
    with table.staged.update_schema() as change:
        for column in made.columns:
            if not column.virtual:
                change.add_column((column.name,), type_of(column.type))
    columns = {column.name: column for column in made.columns if not column.virtual}
    table.keep(columns={str(table.ids([name])[0]): _facts(column) for name, column in columns.items()})
    table.keep(primary=table.ids(made.primary_key), uniques={}, plain={})
    for index in made.indexes:
        if index.kind is not IndexKind.PRIMARY:
            _add_index(table, index)


def _copy(model: LakeTable, table: LakeTable) -> None:
    with table.staged.update_schema() as change:
        for field in model.schema.fields:
            change.add_column((field.name,), field.field_type)
    new = {one: table.ids([model.schema.find_field(one).name])[0] for one in model.schema.field_ids}
    table.keep(
        columns={str(new[int(one)]): fact for one, fact in model.fact(COLUMNS).items()},
        primary=[new[one] for one in model.fact(PRIMARY)],
    )
    _of_indexes(table, model, lambda found: {n: [new.get(one, 0) for one in ids] for n, ids in found.items()})


def _facts(column: ColumnDef) -> dict[str, Any]:
    made = column_of(column)
    kind = column.type
    upstream = {"base": kind.base, "numbers": list(kind.numbers), "unsigned": kind.unsigned}
    return {"shape": made.shape.value, "nullable": column.nullable, "members": list(made.members), **upstream}


def _type_before(fact: dict[str, Any]) -> TypeDef:
    return TypeDef(fact["base"], tuple(fact["numbers"]), fact["unsigned"], tuple(fact["members"]))


def _change(table: LakeTable, change: Change) -> None:
    match change:
        case DropColumn(name):
            _drop_column(table, name)
        case ChangeColumn(old, column):
            _change_column(table, old, column)
        case RenameColumn(old, new):
            _rename_column(table, old, new)
        case AddIndex(index):
            _add_index(table, index)
        case DropIndex(name):
            _drop_index(table, name)
        case RenameIndex(old, new):
            _of_indexes(
                table, table, lambda found: {new if n.lower() == old.lower() else n: ids for n, ids in found.items()}
            )
        case SetDefault() | SetComment() | Passed():
            return
        case ChangePartitions(text) if _KEEPS_ROWS.match(text):
            return
        case _:
            raise table.refuse(change)


def _field(table: LakeTable, name: str) -> NestedField:
    return table.schema.find_field(name, case_sensitive=False)


def _add_column(table: LakeTable, column: ColumnDef, encoder: IcebergEncoder, filling: Filling) -> None:
    if column.virtual:
        return
    if column.generated:
        raise table.refuse(f"adding the stored generated column {column.name!r}")
    with table.staged.update_schema() as change:
        change.add_column((column.name,), type_of(column.type))
    table.keep(columns={**table.fact(COLUMNS), str(_field(table, column.name).field_id): _facts(column)})
    text = shown(column, filling)
    if text is not None:
        value, made = encoder.value(column_of(column), text), maker(type_of(column.type))
        table.fill(_field(table, column.name).field_id, made(value) if made and value is not None else value)


def _drop_column(table: LakeTable, name: str) -> None:
    if not any(field.name.lower() == name.lower() for field in table.schema.fields):
        return  # a VIRTUAL column, which is not there
    field = _field(table, name)
    with table.staged.update_schema(allow_incompatible_changes=True) as change:
        change.delete_column((field.name,))
    facts = table.fact(COLUMNS)
    table.keep(columns={one: fact for one, fact in facts.items() if one != str(field.field_id)})

    def left(found: _Indexes) -> _Indexes:
        less = {index: [one for one in ids if one != field.field_id] for index, ids in found.items()}
        return {index: ids for index, ids in less.items() if ids}

    _of_indexes(table, table, left)


def _rename_column(table: LakeTable, old: str, new: str) -> None:
    with table.staged.update_schema() as change:
        change.rename_column((_field(table, old).name,), new)


def _change_column(table: LakeTable, old: str, column: ColumnDef) -> None:
    if column.generated:
        raise table.refuse(f"changing the generated column {column.name!r}")
    field, kind = _field(table, old), type_of(column.type)
    facts = table.fact(COLUMNS)
    before = _type_before(facts[str(field.field_id)])
    if not keeps_rows(before, column.type):
        raise table.refuse(f"{column.type} for column {column.name!r}, whose values of type {before} might change")
    if field.field_type != kind:
        _widen(table, field, kind, column)
    if field.name != column.name:
        _rename_column(table, field.name, column.name)
    table.keep(columns={**facts, str(field.field_id): _facts(column)})


def _widen(table: LakeTable, field: NestedField, kind: IcebergType, column: ColumnDef) -> None:
    try:
        with table.staged.update_schema() as change:
            change.update_column((field.name,), field_type=kind)
    except (ValidationError, ValueError) as error:
        what = f"the type {column.type} for column {column.name!r}, which is {field.field_type} ({error})"
        raise table.refuse(what) from error


def _add_index(table: LakeTable, index: IndexDef) -> None:
    ids = table.ids("" if part.length or not part.column else part.column for part in index.parts)
    if index.kind is IndexKind.PRIMARY:
        table.keep(primary=ids)
        return
    uniques, plain = table.fact(UNIQUES), table.fact(PLAIN)
    there = set(map(str.lower, (*uniques, *(plain or ()))))
    name = index.named(lambda name: name.lower() in there).name
    if index.kind.unique:
        table.keep(uniques={**uniques, name: ids})
    elif plain is not None:
        table.keep(plain={**plain, name: ids})


def _drop_index(table: LakeTable, name: str) -> None:
    if name.upper() == "PRIMARY":
        table.keep(primary=[])
        return
    _of_indexes(table, table, lambda found: {n: ids for n, ids in found.items() if n.lower() != name.lower()})


def _may_have(table: LakeTable, index: str) -> bool:
    """Whether a table has upstream's index, or may have a plain one: an earlier version kept none."""
    plain = table.fact(PLAIN)
    return plain is None or index in {folded(name) for name in (*plain, *table.fact(UNIQUES))}


def _of_indexes(table: LakeTable, model: LakeTable, change: Callable[[_Indexes], _Indexes]) -> None:
    """Keep a table's indexes, unique and plain ones, as a change makes them of those of a model."""
    table.keep(uniques=change(model.fact(UNIQUES)))
    if (plain := model.fact(PLAIN)) is not None:
        table.keep(plain=change(plain))
