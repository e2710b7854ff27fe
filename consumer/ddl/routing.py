"""DDLs by the target's names, and which upstream tables have which places once rows and DDLs have come.

A place has one source, but for tables that are merged (`consumer.ddl.merged`). Who would get the place of another
table is refused before anything is written or executed: a DDL of it would change the other's table, a row would
overwrite the other's. What can't be said by other names with the same meaning is refused too; an operator makes the
change by hand then, and `reconciler ddl done` notes it.
"""

from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace

from consumer.config.routes import Routes, check_place
from consumer.ddl.merged.shards import RoutedDdl, ShardDdl, Shards, Sources
from consumer.ddl.names_beside import qualified
from ordering.errors import InputError
from ordering.events import DdlEvent, Position, TableName
from ordering.progress import Progress
from ordering.tables.merged_tables import Merged
from sinks.bookkeeping.ddl_log import SAME_PLACE
from sinks.ddl.parse.rewrite import stray_name, with_names
from sinks.ddl.parse.statement import DdlKind, NamedTable, Statement, TableReference, exchange_of, named_tables
from sinks.ddl.parse.views import CannotSayError, read_view
from sinks.ddl.parse.words import Words
from sinks.rows.routed import NameMap
from sinks.rows.schema import Catalog
from sinks.target import Target

_NOTHING = Catalog({})
_BY_HAND = "make the change by hand, under the target's names"


def with_rows(
    progress: Progress, routes: Routes, tables: Mapping[TableName, Position], here: Catalog = _NOTHING
) -> Progress:
    """The progress that knows the places of tables that rows came for. Raises InputError."""
    names, new = NameMap(routes, progress.sources, routes.columns.origins), dict[TableName, TableName]()
    for name, position in sorted(tables.items()):
        if names.known_as(name) is None:
            with _at(position):
                new[name] = _place(names, name)
            names.learn(name, new[name])
        if routes.merges(name):
            with _at(position):
                Shards(routes, names, progress.merged, here).check_origin(name)
    return replace(progress, sources={**progress.sources, **new}) if new else progress


@contextmanager
def _at(position: Position) -> Iterator[None]:
    try:
        yield
    except InputError as error:
        raise InputError(error.fact, where=str(position), hint=error.hint) from None


def _place(names: NameMap, name: TableName) -> TableName:
    """Where a table lies. Raises InputError where that is another table's place, or may be none's."""
    place = names.own_place(name)
    check_place(name, place)
    return place


def shards(routes: Routes, progress: Progress, target: Target, *, torn: bool = False) -> Shards:
    """What a DDL is routed by: what the progress knows, and the target's tables. `torn`: it may have run already."""
    names = NameMap(routes, progress.sources, routes.columns.origins)
    rows = target.merged
    return Shards(routes, names, progress.merged, target.session.catalog(), rows.has_others, torn, rows.has_own)


def after(progress: Progress, found: RoutedDdl) -> Progress:
    """The progress that knows what a DDL has changed of places and merged tables."""
    merged = progress.merged if found.merged is None else found.merged
    return replace(progress, sources=found.sources, merged=merged)


def left(ddl: DdlEvent, sources: Sources) -> Sources:
    """The sources without the tables that a DDL takes away."""
    gone = {name.folded for name in ddl.removes}
    database = None if ddl.drops_database is None else ddl.drops_database.lower()
    return {n: at for n, at in sources.items() if n.folded not in gone and n.database.lower() != database}


def routed(ddl: DdlEvent, known: Shards, *, by_hand: bool = False) -> RoutedDdl:
    """A DDL by the target's names; `by_hand`: what is known after an operator has made the change.

    Raises InputError for one that would touch another table's place, or can't be said.
    """
    return _Routing(ddl, known, by_hand).routed()


def passed_over(ddl: DdlEvent, known: Shards) -> Merged:
    """What is known of merged tables after a DDL that upstream has executed and the target has not."""
    return _Routing(ddl, known, by_hand=False).passed_over()


