"""What a target keeps of upstream's dropped keys after a DDL, executed or left out: see `lost_keys`. Pure."""

import re
from collections.abc import Collection, Iterable, Mapping
from dataclasses import replace

from consumer.ddl.lost_keys import changes_of, indexes_made, name_here, parts_of
from ordering.events import DdlEvent, TableName, folded
from ordering.kept_keys import NOT_YET, KeptKey, KeptKeys, present
from sinks.ddl.model import Change, ChangeColumn, DropColumn, DropIndex, RenameColumn, RenameIndex
from sinks.ddl.parse.statement import DdlKind, TableReference, named, named_tables, read_statement
from sinks.ddl.parse.tables import read_table
from sinks.rows.schema import Catalog, TableSchema

_PRIMARY = "primary"
_NUMBERED = re.compile(r"(.+)_\d+")


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
        first: dict[TableName, TableName] = {}
        for (old, _), before, after in zip(statement.renames, ddl.removes, ddl.adds, strict=True):
            moved = _held(old, before, after, found, catalog)
            first[after.folded] = origin = first.pop(moved.folded, moved)
            had = found.pop(moved.folded, {})
            found[after.folded] = had if is_done else had | _not_like(origin, after, had, ddl.commit_ts, catalog)
    elif statement.kind is DdlKind.CREATE_TABLE:
        own = TableName(statement.tables[0].database or ddl.database, statement.tables[0].table)
        model = None if statement.like is None else _model(statement.like, ddl, own, catalog)
        found[own.folded] = had = {} if model is None else found.get(model.folded, {})
        if model is None and not is_done:
            there = catalog.get(catalog.spelled(own))
            made = {i.known_as: parts_of(i) for i in read_table(ddl.sql).indexes if i.kind.unique}
            found[own.folded] = _unlike(made, there, ddl.commit_ts, catalog)
        elif model is not None and not is_done:
            found[own.folded] = had | _not_like(model, own, had, ddl.commit_ts, catalog)
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


def _not_like(
    model: TableName, name: TableName, lost: Mapping[str, KeptKey], commit_ts: int, catalog: Catalog
) -> dict[str, KeptKey]:
    """The keys of a table that is there, while upstream's of this name is what the model is, or like that.

    `lost`: what the model has kept. Of a model that is not there no key is known.
    """
    schema = catalog.get(catalog.spelled(model))
    there = catalog.get(catalog.spelled(name))
    gone = [key.columns for key in lost.values() if key.commit_ts != NOT_YET]
    keys = [] if schema is None else [_columns_of(index, schema) for index in ("PRIMARY", *schema.unique_indexes)]
    known = [key for key in keys if key and key not in gone]
    found = {} if there is None else _unlike_any(known, there)
    return {index: KeptKey(columns, commit_ts, stays=True) for index, columns in found.items()}


def _unlike(
    keys: Mapping[str, frozenset[str]], there: TableSchema | None, commit_ts: int, catalog: Catalog
) -> dict[str, KeptKey]:
    """The keys of a table that is there, and not as upstream has made it, in which upstream's rows may be equal.

    Or will be, once upstream drops its own key over these columns, which has another name here.
    """
    if there is None:
        return {}
    lost = _unlike_any(keys.values(), there)
    found = {name: KeptKey(columns, commit_ts, stays=True) for name, columns in lost.items()}
    for name, columns in keys.items():
        if not there.columns_of(name_here(name, there, catalog)):
            alike = (_columns_of(other, there) for other in there.unique_indexes if folded(other) not in lost)
            held = next((other for other in alike if columns <= other), None)
            found |= {} if held is None else {folded(name): KeptKey(held, NOT_YET, stays=True)}
    return found


