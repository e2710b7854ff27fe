"""What becomes of a DDL of a shard: of a table that is merged with others in one table of the target. Pure.

The rule stands in `ordering.tables.merged_tables`. What it does not cover is refused, with the shards that it would be
about: an operator makes the change in the target and says so (`reconciler ddl done`), or leaves it out (`ddl skip`).
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

from consumer.config.routes import Routes
from consumer.ddl.lost_keys import changes_of
from consumer.ddl.merged.not_followed import made_by_hand, never_came, passed_over, shared
from consumer.ddl.merged.parts import (
    COLLATION,
    column_definition,
    column_part,
    fills_itself,
    index_definition,
    index_part,
    indexes_over,
    is_of_rows,
    parts_of,
)
from ordering.errors import InputError
from ordering.events import DdlEvent, TableName, folded
from ordering.tables.merged_tables import MergeConflictError, Merged, MergedTable
from sinks.bookkeeping.ddl_log import SAME_ORIGIN
from sinks.ddl.model import AddColumn, AddIndex, Change, ColumnDef, DropColumn, DropIndex, IndexKind
from sinks.ddl.parse.origin_columns import with_origin_columns
from sinks.ddl.parse.rewrite import stray_name, with_names
from sinks.ddl.parse.statement import DdlKind, NamedTable, Statement
from sinks.ddl.parse.tables import column_in, read_table
from sinks.rows.origin_rows import OriginRows
from sinks.rows.routed import NameMap, Origin
from sinks.rows.schema import Catalog, Column, TableSchema

Sources = Mapping[TableName, TableName]
HasOthers = Callable[[TableName, Sequence[Origin]], bool]
"""Whether a table of the target holds rows of none of these origins."""
HasOwn = Callable[[TableName, Origin], bool]
"""Whether a table of the target holds rows of this origin."""
_HINT = (
    "make the change in the target by hand once every shard has it, under the target's names; `reconciler help merging`"
    " says which DDLs of shards are followed"
)
_SHOWN = 5


class RoutedDdl(NamedTuple):
    """A DDL as the target is to execute it, and what is known after it. `because`: why nothing is to be executed.

    `merged`: None where that stays; `rows`: what is to be changed in place of a statement.
    """

    ddl: DdlEvent
    sources: Sources
    because: str = ""
    merged: Merged | None = None
    rows: OriginRows | None = None


def _unasked(_place: TableName, _origins: Sequence[Origin]) -> bool:
    return True


def _none(_place: TableName, _origin: Origin) -> bool:
    return False


@dataclass(frozen=True, slots=True)
class Shards:
    """What is known of the merged tables where a DDL of one of their shards is met. `here`: by the target's names."""

    routes: Routes
    names: NameMap
    merged: Merged
    here: Catalog
    has_others: HasOthers = _unasked
    torn: bool = False
    has_own: HasOwn = _none

    def check_origin(self, name: TableName) -> None:
        """Raise InputError where a table's rows could not be told from another shard's, or the target's table."""
        origin, place = self.routes.origin(name), self.names.own_place(name)
        first = self.names.first_owner(place) or name  # each is held against it
        check_alike(name, origin, first, self.names.origin(first) or origin)
        schema = self.here.get(self.here.spelled(place))
        if schema is not None:
            check_place_of_shards(schema, origin)


def check_alike(name: TableName, origin: Origin, other: TableName, others: Origin) -> None:
    """Raise InputError where two shards of a table have other columns for it: rows of one may look like both's."""
    columns, more = ([column for column, _ in one] for one in (origin, others))
    if columns != more:
        raise InputError(
            f"sink.dispatchers merge {other} and {name}, and tell their rows apart by other columns: {', '.join(more)};"
            f" {', '.join(columns)}",
            hint="give the dispatchers the same extract-table, extract-schema and extract-source columns",
        )


def check_place_of_shards(schema: TableSchema, origin: Origin) -> None:
    """Raise InputError for a table of the target in which rows of shards could take one another's place."""
    columns = {column.name: column for column in schema.columns}
    for name, _ in origin:
        column = columns.get(name)
        fault = ""
        if column is None:
            fault = f"lacks the column {name!r}"
        elif column.folds or column.generated:
            fault = f"has a column {name!r} that takes different values for one: it needs utf8mb4_bin or the like"
        elif any(name not in unique for unique in schema.unique_keys):
            fault = f"has a key without {name!r}: rows of several tables could take one another's place"
        if fault:
            raise InputError(
                f"sink.dispatchers merge tables in {schema.here}, which {fault}",
                hint="let the changefeed make the table, or make the column part of every unique key: VARCHAR(64)"
                " NOT NULL with a collation that tells all values apart",
            )


