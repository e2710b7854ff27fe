"""Which tables a DDL of the interval may have changed, or taken away: events alone can't tell of those. Pure."""

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence

from ordering.errors import InputError
from ordering.events import TableName, folded
from sinks.bookkeeping.ddl_log import DdlRecord, DdlState
from sinks.ddl.model import AddColumn, Change, ChangeColumn, RenameColumn
from sinks.ddl.parse.statement import DdlKind, Statement, TableReference, exchange_of, read_statement
from sinks.ddl.parse.tables import read_changes

_NO_ROWS = {DdlKind.CREATE_INDEX, DdlKind.DROP_INDEX, DdlKind.CREATE_VIEW, DdlKind.DROP_VIEW, DdlKind.CREATE_DATABASE}
"""They change no row, and no column; but see `changes_key`."""

_NO_TABLE = {DdlKind.CREATE_DATABASE, DdlKind.ALTER_DATABASE, DdlKind.CREATE_VIEW, DdlKind.DROP_VIEW}
"""They say of no table that it is there, or gone."""

Filled = Mapping[TableName, frozenset[str]]
"""Columns in which rows may show what no message has told, by tables; all names are folded."""

_EMPTIES = {DdlKind.CREATE_TABLE, DdlKind.DROP_TABLE, DdlKind.TRUNCATE_TABLE}

_There = dict[TableName, tuple[TableName, str]]
"""Tables that have to be there, by their folded names, and why that is not sure."""

_SETTLED = {DdlState.DONE.value, DdlState.IGNORED.value, DdlState.SKIPPED.value}


def touched(line: DdlRecord, tables: Collection[TableName]) -> set[TableName]:
    """The tables that a DDL may have changed; all of them where it can't be read."""
    try:
        statement = read_statement(line.sql)
        if statement.kind in _NO_ROWS:
            return set()
        if statement.kind is DdlKind.OTHER:
            return set(tables)
        own = [*statement.tables, *(new for _, new in statement.renames)]
        exchange = exchange_of(statement)
    except InputError:
        return set(tables)
    if statement.kind in {DdlKind.DROP_DATABASE, DdlKind.ALTER_DATABASE}:
        database = (statement.database or line.database).lower()
        return {name for name in tables if name.database.lower() == database}
    own += [TableReference(line.database, line.table)] if line.table else []
    own += [exchange[1]] if exchange else []
    named = _in_their_databases(line, own)
    named += [old for old, _ in statement.renames]  # without a database it may be of any
    return {name for name in tables if any(_is(name, one) for one in named)}


def changes_key(line: DdlRecord, name: TableName) -> bool:
    """Whether a DDL may have given a table another handle key: rows are told apart in another way after it."""
    try:
        statement = read_statement(line.sql)
    except InputError:
        return True
    named = _in_their_databases(line, statement.tables)
    changes = statement.kind in {DdlKind.CREATE_INDEX, DdlKind.DROP_INDEX}
    return changes and any(_is(name, one) for one in named)


def moved(line: DdlRecord, tables: Collection[TableName]) -> set[TableName]:
    """The tables among which a DDL moves rows: by new names, or by an exchanged partition."""
    try:
        statement = read_statement(line.sql)
        moves = statement.kind is DdlKind.RENAME_TABLE or exchange_of(statement) is not None
    except InputError:
        moves = True
    return touched(line, tables) if moves else set()


def _in_their_databases(line: DdlRecord, tables: Iterable[TableReference]) -> list[TableReference]:
    """Those without a database are of the statement's."""
    return [TableReference(one.database or line.database, one.table) for one in tables]


def _is(name: TableName, reference: TableReference) -> bool:
    """Upstream's names don't tell case apart."""
    same = name.table.lower() == reference.table.lower()
    return same and (reference.database is None or name.database.lower() == reference.database.lower())


def left_by(
    lines: Iterable[DdlRecord], before: Mapping[TableName, str], is_sure: Callable[[DdlRecord], bool]
) -> dict[TableName, str]:
    """The tables that have to be there after DDLs, the oldest first; and why that is not sure, "" where it is.

    `before`: the same before them. `is_sure`: whether a DDL was executed where tables were looked for.
    """
    there = {name.folded: (name, why) for name, why in before.items()}
    for line in lines:
        if line.happened:
            _follow(line, there, is_sure=line.state == DdlState.DONE.value and is_sure(line))
    return dict(there.values())


def _follow(line: DdlRecord, there: _There, *, is_sure: bool) -> None:
    try:
        statement = read_statement(line.sql)
    except InputError:
        statement = Statement(line.sql, DdlKind.OTHER)
    if statement.kind in _NO_TABLE:
        return
    if statement.kind is DdlKind.OTHER and not statement.tables:
        for key, (name, _) in list(there.items()):
            if _may_mean(line, name):
                there[key] = name, f"a DDL may have taken it away: {line.sql[:200]}"
        return
    keeps = statement.kind not in {DdlKind.DROP_TABLE, DdlKind.DROP_DATABASE}
    if not keeps:
        _forget(there, [name for name, _ in there.values() if _drops(line, statement, name)])
    for one in statement.tables if keeps and is_sure else ():
        _expect(there, line, one)
    for old, new in statement.renames:
        _forget(there, [name for name, _ in there.values() if _is(name, old)])  # without a database it may be of any
        if is_sure:
            _expect(there, line, new)


