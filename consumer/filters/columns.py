"""Which columns of a row are taken, and which are masked: TiCDC's `sink.column-selectors`, and masks of our own.

A selector's columns are names with the wildcards of table rules, `!` in front excludes, the last rule that matches a
column decides, and no match excludes (pingcap/tiflow, `cdc/sink/.../columnselector`; TiDB, `pkg/util/table-filter`).
Names of columns fold case. The first selector that matches a table is used. Of masks, each column takes the first.
"""

import hashlib
import hmac
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

from consumer.filters.origins import LONGEST, Origins
from consumer.filters.tables import TableFilter, digest, name_rule, table_filter
from ordering.errors import InputError
from ordering.events import TableName, folded
from sinks.rows.routed import Origin

TEXTS = {"char", "varchar", "var_string", "tinytext", "text", "mediumtext", "longtext"}
"""Upstream types whose values a hash can stand for."""
HASH_LENGTH = 64
"""Hexadecimal digits of a whole SHA-256."""
_REMEMBERED = 10_000
"""Answers that are remembered: messages could name tables and columns without end."""
Image = dict[str, str | None]


@dataclass(frozen=True, slots=True)
class NameRules:
    """Rules for columns, as they are applied: the last one that matches decides."""

    texts: tuple[str, ...]
    rules: tuple[tuple[bool, Any], ...]

    def __call__(self, column: str) -> bool:
        """Whether they take a column."""
        spelled = {column, folded(column)}  # TiDB folds a letter that RE2 does not: U+0130
        matching = (accepts for accepts, name in reversed(self.rules) if any(map(name.search, spelled)))
        return next(matching, False)


def name_rules(texts: Iterable[str], key: str) -> NameRules:
    """Compile rules for columns; where all of them exclude, they exclude from all columns. Raises ConfigError."""
    found = tuple(texts)
    all_exclude = all(text.startswith("!") for text in found)
    rules = [name_rule(text, key) for text in (("*", *found) if all_exclude else found)]
    return NameRules(found, tuple(rules))


@dataclass(frozen=True, slots=True)
class Mask:
    """What stands in place of a value that is not NULL: a constant; or, with a `key`, the value's HMAC-SHA-256."""

    value: str = ""
    key: bytes = field(default=b"", repr=False)
    length: int = HASH_LENGTH
    """Hexadecimal digits that are kept of a hash."""

    def of(self, text: str) -> str:
        """The masked text."""
        if not self.key:
            return self.value
        return hmac.digest(self.key, text.encode("utf-8", "surrogatepass"), hashlib.sha256).hex()[: self.length]

    @property
    def text(self) -> str:
        """The same for the same mask; it tells nothing about the key."""
        proof = hmac.digest(self.key, b"ticdc-reconciler mask", hashlib.sha256).hex() if self.key else ""
        return f"{proof or self.value!r} {self.length}"


class ColumnFate(NamedTuple):
    """What is done with a column."""

    is_taken: bool
    mask: Mask | None


@dataclass(frozen=True, slots=True)
class TableColumns:
    """What is done with one table's columns; remembers its answers, for it is asked for each value."""

    name: TableName
    selects: NameRules | None
    masks: tuple[tuple[NameRules, Mask], ...]
    origin: Origin = ()
    """Columns that tell whose the rows are, where the table is merged with others."""
    _known: dict[str, ColumnFate] = field(default_factory=dict, compare=False, repr=False)
    _checked: set[tuple[tuple[str, ...], tuple[tuple[str, str], ...]]] = field(
        default_factory=set, compare=False, repr=False
    )

    def fate(self, column: str) -> ColumnFate:
        """What is done with a column."""
        known = self._known.get(column)
        if known is None and any(folded(name) == folded(column) for name, _ in self.origin):
            return _AS_IT_IS
        if known is None:
            is_taken = self.selects is None or self.selects(column)
            known = ColumnFate(is_taken, next((mask for rules, mask in self.masks if rules(column)), None))
            if len(self._known) < _REMEMBERED:
                self._known[column] = known
        return known

    def takes(self, column: str) -> bool:
        """Whether a column is taken."""
        return self.fate(column).is_taken

    def mask(self, column: str) -> Mask | None:
        """What a column's values are replaced by; None: nothing."""
        return self.fate(column).mask

    def changes(self, column: str) -> bool:
        """Whether the target does not hold the column's values as upstream does."""
        return self.fate(column) != _AS_IT_IS

    def blurs(self, column: str) -> bool:
        """Whether rows that differ in the column may be equal afterwards."""
        is_taken, mask = self.fate(column)
        return not is_taken or (mask is not None and not mask.key)

    def image(self, image: Image) -> Image:
        """A row without what is not taken, with masks in place, and with its origin."""
        found: Image = {}
        for name, text in image.items():
            fate = self.fate(name)
            if fate.is_taken:
                found[name] = text if text is None or fate.mask is None else fate.mask.of(text)
        found.update(self.origin)
        return found

    def with_origin(self, key: Sequence[str], types: Mapping[str, str]) -> tuple[list[str], dict[str, str]]:
        """A row's key and the types of its columns, with those that tell whose it is: they are part of any key."""
        own = [name for name, _ in self.origin]
        kinds = {name: kind for name, kind in types.items() if self.takes(name)}
        return [*key, *own] if key else [], {**kinds, **dict.fromkeys(own, ORIGIN_TYPE)}

    def check(self, key: Iterable[str], types: Mapping[str, str], where: str) -> None:
        """Raise InputError where the key is left out or masked, or a hash is to stand for what is no text."""
        asked = tuple(key), tuple(types.items())
        if asked not in self._checked:
            self._check(*asked, where)
            if len(self._checked) < _REMEMBERED:
                self._checked.add(asked)

    def check_names(self, columns: Iterable[str], where: str) -> None:
        """Raise InputError where upstream has a column of the name that tells whose a row is."""
        own = {folded(column) for column, _ in self.origin}
        if own and (taken := [column for column in columns if folded(column) in own]):
            raise InputError(
                f"table {self.name} has a column {taken[0]!r}: sink.dispatchers have that name for the column that"
                " tells whose a row is",
                where=where,
                hint="give target-column a name that no merged table has, under another changefeed id",
            )

    def _check(self, key: tuple[str, ...], types: tuple[tuple[str, str], ...], where: str) -> None:
        self.check_names([column for column, _ in types], where)
        for column in key:
            if self.changes(column):
                raise InputError(
                    f"sink.column-selectors or sink.column-masks are about {column!r}, which is part of the key of"
                    f" {self.name}: rows could not be told apart",
                    where=where,
                    hint="take the column, and leave it unmasked",
                )
        for column, kind in types:
            mask = self.mask(column)
            if mask is not None and mask.key and kind.partition("(")[0].partition(" ")[0].lower() not in TEXTS:
                raise InputError(
                    f"sink.column-masks: a hash stands for texts only, and column {column!r} of {self.name} is"
                    f" {kind[:100]}",
                    where=where,
                    hint="give it a mask with `value`, or leave it out with sink.column-selectors",
                )


