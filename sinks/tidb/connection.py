"""A connection to TiDB: its own settings, and what its transaction limits mean for us."""

from sinks.mysql.connection import MysqlConnection

_SMALLER = 'lower limits.window-rows, or let tasks commit in small transactions: consistency = "row"'
_ROW = "raise performance.txn-entry-size-limit on the TiDB servers: one row is larger than it"


class TidbConnection(MysqlConnection):
    """MySQL's, with what TiDB has beyond it.

    Its limits (TiDB documentation, "TiDB Configuration File", performance.txn-total-size-limit and
    txn-entry-size-limit; "System Variables", tidb_mem_quota_query) show as errors 8004, 8175 and 8025.
    """

    _is_tidb = True
    _kill = "KILL TIDB"  # also where the connection is another TiDB server's
    _hints = {8004: _SMALLER, 8175: _SMALLER, 8176: _SMALLER, 8025: _ROW}  # noqa: RUF012 a constant

    def _set_up(self) -> None:
        super()._set_up()
        # rows come with the values that upstream drew
        self.run("SET SESSION allow_auto_random_explicit_insert = 1")
