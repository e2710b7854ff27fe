"""NULL in a column that becomes a TIMESTAMP NOT NULL: upstream fills in the time of the change, which nobody sends.

TiDB does so where any other type becomes a TIMESTAMP, in every session. A nullable TIMESTAMP that is to be NOT NULL
it refuses while a row has NULL, as it does for every other type.
"""

from ordering.errors import TargetError
from ordering.events import TableName
from sinks.ddl.model import ColumnDef

_HINT = "make the change in the target by hand, with the values that upstream shows, then `reconciler ddl done`"


def fills_in_now(old: str, column: ColumnDef) -> bool:
    """Whether a change of a column, which was of the type `old`, gives rows with NULL the time of the change."""
    return column.type.base == "timestamp" and not column.nullable and old != "timestamp"


def not_sent(table: TableName, column: str) -> TargetError:
    """Why such a change stops where there are rows with NULL."""
    return TargetError(
        f"column {column!r} of {table} has NULL in some rows, for which upstream has filled in the time of the change:"
        " no message holds it",
        hint=_HINT,
    )
