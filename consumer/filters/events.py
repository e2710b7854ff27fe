"""Event filters: which events of a table are left out, as TiCDC's `[[filter.event-filters]]` says.

Each filter names tables (`matcher`) and what to ignore of them: kinds of events, DDLs by a regular expression over
their text, row events by a condition over their values. Filters only ever take away, so the order of them means nothing
(TiCDC documentation, "Changefeed Log Filters"; tiflow `pkg/filter`).
"""

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import msgspec

from consumer.codec import canal_json
from consumer.codec.canal_json import UNREADABLE
from consumer.filters.condition_tree import Condition
from consumer.filters.families import typed
from consumer.filters.mysql_values import EvaluationError, Value, value_of
from consumer.filters.only_columns import OnlyColumns, changed_columns, touches
from consumer.filters.tables import TableFilter, digest
from consumer.go_regex import compiled
from ordering.errors import ConfigError, InputError, UnfitRowError
from ordering.events import Kind, Position, TableName
from sinks.ddl.ticdc_allow_list import Event
from sinks.rows.schema import spelled
from sinks.wording import meant

ALL_DML, ALL_DDL, ALTER_TABLE = "all dml", "all ddl", "alter table"
_ROWS = {Kind.INSERT: "insert", Kind.UPDATE: "update", Kind.DELETE: "delete"}
ALIASES = {"create schema": Event.CREATE_DATABASE.value, "drop schema": Event.DROP_DATABASE.value}
NAMES = (ALL_DML, ALL_DDL, *_ROWS.values(), ALTER_TABLE, *ALIASES, *sorted(event.value for event in Event))
"""What `ignore-event` takes."""


class _Typed(msgspec.Struct, gc=False):
    """What a condition needs of a row event."""

    data: list[dict[str, str | None]]
    types: dict[str, str] = msgspec.field(name="mysqlType")
    old: list[dict[str, str | None]] | None = None
    tidb: canal_json.Extension = msgspec.field(name="_tidb", default_factory=canal_json.Extension)


_typed = msgspec.json.Decoder(_Typed).decode


_Conditions = tuple[tuple[Condition, bool], ...]
"""Each with whether it is about the old image."""


@dataclass(slots=True)
class _RowRules:
    """What to look at in row events of one kind and table."""

    conditions: _Conditions
    only: tuple[OnlyColumns, ...] = ()
    """Of UPDATEs alone."""
    keys: tuple[tuple[str, ...], ...] = ()
    """Of the table, where `only` needs them."""
    _typed: tuple[Mapping[str, str], _Conditions] | None = None

    def check_told(self, tidb: canal_json.Extension) -> None:
        """Raise EvaluationError where they ask for the row before an UPDATE, and no message holds it."""
        if tidb.only_new and (self.only or any(is_old for _, is_old in self.conditions)):
            message = "the message does not tell the row before it, which the filter asks for"
            raise EvaluationError(message)

    def of_types(self, types: Mapping[str, str]) -> _Conditions:
        """The conditions for columns of these types, which messages of one table share. Raises EvaluationError."""
        if self._typed is None or self._typed[0] != types:
            self._typed = types, tuple((typed(c, types), is_old) for c, is_old in self.conditions)
        return self._typed[1]