def _unlike_any(keys: Collection[frozenset[str]], there: TableSchema) -> dict[str, frozenset[str]]:
    """The columns of those unique indexes in which rows may be equal that are told apart by some of these keys."""
    own = {folded(column) for column, _ in there.origin}
    found = {folded(name): _columns_of(name, there) for name in there.unique_indexes}
    return {name: columns for name, columns in found.items() if not any(key <= columns - own for key in keys)}


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
            columns = _columns_of(name_here(name, schema, catalog), schema)
            found |= {folded(name): KeptKey(columns, ddl.commit_ts)} if columns else {}
        found = _once_renamed(found, changes, ddl.commit_ts, schema, catalog)
        found = found if is_done else _staying(found, changes, ddl.commit_ts, schema, catalog)
    renamed, gone = _columns_after(changes)
    made = {folded(index.known_as) for index in indexes_made(changes)}
    made |= {folded(change.new) for change in changes if isinstance(change, RenameIndex)}
    found = {
        name: replace(key, columns=frozenset(renamed.get(column, column) for column in key.columns - gone))
        for name, key in found.items()
        if not (is_done and name in made and _is_replaced(name, key, schema, catalog))
    }
    return {name: key for name, key in _had_again(found, changes, schema, catalog).items() if key.columns}


def _had_again(
    keys: Mapping[str, KeptKey], changes: Iterable[Change], schema: TableSchema | None, catalog: Catalog
) -> dict[str, KeptKey]:
    """A table's kept keys once upstream has made keys over columns of theirs: one is not lost until that is dropped."""

    def is_taken(name: str) -> bool:
        return schema is not None and bool(schema.columns_of(name_here(name, schema, catalog)))

    made = [index.named(is_taken) for index in indexes_made(changes) if keys and index.kind.unique]
    found = dict(keys)
    for name, key in keys.items():
        within = (folded(i.name) for i in made if parts_of(i) <= key.columns)
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
        if isinstance(change, DropIndex):
            for columns in _dropped(folded(change.name), schema, catalog):
                _note(found, folded(change.name), KeptKey(columns, at, stays=True))
        elif isinstance(change, RenameIndex):
            columns = _columns_of(name_here(change.old, schema, catalog), schema)
            if columns and folded(change.old) not in found:
                found[folded(change.new)] = KeptKey(columns, NOT_YET, stays=True)
    return found


def _dropped(name: str, schema: TableSchema, catalog: Catalog) -> list[frozenset[str]]:
    """The columns of the unique index that upstream drops, or of each that may be that: made by hand, by any name."""
    there = _columns_of(name_here(name, schema, catalog), schema)
    if there or "PRIMARY" in schema.valid_indexes:  # a primary key that no message names is refused anyway
        return [there] if there and name != _PRIMARY else []
    return [_columns_of(one, schema) for one in schema.valid_indexes if not catalog.is_of_ddl(schema.here, one)]


def _note(found: dict[str, KeptKey], name: str, key: KeptKey) -> None:
    """Add a key to those that are kept. One over other columns that had its name stays under a name of its own."""
    known = found.get(name)
    if known is not None and known.columns != key.columns:
        own = f"{name}'"
        while own in found:
            own += "'"
        found[own] = found.pop(name)
        known = None
    found[name] = known or key


def _is_replaced(name: str, key: KeptKey, schema: TableSchema | None, catalog: Catalog) -> bool:
    """Whether an index of its name that is made takes a kept key's place here."""
    if key.commit_ts == NOT_YET:
        return False
    return not key.stays or schema is None or _columns_of(name_here(name, schema, catalog), schema) == key.columns


def _once_renamed(
    keys: Mapping[str, KeptKey], changes: Iterable[Change], at: int, schema: TableSchema, catalog: Catalog
) -> dict[str, KeptKey]:
    """A table's kept keys after a DDL at a commitTs about indexes that have another name here than upstream."""
    found = dict(keys)
    for change in changes:
        given = folded(change.old if isinstance(change, RenameIndex) else getattr(change, "name", ""))
        name = _kept_name(given, found, schema, catalog)
        known = found.get(name)
        if known is None or known.commit_ts != NOT_YET:
            continue
        if isinstance(change, RenameIndex):
            found[folded(change.new)] = found.pop(name)
        elif isinstance(change, DropIndex) and _is_only_one(name_here(given, schema, catalog), known, schema):
            del found[name]  # somebody has renamed it since
        elif isinstance(change, DropIndex):
            found[name] = replace(known, commit_ts=at)
    return found


def _kept_name(name: str, kept: Mapping[str, KeptKey], schema: TableSchema, catalog: Catalog) -> str:
    """Under what a kept key stands; upstream numbers a name that it has chosen itself, where another index has it."""
    numbered = _NUMBERED.fullmatch(name)
    is_known = name in kept or bool(schema.columns_of(name_here(name, schema, catalog)))
    return numbered[1] if numbered and not is_known else name


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
