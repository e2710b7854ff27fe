"""What no message of a DDL holds is asked of the upstream, as of the commitTs, where the config names it.

- What rows show in a new column whose default upstream computed when it ran the statement: all of them the same.
- Whose table an old name without a database means, where several databases have one: a renamed table keeps its id, and
  a table that is made like another has its definition. Later rows may tell too: a table that has some was not renamed.
"""

import re
from collections.abc import Collection, Iterable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import structlog

from consumer.large_messages.reference import BodyReference
from consumer.large_messages.upstream_values import SourceColumn, text_of
from ordering.errors import BodyMissingError, InputError, SourceError
from ordering.events import DdlEvent, TableName
from sinks.ddl.name_resolution import older_database, readings_of
from sinks.ddl.parse.statement import MALFORMED, DdlKind, Resolver, Statement, TableReference, read_statement
from sinks.ddl.parse.tables import read_changes
from sinks.ddl.rows.default_values import computed_columns, is_today
from sinks.mysql.catalog import place_of, quoted
from sinks.rows.schema import Catalog

if TYPE_CHECKING:
    from consumer.large_messages.handle_key_only import UpstreamRows

log = structlog.get_logger()
_LOOKED_AT = 1000
"""Rows whose values are compared: TiDB gives all that are there one value, and a look at each might take hours."""
Told = tuple[tuple[str, str | None], ...]
_COUNTERS = re.compile(r" AUTO_INCREMENT=\d+| /\*T!\[auto_rand_base\] AUTO_RANDOM_BASE=\d+ \*/")


@dataclass(frozen=True, slots=True)
class Asking:
    """Asks the upstream, if there is one to be asked."""

    upstream: "UpstreamRows | None"

    def completed(self, ddl: DdlEvent) -> DdlEvent:
        """The DDL with what rows show in the columns that it adds. Raises BodyMissingError, worth a retry."""
        names = self._computed(ddl)
        if self.upstream is None or not names:
            return ddl
        try:
            return replace(ddl, shown=_shown(self.upstream, ddl, names))
        except BodyMissingError:
            raise
        except (InputError, SourceError) as error:
            log.warning("the upstream can't provide the values of new columns", columns=names, because=str(error))
            return replace(ddl, unshown=" ".join(error.fact.split())[:300])

    def placed(self, ddl: DdlEvent, catalog: Catalog, stayed: Collection[TableName]) -> DdlEvent:
        """The DDL with the databases that its old names without one are in, where several hold such a table.

        `stayed`: tables that are there after the DDL. What stays unknown is the target's to refuse. Raises
        BodyMissingError, worth a retry.
        """
        try:
            statement = read_statement(ddl.sql)
        except (InputError, *MALFORMED):
            return ddl
        pairs = [*statement.renames, *([(statement.like, statement.tables[0])] if statement.like else [])]
        olds = {old: new for old, new in pairs if old.database is None}
        readings = {old: found for old in olds if (found := readings_of(statement, old, catalog))}
        if not readings:
            return _with_sole_holder(ddl, statement, catalog) if olds and statement.renames else ddl
        known = {old: self._known(ddl, statement, old, olds[old], readings[old], stayed) for old in readings}
        olders = tuple((old.table.lower(), database) for old, database in known.items() if database)
        told = replace(ddl, olders=olders)
        if len(olders) < len(readings):
            return ddl
        log.info("the database of a name was found", statement=ddl.sql[:200], database=dict(olders))
        return replace(told, removes=statement.placed(ddl.database, _older(told, statement, catalog)).removes())

    def _known(
        self,
        ddl: DdlEvent,
        statement: Statement,
        old: TableReference,
        new: TableReference,
        readings: list[str],
        stayed: Collection[TableName],
    ) -> str:
        """The one of the readings that is meant; "" if that is not known."""
        places = [TableName(database, old.table) for database in readings]
        goal = TableName(new.database or ddl.database, new.table)
        found = self._asked(ddl, places, goal, made_like=statement.like is not None)
        if not found and statement.renames:
            left = {name.folded for name in stayed}
            found = [name for name in places if name.folded not in left]
            found = found if len(found) < len(places) else []
        return found[0].database if len(found) == 1 else ""

    def _asked(self, ddl: DdlEvent, places: list[TableName], goal: TableName, *, made_like: bool) -> list[TableName]:
        """Which of the tables upstream says it is; none if it does not tell."""
        if self.upstream is None:
            return []
        try:
            return (
                _models(self.upstream, ddl, places, goal) if made_like else _renamed(self.upstream, ddl, places, goal)
            )
        except BodyMissingError:
            raise
        except (InputError, SourceError) as error:
            log.warning("the upstream can't show which table is meant", statement=ddl.sql[:200], because=str(error))
            return []

    def _computed(self, ddl: DdlEvent) -> list[str]:
        if self.upstream is None:
            return []
        try:
            if read_statement(ddl.statement).kind is not DdlKind.ALTER_TABLE:
                return []
            return [c.name for c in computed_columns(read_changes(ddl.statement)) if not is_today(c)]
        except (InputError, *MALFORMED):
            return []  # the target says so when it reads the statement


