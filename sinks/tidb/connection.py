"""A connection to TiDB: its own settings, and what its limits mean for us."""

import pymysql

from ordering.errors import TargetError, TransactionLimitError
from ordering.events import TableName
from sinks.mysql.connection import MysqlConnection
from sinks.uri import TargetUri

_TOO_LARGE = {8004, 8175, 8176}
_ROW_TOO_LARGE = 8025


class TidbConnection(MysqlConnection):
    """MySQL's, with what TiDB has beyond it.

    Its limits (TiDB documentation, "TiDB Configuration File", performance.txn-total-size-limit and
    txn-entry-size-limit; "System Variables", tidb_mem_quota_query) show as errors 8004, 8175 and 8025.
    """

    _is_tidb = True
    _kill = "KILL TIDB"  # also where the connection is another TiDB server's

    def __init__(self, uri: TargetUri) -> None:
        self._write_source = uri.write_source
        super().__init__(uri)

    def made_indexes(self, table: TableName) -> list[str]:
        """See `MysqlConnection.made_indexes`: by their ids, as TiCDC has it."""
        look = (
            "SELECT KEY_NAME FROM information_schema.TIDB_INDEXES WHERE TABLE_SCHEMA = %s AND TABLE_NAME = %s"
            " GROUP BY KEY_NAME, INDEX_ID ORDER BY INDEX_ID"
        )
        return [str(name) for (name,) in self.query(look, tuple(table))]

    def begin(self) -> None:
        """See `DatabaseSession.begin`."""
        # a server or session may be set to optimistic, where FOR UPDATE locks nothing before COMMIT
        self.run("BEGIN PESSIMISTIC")

    def _set_up(self) -> None:
        super()._set_up()
        if self._write_source:
            # a changefeed of the target with bdr-mode leaves out what bears a mark, and a cluster whose BDR role is
            # SECONDARY refuses all DDL but such
            self.run("SET SESSION tidb_cdc_write_source = %s", (self._write_source,))
        # rows come with the values that upstream drew
        self.run("SET SESSION allow_auto_random_explicit_insert = 1")

    def _as_error(self, error: pymysql.MySQLError) -> TargetError:
        found = super()._as_error(error)
        code = error.args[0] if error.args else None
        if code in _TOO_LARGE:
            hint = 'lower limits.window-rows, or let tasks commit in small transactions: consistency = "row"'
            return TransactionLimitError(found.fact, where=found.where, hint=hint)
        if code == _ROW_TOO_LARGE:
            hint = "one row is larger than performance.txn-entry-size-limit of the TiDB servers: raise it"
            return TargetError(found.fact, where=found.where, hint=hint)
        return found
