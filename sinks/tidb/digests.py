"""TiDB's snapshots are moments: a session's `tidb_snapshot` shows data and schema as of a TSO, to any number of them.

(TiDB documentation, "Read Historical Data Using the System Variable tidb_snapshot".)
"""

from sinks.compare.digests import Span
from sinks.mysql.digests import MysqlReader
from sinks.mysql.repair_sql import TidbMender
from sinks.rows.schema import Column


class TidbReader(MysqlReader):
    """As MySQL's, at a TSO."""

    piece_rows = 0

    def once(self, span: Span, table: str) -> str:
        """See `TableReader.once`: rows would go through one place, and are read in several."""
        del span, table
        return ""

    def begin(self, snapshot: str = "") -> str:
        """See `Reader.begin`."""
        self._db.run("SET SESSION tidb_snapshot = ''")
        at = snapshot or self._now()
        self._db.run("SET SESSION tidb_snapshot = %s", (at,))
        return at

    def truncates(self, column: Column) -> int | None:
        """See `TableReader.truncates`: the nearest float is held."""
        del column
        return None

    def is_comparable(self, column: Column) -> bool:
        """See `TableReader.is_comparable`."""
        return column.type.lower().startswith("vector") or super().is_comparable(column)

    def mender(self) -> TidbMender:
        """See `Reader.mender`."""
        return TidbMender(self)

    def _now(self) -> str:
        self._db.run("START TRANSACTION")
        found = self._db.value("SELECT @@tidb_current_ts")
        self._db.rollback()
        return str(found)
