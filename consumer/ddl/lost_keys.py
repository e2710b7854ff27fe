"""Keys that upstream has dropped and the target has kept: the loss of a table's last valid index is not replicated.

Once another index becomes the key, rows may be equal in the columns of the kept one, and would replace each other.
Which were kept stands in the progress (`ordering.kept_keys`). Pure.
"""

from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass, replace

from ordering.errors import TargetError
from ordering.events import DdlEvent, TableName, folded
from ordering.kept_keys import KeptKey, KeptKeys, present
from sinks.ddl.model import (
    AddColumn,
    AddIndex,
    Change,
    ChangeColumn,
    DropIndex,
    IndexDef,
    IndexKind,
    Passed,
    RenameIndex,
    TableDef,
)
from sinks.ddl.parse.statement import DdlKind, Statement, read_statement
from sinks.ddl.parse.tables import read_changes, read_dropped_index, read_index
from sinks.ddl.ticdc_allow_list import Event, clauses_of
from sinks.rows.schema import Catalog, TableSchema

WHY_KEPT = "it drops the last valid index of table"
"""How the DDL log says why such a DDL was left out."""
_PRIMARY = "primary"


@dataclass(frozen=True, slots=True)
class LostKey:
    """A kept key that is to be dropped, by a DDL of its own. `other_columns`: the index of its name is another one."""

    name: str
    ddl: DdlEvent
    other_columns: tuple[str, ...] = ()

    def check(self) -> None:
        """Raise TargetError for an index that is not the one that was kept: whose it is, an operator has to say."""
        if self.other_columns:
            table = TableName(self.ddl.database, self.ddl.table)
            raise TargetError(
                f"upstream makes another key, and index {self.name!r} of {table} is not the one that was kept when"
                f" upstream dropped it: it is over {', '.join(self.other_columns)} now",
                hint="if rows may be equal in these columns upstream, drop it by hand; else leave this DDL out",
            )


def changes_of(statement: Statement) -> Iterator[Change]:
    """The clauses of a statement about one table. Raises InputError."""
    if statement.kind is DdlKind.CREATE_INDEX:
        yield AddIndex(read_index(statement.sql))
    elif statement.kind is DdlKind.DROP_INDEX:
        yield DropIndex(read_dropped_index(statement.sql))
    elif statement.kind is DdlKind.ALTER_TABLE and not statement.renames:
        yield from read_changes(statement.sql)


def dropped_indexes(sql: str) -> set[str]:
    """The indexes that a statement drops, as it spells them. Raises InputError."""
    return {change.name for change in changes_of(read_statement(sql)) if isinstance(change, DropIndex)}


def lost_keys(ddl: DdlEvent, kept: KeptKeys, catalog: Catalog, begun: Collection[str]) -> list[LostKey]:
    """What is to be dropped before a DDL that makes another key, or takes a kept one's name.

    `begun`: statements of this commitTs that a run has begun and not ended. Raises InputError.
    """
    keys = kept.get(TableName(ddl.database, ddl.table).folded, {})
    keys = {name: key for name, key in keys.items() if key.commit_ts <= ddl.commit_ts and not key.stays}
    schema = catalog.get(catalog.spelled(TableName(ddl.database, ddl.table)))
    if not keys or schema is None:
        return []
    changes = list(changes_of(read_statement(ddl.sql)))
    in_the_way = set(keys) if makes_key(schema, changes, catalog) else set(keys) & _taken(changes)
    # beside others the target would refuse it as one that is there
    if len(changes) == 1 or keeps_primary_key(ddl.sql, schema, catalog):
        in_the_way -= {folded(index.known_as) for index in indexes_made(changes) if is_as_made(index, schema, catalog)}
    found = (_lost(ddl, name, keys[name], schema, catalog) for name in sorted(in_the_way))
    return [lost for lost in found if lost is not None and (_is_there(lost, schema, catalog) or lost.ddl.sql in begun)]


def _lost(ddl: DdlEvent, name: str, key: KeptKey, schema: TableSchema, catalog: Catalog) -> LostKey | None:
    columns = schema.columns_of(name_here(name, schema, catalog))
    is_other = bool(columns) and {folded(column) for column in columns} != key.columns
    return LostKey(name, replace(ddl, sql=_drop(ddl.table, name), replicated=""), columns if is_other else ())


def _is_there(lost: LostKey, schema: TableSchema, catalog: Catalog) -> bool:
    return bool(schema.columns_of(name_here(lost.name, schema, catalog)))


def name_here(name: str, schema: TableSchema, catalog: Catalog) -> str:
    """What the target calls an index."""
    return "PRIMARY" if folded(name) == _PRIMARY else catalog.index_name(schema.here, name)


