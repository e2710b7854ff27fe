"""Where upstream's tables lie in the target: TiCDC's `sink.dispatchers` with `target-schema` and `target-table`.

Source of the rules: pingcap/ticdc, `pkg/routing`. The first dispatcher with one of both that matches a table decides.
With the progress a digest is kept, as the filter's is: under other routes the rows so far would lie in other tables.
"""

from collections.abc import Iterable
from dataclasses import dataclass

from consumer.config.table_sections import SinkSection
from consumer.filters.tables import SYSTEM_SCHEMAS, TableFilter, digest, table_filter
from ordering.errors import InputError
from ordering.events import TableName
from sinks.bookkeeping.tables import PROGRESS_DATABASE
from sinks.rows.routed import NameMap

_VERSION = "1"
_LONGEST = 64
"""Characters of a name, as TiDB and the MySQL family have it."""
_TABLE = "{table}"


@dataclass(frozen=True, slots=True)
class RouteRule:
    """Tables, and what they are called in the target; "" where that is as upstream."""

    matcher: TableFilter
    schema: str
    table: str

    def place(self, name: TableName) -> TableName:
        """Where a table of upstream lies in the target."""
        return TableName(_filled(self.schema, name) or name.database, _filled(self.table, name) or name.table)


@dataclass(frozen=True, slots=True)
class Routes:
    """All routes of a changefeed; can be pickled."""

    rules: tuple[RouteRule, ...]

    def __call__(self, name: TableName) -> TableName:
        """See `sinks.rows.routed.Route`."""
        rule = next((rule for rule in self.rules if rule.matcher(*name)), None)
        return name if rule is None else rule.place(name)

    @property
    def digest(self) -> str:
        """Short text that differs where other tables may have other places; "" without routes."""
        texts = (text for rule in self.rules for text in (*rule.matcher.texts, rule.schema, rule.table, ""))
        return f"{_VERSION}:{digest(texts)}" if self.rules else ""

    def check_change(self, stored: str, changefeed: str) -> None:
        """Raise InputError where the changefeed has run with other routes."""
        if stored != self.digest:
            raise InputError(
                "sink.dispatchers lead tables to other places than those of this changefeed so far: rows below the"
                " checkpoint would be missing there",
                where=f"changefeed {changefeed}",
                hint="use the old sink.dispatchers, or another changefeed id and a new target",
            )

    def schemas(self, database: str) -> frozenset[str]:
        """The schemas in which tables of a database may lie; `{table}` stands for tables' names."""
        found = set()
        for rule in self.rules:
            if not rule.matcher.may_take_of(database):
                continue
            found.add(_filled(rule.schema, TableName(database, _TABLE)) or database)
            if rule.matcher.takes_whole(database):
                return frozenset(found)
        return frozenset({*found, database})


def check_place(name: TableName, place: TableName) -> None:
    """Raise InputError for a place where no table of upstream may lie."""
    fault = ""
    schema = place.database.lower()
    if name != place and (schema in SYSTEM_SCHEMAS or schema == PROGRESS_DATABASE or schema.startswith("pg_")):
        fault = f"the schema {place.database} is not upstream's to write to"
    elif any(not part or len(part) > _LONGEST for part in place):
        fault = f"a name has 1 to {_LONGEST} characters"
    if fault:
        raise InputError(f"sink.dispatchers lead {name} to {str(place)[:200]!r}: {fault}")


def read_routes(section: SinkSection) -> Routes:
    """The routes of a config. Raises ConfigError."""
    wanted = (one for one in section.dispatchers if one.target_schema or one.target_table)
    found = ((table_filter(one.matcher, key="matcher"), one.target_schema, one.target_table) for one in wanted)
    return Routes(tuple(RouteRule(*rule) for rule in found))


def names_of(routes: Routes, sources: Iterable[tuple[TableName, TableName]] = ()) -> NameMap | None:
    """What a target has to know of names; None where all are upstream's."""
    return NameMap(routes, dict(sources)) if routes.rules else None


def _filled(text: str, name: TableName) -> str:
    """A name of the target. What is put in is not looked at again: a table may be called `{schema}`."""
    parts = text.replace("{table}", "\0t").replace("{schema}", "\0s").split("\0")
    told = {"t": name.table, "s": name.database}
    return parts[0] + "".join(told[part[0]] + part[1:] for part in parts[1:])