@dataclass(frozen=True, slots=True)
class ShardDdl:
    """A DDL of one statement about tables of which some are merged. `own`: their names, in the statement's order."""

    ddl: DdlEvent
    statement: Statement
    tables: Sequence[NamedTable]
    own: Sequence[TableName]
    known: Shards

    def routed(self) -> RoutedDdl:
        """What is to be done. Raises InputError."""
        try:
            return self._routed()
        except MergeConflictError as error:
            raise self._refused(str(error)) from error

    def by_hand(self) -> RoutedDdl:
        """What is known after an operator has made the change: what can't be followed leaves definitions in doubt."""
        try:
            found = self.routed()._replace(rows=None)
            if (after := (found.merged or {}).get(self.place)) is None:
                return found
            return found._replace(merged={**(found.merged or {}), self.place: shared(self.table, after, self.others)})
        except InputError:
            made = {} if self.statement.kind is not DdlKind.CREATE_TABLE else {self.shard: self.place}
            gone = {name.folded for name in self.ddl.removes}
            if self.statement.renames:
                made = {self.own[-1]: self.known.names.place(self.own[-1])}
            sources = {name: at for name, at in self.known.names.sources.items() if name.folded not in gone}
            table, ddl = made_by_hand(self.table, self.shard, self.statement), self.ddl
            for name in self.ddl.removes:
                table = table.gone(self._spelled(name))
            if self.statement.kind is DdlKind.ALTER_TABLE and len(self.own) == 1:
                text = with_names(ddl.statement, self.tables, [self.place])
                ddl = replace(ddl, routed=text, session=self.place.database)
            return RoutedDdl(ddl, {**sources, **made}, merged={**self.known.merged, self.place: table})

    def passed_over(self) -> Merged:
        """What is known of merged tables after the target has left it out."""
        found = dict[TableName, MergedTable]()
        for name in self.own:
            if not self.known.routes.merges(name) or self.known.names.known_as(name) is None:
                continue
            place = self.known.names.place(name)
            table = found.get(place, self.known.merged.get(place, MergedTable()))
            found[place] = passed_over(table, self._spelled(name), self.statement)
        for name in self.own[1::2] if self.statement.renames else ():
            place = self.known.names.place(name)
            schema = self.known.here.get(self.known.here.spelled(place))
            if schema is not None and self.known.routes.merges(name) and self.known.names.known_as(name) is None:
                found[place] = never_came(found.get(place, self.known.merged.get(place, MergedTable())), name, schema)
        return {**self.known.merged, **found}

    @property
    def shard(self) -> TableName:
        """The table that the DDL is about, as it was first spelled."""
        return self._spelled(self.own[0])

    @property
    def place(self) -> TableName:
        """Where it lies."""
        return self.known.names.place(self.own[0])

    @property
    def table(self) -> MergedTable:
        """What is known of the table there."""
        return self.known.merged.get(self.place, MergedTable())

    @property
    def others(self) -> list[TableName]:
        """The other shards that are known."""
        return [one for one in self.known.names.owners(self.place) if one.folded != self.shard.folded]

    @property
    def schema(self) -> TableSchema | None:
        """The target's table."""
        return self.known.here.get(self.known.here.spelled(self.place))

    def _routed(self) -> RoutedDdl:
        kind = self.statement.kind
        if self.statement.renames:
            return self._renamed()
        if not all(map(self.known.routes.merges, self.own)):
            message = "it names a merged table beside one that is not"
            raise MergeConflictError(message)
        if kind is DdlKind.CREATE_TABLE:
            return self._created()
        if len(self.own) != 1:
            message = "it names several tables"
            raise MergeConflictError(message)
        self.known.check_origin(self.shard)
        if kind is DdlKind.TRUNCATE_TABLE:
            return self._result(self.table.emptied(self.shard), rows=self._rows())
        if kind is DdlKind.DROP_TABLE:
            return self._dropped()
        if kind in {DdlKind.ALTER_TABLE, DdlKind.CREATE_INDEX, DdlKind.DROP_INDEX}:
            return self._altered()
        message = f"{kind.value} is not followed for merged tables"
        raise MergeConflictError(message)

    def _created(self) -> RoutedDdl:
        self.known.check_origin(self.shard)
        self._check_empty()
        if self.statement.like is not None:
            return self._created_like()
        if len(self.own) != 1:
            message = "it names several tables"
            raise MergeConflictError(message)
        defined = read_table(self.ddl.statement)
        parts = parts_of(defined)
        self._check_names(column.name for column in defined.columns)
        if defined.partitions is not None:
            message = "merged tables are not partitioned"
            raise MergeConflictError(message)
        if not self.others and (self.schema is None or self.known.torn):
            named = with_names(self.ddl.statement, self.tables, [self.place])
            text = with_origin_columns(named, [column for column, _ in self.known.routes.origin(self.shard)])
            return self._result(MergedTable(parts, whole=True), text=text)
        joined = self.table.joined(self.shard, self.others, parts)
        self._check_fills(parts.keys() ^ joined.parts.keys())
        return self._result(joined, because=f"its rows go to {self.place}, which is there and has the same columns")

    def _check_empty(self) -> None:
        """Raise MergeConflictError where rows that the shard had before its DROP are there: that was not followed."""
        is_known = self.known.names.known_as(self.own[0]) is not None and not self.ddl.dumped
        if is_known and self.schema is not None and self.known.has_own(self.schema.here, self._rows().origin):
            message = f"{self.place} holds rows of a table of that name, whose DROP TABLE was not followed"
            raise MergeConflictError(message)

    def _created_like(self) -> RoutedDdl:
        """A copy of another shard has what that one has, and no rows yet."""
        model = self._spelled(self.own[1])
        if self.known.names.place(model) != self.place or model not in self.others:
            message = "it is made LIKE a table that is not merged with it"
            raise MergeConflictError(message)
        table = self.table.gone(self.shard)
        lacks = {**table.lacks, **({self.shard: table.lacks[model]} if model in table.lacks else {})}
        return self._result(replace(table, lacks=lacks), because=f"its rows go to {self.place}, as those of {model} do")

    def _dropped(self) -> RoutedDdl:
        """Its rows go; with those of the last shard the table goes."""
        if not self.others and not self._has_strangers():
            merged = {place: one for place, one in self.known.merged.items() if place != self.place}
            return self._result(None, text=with_names(self.ddl.statement, self.tables, [self.place]))._replace(
                merged=merged
            )
        return self._result(self.table.gone(self.shard), rows=self._rows())

    def _renamed(self) -> RoutedDdl:
        if len(self.own) != 2:  # noqa: PLR2004 a pair
            message = "it renames several tables"
            raise MergeConflictError(message)
        old, new = self._spelled(self.own[0]), self.own[1]
        routes, names = self.known.routes, self.known.names
        if not (routes.merges(old) and routes.merges(new)) or routes(new).folded != self.place.folded:
            message = f"{new} is not merged in {self.place}, where the rows of {old} lie"
            raise MergeConflictError(message)
        sources = {name: at for name, at in names.sources.items() if name.folded != old.folded}
        if new.folded in {name.folded for name in sources}:
            message = f"{new} is a shard already, and its rows would lie among those of {old}"
            raise MergeConflictError(message)
        replace(self.known, names=names.knowing(sources)).check_origin(new)
        merged = {**self.known.merged, self.place: self.table.renamed(old, new)}
        before, after = routes.origin(old), routes.origin(new)
        found = RoutedDdl(self.ddl, {**sources, new: self.place}, merged=merged)
        if before == after:
            return found._replace(because=SAME_ORIGIN)
        return found._replace(rows=OriginRows(self.place, before, after))

    def _altered(self) -> RoutedDdl:
        table, verdicts = self.table, list[bool]()
        for change in filter(is_of_rows, changes_of(self.statement)):
            table, is_done = self._changed(table, change)
            verdicts.append(is_done)
        if not verdicts:
            return self._result(table, because="it changes nothing that rows of merged tables depend on")
        if len(set(verdicts)) > 1:
            message = "of its clauses some are to be executed and some are not, for other shards have them"
            raise MergeConflictError(message)
        if verdicts[0]:
            if stray := stray_name(self.ddl.statement, self.tables):
                message = f"it names {stray} where it can't be told whether that is a table"
                raise MergeConflictError(message)
            return self._result(table, text=with_names(self.ddl.statement, self.tables, [self.place]))
        return self._result(table, because=f"other shards in {self.place} had it before, or still have it")

    def _changed(self, table: MergedTable, change: Change) -> tuple[MergedTable, bool]:
        """After one clause, and whether the target is to execute it."""
        if isinstance(change, AddColumn):
            return self._column_added(table, change.column)
        if isinstance(change, DropColumn):
            return self._column_dropped(table, change.name)
        if isinstance(change, AddIndex) and change.index.kind is IndexKind.PLAIN:
            return table.added(self.shard, self.others, index_part(change.index), index_definition(change.index))
        if isinstance(change, DropIndex) and f"index {folded(change.name)}" in table.parts:
            return table.dropped(self.shard, self.others, f"index {folded(change.name)}")
        message = f"a change of this kind ({type(change).__name__}) is not followed for one shard alone"
        raise MergeConflictError(message)

    def _column_added(self, table: MergedTable, column: ColumnDef) -> tuple[MergedTable, bool]:
        self._check_names([column.name])
        made = column_in(column, table.parts.get(COLLATION, ""))
        after, is_done = table.added(self.shard, self.others, column_part(made), column_definition(made))
        if is_done and not fills_itself(column):
            message = (
                f"the column {column.name!r} has to be NULL or have a constant default, so that rows of shards that"
                " lack it can be written"
            )
            raise MergeConflictError(message)
        if is_done and not self.known.torn and self._column(column.name) is not None:
            message = f"the target's table has a column {column.name!r} already, and it is not known what it is"
            raise MergeConflictError(message)
        if not is_done and self.schema is not None and self._column(column.name) is None:
            message = f"other shards have the column {column.name!r}, but the target's table has no column of that name"
            raise MergeConflictError(message)
        return after, is_done

    def _column_dropped(self, table: MergedTable, name: str) -> tuple[MergedTable, bool]:
        after, is_done = table.dropped(self.shard, self.others, f"column {folded(name)}")
        uniques = () if self.schema is None else (*self.schema.unique_keys, self.schema.handle_key)
        if any(folded(name) in map(folded, unique) for unique in uniques):
            message = f"the column {name!r} is part of a unique key of the merged table"
            raise MergeConflictError(message)
        if not is_done:
            self._check_fills([f"column {folded(name)}"])
        elif self._has_strangers():
            message = f"{self.place} holds rows of tables that nothing has come of yet: they would lose {name!r}"
            raise MergeConflictError(message)
        return after.without(self.shard, indexes_over(table.parts, folded(name)), is_gone=is_done), is_done

    def _check_fills(self, parts: Iterable[str]) -> None:
        """Raise MergeConflictError where a shard's rows could not be written without these columns."""
        for part in sorted(parts):
            column = self._column(part.removeprefix("column "))
            if column is not None and not (column.nullable or column.filled):
                message = f"the {part} is NOT NULL without default: rows without it can't be written"
                raise MergeConflictError(message)

    def _check_names(self, columns: Iterable[str]) -> None:
        own = {folded(name) for name, _ in self.known.routes.origin(self.shard)}
        if taken := [name for name in columns if folded(name) in own]:
            message = f"{taken[0]!r} is the name of a column that tells whose a row is"
            raise MergeConflictError(message)

    def _column(self, name: str) -> Column | None:
        columns = () if self.schema is None else self.schema.columns
        return next((column for column in columns if folded(column.name) == folded(name)), None)

    def _has_strangers(self) -> bool:
        origins = [self.known.routes.origin(one) for one in (self.shard, *self.others)]
        return self.schema is not None and self.known.has_others(self.schema.here, origins)

    def _rows(self) -> OriginRows:
        return OriginRows(self.place, self.known.routes.origin(self.shard))

    def _result(
        self, table: MergedTable | None, *, text: str = "", because: str = "", rows: OriginRows | None = None
    ) -> RoutedDdl:
        gone = {name.folded for name in self.ddl.removes}
        sources = {**self.known.names.sources, self.shard: self.place}
        sources = {name: at for name, at in sources.items() if name.folded not in gone}
        merged = None if table is None else {**self.known.merged, self.place: table}
        ddl = replace(self.ddl, routed=text, session=self.place.database) if text else self.ddl
        return RoutedDdl(ddl, sources, because, merged, rows)

    def _spelled(self, name: TableName) -> TableName:
        return self.known.names.known_as(name) or name

    def _refused(self, why: str) -> InputError:
        shard = next(filter(self.known.routes.merges, self.own))
        others = [str(one) for one in sorted(self.others)]
        more = "" if len(others) <= _SHOWN else f" and {len(others) - _SHOWN} more"
        beside = f"; merged with {', '.join(others[:_SHOWN])}{more}" if others else ""
        fact = f"a DDL of {shard}, which is merged in {self.known.names.place(shard)}{beside}, can't be followed: {why}"
        return InputError(f"{fact}: {self.ddl.sql[:200]}", where=str(self.ddl.position), hint=_HINT)
