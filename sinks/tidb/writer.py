"""Writes rows into TiDB."""

from ordering.errors import NO_ROW_AT_FAULT, TargetError
from ordering.events import TableName
from sinks.mysql.catalog import quoted
from sinks.mysql.writer import NUMBER, MysqlWriter
from sinks.rows.schema import Column
from sinks.rows.spool import Group

_TYPES = """
SELECT COLUMN_NAME, COLUMN_TYPE, COLLATION_NAME FROM information_schema.COLUMNS
WHERE TABLE_SCHEMA = %s AND TABLE_NAME = %s"""


class TidbWriter(MysqlWriter):
    """MySQL's, but temporary tables are written out: TiDB has no CREATE TABLE ... AS SELECT.

    And what LOAD DATA refuses a statement may take: TiDB loads no date with a zero in it, whatever the SQL mode.
    """

    _computes_as_upstream = True

    def _takes_literals(self, column: Column) -> bool:
        """See `MysqlWriter`. TiDB puts a literal in the place of a column that equals it under a collation.

        That is done in the comparison of bytes beside it too, which then holds for whatever the collation finds.
        """
        return super()._takes_literals(column) and not (column.folds or column.pads)

    def _load_data(self, verb: str, place: str, group: Group, columns: list[Column]) -> int:
        self._db.run("SAVEPOINT before_load")
        try:
            return super()._load_data(verb, place, group, columns)
        except NO_ROW_AT_FAULT:
            raise
        except TargetError:
            self._db.run("ROLLBACK TO SAVEPOINT before_load")
            return self._by_statements(verb, place, group, columns)

    def _like(self, table: TableName, columns: list[Column]) -> str:
        types = {name: (kind, collation) for name, kind, collation in self._db.query(_TYPES, table)}
        typed = (_typed(c.name, *((NUMBER, None) if c.type == NUMBER else types[c.name])) for c in columns)
        return f"({', '.join(typed)})"


def _typed(name: str, kind: str, collation: str | None) -> str:
    return f"{quoted(name)} {kind}" + (f" COLLATE {quoted(collation)}" if collation else "")
