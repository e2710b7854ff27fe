"""What a statement may change: the server's own count is compared with it before COMMIT.

A DELETE by n keys removes n rows at most, an INSERT of n rows adds n. Another count means that the server compared
otherwise than upstream, or that something else writes along: the window is rolled back, and no row of it is at fault.
"""

from collections.abc import Iterable, Sequence
from itertools import islice

from ordering.errors import RowCountError
from ordering.events import TableName

_SHOWN = 5
"""Keys that an error lists."""
_SHOWN_CHARACTERS = 80
"""Of each of them."""
Keys = Iterable[Sequence[object]]
"""Keys of rows that a statement is about; looked at only for an error."""


def check_changed(changed: int, at_most: int, table: TableName, keys: Keys, where: str, *, at_least: int = 0) -> None:
    """Compare the rows that a statement changed with those that it may change.

    `where`: the target, for people. Raises RowCountError, which rolls the window back.
    """
    if at_least <= changed <= at_most:
        return
    expected = f"{at_most}" if at_least == at_most else f"{at_least} to {at_most}" if at_least else f"at most {at_most}"
    raise RowCountError(
        f"a statement for {expected} rows of {table} changed {changed}; nothing was committed. Keys: {_listed(keys)}",
        where=where,
        hint="compare the table's keys (types, collations), triggers and rules with upstream's, then run again",
    )


def _listed(keys: Keys) -> str:
    shown = [", ".join(map(str, key)) for key in islice(keys, _SHOWN + 1)]
    listed = "; ".join(f"({key[:_SHOWN_CHARACTERS]})" for key in shown[:_SHOWN])
    return f"{listed} ..." if len(shown) > _SHOWN else listed