@dataclass(frozen=True, slots=True)
class _Routing:
    """One DDL."""

    ddl: DdlEvent
    known: Shards
    by_hand: bool

    @property
    def names(self) -> NameMap:
        return self.known.names

    @property
    def routes(self) -> Routes:
        return self.known.routes

    @property
    def here(self) -> Catalog:
        return self.known.here

    def routed(self) -> RoutedDdl:
        statement, tables = named_tables(self.ddl.statement)
        if self.routes.columns.origins and (found := self._merged(statement, tables)) is not None:
            return found.by_hand() if self.by_hand else found.routed()
        if statement.database is not None:
            return self._database(statement, tables)
        if statement.renames:
            return self._renamed(statement, tables)
        if statement.kind is DdlKind.CREATE_VIEW:
            return self._view(statement)
        if statement.kind is DdlKind.OTHER:
            return self._unknown(statement)
        own = [self._own(table) for table in tables]
        if statement.like is not None:
            own[1] = self._older(statement.like, statement.tables[0])
        places = [_place(self.names, name) for name in own]
        if statement.kind is DdlKind.CREATE_TABLE:
            self._check_free(own[0], places[0])
        count = len(statement.tables) + (exchange_of(statement) is not None)  # an exchange has no foreign keys
        about = own[:1] + own[-1:] if count > len(statement.tables) else own[:count]
        return self._done(tables, own, places, self._after(about))

    def passed_over(self) -> Merged:
        """What is known of merged tables after the DDL was left out."""
        try:
            found = self._merged(*named_tables(self.ddl.statement))
        except InputError:  # it changed what it is about as it likes
            own = TableName(self.ddl.database, self.ddl.table)
            own = self.names.known_as(own) or own
            return {place: table.unsure(own) for place, table in self.known.merged.items()}
        return self.known.merged if found is None else found.passed_over()

    def _merged(self, statement: Statement, tables: list[NamedTable]) -> ShardDdl | None:
        """One about merged tables; None for others. Raises InputError."""
        if statement.kind is DdlKind.DROP_DATABASE and (merged := self._merged_of(statement.database or "")):
            raise self._refused(f"drops {merged[0]}, which is merged with others", "delete its rows by hand")
        if statement.database is not None or statement.kind in {DdlKind.CREATE_VIEW, DdlKind.OTHER}:
            return None
        own = [self._own(table) for table in tables]
        for at, (old, new) in enumerate(statement.renames):
            own[2 * at] = self._older(old, new)
        if statement.like is not None:
            own[1] = self._older(statement.like, statement.tables[0])
        return ShardDdl(self.ddl, statement, tables, own, self.known) if any(map(self.routes.merges, own)) else None

    def _merged_of(self, database: str) -> list[TableName]:
        """The shards that are known of a database."""
        own = (name for name in self.names.sources if name.database.lower() == database.lower())
        return sorted(filter(self.routes.merges, own))

    def _older(self, old: TableReference, new: TableReference) -> TableName:
        """A table that is there before the statement. `new`: one that is there after it.

        If that one too has no database, it is the message's. Else it may be of any that has such a table. Raises
        InputError where several do, or where the target holds one of which it is not known whose it is.
        """
        if old.database is not None or new.database is None:
            return TableName(old.database or self.ddl.database, old.table)
        told = dict(self.ddl.olders).get(old.table.lower())
        if told is not None:
            return TableName(told, old.table)
        holders = [name for name in self.names.sources if name.table.lower() == old.table.lower()]
        if len(holders) != 1 or not all(map(self.names.owners, self.here.tables)):
            hint = f"set source.upstream.uri, so that upstream is asked which; or {_BY_HAND}"
            raise self._refused(f"names {old.table} without its database, and which is meant is not known", hint)
        return holders[0]

    def _own(self, table: NamedTable) -> TableName:
        return TableName(table.reference.database or self.ddl.database, table.reference.table)

    def _after(self, about: Iterable[TableName]) -> Sources:
        """The sources after a statement about these tables, which are there after it unless it drops them."""
        new = {name: self.names.place(name) for name in about if self.names.known_as(name) is None}
        return left(self.ddl, {**self.names.sources, **new})

    def _check_free(self, name: TableName, place: TableName) -> None:
        """A table that is there and that nothing is known of may be another one's: its rows must not meet."""
        if self.names.known_as(name) is None and place in self.here and not self.known.torn:
            raise self._refused(
                f"creates {name}, whose place {place} holds a table already, and of which table upstream is not known",
                f"if it is this one's, `reconciler ddl done` says so; else drop or rename {place} in the target",
            )

    def _done(
        self, tables: list[NamedTable], own: list[TableName], places: list[TableName], sources: Sources
    ) -> RoutedDdl:
        """The statement with other names in it, where any is another."""
        if own == places:
            return RoutedDdl(self.ddl, sources)
        sql = self.ddl.statement
        if stray := stray_name(sql, tables):
            raise self._refused(f"names {stray} where it can't be told whether that is a table")
        text = with_names(sql, tables, places)
        return RoutedDdl(replace(self.ddl, routed=text, session=places[0].database), sources)

    def _renamed(self, statement: Statement, tables: list[NamedTable]) -> RoutedDdl:
        """Pairs in their order: each leaves a place before it takes one."""
        names, own, places = self.names, list[TableName](), list[TableName]()
        for old, new in statement.renames:
            before, after = self._older(old, new), TableName(new.database or self.ddl.database, new.table)
            place = _place(names, before)
            names = names.knowing({n: at for n, at in names.sources.items() if n.folded != before.folded})
            names = names.knowing({**names.sources, after: _place(names, after)})
            own += before, after
            places += place, names.place(after)
        same = [old == new for old, new in zip(places[::2], places[1::2], strict=True)]
        if all(same):
            return RoutedDdl(self.ddl, names.sources, SAME_PLACE)
        if any(same):
            raise self._refused("renames several tables, of which some keep their name in the target")
        return self._done(tables, own, places, names.sources)

    def _view(self, statement: Statement) -> RoutedDdl:
        view = TableName(statement.tables[0].database or self.ddl.database, statement.tables[0].table)
        try:
            read = {TableName(t.db or self.ddl.database, t.name) for t in read_view(self.ddl.sql).tables()}
        except CannotSayError as error:
            databases = {self.ddl.database, view.database, *(one.word.text for one in qualified(self.ddl.sql))}
            if any(self.routes.schemas(database) != {database} for database in databases):
                raise self._refused(f"is a view that can't be read: {error}") from error
            read = set()
        seen = {view, *read}
        moved = sorted(str(one) for one in seen if _place(self.names, one) != one or self.routes.merges(one))
        if moved:
            raise self._refused(f"is a view about {', '.join(moved)}, which have other names in the target")
        return RoutedDdl(self.ddl, self._after([view]))

    def _unknown(self, statement: Statement) -> RoutedDdl:
        """RECOVER TABLE and the like: no target executes these by other names."""
        about = [TableName(one.database or self.ddl.database, one.table) for one in statement.tables]
        about += [TableName(self.ddl.database, self.ddl.table)] if self.ddl.table else []
        if any(_place(self.names, name) != name or self.routes.merges(name) for name in about):
            raise self._refused("is of a kind that is not said by other names")
        return RoutedDdl(self.ddl, self._after(()))

    def _database(self, statement: Statement, tables: list[NamedTable]) -> RoutedDdl:
        """A database whose tables all lie in one schema; DROP only where that schema holds nothing else."""
        database = statement.database or ""
        schemas = self.routes.schemas(database)
        (schema, *more) = sorted(schemas)
        there = {name.lower() for name in (*self.here.empty, *(name.database for name in self.here.tables))}
        is_bare = statement.kind is DdlKind.CREATE_DATABASE and not self._has_options(statement)
        if more and is_bare and there.issuperset(map(str.lower, schemas)):
            return RoutedDdl(self.ddl, self.names.sources, "the schemas of its tables are there already")
        if more or "{table}" in schema:
            raise self._refused(f"is about {database}, whose tables lie in schemas {', '.join(sorted(schemas))}")
        check_place(TableName(database, "t"), TableName(schema, "t"))
        strangers = self._strangers(database, schema)
        sources = left(self.ddl, self.names.sources)
        is_made = schema.lower() in there
        if is_bare and is_made and (strangers or (self.routes.columns.origins and not self.known.torn)):
            return RoutedDdl(self.ddl, sources, f"the schema {schema} is there already, for tables of others")
        if strangers and (is_made or statement.kind is not DdlKind.CREATE_DATABASE):
            hint = f"{_BY_HAND}, for the tables of {database} alone"
            raise self._refused(f"is about {database}, whose schema {schema} holds {strangers[0]} too", hint)
        if schema == database:
            return RoutedDdl(self.ddl, sources)
        text = with_names(self.ddl.statement, tables, [TableName("", schema)])
        return RoutedDdl(replace(self.ddl, routed=text, session=schema), sources)

    def _strangers(self, database: str, schema: str) -> list[TableName]:
        """What lies in a schema and is no table of the database's; or is not known to be."""
        found = {place for name, place in self.names.sources.items() if name.database.lower() != database.lower()}
        found |= {place for place in self.here.tables if not self._is_of(place, database)}
        return sorted(place for place in found if place.database.lower() == schema.lower())

    def _is_of(self, place: TableName, database: str) -> bool:
        owners = self.names.owners(place)
        if not owners:  # one that nothing came of since `start-ts`
            stays = place.database.lower() == database.lower() and self.routes(place).folded == place.folded
            return stays and not self.routes.may_lead_to(place)
        return all(owner.database.lower() == database.lower() for owner in owners)

    def _has_options(self, statement: Statement) -> bool:
        """Whether the statement says more than the database's name."""
        return len(Words(statement.sql, features=True).words) > statement.read

    def _refused(self, what: str, hint: str = _BY_HAND) -> InputError:
        fact = f"sink.dispatchers can't be followed: the DDL {what}: {self.ddl.sql[:200]}"
        return InputError(fact, where=str(self.ddl.position), hint=hint)
