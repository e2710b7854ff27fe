"""Keys that upstream has dropped and the target has kept: the loss of a table's last valid index is not replicated.

Once another index becomes the key, rows may be equal in the columns of the kept one, and would replace each other.
Which were kept stands in the progress (`ordering.kept_keys`). Pure.
"""

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace

from ordering.errors import TargetError
from ordering.events import DdlEvent, TableName, folded
from ordering.kept_keys import NOT_YET, KeptKey, KeptKeys, present
from sinks.ddl.model import (
    AddColumn,
    AddIndex,
    Change,
    ChangeColumn,
    DropColumn,
    DropIndex,
    IndexDef,
    IndexKind,
    Passed,
    RenameColumn,
    RenameIndex,
    TableDef,
)
from sinks.ddl.parse.statement import DdlKind, Statement, TableReference, named, named_tables, read_statement
from sinks.ddl.parse.tables import read_changes, read_dropped_index, read_index, read_table
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
        in_the_way -= {folded(index.known_as) for index in _made(changes) if is_as_made(index, schema, catalog)}
    found = (_lost(ddl, name, keys[name], schema, catalog) for name in sorted(in_the_way))
    return [lost for lost in found if lost is not None and (_is_there(lost, schema, catalog) or lost.ddl.sql in begun)]


def _lost(ddl: DdlEvent, name: str, key: KeptKey, schema: TableSchema, catalog: Catalog) -> LostKey | None:
    columns = schema.columns_of(_here(name, schema, catalog))
    is_other = bool(columns) and {folded(column) for column in columns} != key.columns
    return LostKey(name, replace(ddl, sql=_drop(ddl.table, name), replicated=""), columns if is_other else ())


def _is_there(lost: LostKey, schema: TableSchema, catalog: Catalog) -> bool:
    return bool(schema.columns_of(_here(lost.name, schema, catalog)))


def _here(name: str, schema: TableSchema, catalog: Catalog) -> str:
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
    new = ({folded(part.column) for part in index.parts} for index in _made(changes) if index.kind is IndexKind.UNIQUE)
    gone = {folded(_here(c.name, schema, catalog)) for c in changes if isinstance(c, DropIndex)}
    there = {name: set(map(folded, key)) for name, key in schema.unique_indexes.items() if folded(name) not in gone}
    return (
        any(index.kind is IndexKind.PRIMARY for index in _made(changes))
        or any(key <= known - after for key in new)
        or any("" not in key and key & before and not key & after for key in there.values())
    )


def _made(changes: Iterable[Change]) -> list[IndexDef]:
    return [change.index for change in changes if isinstance(change, AddIndex)]


def _taken(changes: Iterable[Change]) -> set[str]:
    """Names that indexes get."""
    made = {index.known_as for index in _made(changes)}
    return set(map(folded, made | {change.new for change in changes if isinstance(change, RenameIndex)}))


def is_as_made(index: IndexDef, schema: TableSchema, catalog: Catalog) -> bool:
    """Whether the table has it as it would be made: it stays."""
    if index.if_missing or not (index.name or index.kind is IndexKind.PRIMARY) or not index.kind.unique:
        return False
    there = schema.columns_of(_here(folded(index.known_as), schema, catalog))
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


def kept_after(
    kept: KeptKeys, ddl: DdlEvent, left_out: Collection[str], catalog: Catalog, *, is_done: bool = True
) -> KeptKeys:
    """What is kept after a DDL. `left_out`: the indexes whose drops are; `catalog`: from before it, but after a crash.

    `is_done`: whether the target has what it says. If not, what it drops or replaces upstream stays here. Raises
    InputError.
    """
    if not kept and not left_out and is_done:
        return kept
    statement = read_statement(ddl.sql)
    found = {table: dict(keys) for table, keys in kept.items()}
    if statement.renames:
        for (old, _), before, after in zip(statement.renames, ddl.removes, ddl.adds, strict=True):
            moved = _held(old, before, after, found, catalog)
            found[after.folded] = found.pop(moved.folded, {})
    elif statement.kind is DdlKind.CREATE_TABLE:
        own = TableName(statement.tables[0].database or ddl.database, statement.tables[0].table)
        model = None if statement.like is None else _model(statement.like, ddl, own, catalog)
        found[own.folded] = {} if model is None else found.get(model.folded, {})
        if model is None and not is_done:
            found[own.folded] = _unlike(read_table(ddl.sql), catalog.get(catalog.spelled(own)), ddl.commit_ts)
    elif statement.kind is DdlKind.OTHER and statement.tables:
        _recovered(ddl, found)
    else:
        own = TableName(ddl.database, ddl.table)
        found[own.folded] = _altered(found.get(own.folded, {}), ddl, left_out, catalog, is_done=is_done)
    return present(found)


