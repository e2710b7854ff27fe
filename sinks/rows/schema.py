"""The target's tables as far as writing needs them."""

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import Enum
from typing import NamedTuple

from ordering.errors import TableMismatchError
from ordering.events import TableName, folded
from ordering.tables.merged_tables import MergedTable, merged_at
from sinks.rows.column_fit import Holds
from sinks.rows.routed import NameMap, Origin, RoutedTables


class Shape(Enum):
    """How a text from a message becomes a value of the column."""

    TEXT = "text"
    INTEGER = "integer"
    REAL = "real"
    BYTES = "bytes"
    EXACT = "exact"
    """INTEGER where it fits 64 bits, its text otherwise."""
    BIT = "bit"
    """An unsigned number that stands for up to 64 bits."""
    ENUM = "enum"
    """The number of one of the column's members, from 1; 0 for the invalid value ''."""
    SET = "set"
    """A number whose bits stand for the column's members, bit 0 for the first."""
    DATE = "date"
    DATETIME = "datetime"
    TIMESTAMP = "timestamp"
    """An instant, written in the source's time zone."""
    TIME = "time"
    JSON = "json"


@dataclass(frozen=True, slots=True)
class Column:
    """A column of the target. A generated one is computed by the target and never written."""

    name: str
    type: str
    shape: Shape
    nullable: bool = True
    generated: bool = False
    members: tuple[str, ...] = ()
    """Of an ENUM or SET: the members in the upstream's order."""
    virtual: bool = False
    """Generated, and not stored: no key of rows."""
    folds: bool = False
    """The column's collation may take texts for equal that differ in their bytes ('a' and 'A')."""
    pads: bool = False
    """The column's collation takes texts for equal that differ in the blanks at their end alone ('b' and 'b ')."""
    moved: bool = False
    """The target sets it to the present in every UPDATE that does not name it (ON UPDATE CURRENT_TIMESTAMP)."""
    filled: bool = False
    """The target has a value for it where none is sent: a default or a counter."""


_HOLDS = {
    Shape.TEXT: Holds.TEXT,
    Shape.INTEGER: Holds.WHOLE,
    Shape.REAL: Holds.REAL,
    Shape.BYTES: Holds.BYTES,
    Shape.EXACT: Holds.UNTYPED,
    Shape.BIT: Holds.BITS,
    Shape.ENUM: Holds.ENUM,
    Shape.SET: Holds.SET,
    Shape.DATE: Holds.DATE,
    Shape.DATETIME: Holds.DATETIME,
    Shape.TIMESTAMP: Holds.INSTANT,
    Shape.TIME: Holds.TIME,
    Shape.JSON: Holds.JSON,
}


def by_shape(column: Column) -> Holds:
    """What a column holds, as far as its shape says."""
    return _HOLDS[column.shape]


class Unfit(NamedTuple):
    """Why a table can't be written exactly, and the statement that changes that."""

    fact: str
    remedy: str


