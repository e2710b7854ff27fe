"""What of upstream's tables lies where in the target: routes, and rules for columns.

Routes are TiCDC's `sink.dispatchers` with `target-schema` and `target-table` (pingcap/ticdc, `pkg/routing`). The first
dispatcher with one of both that matches a table decides. With the progress a digest is kept, as the filter's is: under
other routes the rows so far would lie in other tables, under other rules for columns they would hold something else.
"""

import re
from collections.abc import Iterable
from dataclasses import dataclass, field, replace

from consumer.config.table_sections import ColumnMaskSection, DispatcherSection, SinkSection
from consumer.filters.columns import ColumnRules, Mask, column_rules
from consumer.filters.origins import OriginColumn, Origins
from consumer.filters.tables import SYSTEM_SCHEMAS, TableFilter, digest, table_filter
from ordering.errors import InputError
from ordering.events import TableName, folded
from sinks.bookkeeping.tables import PROGRESS_DATABASE
from sinks.rows.routed import NameMap, Origin

_VERSION = "1"
_LONGEST = 64
"""Characters of a name, as TiDB and the MySQL family have it."""
_TABLE, _SCHEMA = "{table}", "{schema}"
_COLUMNS = ";columns:"


@dataclass(frozen=True, slots=True)
class RouteRule:
    """Tables, and what they are called in the target; "" where that is as upstream."""

    matcher: TableFilter
    schema: str
    table: str
    origins: tuple[OriginColumn, ...] = ()
    """Where tables are merged: what tells their rows apart."""

    @property
    def texts(self) -> tuple[str, ...]:
        """Other ones where tables may have other places, or rows another origin."""
        merging = ("merge", *(text for one in self.origins for text in one)) if self.origins else ()
        return (*self.matcher.texts, self.schema, self.table, "", *merging)

    def place(self, name: TableName) -> TableName:
        """Where a table of upstream lies in the target."""
        return TableName(_filled(self.schema, name) or name.database, _filled(self.table, name) or name.table)

    def may_lead_to(self, place: TableName) -> bool:
        """Whether tables of other databases than the place's may lie there, as far as the names in the target tell."""
        is_other = self.schema not in {"", _SCHEMA}
        return is_other and _may_be(self.schema, place.database) and _may_be(self.table or _TABLE, place.table)


@dataclass(frozen=True, slots=True)
class Routes:
    """All routes of a changefeed; can be pickled."""

    rules: tuple[RouteRule, ...]
    columns: ColumnRules = field(default_factory=ColumnRules)
    """Which columns are taken, and which are masked."""

    def __call__(self, name: TableName) -> TableName:
        """See `sinks.rows.routed.Route`."""
        rule = next((rule for rule in self.rules if rule.matcher(*name)), None)
        return name if rule is None else rule.place(name)

    def may_lead_to(self, place: TableName) -> bool:
        """Whether a table of another database than the place's may lie there."""
        return any(rule.may_lead_to(place) for rule in self.rules)

    def merges(self, name: TableName) -> bool:
        """Whether other tables may lie where this one of upstream's does."""
        return self.columns.origins.merges(name)

    def origin(self, name: TableName) -> Origin:
        """What tells a merged table's rows from those of others; () for one that is not. Raises InputError."""
        return self.columns.origins.of(name)

    @property
    def digest(self) -> str:
        """Short text that differs where tables may have other places, or rows other columns; "" without any rule."""
        texts = (text for rule in self.rules for text in rule.texts)
        routes = f"{_VERSION}:{digest(texts)}" if self.rules else ""
        return routes + (f"{_COLUMNS}{self.columns.digest}" if self.columns.digest else "")

    def check_change(self, stored: str, changefeed: str) -> None:
        """Raise InputError where the changefeed has run with other routes, or with other rules for columns."""
        routes, _, columns = stored.partition(_COLUMNS)
        ours, _, _ = self.digest.partition(_COLUMNS)
        if columns != self.columns.digest:
            raise InputError(
                "sink.column-selectors or sink.column-masks differ from those that this changefeed has run with: rows"
                " below the checkpoint would hold other columns than those above",
                where=f"changefeed {changefeed}",
                hint="use the old ones, or another changefeed id and a new target",
            )
        if routes != ours:
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
    """The routes and the rules for columns of a config. Raises ConfigError."""
    columns = column_rules(
        [(one.matcher, one.columns) for one in section.column_selectors],
        [(one.matcher, one.columns, _mask(one)) for one in section.column_masks],
    )
    rules = tuple(_rule(one) for one in section.dispatchers if one.target_schema or one.target_table)
    origins = Origins(tuple((rule.matcher, rule.origins) for rule in rules))
    return Routes(rules, replace(columns, origins=origins or Origins()))


def _rule(section: DispatcherSection) -> RouteRule:
    origins = tuple(OriginColumn(*one) for one in section.origins)
    matcher = table_filter(section.matcher, key="matcher")
    return RouteRule(matcher, section.target_schema, section.target_table, origins)


def _mask(section: ColumnMaskSection) -> Mask:
    return Mask(section.value or "", (section.hash_key or "").encode(), section.hash_length)


def names_of(routes: Routes, sources: Iterable[tuple[TableName, TableName]] = ()) -> NameMap | None:
    """What a target has to know of names; None where all are upstream's."""
    return NameMap(routes, dict(sources), routes.columns.origins) if routes.rules else None


def _may_be(text: str, name: str) -> bool:
    """Whether a name is what a dispatcher's text may become."""
    parts = folded(text).replace(_TABLE, _SCHEMA).split(_SCHEMA)
    return re.fullmatch(".+".join(map(re.escape, parts)), folded(name), re.DOTALL) is not None


def _filled(text: str, name: TableName) -> str:
    """A name of the target. What is put in is not looked at again: a table may be called `{schema}`."""
    parts = text.replace("{table}", "\0t").replace("{schema}", "\0s").split("\0")
    told = {"t": name.table, "s": name.database}
    return parts[0] + "".join(told[part[0]] + part[1:] for part in parts[1:])
