"""Tables that lie in the target under other names than upstream, and the one place where the names are mapped.

All but a target's own parts knows tables by their names upstream: messages, filters, the DDL log, the quarantine. A
target looks for each of them at its *place*. Which upstream table has which place is kept with the progress
(`Progress.sources`), so that a place has one source: two tables in one would overwrite each other's rows. Only tables
that are merged share a place: columns that tell whose a row is are part of its keys there.
"""

from collections.abc import Callable, Iterator, Mapping
from typing import Generic, Protocol, TypeVar

from ordering.errors import InputError
from ordering.events import TableName

Route = Callable[[TableName], TableName]
"""From an upstream table to its place, as the config has it; its own name where no rule is about it."""
V = TypeVar("V")
W = TypeVar("W")


Origin = tuple[tuple[str, str], ...]
"""The columns that tell whose a row of a merged table is, and what they hold."""


class OriginRules(Protocol):
    """Which tables are merged, and what tells their rows apart."""

    def merges(self, name: TableName) -> bool:
        """Whether other tables may lie where this one of upstream's does."""
        ...

    def of(self, name: TableName) -> Origin:
        """What tells its rows from those of others; () where it is not merged. Raises InputError."""
        ...


class NoOrigins:
    """No table is merged. See `OriginRules`."""

    def merges(self, _name: TableName) -> bool:
        """See `OriginRules.merges`."""
        return False

    def of(self, _name: TableName) -> Origin:
        """See `OriginRules.of`."""
        return ()


_NO_ORIGINS = NoOrigins()


class NameMap:
    """What the routes say, and which tables are known to have which place. Upstream's names fold case."""

    def __init__(
        self, route: Route, sources: Mapping[TableName, TableName], origins: OriginRules = _NO_ORIGINS
    ) -> None:
        """`origins`: which tables may share their place with others of which that is true too."""
        self.route, self.sources, self.origins = route, sources, origins
        self._known: dict[TableName, tuple[TableName, TableName]] = {}
        self._owners: dict[TableName, dict[TableName, TableName]] = {}
        self._alone: dict[TableName, TableName] = {}
        self._by_origin: dict[tuple[TableName, Origin | None], TableName] = {}
        for name, place in sources.items():
            self.learn(name, place)

    def knowing(self, sources: Mapping[TableName, TableName]) -> "NameMap":
        """The same routes, with other tables known."""
        return NameMap(self.route, sources, self.origins)

    def learn(self, name: TableName, place: TableName) -> None:
        """Take in where a table lies; `sources` stays what this was made of."""
        self._known[name.folded] = name, place
        self._owners.setdefault(place.folded, {})[name.folded] = name
        if self.origins.merges(name):
            self._by_origin.setdefault((place.folded, self.origin(name)), name)
        else:
            self._alone[place.folded] = name

    def place(self, name: TableName) -> TableName:
        """Where a table of upstream lies, or will: merged ones in one place, in whatever case each is spelled."""
        known = self._known.get(name.folded)
        if known is not None:
            return known[1]
        place = self.route(name)
        other = self.first_owner(place) if self.origins.merges(name) else None
        return place if other is None else self._known[other.folded][1]

    def known_as(self, name: TableName) -> TableName | None:
        """A table as it was spelled when it was first met; None for one that was not."""
        known = self._known.get(name.folded)
        return None if known is None else known[0]

    def owners(self, place: TableName) -> tuple[TableName, ...]:
        """Which tables of upstream have a place, several if they are merged; none where that is not known."""
        return tuple(self._owners.get(place.folded, {}).values())

    def first_owner(self, place: TableName) -> TableName | None:
        """The one of them that has been known for longest."""
        return next(iter(self._owners.get(place.folded, {}).values()), None)

    def other_owner(self, name: TableName) -> TableName | None:
        """Which other table of upstream has a table's place, and does not share it; None: no other one is known to."""
        place = self.place(name).folded
        if self.origins.merges(name):
            found = (self._alone.get(place), self._by_origin.get((place, self.origin(name))))
        else:
            found = (next(reversed(self._owners.get(place, {}).values()), None), None)
        return next((owner for owner in found if owner is not None and owner.folded != name.folded), None)

    def origin(self, name: TableName) -> Origin | None:
        """What tells a table's rows from those of others; None where that can't be told."""
        try:
            return self.origins.of(name)
        except InputError:  # its rows and DDLs are refused with it
            return None

    def own_place(self, name: TableName) -> TableName:
        """The place of a table. Raises InputError where another one has it."""
        other = self.other_owner(name)
        if other is not None and self.origins.merges(other) and self.origins.merges(name):
            same = ", ".join(f"{column} = {value!r}" for column, value in self.origin(name) or ())
            raise InputError(
                f"sink.dispatchers merge {other} and {name} in {self.place(name)}, and give both the same origin"
                f" ({same})",
                hint="let the groups of extract-table and extract-schema differ for each table that is merged",
            )
        if other is not None:
            raise InputError(
                f"sink.dispatchers lead {other} and {name} to one table, {self.place(name)}: tables are not merged",
                hint="give each a table of its own, by {schema} or {table} in target-schema or target-table; or leave"
                " one of them out by filter.rules; `reconciler help merging` says how tables are merged",
            )
        return self.place(name)


