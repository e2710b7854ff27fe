"""Unique indexes that upstream has lost and the target has kept: the loss of the last valid one is not replicated.

Nor is that of others, where a filter or an operator leaves out the DDL that drops them: those stay for good (`stays`).

They stand in the progress, so that they are exactly as far as the DDLs are. What they say is about upstream: its table
has no such index any more. That stays true if the table is dropped, for RECOVER brings it back as it was; it ends when
the target makes a table or an index of that name as upstream does. If upstream has a key over these columns again, by
any name, it is not lost until upstream drops that one, too.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from ordering.events import TableName
from ordering.timestamps import MAX_TSO

NOT_YET = MAX_TSO
"""In place of a commitTs: upstream has not dropped it."""
LIMIT = 1000
"""Tables that are remembered: those whose keys were lost last. That others are forgotten is logged."""


@dataclass(frozen=True, slots=True)
class KeptKey:
    """An index that was kept: its columns, in small letters, and the commitTs of the DDL that dropped it upstream.

    `stays`: a filter or an operator has left that DDL out, so no later one drops the index here. It goes by upstream's
    name, which is another one here if the DDL that renamed it was left out, or if upstream has another index over its
    columns again: at `NOT_YET`, until upstream drops that.
    """

    columns: frozenset[str]
    commit_ts: int
    stays: bool = False


KeptKeys = Mapping[TableName, Mapping[str, KeptKey]]
"""By table of upstream and name of the index, both folded; `primary` for the primary key."""


def present(kept: KeptKeys) -> KeptKeys:
    """Without tables that have none."""
    return {table: keys for table, keys in kept.items() if keys}


def lost_by(kept: KeptKeys, commit_ts: int) -> KeptKeys:
    """Those that upstream had no more at a commitTs."""
    lost = {t: {name: key for name, key in keys.items() if key.commit_ts <= commit_ts} for t, keys in kept.items()}
    return present(lost)


def beyond_limit(kept: KeptKeys) -> list[TableName]:
    """The tables that are too many to be remembered: those whose keys were lost first."""
    oldest = sorted(kept, key=lambda table: max(key.commit_ts for key in kept[table].values()))
    return oldest[: max(0, len(oldest) - LIMIT)]


def stored(kept: KeptKeys, *, staying: bool = False) -> list[list[Any]]:
    """As it is kept with the progress: those that stay apart from the others."""
    return [
        [*table, name, key.commit_ts, *sorted(key.columns)]
        for table, keys in sorted(kept.items())
        for name, key in sorted(keys.items())
        if key.stays is staying
    ]


def restored(lines: Iterable[list[Any]], staying: Iterable[list[Any]] = ()) -> KeptKeys:
    """The value that `stored` came from."""
    found: dict[TableName, dict[str, KeptKey]] = {}
    for some, stays in ((lines, False), (staying, True)):
        for database, table, name, commit_ts, *columns in some:
            found.setdefault(TableName(database, table), {})[name] = KeptKey(frozenset(columns), commit_ts, stays)
    return found