@dataclass(frozen=True, slots=True)
class TableSchema:
    """A table of the target: columns in order, its handle key, its unique keys (the handle key among them).

    In a unique key "" stands for what is no whole column: a prefix, an expression.
    """

    name: TableName
    columns: tuple[Column, ...]
    handle_key: tuple[str, ...]
    unique_keys: tuple[tuple[str, ...], ...]
    valid_indexes: frozenset[str] = frozenset()
    """The target's names for what could be the handle key; `PRIMARY` for the primary key."""
    unfit: str = ""
    """Why no row may be written here: what the target does with this table can't be right."""
    remedy: str = ""
    """The statement that makes it fit."""
    acting: tuple[str, ...] = ()
    """What the target does by itself when rows are written here, a sentence each: worth a warning."""
    unique_indexes: Mapping[str, tuple[str, ...]] = field(default_factory=dict, hash=False)
    """The columns of all unique indexes but the primary key's, also of those that could not be the handle key, by the
    target's names. A prefix stands with its column."""
    place: TableName | None = None
    """Its name in the target, where `name` is upstream's and another one."""
    origin: Origin = ()
    """Where others of upstream are merged with it: the columns that tell its rows from theirs, and what they hold.
    Columns that it lacks hold their default in its rows."""
    lacked: frozenset[str] = frozenset()
    """The columns that it is known to lack and others have, folded."""
    tells_lacked: bool = False
    """Whether these are all that it lacks."""

    @property
    def here(self) -> TableName:
        """Its name in the target."""
        return self.place or self.name

    def in_target(self) -> "TableSchema":
        """The table by its name in the target."""
        return self if self.place is None else replace(self, name=self.place, place=None)

    def in_upstream(self, name: TableName, origin: Origin = ()) -> "TableSchema":
        """The table by its name upstream, and what tells its rows apart where it is merged with others."""
        found = self if name == self.name else replace(self, name=name, place=self.here)
        return replace(found, origin=origin) if origin else found

    def check_fit(self) -> None:
        """Raise TableMismatchError for a table that can't be written exactly."""
        if self.unfit:
            raise TableMismatchError(f"table {self.name}: {self.unfit}", hint=self.remedy)

    def column(self, name: str) -> Column | None:
        """The column of that name."""
        return next((c for c in self.columns if c.name == name), None)

    def primary_key(self) -> tuple[str, ...]:
        """The primary key's columns."""
        return self.handle_key if "PRIMARY" in self.valid_indexes else ()

    def columns_of(self, index: str) -> tuple[str, ...]:
        """The columns of a unique index, by the target's name in any case; none if there is no such index."""
        if folded(index) == "primary":
            return self.primary_key()
        return next((key for name, key in self.unique_indexes.items() if folded(name) == folded(index)), ())

    @property
    def computes(self) -> bool:
        """Whether the target computes a column."""
        return any(column.generated for column in self.columns)

    def own_columns(self, sent: Sequence[str]) -> list[Column]:
        """The columns that upstream lacks: the target's own, but for those that it generates."""
        return [c for c in self.columns if c.name not in sent and not c.generated]

    def lost_columns(self, sent: Sequence[str]) -> list[Column]:
        """The target's own columns whose values a row would lose that is deleted and inserted again.

        Those that a merged table has for other shards hold their default. Where it is not known which these are, it may
        be any.
        """
        own = [] if self.origin and not self.tells_lacked else self.own_columns(sent)
        return [column for column in own if folded(column.name) not in self.lacked]

    def has_other_unique_keys(self, key: tuple[str, ...]) -> bool:
        """Whether rows can collide on anything but `key`."""
        return any(set(unique) != set(key) for unique in self.unique_keys)

    def deletes_first(self, key: tuple[str, ...]) -> bool:
        """Whether every touched key is deleted before any row is written, which is then a plain INSERT (R5).

        So where rows can collide on another unique key; and where keys that differ in their bytes may be one to the
        target: if upstream tells them apart, replacing one would overwrite the other without a word, while the INSERT
        is refused.
        """
        return self.has_other_unique_keys(key) or any(c.folds for c in self.columns if c.name in key)

    def conflict_hint(self, *, is_conflict: bool) -> str:
        """What to do about a row that the target refuses, maybe because another one has its key."""
        folding = [column.name for column in self.columns if column.folds]
        if is_conflict and folding:
            return (
                f"the collation of {', '.join(folding)} takes values for one that upstream tells apart:"
                " give the column the collation that it has upstream, e.g. utf8mb4_bin, then run again"
            )
        return "make the table's columns and keys as they are upstream, then run again"


def handle_key_of(schema: TableSchema) -> tuple[str, ...]:
    """A table's handle key."""
    return schema.handle_key


def _of_ddl(_: TableName, index: str) -> bool:  # noqa: ARG001
    return True


def _as_upstream(_: TableName, index: str) -> str:
    return index


NO_TABLES: Mapping[TableName, MergedTable] = {}


@dataclass(frozen=True, slots=True)
class _Renaming:
    """Tables by their names upstream, with what is known of those that are merged."""

    merged: Mapping[TableName, MergedTable]

    def __call__(self, schema: TableSchema, name: TableName, origin: Origin) -> TableSchema:
        found = schema.in_upstream(name, origin)
        table = merged_at(self.merged, found.here) if origin else None
        if table is None:
            return found
        lacks = next((parts for shard, parts in table.lacks.items() if shard.folded == name.folded), frozenset[str]())
        own = {column for column, _ in origin}
        columns = (folded(column.name) for column in schema.columns if column.name not in own)
        lacked = frozenset(column for column in columns if f"column {column}" in lacks)
        return replace(found, lacked=lacked, tells_lacked=table.whole)