def _forget(there: _There, gone: Iterable[TableName]) -> None:
    for name in gone:
        del there[name.folded]


def _expect(there: _There, line: DdlRecord, one: TableReference) -> None:
    name = TableName(one.database or line.database, one.table)
    there[name.folded] = there.get(name.folded, (name, ""))[0], ""


def _drops(line: DdlRecord, statement: Statement, name: TableName) -> bool:
    if statement.kind is DdlKind.DROP_DATABASE:
        return (statement.database or line.database).lower() == name.database.lower()
    return any(_is(name, one) for one in _in_their_databases(line, statement.tables))


def _may_mean(line: DdlRecord, name: TableName) -> bool:
    """Whether a DDL that can't be read may be about a table."""
    is_own = _is(name, TableReference(line.database, line.table)) if line.table else False
    return is_own or name.table.lower() in line.sql.lower()


def created_once(about: Sequence[DdlRecord]) -> bool:
    """Whether the one DDL about a table has made it, so that it was empty then."""
    return len(about) == 1 and creates(about[0])


def creates(line: DdlRecord) -> bool:
    """Whether a DDL has made a table."""
    try:
        kind = read_statement(line.sql).kind
    except InputError:
        return False  # an operator has done what it says
    return line.state == DdlState.DONE.value and kind is DdlKind.CREATE_TABLE


def settled(lines: Iterable[DdlRecord], at: int) -> frozenset[int]:
    """The DDLs of just this commitTs that are done with: another one at it may still come."""
    return frozenset(line.id for line in lines if line.commit_ts == at and line.state in _SETTLED)


def ended(lines: Iterable[DdlRecord]) -> frozenset[int]:
    """All DDLs that are done with; of a progress that has not begun they are of before its reset."""
    return frozenset(line.id for line in lines if line.state in _SETTLED)


def since(lines: Iterable[DdlRecord], low: int, before: Collection[int]) -> Iterator[DdlRecord]:
    """DDLs that may have been executed since a checkpoint; `before`: those that were settled at it.

    Also those above the present one: a target may execute a DDL before the progress that covers it is saved.
    """
    return (line for line in lines if line.commit_ts >= low and line.id not in before)


def under_way(lines: Collection[DdlRecord], at: int, tables: Collection[TableName]) -> set[TableName]:
    """Tables that a DDL above a checkpoint may have changed already: there the target is ahead of it."""
    return {name for line in since(lines, at, settled(lines, at)) for name in touched(line, tables)}


def filled(lines: Iterable[DdlRecord], before: Filled) -> dict[TableName, frozenset[str]]:
    """Columns that DDLs, the oldest first, have given to rows with something else than NULL in them. `before`: them."""
    found = dict(before)
    for line in lines:
        try:
            _fill(line, read_statement(line.sql), found)
        except InputError:
            continue  # an operator has done what it says
    return {name: columns for name, columns in found.items() if columns}


def _fill(line: DdlRecord, statement: Statement, found: dict[TableName, frozenset[str]]) -> None:
    own = [TableName(*name).folded for name in map(_named, _in_their_databases(line, statement.tables))]
    if statement.kind in _EMPTIES and line.state == DdlState.DONE.value:
        for name in own:
            found.pop(name, None)
    if statement.kind is DdlKind.ALTER_TABLE and not statement.renames:
        for name in own:
            for change in read_changes(statement.sql):
                found[name] = _filled_by(change, found.get(name, frozenset()))
    if (exchange := exchange_of(statement)) is not None:
        both = [*own, *(TableName(*_named(one)).folded for one in _in_their_databases(line, [exchange[1]]))]
        found.update(dict.fromkeys(both, frozenset().union(*(found.get(name, frozenset()) for name in both))))
    for old, new in statement.renames:
        olds = [name for name in found if _is(name, old)]
        columns = frozenset[str]().union(*(found.pop(name) for name in olds))
        found[TableName(new.database or line.database, new.table).folded] = columns


def _named(reference: TableReference) -> tuple[str, str]:
    return reference.database or "", reference.table


def _filled_by(change: Change, columns: frozenset[str]) -> frozenset[str]:
    match change:
        case AddColumn(column) if column.fills_rows:
            return columns | {folded(column.name)}
        case ChangeColumn(old, column) if folded(old) in columns:
            return columns | {folded(column.name)}
        case RenameColumn(old, new) if folded(old) in columns:
            return columns | {folded(new)}
    return columns
