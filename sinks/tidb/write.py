"""Writes rows into TiDB."""

from ordering.events import TableName
from sinks.mysql.catalog import quoted
from sinks.mysql.write import NUMBER, MysqlWriter
from sinks.schema import Column

_TYPES = """
SELECT COLUMN_NAME, COLUMN_TYPE, COLLATION_NAME FROM information_schema.COLUMNS
WHERE TABLE_SCHEMA = %s AND TABLE_NAME = %s"""


class TidbWriter(MysqlWriter):
    """MySQL's, but temporary tables are written out: TiDB has no CREATE TABLE ... AS SELECT."""

    def _like(self, table: TableName, columns: list[Column]) -> str:
        types = {name: (kind, collation) for name, kind, collation in self._db.query(_TYPES, table)}
        typed = (_typed(c.name, *((NUMBER, None) if c.type == NUMBER else types[c.name])) for c in columns)
        return f"({', '.join(typed)})"


def _typed(name: str, kind: str, collation: str | None) -> str:
    return f"{quoted(name)} {kind}" + (f" COLLATE {quoted(collation)}" if collation else "")
