"""What is known of a merged table after a shard's DDL that is not followed: left out, or made by hand. Pure.

No shard may count as lacking what it has by now: a column goes with the last shard that has it. So what a statement
gives a shard it has, and of what can't be read it may have all.
"""

from collections.abc import Iterable
from dataclasses import replace

from consumer.ddl.lost_keys import changes_of
from consumer.ddl.merged.parts import column_part, index_part, is_of_rows, parts_of
from ordering.errors import InputError
from ordering.events import TableName, folded
from ordering.tables.merged_tables import MergedTable
from sinks.ddl.model import (
    AddColumn,
    AddIndex,
    Change,
    ChangeColumn,
    DropColumn,
    DropIndex,
    Passed,
    RenameColumn,
    RenameIndex,
    SetDefault,
)
from sinks.ddl.parse.statement import DdlKind, Statement
from sinks.ddl.parse.tables import read_table
from sinks.rows.schema import TableSchema

_OF_PARTS = {DdlKind.ALTER_TABLE, DdlKind.CREATE_INDEX, DdlKind.DROP_INDEX, DdlKind.TRUNCATE_TABLE}


def passed_over(table: MergedTable, shard: TableName, statement: Statement) -> MergedTable:
    """After a DDL that the target has nothing of; what a part is that only this shard has is not known."""
    changes = _changes(statement)
    table = _after(table, shard, changes)
    given = [*_made(statement), *(part for change in changes or () for part in _given(change))]
    new = [part for part in given if part not in table.parts]
    return replace(table.doubted(new), whole=table.whole)


def never_came(table: MergedTable, shard: TableName, schema: TableSchema) -> MergedTable:
    """After a RENAME to a new name that the target has nothing of: the rows that it has by now can't be written."""
    return table.never_had(shard, [f"column {folded(column.name)}" for column in schema.columns])


def made_by_hand(table: MergedTable, shard: TableName, statement: Statement) -> MergedTable:
    """After an operator has made a change: what it is about may be anything now."""
    changes = _changes(statement)
    table = _after(table, shard, changes)
    if changes is None or any(isinstance(change, Passed) for change in changes):
        return table.doubted({*table.parts, *_made(statement)})
    about = {part for change in changes for part in (*_given(change), *_taken(change))}
    if not all(isinstance(change, AddColumn | ChangeColumn | SetDefault) for change in changes):
        about |= {part for part in table.parts if part.startswith("index ")}
    return table.doubted(about)


def shared(before: MergedTable, after: MergedTable, others: Iterable[TableName]) -> MergedTable:
    """After a part came by hand: it may have been there before, with values of other shards."""
    for part in after.parts.keys() - before.parts.keys():
        for other in others:
            after = after.given(other, part)
    return after


def _changes(statement: Statement) -> list[Change] | None:
    """The clauses; None where they are not known or do more than to change parts of one shard."""
    try:
        found = list(filter(is_of_rows, changes_of(statement)))
    except InputError:
        return None
    known = (
        AddColumn | ChangeColumn | RenameColumn | DropColumn | SetDefault | AddIndex | DropIndex | RenameIndex | Passed
    )
    of_parts = statement.kind in _OF_PARTS and not statement.renames
    return found if of_parts and all(isinstance(change, known) for change in found) else None


def _made(statement: Statement) -> list[str]:
    """The columns that a CREATE TABLE gives a shard."""
    if statement.kind is not DdlKind.CREATE_TABLE or statement.like is not None:
        return []
    return [part for part in parts_of(read_table(statement.sql)) if part.startswith("column ")]


def _after(table: MergedTable, shard: TableName, changes: list[Change] | None) -> MergedTable:
    if changes is None:
        return table.unsure(shard)
    for change in changes:
        for part in _taken(change):
            table = table.kept(shard, part)
        for part in _given(change):
            table = table.given(shard, part)
    return table


def _given(change: Change) -> list[str]:
    """The parts that a shard has after a clause."""
    if isinstance(change, AddColumn | ChangeColumn):
        return [column_part(change.column)]
    if isinstance(change, RenameColumn):
        return [f"column {folded(change.new)}"]
    if isinstance(change, SetDefault):
        return [f"column {folded(change.name)}"]
    return [index_part(change.index)] if isinstance(change, AddIndex) else []


def _taken(change: Change) -> list[str]:
    """The columns that a shard has lost by a clause."""
    if isinstance(change, RenameColumn | ChangeColumn):
        return [f"column {folded(change.old)}"]
    return [f"column {folded(change.name)}"] if isinstance(change, DropColumn) else []