@dataclass(frozen=True, slots=True)
class EventFilter:
    """One event filter."""

    matcher: TableFilter
    events: frozenset[str] = frozenset()
    sql: Any = None
    insert: Condition | None = None
    update_old: Condition | None = None
    update_new: Condition | None = None
    delete: Condition | None = None
    update_only: OnlyColumns | None = None

    def ignored_rows(self) -> Iterator[str]:
        """A short text for each sort of row events that this filter leaves out."""
        tables = self.matcher.digest_of(len(self.matcher.texts))
        names = set(_ROWS.values()) if ALL_DML in self.events else self.events & set(_ROWS.values())
        told = {"insert": self.insert, "old": self.update_old, "new": self.update_new, "delete": self.delete}
        only = [self.update_only.text] if self.update_only else []
        for what in sorted([*names, *only, *(f"{name}: {c.text}" for name, c in told.items() if c is not None)]):
            yield digest((tables, what))[:12]

    def why_no_ddl(self, names: Collection[str], sql: str) -> str:
        """What it says of a DDL of these kinds to a table that it matches; "" if it does not leave it out."""
        if hit := sorted(self.events.intersection(names)) or ([ALL_DDL] if names and ALL_DDL in self.events else []):
            return f" ignores {hit[0]!r}"
        return ".ignore-sql matches" if self.sql is not None and self.sql.search(sql) else ""

    def is_about(self, kind: Kind) -> bool:
        """Whether it may leave out row events of this kind."""
        ignored = _ROWS[kind] in self.events or ALL_DML in self.events
        return ignored or bool(self.conditions(kind)) or (kind is Kind.UPDATE and self.update_only is not None)

    def conditions(self, kind: Kind) -> _Conditions:
        """The conditions for such an event, each with whether it is about the old image."""
        found = {
            Kind.INSERT: [(self.insert, False)],
            Kind.UPDATE: [(self.update_old, True), (self.update_new, False)],
            Kind.DELETE: [(self.delete, False)],
        }
        return tuple((c, is_old) for c, is_old in found[kind] if c is not None)

    def all_conditions(self) -> Iterator[Condition]:
        """Every condition."""
        for kind in Kind:
            for found, _ in self.conditions(kind):
                yield found


Members = Mapping[str, tuple[str | None, ...]]
"""Of a table's columns."""


@dataclass(slots=True)
class EventFilters:
    """All event filters of a changefeed; asked in the reading tasks and by the driver."""

    filters: tuple[EventFilter, ...]
    members: Mapping[TableName, Members] = field(default_factory=dict)
    """Of ENUM and SET columns, as far as the target's tables tell them."""
    keys: Mapping[TableName, tuple[tuple[str, ...], ...]] = field(default_factory=dict)
    """Of the target's tables the handle key, then the unique keys."""
    _known: dict[tuple[str, str, Kind], bool | _RowRules] = field(default_factory=dict)

    def ignores_ddl(self, database: str, table: str, events: Collection[Event], sql: str) -> str:
        """Why the DDL is left out; "" if it is not. `table`: its name before a RENAME; "" for a database's DDL.

        Raises ConfigError where case alone decides whether it is.
        """
        names = {event.value for event in events}
        if len(events) > 1:
            names = {Event.MULTI_SCHEMA_CHANGE.value}
        if any(event.is_alter for event in events):
            names.add(ALTER_TABLE)
        for number, one in enumerate(self.filters):
            found = one.why_no_ddl(names, sql)
            matcher = one.matcher  # asked last: where it has nothing to ignore, case decides nothing
            if found and (matcher.of_message(database, table) if table else matcher.database_of_message(database)):
                return f"filter.event-filters.{number}{found}"
        return ""

    def ignores_row(self, kind: Kind, name: tuple[str, str], value: bytes, place: Callable[[], Position]) -> bool:
        """Whether a row event is left out. `value`: the whole message. Raises InputError with its place."""
        known = self._known.get((*name, kind))
        if known is None:
            known = self._known[*name, kind] = self._rules(kind, name)
        if isinstance(known, bool):
            return known
        return self._any_holds(known, kind, TableName(*name), value, place)

    def _rules(self, kind: Kind, name: tuple[str, str]) -> bool | _RowRules:
        """Whether such events are ignored whatever is in them, or what to look at."""
        matching = [one for one in self.filters if one.is_about(kind) and one.matcher.of_message(*name)]
        if any(_ROWS[kind] in one.events or ALL_DML in one.events for one in matching):
            return True
        conditions = tuple(pair for one in matching for pair in one.conditions(kind))
        only = tuple(one.update_only for one in matching if one.update_only) if kind is Kind.UPDATE else ()
        keys = self.keys.get(spelled(TableName(*name), self.keys), ())
        return _RowRules(conditions, only, keys) if conditions or only else False

    def _any_holds(
        self,
        rules: _RowRules,
        kind: Kind,
        name: TableName,
        value: bytes,
        place: Callable[[], Position],
    ) -> bool:
        try:
            message = _typed(value)
            new = message.data[0]
            old = {**new, **message.old[0]} if message.old else new
            rules.check_told(message.tidb)
            if rules.only and _is_of_no_account(rules, message, old, new):
                return True
            image = _Image(message.types, self.members.get(name, {}), _what_lacks(kind, message.tidb))
            return any(c.holds(image.of(old if is_old else new, c)) for c, is_old in rules.of_types(message.types))
        except (*UNREADABLE, IndexError) as error:
            raise InputError(f"row of {name} can't be read for its event filter: {error}", where=str(place())) from None
        except (EvaluationError, ConfigError, ArithmeticError, ValueError) as error:
            # ConfigError: a pattern that is a column's value. The last two: no value of a message may end a task
            raise UnfitRowError(
                f"row of {name} can't be judged by its event filter: {str(error)[:300]}",
                where=str(place()),
                hint="correct the expression in [[filter.event-filters]] or narrow its matcher, with"
                ' filter.changed-event-filters = "accept" for one run',
            ) from None