_AS_IT_IS = ColumnFate(is_taken=True, mask=None)
ORIGIN_TYPE = f"varchar({LONGEST})"
"""What messages say of the type of a column that tells whose a row is."""


@dataclass(frozen=True, slots=True)
class ColumnRules:
    """All selectors and masks of a changefeed; can be pickled."""

    selectors: tuple[tuple[TableFilter, NameRules], ...] = ()
    masks: tuple[tuple[TableFilter, NameRules, Mask], ...] = ()
    origins: Origins = field(default_factory=Origins)
    """Which tables are merged, and what tells their rows apart."""
    accepts: TableFilter | None = None
    """Rules for tables: what they leave out stays as it is, whatever is wrong with it. None: no table is left out."""
    _known: dict[TableName, TableColumns | None] = field(default_factory=dict, compare=False, repr=False)

    def __bool__(self) -> bool:
        """Whether there are any."""
        return bool(self.selectors or self.masks or self.origins)

    def of(self, name: TableName) -> TableColumns | None:
        """What is done with a table's columns; None: nothing."""
        if name in self._known:
            return self._known[name]
        found = self._found(name)
        if len(self._known) < _REMEMBERED:
            self._known[name] = found
        return found

    def changes(self, name: TableName, column: str) -> bool:
        """Whether the target does not hold a column's values as upstream does."""
        return self.fate(name, column) != _AS_IT_IS

    def fate(self, name: TableName, column: str) -> ColumnFate:
        """What is done with a table's column."""
        rules = self.of(name)
        return _AS_IT_IS if rules is None else rules.fate(column)

    def are_alike(self, one: TableName, other: TableName) -> bool:
        """Whether two tables have the same rules for columns of any name."""
        found = [None if rules is None else (rules.selects, rules.masks) for rules in map(self.of, (one, other))]
        return found[0] == found[1]

    def is_masked(self, name: TableName, column: str) -> bool:
        """Whether a mask stands in the target for a column's values."""
        is_taken, mask = self.fate(name, column)
        return is_taken and mask is not None

    def unsent(self, name: TableName, columns: Iterable[str]) -> frozenset[str]:
        """Which of a table's columns are left out of its rows."""
        rules = self.of(name)
        return frozenset() if rules is None else frozenset(one for one in columns if not rules.takes(one))

    def within(self, accepts: TableFilter) -> "ColumnRules":
        """The same rules, for tables alone that others take in."""
        return replace(self, accepts=accepts, _known={})

    def _found(self, name: TableName) -> TableColumns | None:
        if self.accepts is not None and not self.accepts(*name):
            return None
        selects = next((rules for matcher, rules in self.selectors if matcher(*name)), None)
        masks = tuple((rules, mask) for matcher, rules, mask in self.masks if matcher(*name))
        origin = self.origins.of(name)
        return TableColumns(name, selects, masks, origin) if selects is not None or masks or origin else None

    @property
    def digest(self) -> str:
        """Short text that differs where rows would have other values; "" without rules. Of origins the routes tell."""
        return digest(self._texts()) if self.selectors or self.masks else ""

    def _texts(self) -> Iterator[str]:
        for matcher, rules in self.selectors:
            yield from (*matcher.texts, "", *rules.texts, "")
        for matcher, rules, mask in self.masks:
            yield from (*matcher.texts, "", *rules.texts, mask.text, "")


def column_rules(
    selectors: Iterable[tuple[Sequence[str], Sequence[str]]],
    masks: Iterable[tuple[Sequence[str], Sequence[str], Mask]],
) -> ColumnRules:
    """The rules of a config: tables' rules, which fold case, with columns' rules. Raises ConfigError."""
    return ColumnRules(
        tuple((table_filter(tables, key="matcher"), name_rules(names, "columns")) for tables, names in selectors),
        tuple(
            (table_filter(tables, key="matcher"), name_rules(names, "columns"), mask) for tables, names, mask in masks
        ),
    )
