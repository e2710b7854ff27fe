"""Since when tables have been what they are, out of the DDL log: what it means for events that come again (R14).

An event's fingerprint holds its table's name and its handle key. A message of a table without a primary key does not
name its key, so it is read with the key that the table has now; and how the target spells the table may have changed
as well. So an event from before such a change proves itself where its fingerprint is found; where it is not found,
nothing is known.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

from consumer.tasks.report import RepeatedOf
from ordering.errors import InputError
from ordering.events import TableName
from sinks.bookkeeping.ddl_log import KEPT, DdlRecord
from sinks.ddl.parse.statement import read_statement
from sinks.target import Target


@dataclass(frozen=True, slots=True)
class Altered:
    """The commitTs of the last DDL about each table.

    `tables`: those that the target has; `floor`: up to where DDLs are no longer known.
    """

    tables: Collection[TableName]
    made: Mapping[TableName, int]
    """Of the last one that made the table or gave it its name; names in small letters, for upstream's fold case."""
    changed: Mapping[TableName, int]
    """Of the last one of any kind."""
    floor: int = 0

    @classmethod
    def of(cls, log: Sequence[DdlRecord], tables: Collection[TableName]) -> "Altered":
        """From the lines of the DDL log, whatever became of them: one that failed may have been done by hand."""
        made: dict[TableName, int] = {}
        changed: dict[TableName, int] = {}
        for line in log:
            name = TableName(line.database, line.table).folded
            changed[name] = max(line.commit_ts, changed.get(name, 0))
            if _makes(line.sql):
                made[name] = max(line.commit_ts, made.get(name, 0))
        return cls(tables, made, changed, min(line.commit_ts for line in log) if len(log) >= KEPT else 0)

    @classmethod
    def in_target(cls, target: Target, changefeed: str) -> "Altered":
        """As the target tells it now."""
        return cls.of(target.ddl_log.latest(changefeed, KEPT), target.catalog().tables)

    def since(self, of: RepeatedOf, commit_ts: int) -> bool:
        """Whether an event of this commitTs may have had another fingerprint when it was applied."""
        if of.table not in self.tables or commit_ts <= self.floor:
            return True
        rests_on_name_alone = of.own_key and not of.filtered
        last = self.made if rests_on_name_alone else self.changed
        return commit_ts <= last.get(of.table.folded, 0)


def _makes(sql: str) -> bool:
    try:
        return bool(read_statement(sql).adds())
    except InputError:
        return True
