"""The TiDB target: MySQL's, but for what TiDB does in another way."""

from collections.abc import Iterable, Sequence

import structlog
from tenacity import Retrying, retry_if_result, stop_after_delay, wait_fixed

from ordering.errors import TargetError, TargetUnreachableError
from ordering.events import DdlEvent, TableName
from ordering.progress import Progress
from sinks.ddl.statement import read_statement
from sinks.ddl_log import DdlRecord, DdlState
from sinks.mysql.adapt import Adapted, under_own_user
from sinks.mysql.leftovers import all_there
from sinks.mysql.partitions import unvalidated
from sinks.mysql.target import LOCK_S, MysqlTarget, lock_name
from sinks.mysql.write import MysqlWriter
from sinks.target import Lease, Stored
from sinks.tidb.connection import TidbConnection
from sinks.tidb.holders import CREATION, erase, living, of_earlier_version, write_down
from sinks.tidb.indexes import Building, adds_plain_indexes
from sinks.tidb.reading import TidbReader
from sinks.tidb.write import TidbWriter

log = structlog.get_logger()
# the parts of a multi schema change stay 'done' and never become 'synced'
_UNFINISHED = """SELECT COUNT(*) FROM information_schema.DDL_JOBS
WHERE DB_NAME = %s AND TABLE_NAME = %s
AND STATE IN ('none', 'queueing', 'running', 'rollingback', 'cancelling', 'pausing', 'paused')"""
_PARTITION_ID = """SELECT TIDB_PARTITION_ID FROM information_schema.PARTITIONS
WHERE TABLE_SCHEMA = %s AND TABLE_NAME = %s"""
_TABLE_ID = "SELECT TIDB_TABLE_ID FROM information_schema.TABLES WHERE TABLE_SCHEMA = %s AND TABLE_NAME = %s"
_SPENT = """SELECT TIMESTAMPDIFF(MICROSECOND, START_TIME, END_TIME) DIV 1000 FROM information_schema.DDL_JOBS
WHERE DB_NAME = %s AND TABLE_NAME = %s AND QUERY = %s ORDER BY JOB_ID DESC LIMIT 1"""
ASYNC_AFTER_S = 2.0
"""So long an index is waited for; then rows go on."""
_LOOK_S = 0.2
"""How often a DDL job that somebody else began is looked at."""
_FREE_S = 1
"""What TiDB takes as the shortest time to wait for a named lock."""


