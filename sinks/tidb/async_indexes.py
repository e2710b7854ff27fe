"""Indexes that TiDB adds while rows go on being written (TiCDC documentation, "Asynchronous execution of ADD INDEX").

Only plain ones: a unique index decides how rows are written, so what comes after it has to know it.
"""

import threading
from collections.abc import Callable

import structlog

from ordering.errors import TargetError
from sinks.ddl.model import AddIndex, IndexKind
from sinks.ddl.parse.statement import DdlKind, read_statement
from sinks.ddl.parse.tables import read_changes, read_index
from sinks.mysql.catalog import quoted
from sinks.tidb.connection import TidbConnection

log = structlog.get_logger()


def adds_plain_indexes(sql: str) -> bool:
    """Whether the statement adds indexes that are not unique, and does nothing else."""
    kind = read_statement(sql).kind if sql else DdlKind.OTHER
    if kind is DdlKind.CREATE_INDEX:
        return read_index(sql).kind is IndexKind.PLAIN
    changes = read_changes(sql) if kind is DdlKind.ALTER_TABLE else []
    return bool(changes) and all(isinstance(c, AddIndex) and c.index.kind is IndexKind.PLAIN for c in changes)


class Building:
    """A statement that runs over a connection of its own, in a thread that nobody has to wait for.

    TiDB may give the job up if we end before it does: whoever leads next looks whether the index is there.
    """

    def __init__(
        self, connection: TidbConnection, database: str, sql: str, confirm: Callable[[TidbConnection], None]
    ) -> None:
        """Begin it, unless `confirm` raises: it asks over this connection whether the statement may still run."""
        self._connection, self._sql = connection, sql
        try:
            connection.run(f"USE {quoted(database)}")
            confirm(connection)
        except BaseException:
            connection.close()
            raise
        self._thread = threading.Thread(target=self._run, name="index", daemon=True)
        self._error: TargetError | None = None
        self._thread.start()

    def _run(self) -> None:
        try:
            self._connection.run(self._sql)
        except TargetError as error:
            self._error = error
            log.warning("an index was not added", statement=self._sql[:200], because=error.fact)
        finally:
            self._connection.close()

    def ended(self, seconds: float | None) -> bool:
        """Whether it ends within so many seconds (None: wait for it). Raises TargetError if it failed."""
        self._thread.join(seconds)
        if self._error is not None:
            raise self._error
        return not self._thread.is_alive()
