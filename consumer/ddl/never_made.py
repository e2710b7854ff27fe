"""Tables that upstream made without a valid index: TiCDC does not send their CREATE TABLE, but some DDLs after it.

Which ones differs by version: some send every ALTER, TRUNCATE and RENAME TABLE. The target lacks the table, and that is
right, if the DDL log shows that nothing made it: its database, or the table that had its name before, came and went
within this changefeed, so a CREATE TABLE that was sent would be in the log behind that.
"""

from collections.abc import Iterable

from consumer.ddl.lost_keys import changes_of
from consumer.ddl.policy import NO_INDEX
from ordering.errors import InputError
from ordering.events import DdlEvent, TableName, folded
from sinks.bookkeeping.ddl_log import DdlRecord, DdlState
from sinks.ddl.model import AddIndex, Change, ChangeColumn, ChangePartitions, IndexKind, Unknown
from sinks.ddl.name_resolution import readings_of
from sinks.ddl.parse.statement import DdlKind, Statement, read_statement
from sinks.rows.schema import Catalog

_OF_A_TABLE = {
    DdlKind.ALTER_TABLE, DdlKind.CREATE_INDEX, DdlKind.DROP_INDEX, DdlKind.RENAME_TABLE, DdlKind.TRUNCATE_TABLE,
}  # fmt: skip


def tables_of(ddl: DdlEvent) -> tuple[TableName, ...]:
    """The tables that a DDL needs to be there and that may never have been made; none if it may give one a key.

    Raises InputError if the statement can't be read.
    """
    statement = read_statement(ddl.sql)
    if statement.kind not in _OF_A_TABLE or any(map(_may_give_a_key, changes_of(statement))):
        return ()
    return ddl.removes or (TableName(ddl.database, ddl.table),)


def may_mean_another(ddl: DdlEvent, catalog: Catalog) -> bool:
    """Whether an old name without its database may be that of a table that is there: several databases have one.

    Raises InputError if the statement can't be read.
    """
    statement, told = read_statement(ddl.sql), dict(ddl.olders)
    olds = [old for old, _ in statement.renames if old.database is None and old.table.lower() not in told]
    return any(readings_of(statement, old, catalog) for old in olds)


def _may_give_a_key(change: Change) -> bool:
    """Whether rows may be sent from then on, or rows of another table are moved: the target needs the table for it."""
    match change:
        case AddIndex(index):
            return index.kind in (IndexKind.PRIMARY, IndexKind.UNIQUE)
        case ChangeColumn(_, column):
            return not column.nullable
        case ChangePartitions(text):
            return text.upper().startswith("EXCHANGE")
    return isinstance(change, Unknown)


def was_never_made(table: TableName, upto: int, log: Iterable[DdlRecord]) -> bool:
    """Whether the DDLs below a commitTs show that no CREATE TABLE of this table came. False: they don't tell."""
    before = (line for line in log if line.commit_ts < upto)
    for line in sorted(before, key=lambda line: line.commit_ts, reverse=True):
        told = _told(line, table.folded)
        if told is not None:
            return told
    return False


def _told(line: DdlRecord, table: TableName) -> bool | None:
    """What a DDL says: it made the table (False), or there was no such table right after it (True); None: nothing."""
    statement = _placed(line)
    if statement is None or statement.kind is DdlKind.OTHER:
        return False if table.table in folded(line.sql) else None
    left_out = line.state == DdlState.IGNORED.value and NO_INDEX in line.executed
    if table in {name.folded for name in statement.adds()}:
        return left_out
    if table in {name.folded for name in statement.removes()}:
        return line.happened or left_out
    if statement.kind in (DdlKind.CREATE_DATABASE, DdlKind.DROP_DATABASE):
        return line.happened if folded(statement.database or "") == table.database else None
    return None


def _placed(line: DdlRecord) -> Statement | None:
    try:
        return read_statement(line.sql).placed(line.database, lambda _: line.database)
    except InputError:
        return None
