"""All of a changefeed's filter, and what a change of it means for a changefeed that runs (R8).

With the progress a digest is kept: of the table rules, of every sort of row events that event filters leave out, and of
whether tables without a key count. A
new config may leave out more than before: rules that only exclude, behind the old ones, and further event filters. One
that takes in more is refused, for rows below the checkpoint would be missing. DDLs do not count here: what was ignored
of them below the checkpoint is the operator's to do, as TiCDC has it.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from functools import partial

from consumer.config.table_sections import EventFilterSection, FilterSection
from consumer.filters.events import EventFilter, EventFilters, condition_or_none, ignored_events, ignored_sql
from consumer.filters.only_columns import only_columns
from consumer.filters.tables import TableFilter, table_filter
from ordering.errors import ConfigError, InputError
from ordering.events import TableName
from sinks.rows.routed import by_table
from sinks.rows.schema import Catalog, TableSchema
from sinks.wording import plural

_VERSION = "3"
_ACCEPT = (
    "use the old filter, or another changefeed id with its own start-ts for the new rows; if none is missing, set"
    ' filter.changed-event-filters = "accept" for one run'
)


@dataclass(frozen=True, slots=True)
class ChangefeedFilter:
    """The table rules, the event filters, and the rules' texts as the config has them."""

    tables: TableFilter
    events: EventFilters
    rules: tuple[str, ...]
    force_replicate: bool = False
    accepts_change: bool = False
    """Whether other event filters than so far count from the checkpoint on."""

    @property
    def digest(self) -> str:
        """Short text that differs when other rows are taken in; kept with the progress."""
        rules, ignored = self.tables.digest_of(len(self.tables.texts)), ",".join(sorted(self._ignored()))
        return f"{_VERSION}:{rules}:{ignored}:{'all tables' if self.force_replicate else 'tables with a key'}"

    def _ignored(self) -> set[str]:
        return {text for one in self.events.filters for text in one.ignored_rows()}

    def check_change(self, stored: str, changefeed: str, *, torn: bool = False) -> None:
        """Raise InputError if this filter takes in rows that the one with the stored digest left out.

        `torn`: a window is half written, and has to be done again just as it was begun.
        """
        if torn and stored != self.digest:
            raise InputError(
                "the filter was changed while a window is half written",
                where=f"changefeed {changefeed}",
                hint="run once with the old filter, so that the window is finished, then change it",
            )
        version, rules, ignored, which = (*stored.split(":"), "", "", "")[:4]
        if version != _VERSION:
            raise _refused("the filters, which another version of the reconciler kept,", changefeed)
        if rules not in self._rules_since():
            raise _refused("filter.rules or filter.case-sensitive", changefeed)
        if not self.accepts_change and not set(filter(None, ignored.split(","))) <= self._ignored():
            raise _refused("filter.event-filters", changefeed, _ACCEPT)
        if self.force_replicate and which != "all tables":
            raise _refused("filter.force-replicate", changefeed, "rows of tables without a key were left out so far")

    def leaves_out_rows(self, stored: str) -> bool:
        """Whether event filters leave out rows, or did so with the stored digest."""
        _, _, ignored = (*stored.split(":"), "", "", "")[:3]
        return bool(ignored or self.events.filters)

    def _rules_since(self) -> Iterable[str]:
        """Digests of the rules, and of them without those at the end that only exclude."""
        count = len(self.tables.texts)
        yield self.tables.digest_of(count)
        # while case counted, a run stopped at what case alone left out
        if not (self.tables.case_sensitive or self.tables.tells_case):
            yield self.tables.digest_of(count, cased=True)
        while count and self.tables.texts[count - 1].startswith("!"):
            count -= 1
            yield self.tables.digest_of(count)

    def for_rows(self, catalog: Catalog) -> EventFilters | None:
        """The event filters for reading tasks, with the members of ENUM and SET columns as the target tells them.

        None if no filter is about rows: then tasks need not ask.
        """
        if not self._ignored():
            return None
        members = by_table(catalog.tables, partial(_members_of, shown=catalog.shows_members))
        keys = by_table(catalog.tables, _keys_of)
        return EventFilters(self.events.filters, members, keys)


