"""Indexes that PostgreSQL builds while others write into the table: CREATE INDEX CONCURRENTLY.

It is no part of a transaction. One that is cut, or refused, leaves an INVALID index behind (PostgreSQL manual,
"Building Indexes Concurrently"), which is dropped before the next try; one that a killed run has built stays as it is.
"""

import re
from collections.abc import Callable, Sequence

from ordering.errors import TargetError, TargetUnreachableError
from sinks.postgres.connection import PostgresConnection
from sinks.postgres.ddl.indexes import NOTE

_NAME = r'"((?:[^"]|"")*)"'
_INDEX = re.compile(rf"CREATE (?:UNIQUE )?INDEX {_NAME} ON {_NAME}\.{_NAME} ")
_IS_VALID = """
SELECT i.indisvalid FROM pg_index i JOIN pg_class c ON c.oid = i.indexrelid
JOIN pg_namespace n ON n.oid = c.relnamespace WHERE n.nspname = %s AND c.relname = %s"""
_IS_PARTITIONED = """
SELECT count(*) FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
WHERE n.nspname = %s AND c.relname = %s AND c.relkind = 'p'"""


def only_indexes(db: PostgresConnection, statements: Sequence[str]) -> bool:
    """Whether the statements make indexes and do nothing else, of tables that can have them made in this way."""
    found = [_INDEX.match(sql) for sql in statements if not sql.startswith(NOTE)]
    places = [(_unquoted(match[2]), _unquoted(match[3])) for match in found if match is not None]
    return 0 < len(places) == len(found) and not any(db.value(_IS_PARTITIONED, place) for place in places)


def build(db: PostgresConnection, statements: Sequence[str], confirm: Callable[[], None], *, torn: bool) -> str:
    """Make the indexes, outside of a transaction; what was executed.

    `confirm` raises where this session leads no more; it is asked before each statement, over the same session.
    `torn`: a killed run may have made some.
    """

    def change(own: str) -> None:
        confirm()
        db.run(own)

    executed = []
    for sql in statements:
        match = _INDEX.match(sql)
        if match is None:
            executed.append(sql)
            continue
        index = f'"{match[2]}"."{match[1]}"'
        valid = db.value(_IS_VALID, (_unquoted(match[2]), _unquoted(match[1])))
        if valid is False:
            change(f"DROP INDEX {index}")
        own = sql.replace("INDEX ", "INDEX CONCURRENTLY ", 1)
        if not (valid and torn):
            _make(change, own, index, drop=not valid)
        executed.append(own)
    return "; ".join(executed)


def _make(change: Callable[[str], None], sql: str, index: str, *, drop: bool) -> None:
    try:
        change(sql)
    except TargetUnreachableError:
        raise
    except TargetError:
        if drop:
            change(f"DROP INDEX IF EXISTS {index}")
        raise


def _unquoted(name: str) -> str:
    return name.replace('""', '"')