def _held(old: TableReference, before: TableName, after: TableName, kept: KeptKeys, catalog: Catalog) -> TableName:
    """The old name of a renamed table. After a crash it is gone, and where its database is not named, what is tells."""
    if old.database is not None or before not in catalog or after not in catalog:
        return before
    gone = [name for name in kept if name.table == before.folded.table and name not in catalog]
    return gone[0] if len(gone) == 1 else before


def _model(like: TableReference, ddl: DdlEvent, own: TableName, catalog: Catalog) -> TableName:
    """The table that a new one is made like; the new one is there already after a crash."""
    told = like.database or dict(ddl.olders).get(folded(like.table))
    holders = {d for d in catalog.databases_with(like.table) if TableName(d, like.table).folded != own.folded}
    return TableName(told or (holders.pop() if len(holders) == 1 else ddl.database), like.table)


def _recovered(ddl: DdlEvent, kept: dict[TableName, dict[str, KeptKey]]) -> None:
    """A table that comes back has what it had when it was dropped, maybe under another name."""
    _, (old, *new) = named_tables(ddl.sql)
    names = [named(replace(one.reference, database=one.reference.database or ddl.database)) for one in (old, *new)]
    kept[names[-1].folded] = dict(kept.get(names[0].folded, {}))


def valid_keys(table: TableDef) -> list[frozenset[str]]:
    """The columns, folded, of each index by which upstream may tell a table's rows apart."""
    sound = {folded(column.name) for column in table.columns if not (column.nullable or column.virtual)}
    keys = ({folded(part.column) for part in index.parts} for index in table.indexes if index.kind is IndexKind.UNIQUE)
    primary = frozenset(map(folded, table.primary_key))
    return [*([primary] if primary else []), *(frozenset(key) for key in keys if key <= sound)]


def unique_keys(table: TableDef) -> list[frozenset[str]]:
    """The columns, folded, in which two rows of upstream are equal in NULL alone, if at all: no key here holds that."""
    return [frozenset(folded(part.column) for part in index.parts) for index in table.indexes if index.kind.unique]


def _unlike(made: TableDef, there: TableSchema | None, commit_ts: int) -> dict[str, KeptKey]:
    """The keys of a table that is there, and not as upstream has made it, in which upstream's rows may be equal."""
    if there is None:
        return {}
    keys, own = unique_keys(made), {folded(column) for column, _ in there.origin}
    found = {folded(name): _columns_of(name, there) for name in there.unique_indexes}
    return {
        name: KeptKey(columns, commit_ts, stays=True)
        for name, columns in found.items()
        if not any(key <= columns - own for key in keys)
    }


def _columns_of(index: str, schema: TableSchema) -> frozenset[str]:
    return frozenset(map(folded, schema.columns_of(index)))


def _altered(
    keys: Mapping[str, KeptKey], ddl: DdlEvent, left_out: Collection[str], catalog: Catalog, *, is_done: bool
) -> dict[str, KeptKey]:
    """A table's kept keys after a statement about it."""
    schema = catalog.get(catalog.spelled(TableName(ddl.database, ddl.table)))
    changes = list(changes_of(read_statement(ddl.sql)))
    found = dict(keys)
    if schema is not None:
        for name in left_out:
            columns = _columns_of(_here(name, schema, catalog), schema)
            found |= {folded(name): KeptKey(columns, ddl.commit_ts)} if columns else {}
        found = _once_renamed(found, changes, ddl.commit_ts, schema, catalog)
        found = found if is_done else _staying(found, changes, ddl.commit_ts, schema, catalog)
    renamed, gone = _columns_after(changes)
    made = {folded(index.known_as) for index in _made(changes)}
    made |= {folded(change.new) for change in changes if isinstance(change, RenameIndex)}
    found = {
        name: replace(key, columns=frozenset(renamed.get(column, column) for column in key.columns - gone))
        for name, key in found.items()
        if not (is_done and name in made and key.commit_ts != NOT_YET)
    }
    return {name: key for name, key in _had_again(found, changes, schema, catalog).items() if key.columns}


