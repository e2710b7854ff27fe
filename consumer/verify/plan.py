"""Which tables are compared, as what their columns are compared, and into which chunks a table is cut. Pure.

A chunk is a range of the key's first column, if that holds whole numbers: both sides order those alike, which they do
not do with texts, for collations differ. Any other table is one chunk. Inside a chunk rows are told apart by digests of
their keys.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field

from ordering.events import TableName
from sinks.compare.digests import Span, TableReader
from sinks.compare.value_forms import Form, Pair, Trait, paired
from sinks.rows.schema import Catalog, Column, TableSchema

CHUNK_ROWS = 50_000
"""Rows of a chunk, unless the command line says otherwise."""
Accepts = Callable[[str, str], bool]


@dataclass(frozen=True, slots=True)
class Comparison:
    """A table of both sides. `keys` is empty for one whose rows are compared as a multiset."""

    name: TableName
    left: TableSchema
    right: TableSchema
    pairs: tuple[Pair, ...]
    keys: tuple[Pair, ...]
    span_column: tuple[str, str] | None = None
    """The column that chunks are ranges of, as each side calls it."""
    unique: bool = False
    """Whether the target can't hold two rows of one key."""
    masked: bool = False
    """Whether it holds masks, which nothing here computes."""

    @property
    def bucketed(self) -> bool:
        """Whether equal keys (without a key: rows) have equal texts, so that both sides put them into one bucket."""
        return all(pair.exact for pair in self.keys or self.pairs)


@dataclass(slots=True)
class Plan:
    """What is to be compared, how the schemas differ, and what is left out, each with the reason.

    `unjudged`: what should be compared and can't be; what is left out is not to be compared.
    """

    tables: list[Comparison] = field(default_factory=list)
    schema: list[tuple[TableName, str, str]] = field(default_factory=list)
    """Table, kind, text."""
    left_out: list[tuple[TableName, str]] = field(default_factory=list)
    unjudged: list[str] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class Rules:
    """What decides about tables and columns. `accepts`: the filter's rules; `wanted`: those that were asked for."""

    accepts: Accepts
    wanted: Accepts
    keyless: bool
    invalid_dates_are_null: bool
    virtual: bool
    """Whether the target computes virtual columns; others do not hold them."""
    changed: Callable[[TableName, str], bool] = lambda *_: False
    """Whether the target does not hold a column as upstream does: it is left out, or masked."""
    masked: Callable[[TableName, str], bool] = lambda *_: False
    """Whether a mask stands in the target for a column's values."""

    def takes(self, name: TableName) -> bool:
        """Whether a table is to be compared."""
        return self.accepts(*name) and self.wanted(*name)


def planned(left: tuple[Catalog, TableReader], right: tuple[Catalog, TableReader], rules: Rules) -> Plan:
    """Plan the comparison of two sides; the left one is the truth."""
    plan, found = Plan(), set()
    for name, table in sorted(left[0].tables.items()):
        if not rules.takes(name):
            continue
        spelled = right[0].spelled(name)
        found.add(spelled)
        if not (table.handle_key or rules.keyless):
            plan.left_out.append((name, "upstream it has no valid index, and filter.force-replicate is off"))
            continue
        other = right[0].get(spelled)
        if other is None:
            plan.schema.append((name, "missing table", "the target has no such table"))
            continue
        plan.tables.append(_compared(name, (table, left[1]), (other, right[1]), rules, plan))
    extra = (name for name in sorted(right[0].tables) if name not in found and rules.takes(name))
    plan.schema += [(name, "extra table", "upstream has no such table") for name in extra]
    return plan


def unseen(names: Iterable[TableName], catalogs: Sequence[Catalog], rules: Rules) -> list[str]:
    """What no side shows of tables whose rows came in messages: what is hidden from both would count as equal."""
    missing = (n for n in sorted(names) if rules.takes(n) and all(c.get(c.spelled(n)) is None for c in catalogs))
    return [
        f"{name}: rows of it came in messages, and neither side shows it: see the rights of both" for name in missing
    ]