def _members_of(table: TableSchema, *, shown: bool) -> dict[str, tuple[str | None, ...]]:
    """`shown`: whether all names are as they are; else those with a ? are not known."""
    return {
        column.name: tuple(name if shown or "?" not in name else None for name in column.members)
        for column in table.columns
        if column.members
    }


def _keys_of(table: TableSchema) -> tuple[tuple[str, ...], ...]:
    return table.handle_key, *table.unique_keys


def _refused(what: str, changefeed: str, hint: str = "") -> InputError:
    return InputError(
        f"{what} differ from those that this changefeed has run with: rows that are new to it and lie below the"
        " checkpoint would be missing",
        where=f"changefeed {changefeed}",
        hint=hint or "use the old filter, or another changefeed id with its own start-ts for the new rows",
    )


def read_filter(section: FilterSection) -> ChangefeedFilter:
    """The filter of a config's section. Raises ConfigError."""
    tables = table_filter(section.rules or ["*.*"], case_sensitive=section.case_sensitive)
    events = EventFilters(tuple(_event_filter(one, section) for one in section.event_filters))
    accepts_change = section.changed_event_filters == "accept"
    return ChangefeedFilter(tables, events, tuple(section.rules), section.force_replicate, accepts_change)


def _event_filter(one: EventFilterSection, section: FilterSection) -> EventFilter:
    return EventFilter(
        matcher=table_filter(one.matcher, case_sensitive=section.case_sensitive, key="matcher"),
        events=ignored_events(one.ignore_event),
        sql=ignored_sql(one.ignore_sql),
        insert=condition_or_none(one.ignore_insert_value_expr, "ignore-insert-value-expr"),
        update_old=condition_or_none(one.ignore_update_old_value_expr, "ignore-update-old-value-expr"),
        update_new=condition_or_none(one.ignore_update_new_value_expr, "ignore-update-new-value-expr"),
        delete=condition_or_none(one.ignore_delete_value_expr, "ignore-delete-value-expr"),
        update_only=only_columns(one.ignore_update_only_columns, case_sensitive=section.case_sensitive),
    )


def told(found: ChangefeedFilter, catalog: Catalog | None) -> list[str]:
    """What the filter does, for `reconciler check`. Raises ConfigError for a column that a target's table lacks."""
    if catalog is None:
        return [f"{plural(len(found.tables.rules), 'rule')}, {plural(len(found.events.filters), 'event filter')}"]
    matched = [name for name in catalog.tables if found.tables(*name)]
    rules, tables = plural(len(found.tables.rules), "rule"), plural(len(catalog.tables), "table")
    lines = [f"{rules}: {len(matched)} of {tables} in the target"]
    for number, one in enumerate(found.events.filters):
        mine = [name for name in matched if one.matcher(*name)]
        for name in mine:
            _check_columns(number, one, name, catalog)
        lines.append(f"event filter {number}: {plural(len(mine), 'table')} in the target")
        lines += [f"event filter {number}: {text}" for text in _idle_names(one, mine, catalog)]
    return lines


def _idle_names(one: EventFilter, mine: Iterable[TableName], catalog: Catalog) -> Iterable[str]:
    """Where `ignore-update-only-columns` names what a table has no column for: it counts for nothing there."""
    for name in mine if one.update_only else ():
        found = one.update_only.named(c.name for c in catalog.tables[name].columns) if one.update_only else set()
        if not found:
            yield f"{name} has none of the columns of ignore-update-only-columns"


def _check_columns(number: int, one: EventFilter, name: TableName, catalog: Catalog) -> None:
    known = {column.name.lower() for column in catalog.tables[name].columns}
    for condition in one.all_conditions():
        absent = sorted(column for column in condition.columns() if column.lower() not in known)
        if absent:
            raise ConfigError(
                f"filter.event-filters.{number}: {condition.text!r} names what {name} has no column for: {absent[0]}",
                hint="narrow the filter's matcher to tables that have them",
            )
