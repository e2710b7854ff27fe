"""Which RENAMEs count (TiCDC documentation, "Changefeed DDL Replication", RENAME TABLE).

A table that comes into the filter by a RENAME has rows that were never sent: an error. One that leaves it is renamed in
the target too; its later rows do not count. Several renames in one statement count together or not at all. Names that
one message swaps are refused, as in TiCDC; where a swap's renames come one by one they are executed in their order.
"""

from collections.abc import Mapping, Sequence
from itertools import chain

from consumer.filters.tables import TableFilter
from ordering.errors import InputError
from ordering.events import TableName

Pair = tuple[TableName, TableName]
_HINT = "take every name into the filter, under another changefeed id with its own start-ts if tables are new to it"


def why_ignored(own: Sequence[Pair], together: Sequence[Pair], tables: TableFilter) -> str:
    """Why the renames of a message are left out; "" if they are to be executed.

    Raises InputError, and ConfigError where case alone decides.

    `together`: those of the whole statement upstream, of which a message mostly holds one.
    """
    pairs = together or own
    taken = [(tables(*old), tables(*new)) for old, new in pairs]
    if not any(old or new for old, new in taken):
        for name in chain(*pairs):
            tables.of_message(*name)
        return "filter.rules leave the table out under its old name and its new one"
    if _is_swap(dict(own)):
        hint = "upstream, swap names by several statements; here, execute it by hand"
        raise InputError(f"RENAME of {_told(own)} swaps names in one statement", hint=hint)
    if len(pairs) == 1:
        _check_one(pairs[0], tables)
    else:
        _check_several(pairs, tables)
    return ""


def _check_one(pair: Pair, tables: TableFilter) -> None:
    old, new = pair
    if not tables(*old):
        raise InputError(
            f"RENAME of {old} to {new}: filter.rules leave out the old name and take in the new one, so the rows that"
            " the table has are not in the target",
            hint=_HINT,
        )


def _check_several(pairs: Sequence[Pair], tables: TableFilter) -> None:
    for old, new in pairs:
        out = [str(old)] * (not tables(*old)) + [new.database] * (not tables.accepts_database(new.database))
        if out:
            raise InputError(
                f"RENAME of {_told(pairs)}: filter.rules leave out {out[0]}, and a RENAME of several tables counts"
                " only if they take in every old name and every new database",
                hint=_HINT,
            )


def _told(pairs: Sequence[Pair]) -> str:
    return ", ".join(f"{old} to {new}" for old, new in pairs)


def _is_swap(renamed: Mapping[TableName, TableName]) -> bool:
    """Whether a name comes back to itself along the renames."""
    for start in renamed:
        at = renamed[start]
        for _ in renamed:
            if at == start:
                return True
            at = renamed.get(at, at)
    return False