def _compared(
    name: TableName,
    left: tuple[TableSchema, TableReader],
    right: tuple[TableSchema, TableReader],
    rules: Rules,
    plan: Plan,
) -> Comparison:
    pairs = []
    is_changed = any(rules.changed(name, column.name) for column in left[0].columns)
    for column in left[0].columns:
        other = _named(right[0], column.name)
        if other is not None and other.generated and is_changed:
            plan.left_out.append((name, f"column {column.name!r} is computed from others, which [sink] changes"))
        elif rules.changed(name, column.name):
            plan.left_out.append((name, f"column {column.name!r} is left out or masked by [sink]"))
        elif other is None:
            if not column.virtual or rules.virtual:
                plan.schema.append((name, "missing column", f"the target has no column {column.name!r}"))
        elif not (left[1].is_comparable(column) and right[1].is_comparable(other)):
            plan.unjudged.append(f"{name}: column {column.name!r} ({column.type}) can't be compared")
        elif _is_place(column, right[1].trait(other)) or _is_place(other, left[1].trait(column)):
            kinds = f"({column.type} and {other.type})"
            plan.unjudged.append(f"{name}: column {column.name!r} {kinds} can't be compared: names with their places")
        else:
            traits: tuple[Trait | None, Trait | None] = left[1].trait(column), right[1].trait(other)
            if _are_same(column, other) and left[1].hides_members(column) and right[1].hides_members(other):
                traits = Trait(Form.BITS), Trait(Form.BITS)
            pairs.append(paired(column, other, traits, invalid_dates_are_null=rules.invalid_dates_are_null))
    own = [c.name for c in right[0].columns if not c.generated and _named(left[0], c.name) is None]
    plan.left_out += [(name, f"column {column!r} is the target's own") for column in own]
    keys = _keys(left[0], pairs)
    masked = any(rules.masked(name, column.name) for column in left[0].columns)
    unique, span_column = _is_unique(keys, right[0]), _span_column(keys, left, right)
    return Comparison(name, left[0], right[0], tuple(pairs), keys, span_column, unique, masked)


def _are_same(column: Column, other: Column) -> bool:
    """Whether only numbers tell a member '' from the invalid value '', and mean the same. A `?` may be anything."""
    return "" in column.members and column.members == other.members and not any("?" in one for one in column.members)


def _is_place(column: Column, other: Trait | None) -> bool:
    """Whether one side holds a member's name, or some, and the other one where it stands in the list."""
    return bool(column.members) and other is not None and other.form in {Form.NUMBER, Form.BITS, Form.REAL, Form.FLOAT}


def _named(table: TableSchema, name: str) -> Column | None:
    """A column by its name; upstream's names don't tell case apart."""
    exact = table.column(name)
    folded = [column for column in table.columns if column.name.lower() == name.lower()]
    return exact or (folded[0] if len(folded) == 1 else None)


def _keys(left: TableSchema, pairs: list[Pair]) -> tuple[Pair, ...]:
    """The handle key's columns; none if one of them can't be compared."""
    by_name = {pair.left.name: pair for pair in pairs}
    keys = [by_name[name] for name in left.handle_key if name in by_name]
    return tuple(keys) if len(keys) == len(left.handle_key) else ()


def _is_unique(keys: tuple[Pair, ...], right: TableSchema) -> bool:
    names = {pair.right.name for pair in keys}
    return bool(names) and any(key and set(key) <= names for key in right.unique_keys)


def _span_column(
    keys: tuple[Pair, ...], left: tuple[TableSchema, TableReader], right: tuple[TableSchema, TableReader]
) -> tuple[str, str] | None:
    """The key's first column, if both sides order it alike and find ranges of it by an index."""
    if not keys:
        return None
    first = keys[0]
    indexed = any(key[:1] == (first.right.name,) for key in right[0].unique_keys)
    numbers = left[1].is_whole_number(first.left) and right[1].is_whole_number(first.right)
    return (first.left.name, first.right.name) if indexed and numbers else None


def chunks(bound: Callable[[Span], int | None], column: str | None) -> Iterator[Span]:
    """Cut a table: each chunk ends where `bound` says, the last has no end. Without a column it is one chunk."""
    if column is None:
        yield Span()
        return
    low = None
    while (high := bound(Span(column, low))) is not None:
        yield Span(column, low, high)
        low = high
    yield Span(column, low)


def batches(sizes: dict[int, int], most: int) -> Iterator[tuple[int, ...]]:
    """Buckets (number -> rows) in order, together as long as they hold no more than so many rows."""
    some: list[int] = []
    held = 0
    for bucket, rows in sorted(sizes.items()):
        if some and held + rows > most:
            yield tuple(some)
            some, held = [], 0
        some.append(bucket)
        held += rows
    if some:
        yield tuple(some)