class RoutedTables(Mapping[TableName, V], Generic[V]):
    """What is known of a target's tables, by upstream's names; all of its methods but iteration take any name.

    It iterates over the tables whose names upstream are known: those that have come, and those that keep their name.
    """

    def __init__(
        self, here: Mapping[TableName, V], names: NameMap, renamed: Callable[[V, TableName, Origin], V]
    ) -> None:
        """`renamed`: what is known of a table by another name; what tells its rows apart there."""
        self._here, self._names, self._renamed = here, names, renamed
        self._folded: dict[TableName, list[TableName]] = {}
        for name in here:
            self._folded.setdefault(name.folded, []).append(name)

    def _found(self, name: TableName) -> TableName | None:
        """The target's own name of a table of upstream; None where it is missing, or another one's."""
        if self._names.other_owner(name) is not None or self._names.origin(name) is None:
            return None
        place = self._names.place(name)
        same = self._folded.get(place.folded, [])
        return place if place in self._here else same[0] if len(same) == 1 else None

    def spelled(self, name: TableName) -> TableName:
        """A table of upstream in the one spelling that it has here, so that two spellings are no two tables."""
        known, found = self._names.known_as(name), self._found(name)
        if known is not None or found is None:
            return known or name
        return found if found.folded == name.folded else name.folded

    def is_unmet(self, name: TableName) -> bool:
        """Whether it is a merged one of which nothing has come: that its place is there does not say that it is."""
        return self._names.origins.merges(name) and self._names.known_as(name) is None

    def __getitem__(self, name: TableName) -> V:
        """What is known of a table of upstream."""
        found = self._found(name)
        if found is None:
            raise KeyError(name)
        return self._renamed(self._here[found], name, self._names.origin(name) or ())

    def __contains__(self, name: object) -> bool:
        """Whether the target has this table, spelled so."""
        return isinstance(name, TableName) and self._found(name) is not None and self.spelled(name) == name

    def __iter__(self) -> Iterator[TableName]:
        """Upstream's names."""
        for place in self._here:
            owners = self._names.owners(place)
            yield from (owner for owner in owners if self._found(owner) == place)
            if not owners and self._names.known_as(place) is None and self._found(place) == place:
                yield place

    def __len__(self) -> int:
        """How many it iterates over."""
        return sum(1 for _ in self)

    def of(self, told: Callable[[V], W]) -> "RoutedTables[W]":
        """The same tables with something else that is known of them."""
        return RoutedTables({name: told(value) for name, value in self._here.items()}, self._names, _as_it_is)


def _as_it_is(value: W, _name: TableName, _origin: Origin) -> W:
    return value


def by_table(tables: Mapping[TableName, V], told: Callable[[V], W]) -> Mapping[TableName, W]:
    """What is told of each table."""
    return tables.of(told) if isinstance(tables, RoutedTables) else {name: told(one) for name, one in tables.items()}