def makes_key(schema: TableSchema, changes: Collection[Change], catalog: Catalog) -> bool:
    """Whether clauses make a valid index, or one valid: those of its columns that may be NULL may not any more."""
    before = {folded(column.name) for column in schema.columns if column.nullable or column.virtual}
    known = {folded(column.name) for column in schema.columns}
    after = set(before)
    for change in changes:
        if isinstance(change, AddColumn | ChangeColumn):
            names = {folded(change.column.name), *([folded(change.old)] if isinstance(change, ChangeColumn) else [])}
            known |= names
            is_open = change.column.nullable or change.column.virtual
            after = after | names if is_open else after - names
    new = (parts_of(index) for index in indexes_made(changes) if index.kind is IndexKind.UNIQUE)
    gone = {folded(name_here(c.name, schema, catalog)) for c in changes if isinstance(c, DropIndex)}
    there = {name: set(map(folded, key)) for name, key in schema.unique_indexes.items() if folded(name) not in gone}
    return (
        any(index.kind is IndexKind.PRIMARY for index in indexes_made(changes))
        or any(key <= known - after for key in new)
        or any("" not in key and key & before and not key & after for key in there.values())
    )


def indexes_made(changes: Iterable[Change]) -> list[IndexDef]:
    """The indexes that clauses make."""
    return [change.index for change in changes if isinstance(change, AddIndex)]


def _taken(changes: Iterable[Change]) -> set[str]:
    """Names that indexes get."""
    made = {index.known_as for index in indexes_made(changes)}
    return set(map(folded, made | {change.new for change in changes if isinstance(change, RenameIndex)}))


def is_as_made(index: IndexDef, schema: TableSchema, catalog: Catalog) -> bool:
    """Whether the table has it as it would be made: it stays."""
    if index.if_missing or not (index.name or index.kind is IndexKind.PRIMARY) or not index.kind.unique:
        return False
    there = schema.columns_of(name_here(folded(index.known_as), schema, catalog))
    is_whole = there in schema.unique_keys and all(part.length is None for part in index.parts)  # of a prefix: ""
    if index.kind is IndexKind.PRIMARY and len(schema.unique_keys) > 1 + len(schema.unique_indexes):
        return False  # a primary key over a prefix is listed once more, as what is no whole column
    return is_whole and list(map(folded, there)) == [folded(part.column) for part in index.parts]


def keeps_primary_key(sql: str, schema: TableSchema, catalog: Catalog) -> bool:
    """Whether all that a statement asks for is the primary key that the table has: it is left out. Raises InputError.

    A DROP before it was not allowed to drop that key.
    """
    if clauses_of(sql).events != (Event.ADD_PRIMARY_KEY,) or "PRIMARY" not in schema.valid_indexes:
        return False
    changes = [change for change in read_changes(sql) if not isinstance(change, Passed)]
    return len(changes) == 1 and isinstance(changes[0], AddIndex) and is_as_made(changes[0].index, schema, catalog)


def _drop(table: str, name: str) -> str:
    key = "PRIMARY KEY" if name == _PRIMARY else f"INDEX {quoted(name)}"
    return f"ALTER TABLE {quoted(table)} DROP {key}"


def quoted(name: str) -> str:
    """A name as TiCDC's statements have it."""
    return f"`{name.replace('`', '``')}`"


def without(kept: KeptKeys, ddl: DdlEvent, name: str) -> KeptKeys:
    """What is left once a kept key of the DDL's table is dropped, or is to stay for good."""
    table = TableName(ddl.database, ddl.table).folded
    return present({**kept, table: {index: key for index, key in kept.get(table, {}).items() if index != name}})


def valid_keys(table: TableDef) -> list[frozenset[str]]:
    """The columns, folded, of each index by which upstream may tell a table's rows apart."""
    sound = {folded(column.name) for column in table.columns if not (column.nullable or column.virtual)}
    keys = ({folded(part.column) for part in index.parts} for index in table.indexes if index.kind is IndexKind.UNIQUE)
    primary = frozenset(map(folded, table.primary_key))
    return [*([primary] if primary else []), *(frozenset(key) for key in keys if key <= sound)]


def unique_keys(table: TableDef) -> list[frozenset[str]]:
    """The columns, folded, in which two rows of upstream are equal in NULL alone, if at all: no key here holds that."""
    return [parts_of(index) for index in table.indexes if index.kind.unique]


def parts_of(index: IndexDef) -> frozenset[str]:
    """The columns of an index, folded."""
    return frozenset(folded(part.column) for part in index.parts)
