"""Keys that upstream has dropped and the target has kept: the loss of a table's last valid index is not replicated.

Once another index becomes the key, rows may be equal in the columns of the kept one, and would replace each other. The
DDL log tells which they are, as far back as it goes. Pure.
"""

from collections.abc import Collection, Iterable, Iterator
from dataclasses import replace

from ordering.errors import InputError
from ordering.events import DdlEvent, TableName
from sinks.bookkeeping.ddl_log import DdlRecord, DdlState
from sinks.ddl.model import AddColumn, AddIndex, Change, ChangeColumn, DropIndex, IndexKind, RenameIndex
from sinks.ddl.parse.statement import DdlKind, Statement, named, read_statement
from sinks.ddl.parse.tables import read_changes, read_dropped_index, read_index
from sinks.rows.schema import Catalog, TableSchema

WHY_KEPT = "it drops the last valid index of table"
"""How the DDL log says why such a DDL was left out."""
_MADE = {DdlState.DONE.value, DdlState.RUNNING.value}
_OPEN = {DdlState.INTENT.value, DdlState.FAILED.value, DdlState.SKIP.value, DdlState.TAKE.value}
_ENDING = {DdlKind.CREATE_TABLE, DdlKind.DROP_TABLE}


def may_make_key(sql: str) -> bool:
    """Whether one of its clauses may make a valid index, or one valid. Raises InputError."""
    return any(isinstance(change, AddIndex | ChangeColumn) for change in _changes(read_statement(sql)))


def drops_of_lost_keys(ddl: DdlEvent, lines: Iterable[DdlRecord], catalog: Catalog) -> list[DdlEvent]:
    """The DDLs that drop what was kept, to be executed before one that makes another key. `lines`: newest first.

    Raises InputError for a statement that can't be read.
    """
    changes = list(_changes(read_statement(ddl.sql)))
    schema = catalog.get(catalog.spelled(TableName(ddl.database, ddl.table)))
    if schema is None or not _makes_key(schema, changes):
        return []
    lines = [line for line in lines if line.commit_ts <= ddl.commit_ts and not line.is_of(ddl)]
    begun = {line.sql for line in lines if line.commit_ts == ddl.commit_ts and line.state in _OPEN}
    indexes = [change.index for change in changes if isinstance(change, AddIndex)]
    made = {index.known_as.lower() for index in indexes if index.name or index.kind is IndexKind.PRIMARY}
    ours = {name.lower() for name in schema.valid_indexes | schema.unique_indexes}
    found = []
    for name in sorted(_lost(schema.name, lines) - made):
        sql = _drop(ddl.table, name)
        here = name if name == "primary" else catalog.index_name(schema.here, name).lower()
        if here in ours or sql in begun:
            found.append(replace(ddl, sql=sql))
    return found


def adds_key(schema: TableSchema, changes: Collection[Change]) -> bool:
    """Whether one of the clauses makes a valid index."""
    nullable = {column.name.lower(): column.nullable or column.virtual for column in schema.columns}
    for change in changes:
        if isinstance(change, AddColumn | ChangeColumn):
            nullable[change.column.name.lower()] = change.column.nullable or change.column.virtual
    return any(
        index.kind is IndexKind.PRIMARY
        or (index.kind is IndexKind.UNIQUE and not any(nullable.get(p.column.lower(), True) for p in index.parts))
        for index in (change.index for change in changes if isinstance(change, AddIndex))
    )


def _makes_key(schema: TableSchema, changes: Collection[Change]) -> bool:
    """Whether clauses make a valid index, or one valid: those of its columns that may be NULL may not any more."""
    open_before = {column.name.lower() for column in schema.columns if column.nullable or column.virtual}
    columns = [change.column for change in changes if isinstance(change, ChangeColumn)]
    still_open = open_before - {column.name.lower() for column in columns if not (column.nullable or column.virtual)}
    keys = [{name.lower() for name in key} for key in schema.unique_keys if "" not in key]
    return adds_key(schema, changes) or any(key & open_before and not key & still_open for key in keys)


def _lost(table: TableName, lines: Collection[DdlRecord]) -> set[str]:
    """Lower-case names of the indexes that upstream has dropped from a table, whatever became of them in the target."""
    lost: dict[TableName, set[str]] = {}
    for line in reversed(list(lines)):
        try:
            _replay(line, lost)
        except InputError:
            continue  # it was refused then, or what was done by hand instead is not known
    return lost.get(_lower(table), set())


def _replay(line: DdlRecord, lost: dict[TableName, set[str]]) -> None:
    statement = read_statement(line.sql).placed(line.database, lambda _: line.database)
    is_made = line.state in _MADE
    for old, new in statement.renames if is_made else ():
        lost[_lower(named(new))] = lost.pop(_lower(named(old)), set())
    if not statement.tables:
        return
    names = lost.setdefault(_lower(named(statement.tables[0])), set())
    if statement.kind in _ENDING and is_made:
        names.clear()
    if statement.like is not None and is_made:  # made with the keys that its model has in the target
        names.update(lost.get(_lower(named(statement.like)), ()))
    changes = list(_changes(statement))
    names.update(_kept(line, changes))
    if is_made or line.state == DdlState.IGNORED.value:
        made = [change.index.known_as for change in changes if isinstance(change, AddIndex)]
        made += [change.new for change in changes if isinstance(change, RenameIndex)]
        names.difference_update(map(str.lower, made))
    # it is gone now, or an operator wants to keep it
    if (is_made and len(changes) == 1) or line.state == DdlState.SKIPPED.value:
        names.difference_update(_dropped(changes))


def _kept(line: DdlRecord, changes: Collection[Change]) -> set[str]:
    """What a statement drops and the target may still have: where it was left out, or may be a clause that was."""
    is_left_out = line.state == DdlState.IGNORED.value and line.executed.startswith(WHY_KEPT)
    return _dropped(changes) if is_left_out or (line.state in _MADE and len(changes) > 1) else set()


def _dropped(changes: Iterable[Change]) -> set[str]:
    return {change.name.lower() for change in changes if isinstance(change, DropIndex)}


def _changes(statement: Statement) -> Iterator[Change]:
    if statement.kind is DdlKind.CREATE_INDEX:
        yield AddIndex(read_index(statement.sql))
    elif statement.kind is DdlKind.DROP_INDEX:
        yield DropIndex(read_dropped_index(statement.sql))
    elif statement.kind is DdlKind.ALTER_TABLE and not statement.renames:
        yield from read_changes(statement.sql)


def _drop(table: str, name: str) -> str:
    key = "PRIMARY KEY" if name == "primary" else f"INDEX {_quoted(name)}"
    return f"ALTER TABLE {_quoted(table)} DROP {key}"


def _quoted(name: str) -> str:
    return f"`{name.replace('`', '``')}`"


def _lower(name: TableName) -> TableName:
    return TableName(name.database.lower(), name.table.lower())