@dataclass(frozen=True, slots=True)
class Catalog:
    """All tables of the target at one moment."""

    tables: Mapping[TableName, TableSchema]
    index_name: Callable[[TableName, str], str] = _as_upstream
    """What the target calls an index of upstream."""
    empty: frozenset[str] = frozenset()
    """Databases that may hold no table."""
    holds: Callable[[Column], Holds] = by_shape
    """What the values of a column mean to this target."""
    computes_alike: bool = False
    """The target's stored generated columns hold what upstream's do: both are TiDB."""
    is_of_ddl: Callable[[TableName, str], bool] = _of_ddl
    """Whether a DDL has made an index, by its name here; where upstream's names are kept, that is not told."""
    shows_members: bool = True
    """Whether names of ENUM and SET members are as they are; else a ? may stand for another character."""

    def __contains__(self, name: object) -> bool:
        """Whether there is such a table, however its name is spelled; of a merged one, whether it is known."""
        if not isinstance(name, TableName) or self.spelled(name) not in self.tables:
            return False
        return not (isinstance(self.tables, RoutedTables) and self.tables.is_unmet(name))

    def get(self, name: TableName) -> TableSchema | None:
        """The table, or None."""
        return self.tables.get(name)

    def spelled(self, name: TableName) -> TableName:
        """The table as the target spells it: upstream's names don't tell case apart (see `spelled`)."""
        found = spelled(name, self.tables)
        return found if found in self.tables else TableName(self.database(name.database), name.table)

    def database(self, name: str) -> str:
        """The database as the target spells it."""
        databases = self.empty | {table.database for table in self.tables}
        same = {database for database in databases if folded(database) == folded(name)}
        return same.pop() if name not in databases and len(same) == 1 else name

    def routed(self, names: NameMap, merged: Mapping[TableName, MergedTable] = NO_TABLES) -> "Catalog":
        """The same tables by their names upstream. `merged`: what is known of tables in which several are merged."""
        return replace(self, tables=RoutedTables(self.tables, names, _Renaming(merged)))

    def databases_with(self, table: str) -> Iterator[str]:
        """The databases that hold a table of that name, in any case."""
        return (name.database for name in self.tables if folded(name.table) == folded(table))


def spelled(name: TableName, tables: Collection[TableName]) -> TableName:
    """The one of these tables that a name means: itself, else the only one that differs by case alone.

    TiDB's names fold case, DDL may spell them as it likes, and after a RENAME TiCDC spells databases in lower case.
    """
    if isinstance(tables, RoutedTables):
        return tables.spelled(name)
    if name in tables:
        return name
    same = [table for table in tables if table.folded == name.folded]
    return same[0] if len(same) == 1 else name


def trigger_acts(table: TableName, trigger: str) -> str:
    """What to say of a trigger that runs when rows are written."""
    return f"trigger {trigger} on {table} will run for every row that is written, deleted or replaced"


def computes(table: TableName, columns: Iterable[Column]) -> tuple[str, ...]:
    """What to say of stored generated columns where our own DDL makes plain ones of upstream's."""
    return tuple(computed(table, column.name) for column in columns if column.generated and not column.virtual)


def computed(table: TableName, column: str) -> str:
    """What to say of a column that the target computes while upstream sends its values."""
    said = "is computed by the target: values that upstream sends for it are not written, `verify` compares them"
    return f"column {column} of {table} {said}"


def choose_handle_key(
    primary: tuple[str, ...], uniques: Mapping[str, tuple[str, ...]], columns: Mapping[str, Column]
) -> tuple[str, ...]:
    """The primary key, else of the unique indexes whose columns are all NOT NULL and stored that with fewest columns.

    Of several the one made first: `uniques` are in the order in which they were made, an index over a prefix among
    them with its columns. TiCDC's choice (`findHandleIndex` in tiflow, `initIndexColumns` in ticdc), which takes the
    lowest id. Empty where there is none.
    """
    return primary or min((uniques[name] for name in _valid(uniques, columns)), key=len, default=())


def valid_indexes(
    primary: tuple[str, ...], uniques: Mapping[str, tuple[str, ...]], columns: Mapping[str, Column]
) -> frozenset[str]:
    """The names of all indexes that could be the handle key; `PRIMARY` for the primary key."""
    return frozenset([*_valid(uniques, columns), *(["PRIMARY"] if primary else [])])


def _valid(uniques: Mapping[str, tuple[str, ...]], columns: Mapping[str, Column]) -> Iterator[str]:
    for name, key in uniques.items():
        if key and all(c in columns and not (columns[c].nullable or columns[c].virtual) for c in key):
            yield name