def _is_of_no_account(
    rules: _RowRules, message: _Typed, old: Mapping[str, str | None], new: Mapping[str, str | None]
) -> bool:
    """Whether an UPDATE changes nothing but what event filters name.

    One whose row is not in its message is not known to, nor is one of a table without a key: there a row is all its
    values.
    """
    if message.tidb.claim_check_location or message.tidb.only_handle_key:
        return False
    changed = changed_columns(old, new)
    return not touches(changed, rules.keys) and any(one.covers(changed, new) for one in rules.only)


@dataclass(frozen=True, slots=True)
class _Image:
    """Gives a condition the values of one row."""

    types: dict[str, str]
    members: Members
    lacking: str

    def of(self, texts: dict[str, str | None], asking: Condition) -> Callable[[str], Value]:
        """What finds a column's value in this image."""

        def column(name: str) -> Value:
            spelled = name if name in texts else next((key for key in texts if key.lower() == name.lower()), None)
            if spelled is None:
                raise EvaluationError(f"the message lacks column {name!r} of {asking.text!r}{self.lacking}")
            kind = self.types.get(spelled, "")
            return value_of(texts[spelled], kind, self.members.get(spelled, ()))

        return column


def _what_lacks(kind: Kind, tidb: canal_json.Extension) -> str:
    """Why a message may lack a column."""
    if tidb.claim_check_location or tidb.only_handle_key:
        return " (the row was too large for the message: event filters see its handle key only)"
    return " (delete-only-output-handle-key-columns leaves it out)" if kind is Kind.DELETE else ""


def ignored_events(names: Sequence[str], key: str = "ignore-event") -> frozenset[str]:
    """Kinds of events by TiCDC's names. Raises ConfigError."""
    unknown = [name for name in names if name not in NAMES]
    if unknown:
        raise ConfigError(f"{key}: unknown event {unknown[0]!r}", hint=meant(unknown[0], NAMES))
    return frozenset(ALIASES.get(name, name) for name in names)


def ignored_sql(texts: Sequence[str], key: str = "ignore-sql") -> Any:
    """One expression for DDLs to leave out, without regard to case as TiCDC has it; None for none."""
    for text in texts:
        compiled(text, whose=f"{key}: {text!r}")
    return compiled("|".join(texts), whose=key, case_sensitive=False) if texts else None


def condition_or_none(text: str, key: str) -> Condition | None:
    """The condition; None for an empty text. Raises ConfigError."""
    if not text:
        return None
    from consumer.filters.expressions import condition  # noqa: PLC0415 its parser takes long to load, and few need it

    return condition(text, key)
