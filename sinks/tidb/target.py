"""The TiDB target: MySQL's, but for what TiDB does in another way."""

from collections.abc import Sequence

from tenacity import Retrying, retry_if_result, wait_fixed

from ordering.events import TableName
from sinks.ddl.statement import read_statement
from sinks.ddl.words import Words
from sinks.mysql.adapt import Adapted
from sinks.mysql.partitions import unvalidated
from sinks.mysql.target import LOCK_S, MysqlTarget, lock_name
from sinks.mysql.write import MysqlWriter
from sinks.target import PROGRESS_DATABASE
from sinks.tidb.connection import TidbConnection
from sinks.tidb.write import TidbWriter

_HOLDER = f"{PROGRESS_DATABASE}.holder"
_HOLDERS = f"""CREATE TABLE IF NOT EXISTS {_HOLDER} (
  name VARCHAR(64) NOT NULL PRIMARY KEY, connection BIGINT UNSIGNED NOT NULL
) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin"""
# the parts of a multi schema change stay 'done' and never become 'synced'
_UNFINISHED = """SELECT COUNT(*) FROM information_schema.DDL_JOBS
WHERE DB_NAME = %s AND TABLE_NAME = %s
AND STATE IN ('none', 'queueing', 'running', 'rollingback', 'cancelling', 'pausing', 'paused')"""
_PARTITION_ID = """SELECT TIDB_PARTITION_ID FROM information_schema.PARTITIONS
WHERE TABLE_SCHEMA = %s AND TABLE_NAME = %s"""
_TABLE_ID = "SELECT TIDB_TABLE_ID FROM information_schema.TABLES WHERE TABLE_SCHEMA = %s AND TABLE_NAME = %s"
_LOOK_S = 0.2
"""How often a DDL job that somebody else began is looked at."""
_FREE_S = 1
"""What TiDB takes as the shortest time to wait for a named lock."""


class TidbTarget(MysqlTarget):
    """TiDB: database `d`, table `t` as upstream."""

    def _connected(self) -> TidbConnection:
        return TidbConnection(self._uri)

    def _writer(self) -> MysqlWriter:
        return TidbWriter(self._db)

    def connect(self) -> None:
        """See `Target.connect`."""
        super().connect()
        self._db.run(_HOLDERS)

    def _begin(self) -> None:
        # a server or session may be set to optimistic, where FOR UPDATE locks nothing before COMMIT
        self._db.run("BEGIN PESSIMISTIC")

    def _fence(self, holder: str) -> None:
        """See `Target._fence`: TiDB does not tell who holds a named lock, so holders write it down."""
        name = lock_name(holder)
        if not self._locks(name, _FREE_S):
            connection = self._db.value(f"SELECT connection FROM {_HOLDER} WHERE name = %s", (name,))  # noqa: S608 a constant
            if connection is not None:
                self._db.end_connection(int(connection))
            if not self._locks(name, LOCK_S):
                raise self._does_not_end(connection)
        self._db.run(f"REPLACE INTO {_HOLDER} VALUES (%s, CONNECTION_ID())", (name,))  # noqa: S608 a constant

    def is_led(self, changefeed: str) -> bool:
        """See `Target.is_led`: TiDB tells it only to who tries."""
        free = self._locks(lock_name(changefeed), _FREE_S)
        if free:
            self._release(changefeed)
        return not free

    def _await_jobs(self, tables: Sequence[TableName]) -> None:
        """A DDL job goes on when the one who asked for it is gone, and an index may be added without anyone waiting.

        TiDB queues most jobs of a table itself, but refuses an index at once that another job is adding.
        """
        for name in tables:
            Retrying(retry=retry_if_result(bool), wait=wait_fixed(_LOOK_S))(self._unfinished_jobs, *name)

    def _sides(self, table: TableName, partition: str, other: TableName) -> list[str]:
        """Partitions and tables have ids, which change sides with the rows."""
        own = f"{_PARTITION_ID} AND PARTITION_NAME = %s"
        return [str(self._db.value(own, (*table, partition))), str(self._db.value(_TABLE_ID, other))]

    def _unfinished_jobs(self, database: str, table: str) -> int:
        return int(self._db.value(_UNFINISHED, (database, table)))

    def _fitted(self, sql: str) -> Adapted:
        return Adapted(unvalidated(read_statement(Words(sql).sql)))

    def _moving_rows(self, sql: str, session: str | None) -> str | None:
        """Its partitions are upstream's."""
        del sql, session
        return None
