"""Deleting copies of rows of tables without a key, in the target's own words: so many rows that equal one, no more.

Not idempotent. A target that holds fewer copies than upstream deleted is not what it should be: an error.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from ordering.drift import Met
from ordering.errors import TargetError
from ordering.events import TableName


def delete_copies(table: TableName, rows: Iterable[Sequence[Any]], delete: Callable[[Sequence[Any], int], int]) -> Met:
    """Delete one row for each of these; they all were there.

    `delete`: deletes so many that equal a row; returns how many there were.

    Raises TargetError.
    """
    counts = Counter(map(tuple, rows))
    for row, count in counts.items():
        found = delete(row, count)
        if found != count:
            raise TargetError(
                f"table {table} holds {found} of {count} rows that upstream deleted: {str(row)[:200]}",
                hint="the table was changed by hand, or begun without its rows: load it again (force-replicate)",
            )
    return Met(counts.total(), counts.total())
