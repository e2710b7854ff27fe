"""What became of a table since a row event of it was quarantined, out of the DDL log.

A row that is held belongs to the table that had its name at its commitTs. Later that table may have another name, and
its name may be another table's: then events of that name say nothing about the row, and the row is not to be written
there. The statements tell; where they don't for certain, the table counts as moved.
"""

from collections.abc import Sequence
from enum import Enum
from typing import NamedTuple

from ordering.errors import InputError
from ordering.events import TableName
from sinks.bookkeeping.ddl_log import DdlRecord
from sinks.ddl.parse.statement import DdlKind, read_statement
from sinks.ddl.parse.words import Words

_EMPTYING = {DdlKind.DROP_TABLE, DdlKind.TRUNCATE_TABLE, DdlKind.DROP_DATABASE}
_MAKING = {DdlKind.CREATE_TABLE, DdlKind.RENAME_TABLE, DdlKind.OTHER}
_MOVING = {"RENAME", "EXCHANGE"}
_KEYS = {"PRIMARY", "UNIQUE", "KEY", "INDEX", "MODIFY", "CHANGE", "DROP"}
"""Words of statements after which the table's rows may have another handle key."""


class Fate(Enum):
    """What a DDL did to a table."""

    CHANGED = "was changed"
    REKEYED = "was changed, and its handle key may be another one,"
    MOVED = "may have another name, or its name be another table's,"
    EMPTIED = "was emptied"


class Change(NamedTuple):
    """A DDL about a table, and what it did."""

    fate: Fate
    line: DdlRecord


def fate_of(log: Sequence[DdlRecord], table: TableName, since: int, upto: int) -> Change | None:
    """What the DDLs with since <= commitTs < upto did to a table, by its name at `since`; None: nothing.

    `log`: newest first.

    The first that moved or emptied it, for what came after it is another table's or another row's; else the worst.
    """
    worst: Change | None = None
    oldest_first = log[::-1]
    for line in sorted(oldest_first, key=lambda line: line.commit_ts):
        fate = _fate(line, table) if line.happened and since <= line.commit_ts < upto else None
        if fate in (Fate.MOVED, Fate.EMPTIED):
            return Change(fate, line)
        if fate is Fate.REKEYED or (fate is not None and worst is None):
            worst = Change(fate, line)
    return worst


def _fate(line: DdlRecord, table: TableName) -> Fate | None:
    own = line.database.lower() == table.database.lower() and line.table.lower() in ("", table.table.lower())
    try:
        kind, words = read_statement(line.sql).kind, Words(line.sql).words
    except InputError:  # so made by hand: it may have done anything
        return Fate.MOVED if own or table.table.lower() in line.sql.lower() else None
    texts = {word.text.upper() for word in words}
    if texts & _MOVING and table.table.upper() in texts:
        return Fate.MOVED
    if not own or (not line.table and kind is not DdlKind.DROP_DATABASE):
        return None
    if kind in _EMPTYING:
        return Fate.EMPTIED
    if kind in _MAKING:
        return Fate.MOVED
    return Fate.REKEYED if texts & _KEYS or kind in (DdlKind.CREATE_INDEX, DdlKind.DROP_INDEX) else Fate.CHANGED
