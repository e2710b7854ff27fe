"""Executes DDL on TiDB: MySQL's way, but for what TiDB does in another way; jobs go on by themselves here."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace

import structlog
from tenacity import Retrying, retry_if_result, wait_fixed

from ordering.errors import TargetError, TargetUnreachableError
from ordering.events import DdlEvent, TableName
from sinks.bookkeeping.ddl_log import DdlRecord, DdlState
from sinks.bookkeeping.progress_rows import Lease
from sinks.ddl.model import ChangeColumn
from sinks.ddl.parse.statement import DdlKind, read_statement
from sinks.ddl.parse.tables import read_changes
from sinks.mysql.connection import MysqlConnection
from sinks.mysql.ddl.conversion_trial import check_nulls
from sinks.mysql.ddl.execution import MysqlDdl
from sinks.mysql.ddl.kept_indexes import all_there
from sinks.mysql.ddl.partitions import unvalidated
from sinks.mysql.ddl.translate import Adapted, for_tidb
from sinks.rows.values import ValueRules
from sinks.target_session import TargetSession
from sinks.tidb.async_indexes import Building, adds_plain_indexes
from sinks.tidb.connection import TidbConnection

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


class TidbDdl(MysqlDdl):
    """See `sinks.ddl_execution.DdlExecution`. `connect`: opens a connection of its own for an index."""

    _reads_features = True

    def __init__(
        self, at: TargetSession[MysqlConnection], rules: ValueRules, connect: Callable[[], TidbConnection]
    ) -> None:
        super().__init__(at, rules)
        self._connect = connect

    def resume(self, lease: Lease) -> None:
        """See `DdlExecution.resume`: an index whose job was given up is started over."""
        for line in self._running(lease.changefeed):
            if not self._unfinished_jobs(line.database, line.table):
                self._end(line, ASYNC_AFTER_S, lease)

    def _await_jobs(self, tables: Sequence[TableName]) -> None:
        """A DDL job goes on when the one who asked for it is gone, and an index may be added without anyone waiting.

        TiDB queues most jobs of a table itself, but refuses an index at once that another job is adding.
        """
        for name in tables:
            Retrying(retry=retry_if_result(bool), wait=wait_fixed(_LOOK_S))(self._unfinished_jobs, *name)

    def _execute(self, fitted: Adapted, session: str | None, ddl: DdlEvent, lease: Lease) -> DdlState:
        """See `MysqlDdl`; plain indexes are not waited for, but where the log's line is not by the target's names."""
        if ddl.routed or not adds_plain_indexes(fitted.sql):
            return super()._execute(fitted, session, ddl, lease)
        done = self._built(fitted.sql, TableName(session or "", ddl.table), ASYNC_AFTER_S, lease)
        return DdlState.DONE if done else DdlState.RUNNING

    def _built(self, sql: str, table: TableName, seconds: float | None, lease: Lease) -> bool:
        """Begin to add an index; whether it is there in time. Raises TargetError if it can't be added."""
        building = Building(self._connect(), table.database, sql, lambda own: self._at.confirm(lease, own))
        if building.ended(seconds):
            return True
        while not self._unfinished_jobs(*table):
            if building.ended(_LOOK_S):
                return True
        log.info("an index is being added while rows go on", statement=sql[:200])
        return False

    def _running(self, changefeed: str) -> list[DdlRecord]:
        return [line for line in self._log.unsettled(changefeed) if line.state == DdlState.RUNNING.value]

    def _is_there(self, line: DdlRecord) -> bool:
        self._at.forget_catalog()
        if self._at.catalog().get(TableName(line.database, line.table)) is None:
            return True  # the table is gone, and its index with it
        return all_there(self._at.db.query, read_statement(line.executed), line.database, self._at.catalog())

    def _end_running(self, lease: Lease, tables: Sequence[TableName]) -> None:
        """See `MysqlDdl`: once its job is over an index is there, or is added now."""
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
            with self._at.transaction():
                self._log.judge(line.id, DdlState.FAILED, error.fact)

    def _note_done(self, line: DdlRecord) -> None:
        spent = self._at.db.value(_SPENT, (line.database, line.table, line.executed))
        with self._at.transaction():
            self._log.close(line.id, DdlState.DONE, None if spent is None else int(spent))

    def _sides(self, table: TableName, partition: str, other: TableName) -> list[str]:
        """Partitions and tables have ids, which change sides with the rows."""
        own = f"{_PARTITION_ID} AND PARTITION_NAME = %s"
        return [str(self._at.db.value(own, (*table, partition))), str(self._at.db.value(_TABLE_ID, other))]

    def _unfinished_jobs(self, database: str, table: str) -> int:
        return int(self._at.db.value(_UNFINISHED, (database, table)))

    def _fitted(self, sql: str, ddl: DdlEvent) -> Adapted:
        fitted = for_tidb(sql, dumped=ddl.dumped)
        return replace(fitted, sql=unvalidated(read_statement(fitted.sql)))

    def _prepared(self, sql: str, session: str | None) -> Iterable[str]:
        """It converts as upstream did."""
        del sql, session
        return ()

    def _check_conversions(self, sql: str, session: str | None, lease: Lease) -> bool:
        """It converts as upstream did, but for moments of its own."""
        del lease
        check_nulls(self._at.db, sql, session, self._at.catalog())
        return False

    def _change(self, sql: str, lease: Lease) -> None:
        """See `MysqlDdl`; rows that do not fit a column's new type say that upstream's session was not strict."""
        try:
            super()._change(sql, lease)
        except TargetUnreachableError:
            raise
        except TargetError as error:
            if not converts(sql):
                raise
            log.warning("rows are converted as in a session that is not strict", because=error.fact)
            with self._at.db.loosely():
                super()._change(sql, lease)

    def _moving_rows(self, sql: str, session: str | None) -> str | None:
        """Its partitions are upstream's."""
        del sql, session
        return None


def converts(sql: str) -> bool:
    """Whether a statement may convert rows."""
    if read_statement(sql).kind is not DdlKind.ALTER_TABLE:
        return False
    return any(isinstance(change, ChangeColumn) for change in read_changes(sql))