def _had_again(
    keys: Mapping[str, KeptKey], changes: Iterable[Change], schema: TableSchema | None, catalog: Catalog
) -> dict[str, KeptKey]:
    """A table's kept keys once upstream has made keys over columns of theirs: one is not lost until that is dropped."""

    def is_taken(name: str) -> bool:
        return schema is not None and bool(schema.columns_of(_here(name, schema, catalog)))

    made = [index.named(is_taken) for index in _made(changes) if keys and index.kind.unique]
    found = dict(keys)
    for name, key in keys.items():
        within = (folded(i.name) for i in made if {folded(part.column) for part in i.parts} <= key.columns)
        holder = next((one for one in within if one == name or one not in found), None)
        if holder is not None and key.commit_ts != NOT_YET:
            del found[name]
            found[holder] = replace(key, commit_ts=NOT_YET, stays=True)
    return found


def _staying(
    keys: Mapping[str, KeptKey], changes: Iterable[Change], at: int, schema: TableSchema, catalog: Catalog
) -> dict[str, KeptKey]:
    """A table's kept keys after a DDL that is left out at a commitTs: what it drops stays, what it renames, too."""
    found = dict(keys)
    for change in changes:
        if isinstance(change, DropIndex) and folded(change.name) != _PRIMARY:
            columns = _columns_of(_here(change.name, schema, catalog), schema)
            if columns and folded(change.name) not in found:
                found[folded(change.name)] = KeptKey(columns, at, stays=True)
        elif isinstance(change, RenameIndex):
            columns = _columns_of(_here(change.old, schema, catalog), schema)
            if columns and folded(change.old) not in found:
                found[folded(change.new)] = KeptKey(columns, NOT_YET, stays=True)
    return found


def _once_renamed(
    keys: Mapping[str, KeptKey], changes: Iterable[Change], at: int, schema: TableSchema, catalog: Catalog
) -> dict[str, KeptKey]:
    """A table's kept keys after a DDL at a commitTs about indexes that have another name here than upstream."""
    found = dict(keys)
    for change in changes:
        name = folded(change.old if isinstance(change, RenameIndex) else getattr(change, "name", ""))
        known = found.get(name)
        if known is None or known.commit_ts != NOT_YET:
            continue
        if isinstance(change, RenameIndex):
            found[folded(change.new)] = found.pop(name)
        elif isinstance(change, DropIndex) and _is_only_one(_here(name, schema, catalog), known, schema):
            del found[name]  # somebody has renamed it since
        elif isinstance(change, DropIndex):
            found[name] = replace(known, commit_ts=at)
    return found


def _is_only_one(index: str, key: KeptKey, schema: TableSchema) -> bool:
    """Whether the target has an index, and no other one over all columns of a kept key."""
    names = ["PRIMARY", *schema.unique_indexes]
    others = (schema.columns_of(name) for name in names if folded(name) != folded(index))
    return bool(schema.columns_of(index)) and all(set(map(folded, columns)) != key.columns for columns in others)


def _columns_after(changes: Iterable[Change]) -> tuple[dict[str, str], set[str]]:
    """Old and new names of columns, and those that are gone."""
    renamed: dict[str, str] = {}
    gone: set[str] = set()
    for change in changes:
        if isinstance(change, RenameColumn):
            renamed[folded(change.old)] = folded(change.new)
        elif isinstance(change, ChangeColumn):
            renamed[folded(change.old)] = folded(change.column.name)
        elif isinstance(change, DropColumn):
            gone.add(folded(change.name))
    return renamed, gone