def _shown(upstream: "UpstreamRows", ddl: DdlEvent, names: Iterable[str]) -> Told:
    table = TableName(ddl.database, ddl.table)
    with upstream.as_of(ddl.commit_ts, _asker(ddl), f"table {table}") as cursor:
        place = place_of(table)
        cursor.execute(f"SHOW COLUMNS FROM {place}")
        there = {row[0].lower(): SourceColumn(row[0], row[1]) for row in cursor.fetchall()}
        columns = [there[name.lower()] for name in names if name.lower() in there]
        picked = ", ".join(f"{column.shown} AS {quoted(column.name)}" for column in columns)
        cursor.execute(f"SELECT DISTINCT * FROM (SELECT {picked} FROM {place} LIMIT {_LOOKED_AT}) AS some LIMIT 2")  # noqa: S608 quoted
        rows = cursor.fetchall()
    if len(rows) != 1:
        what = "its rows show several values" if rows else "it has no rows"
        raise InputError(f"{what} in table {table} at commitTs {ddl.commit_ts}")
    return tuple((column.name.lower(), text_of(column, value)) for column, value in zip(columns, rows[0], strict=True))


def _with_sole_holder(ddl: DdlEvent, statement: Statement, catalog: Catalog) -> DdlEvent:
    """The DDL with the old names that the target tells now, while those before it had not run when it was read.

    Not where the target has the goals already, as after a crash.
    """
    removes = statement.placed(ddl.database, _older(ddl, statement, catalog)).removes()
    return (
        ddl if {name.folded for name in removes} & {name.folded for name in ddl.adds} else replace(ddl, removes=removes)
    )


def _older(ddl: DdlEvent, statement: Statement, catalog: Catalog) -> Resolver:
    return lambda reference: older_database(statement, reference, ddl, catalog)


def _renamed(upstream: "UpstreamRows", ddl: DdlEvent, places: list[TableName], goal: TableName) -> list[TableName]:
    """Which of the tables became this one: the one with its id right before, or the only one that is gone."""
    own = _table_id(upstream, ddl, goal, ddl.commit_ts)
    found = [name for name in places if own and _table_id(upstream, ddl, name, ddl.commit_ts - 1) == own]
    return found or [name for name in places if own and not _table_id(upstream, ddl, name, ddl.commit_ts)]


def _models(upstream: "UpstreamRows", ddl: DdlEvent, places: list[TableName], goal: TableName) -> list[TableName]:
    """Which of the tables this one was made like; of several that are alike one is as good as another."""
    own = _definition(upstream, ddl, goal)
    return [name for name in places if own and _definition(upstream, ddl, name) == own][:1]


def _table_id(upstream: "UpstreamRows", ddl: DdlEvent, table: TableName, commit_ts: int) -> str:
    """The id that a table keeps whatever its name is; "" where there is none so named."""
    look = "SELECT TIDB_TABLE_ID FROM information_schema.TABLES WHERE TABLE_SCHEMA = %s AND TABLE_NAME = %s"
    with upstream.as_of(commit_ts, _asker(ddl), f"table {table}") as cursor:
        cursor.execute(look, tuple(table))
        return "".join(str(found) for (found,) in cursor.fetchall())


def _definition(upstream: "UpstreamRows", ddl: DdlEvent, table: TableName) -> str:
    """A table's columns, keys and options without its name and counters; "" where there is none so named."""
    if not _table_id(upstream, ddl, table, ddl.commit_ts):
        return ""
    with upstream.as_of(ddl.commit_ts, _asker(ddl), f"table {table}") as cursor:
        cursor.execute(f"SHOW CREATE TABLE {place_of(table)}")
        ((_, text),) = cursor.fetchall()
    return _COUNTERS.sub("", text.removeprefix(f"CREATE TABLE {quoted(table.table)}"))


def _asker(ddl: DdlEvent) -> BodyReference:
    return BodyReference("", *ddl.position)
