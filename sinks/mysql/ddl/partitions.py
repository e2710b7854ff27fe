"""Statements about partitions, where MySQL and MariaDB have others than TiDB.

Which KEY partition a row is in differs: these servers have a hash of their own. So the rows of TiDB's partition are
found by its CRC-32 and deleted. EXCHANGE compares no row: upstream did, or was told not to.
"""

from collections.abc import Callable
from typing import Any

from ordering.errors import TargetError
from sinks.ddl.model import ChangePartitions
from sinks.ddl.parse.columns import read_type
from sinks.ddl.parse.partitions import PartitionDef, Partitioning, read_change
from sinks.ddl.parse.statement import DdlKind, Statement, named
from sinks.ddl.parse.tables import read_changes
from sinks.ddl.parse.words import Words
from sinks.ddl.rows.partition_condition import KEYED, STRINGS
from sinks.mysql.catalog import quoted
from sinks.rows.schema import Catalog, Column

Query = Callable[[str, tuple[Any, ...]], list[tuple[Any, ...]]]
_PARTITIONS = """
SELECT PARTITION_NAME, PARTITION_EXPRESSION FROM information_schema.PARTITIONS WHERE TABLE_SCHEMA = %s
AND TABLE_NAME = %s AND PARTITION_METHOD LIKE '%%KEY' ORDER BY PARTITION_ORDINAL_POSITION"""
_LINEAR = """
SELECT 1 FROM information_schema.PARTITIONS WHERE TABLE_SCHEMA = %s AND TABLE_NAME = %s
AND PARTITION_METHOD = 'LINEAR HASH' LIMIT 1"""


def unvalidated(statement: Statement) -> str:
    """The statement; an EXCHANGE PARTITION without the comparison of rows that TiDB's message leaves out."""
    changes = (change for change in _changes(statement) if isinstance(change, ChangePartitions))
    exchanges = any(change.text.upper().startswith("EXCHANGE") for change in changes)
    told = "VALIDATION" in statement.sql.upper()
    return f"{statement.sql} WITHOUT VALIDATION" if exchanges and not told else statement.sql


def by_key(query: Query, statement: Statement, session: str | None, catalog: Catalog) -> str | None:
    """What does to rows in KEY partitions what the statement did upstream; None for any other statement.

    Raises TargetError where that can't be told.
    """
    change = next((c for c in _changes(statement) if isinstance(c, ChangePartitions)), None)
    if change is None or not change.text.upper().startswith(("TRUNCATE", "EXCHANGE")):
        return None
    (own,) = map(named, statement.placed(session or "", lambda _: session or "").tables)
    name = catalog.spelled(own)
    if query(_LINEAR, tuple(name)):
        raise TargetError(
            f"{name} is partitioned by LINEAR HASH: this server has other rows in its partitions than TiDB",
            hint="partition it by HASH in the target (ALTER TABLE ... PARTITION BY HASH ...), then start again",
        )
    rows = query(_PARTITIONS, tuple(name))
    if not rows:
        return None
    expression = str(rows[0][1] or "")
    columns = tuple(word.text for word in Words(expression).words if word.text != ",") if expression else ()
    schema = catalog.get(name)
    columns = columns or (schema.primary_key() if schema else ())
    partitions = Partitioning("KEY", columns, "", tuple(PartitionDef(str(row[0])) for row in rows))
    asked = read_change(change.text, partitions)
    if asked.exchanged or schema is None:
        raise TargetError(
            f"EXCHANGE of a KEY partition of {name}: this server has other rows in it than TiDB",
            hint="swap the rows in the target by hand",
        )
    place = f"{quoted(name.database)}.{quoted(name.table)}"
    if asked.removed is None:
        return f"DELETE FROM {place}"  # noqa: S608 quoted
    parts = [next(c for c in schema.columns if c.name.lower() == column.lower()) for column in columns]
    numbers = ", ".join(str(partitions.place(removed)) for removed in asked.removed)
    bucket = f"CRC32(CONCAT({', '.join(map(_bytes, parts))})) % {len(rows)}"
    return f"DELETE FROM {place} WHERE {bucket} IN ({numbers})"  # noqa: S608 quoted


def _changes(statement: Statement) -> list[Any]:
    return list(read_changes(statement.sql)) if statement.kind is DdlKind.ALTER_TABLE else []


def _bytes(column: Column) -> str:
    """A column's part of what is hashed."""
    kind, name = read_type(Words(column.type)), quoted(column.name)
    if kind.base not in KEYED or column.folds:
        raise TargetError(f"which KEY partition a row is in can't be computed for column {column.name!r} {column.type}")
    if kind.base in STRINGS:
        shown = f"RTRIM({name})" if column.pads else name
        text = f"CAST(CONVERT({shown} USING utf8mb4) AS BINARY)"
    else:
        text = name if kind.base == "varbinary" else f"CAST(CAST({name} AS CHAR) AS BINARY)"
    return f"COALESCE({text}, x'00')"