class TidbTarget(MysqlTarget):
    """TiDB: database `d`, table `t` as upstream."""

    _reads_features = True
    _free_s = _FREE_S

    def _connected(self) -> TidbConnection:
        return TidbConnection(self._uri)

    def reader(self) -> TidbReader:
        """See `Target.reader`."""
        return TidbReader(self._db)

    def _writer(self) -> MysqlWriter:
        return TidbWriter(self._db)

    def connect(self) -> None:
        """See `Target.connect`."""
        super().connect()
        self._db.run(CREATION)

    def _begin(self) -> None:
        # a server or session may be set to optimistic, where FOR UPDATE locks nothing before COMMIT
        self._db.run("BEGIN PESSIMISTIC")

    def try_lead(self, changefeed: str) -> bool:
        """See `Target.try_lead`: a lock that is free proves nothing while the connection of who held it lives."""
        return living(self._db, lock_name(changefeed)) is None and super().try_lead(changefeed)

    def _fence(self, holder: str) -> None:
        """See `Target._fence`: TiDB does not tell who holds a named lock, so holders write it down."""
        name = lock_name(holder)
        if former := living(self._db, name):
            self._db.end_connection(former)
            self._await_end(name, former)
        if not self._locks(name, _FREE_S):
            unmarked = of_earlier_version(self._db, name)
            if unmarked is not None:
                self._db.end_connection(unmarked)
            if not self._locks(name, LOCK_S):
                raise self._does_not_end(unmarked)
        write_down(self._db, name)

    def _await_end(self, name: str, connection: int) -> None:
        """KILL returns before the connection has ended, and what it runs goes on for so long."""
        limit, asking = stop_after_delay(LOCK_S), retry_if_result(lambda found: found is not None)
        look = Retrying(retry=asking, wait=wait_fixed(_LOOK_S), stop=limit, retry_error_callback=lambda _: connection)
        if look(living, self._db, name) is not None:
            raise self._does_not_end(connection)

    def is_led(self, changefeed: str) -> bool:
        """See `Target.is_led`: TiDB tells it only to who tries."""
        if living(self._db, lock_name(changefeed)) is not None:
            return True
        free = self._locks(lock_name(changefeed), _FREE_S)
        if free:
            super()._release(changefeed)
        return not free

    def _release(self, holder: str) -> None:
        erase(self._db, lock_name(holder))  # who holds it next would end this connection, which goes on
        super()._release(holder)

    def _await_jobs(self, tables: Sequence[TableName]) -> None:
        """A DDL job goes on when the one who asked for it is gone, and an index may be added without anyone waiting.

        TiDB queues most jobs of a table itself, but refuses an index at once that another job is adding.
        """
        for name in tables:
            Retrying(retry=retry_if_result(bool), wait=wait_fixed(_LOOK_S))(self._unfinished_jobs, *name)

    def claim(self, changefeed: str, initial: Progress, held: Lease | None = None) -> Stored:
        """See `Target.claim`; an index whose job was given up is begun anew."""
        stored = super().claim(changefeed, initial, held)
        for line in self._running(changefeed):
            if not self._unfinished_jobs(line.database, line.table):
                self._end(line, ASYNC_AFTER_S, Lease(changefeed, stored.epoch))
        return stored

    def _execute(self, fitted: Adapted, session: str | None, ddl: DdlEvent, lease: Lease) -> DdlState:
        """See `MysqlTarget`; plain indexes are not waited for."""
        if not adds_plain_indexes(fitted.sql):
            return super()._execute(fitted, session, ddl, lease)
        done = self._built(fitted.sql, TableName(session or "", ddl.table), ASYNC_AFTER_S, lease)
        return DdlState.DONE if done else DdlState.RUNNING

    def _built(self, sql: str, table: TableName, seconds: float | None, lease: Lease) -> bool:
        """Begin to add an index; whether it is there in time. Raises TargetError if it can't be added."""
        building = Building(self._connected(), table.database, sql, lambda own: self._confirm(lease, own))
        if building.ended(seconds):
            return True
        while not self._unfinished_jobs(*table):
            if building.ended(_LOOK_S):
                return True
        log.info("an index is being added while rows go on", statement=sql[:200])
        return False

    def _running(self, changefeed: str) -> list[DdlRecord]:
        return [line for line in self.open_ddls(changefeed) if line.state == DdlState.RUNNING.value]

    def _is_there(self, line: DdlRecord) -> bool:
        self.forget_catalog()
        if self.catalog().get(TableName(line.database, line.table)) is None:
            return True  # the table is gone, and its index with it
        return all_there(self._db.query, read_statement(line.executed), line.database, self.catalog())

    def _end_running(self, lease: Lease, tables: Sequence[TableName]) -> None:
        """See `MysqlTarget`: once its job is over an index is there, or is added now."""
        names = {(name.database.lower(), name.table.lower()) for name in tables}
        for line in self._running(lease.changefeed):
            if (line.database.lower(), line.table.lower()) in names:
                self._end(line, None, lease)

    def _end(self, line: DdlRecord, seconds: float | None, lease: Lease) -> None:
        """Note that an index is there, or add it again; waits so long (None: as long as it takes).

        One that can't be added stops nothing, for no row depends on it: its line tells.
        """
        try:
            place = TableName(line.database, line.table)
            if self._is_there(line) or self._built(line.executed, place, seconds, lease):
                self._note_done(line)
        except TargetUnreachableError:
            raise
        except TargetError as error:
            log.warning("an index is missing in the target", statement=line.executed[:200], because=error.fact)
            with self._transaction():
                self._judge_line(line.id, DdlState.FAILED, error.fact)

    def _note_done(self, line: DdlRecord) -> None:
        spent = self._db.value(_SPENT, (line.database, line.table, line.executed))
        with self._transaction():
            self._close_line(line.id, DdlState.DONE, None if spent is None else int(spent))

    def _sides(self, table: TableName, partition: str, other: TableName) -> list[str]:
        """Partitions and tables have ids, which change sides with the rows."""
        own = f"{_PARTITION_ID} AND PARTITION_NAME = %s"
        return [str(self._db.value(own, (*table, partition))), str(self._db.value(_TABLE_ID, other))]

    def _unfinished_jobs(self, database: str, table: str) -> int:
        return int(self._db.value(_UNFINISHED, (database, table)))

    def _fitted(self, sql: str, *, dumped: bool) -> Adapted:
        del dumped  # it computes what upstream computes
        return Adapted(unvalidated(read_statement(under_own_user(sql))))

    def _prepared(self, sql: str, session: str | None) -> Iterable[str]:
        """It converts as upstream did."""
        del sql, session
        return ()

    def _check_conversions(self, sql: str, session: str | None, lease: Lease) -> None:
        """It converts as upstream did."""
        del sql, session, lease

    def _moving_rows(self, sql: str, session: str | None) -> str | None:
        """Its partitions are upstream's."""
        del sql, session
        return None
