"""From a DDL message to a DdlEvent: which tables it takes away, which it brings, and whether it is to be executed."""

from collections.abc import Collection, Iterable, Sequence
from dataclasses import replace

from consumer.config.changefeed_filter import ChangefeedFilter
from consumer.ddl import rename_filter
from consumer.ddl.guard import check_whole, reading, subjects
from consumer.ddl.lost_keys import WHY_KEPT, changes_of, keeps_primary_key, makes_key, quoted, valid_keys
from consumer.ddl.rename_filter import Pair
from consumer.ddl.trial_parse import check_time
from consumer.filters.tables import TableFilter
from consumer.tasks.report import RawDdl
from ordering.errors import InputError
from ordering.events import DdlEvent, TableName, folded
from ordering.timestamps import CommitTs
from sinks.ddl.model import AddColumn, AddIndex, Change, ChangeColumn, DropColumn, DropIndex
from sinks.ddl.parse.left_out import without, without_idle
from sinks.ddl.parse.statement import (
    MALFORMED,
    DdlKind,
    Statement,
    TableReference,
    as_meant,
    exchange_of,
    read_statement,
)
from sinks.ddl.parse.tables import read_table
from sinks.ddl.ticdc_allow_list import Clauses, Event, clauses_of, replicates
from sinks.rows.schema import Catalog, TableSchema

WHY_THERE = "it makes a primary key that is there already"
"""How the DDL log says why such a DDL was left out: upstream had dropped the key, the target had kept it."""

NO_INDEX = "has no valid index, and filter.force-replicate is false"
"""How the DDL log says why a DDL of such a table was left out."""


def no_index(name: TableName) -> str:
    """Why a DDL of a table is left out."""
    return f"table {name} {NO_INDEX}"


def understood(raw: RawDdl, catalog: Catalog, carried: Iterable[TableName]) -> DdlEvent:
    """Read the statement. An unqualified old name belongs to the one table so named that the message's topic carries.

    One that can't be read takes and brings no table; that is told when its turn comes, for rows may come before it.
    """

    def older(reference: TableReference, new: TableReference | None) -> str:
        goal = (new.database or raw.database, new.table.lower()) if new else None
        before = [t for t in carried if (t.database, t.table.lower()) != goal]  # the goal's rows come later
        own = {t.database for t in before}
        carriers = {t.database for t in before if t.table.lower() == reference.table.lower()}
        holders = carriers or {d for d in catalog.databases_with(reference.table) if not own or d in own}
        return holders.pop() if len(holders) == 1 and raw.database not in holders else raw.database

    sql = as_meant(raw.sql, raw.database)
    try:
        check_time(sql)
        read = read_statement(sql)
        goals = dict(read.renames)
        statement = read.placed(raw.database, lambda old: older(old, goals.get(old)))
    except (InputError, *MALFORMED):
        statement = Statement(sql, DdlKind.OTHER)
    return DdlEvent(
        position=raw.position,
        commit_ts=CommitTs(raw.commit_ts),
        type=raw.type,
        database=raw.database,
        table=raw.table,
        sql=sql,
        removes=statement.removes(),
        adds=statement.adds(),
        drops_database=statement.database if statement.kind is DdlKind.DROP_DATABASE else None,
    )


def why_ignored(ddl: DdlEvent, waiting: Iterable[DdlEvent], wanted: ChangefeedFilter, catalog: Catalog) -> str:
    """Why the DDL is not executed, as TiCDC would not; "" if it is. `waiting`: all DDLs still to be executed.

    Raises InputError with the position for a RENAME into the filter and a statement that can't be read.
    """
    with reading(ddl):
        statement = read_statement(ddl.sql)
        because = _judged(ddl, [one for one in waiting if one.commit_ts == ddl.commit_ts], wanted, catalog)
        if not because:
            check_whole(ddl, statement, wanted.tables)
        return because


def _judged(ddl: DdlEvent, together: Sequence[DdlEvent], wanted: ChangefeedFilter, catalog: Catalog) -> str:
    clauses = clauses_of(ddl.sql)
    renamed = _renamed(ddl)
    if renamed:
        # what one statement renames comes as several messages with one commitTs: each DDL has its own otherwise
        because = rename_filter.why_ignored(renamed, [p for one in together for p in _renamed(one)], wanted.tables)
    else:
        because = "filter.rules leave it out" if is_left_out(ddl, wanted.tables) else ""
    if because:
        return because
    if not clauses.events:
        return f"TiCDC's list of DDLs to replicate does not hold it: {', '.join(clauses.unlisted)}"
    if renamed:
        whys = [_why_not(pair, ddl, clauses, wanted, catalog) for pair in renamed]
        return whys[0] if all(whys) else ""
    here = TableName(ddl.database, ddl.table)
    ignored = (wanted.events.ignores_ddl(*name, clauses.events, ddl.sql) for name in both_sides(ddl) or [here])
    return next(filter(None, ignored), "") or _without_index(here, ddl, clauses, wanted, catalog)


def _renamed(ddl: DdlEvent) -> list[Pair]:
    """Old and new names of a RENAME."""
    return list(zip(ddl.removes, ddl.adds, strict=True)) if ddl.removes and ddl.adds else []


def _why_not(pair: Pair, ddl: DdlEvent, clauses: Clauses, wanted: ChangefeedFilter, catalog: Catalog) -> str:
    """Why one of the renames of a DDL is left out, as it is where it comes as a message of its own; "" if it is not."""
    sql = _rename_of([pair]) if len(ddl.adds) > 1 else ddl.sql
    ignored = wanted.events.ignores_ddl(*pair[0], clauses.events, sql)
    return ignored or _without_index(pair[0], ddl, clauses, wanted, catalog)


def _rename_of(pairs: Iterable[Pair]) -> str:
    """The statement, as TiCDC spells it."""
    listed = (" TO ".join(f"{quoted(name.database)}.{quoted(name.table)}" for name in pair) for pair in pairs)
    return f"RENAME TABLE {', '.join(listed)}"


def _without_ignored_renames(ddl: DdlEvent, wanted: ChangefeedFilter, catalog: Catalog) -> DdlEvent:
    """The DDL without those of its renames that count as left out: files tell all of a statement as one."""
    renamed, clauses = _renamed(ddl), clauses_of(ddl.sql)
    left = [pair for pair in renamed if not _why_not(pair, ddl, clauses, wanted, catalog)]
    return replace(ddl, replicated=_rename_of(left)) if 0 < len(left) < len(renamed) else ddl


def both_sides(ddl: DdlEvent) -> tuple[TableName, ...]:
    """The tables of an EXCHANGE PARTITION, of which messages name either one; else none. Raises InputError."""
    if "EXCHANGE" not in ddl.sql.upper():
        return ()
    with reading(ddl):
        statement = read_statement(ddl.sql)
        return subjects(ddl, statement) if exchange_of(statement) else ()


def is_left_out(ddl: DdlEvent, tables: TableFilter) -> bool:
    """Whether the table rules leave the DDL out: they take in none of the tables that it names.

    Raises InputError, and ConfigError where case alone decides.
    """
    names = {*ddl.removes, *ddl.adds, *both_sides(ddl)}
    if ddl.table:
        names.add(TableName(ddl.database, ddl.table))
    if not names:
        return not tables.database_of_message(ddl.database)
    taken = [tables.of_message(*name) for name in sorted(names)]  # each is asked about
    return not any(taken)


def _without_index(name: TableName, ddl: DdlEvent, clauses: Clauses, wanted: ChangefeedFilter, catalog: Catalog) -> str:
    """Why a DDL of a table without a valid index is left out. A table that is not there is the target's to refuse."""
    if wanted.force_replicate:
        return ""
    schema = catalog.get(catalog.spelled(name))
    valid = creates_key(ddl.sql) if Event.CREATE_TABLE in clauses.events else schema is None or bool(schema.handle_key)
    replicated_so = any(replicates(event, valid_index=valid, force=False) for event in clauses.events)
    if not replicated_so and not (schema is not None and _gives_key(schema, ddl.sql, catalog)):
        return no_index(name)
    if schema is not None and _drops_last_key(schema, ddl.sql, clauses, catalog):
        return f"{WHY_KEPT} {name}, whose rows could not be told apart any more"
    if schema is not None and keeps_primary_key(ddl.sql, schema, catalog):
        return f"{WHY_THERE}: table {name} has kept it"
    return ""


def _gives_key(schema: TableSchema, sql: str, catalog: Catalog) -> bool:
    """Whether an ALTER TABLE makes the columns of a unique index NOT NULL: TiCDC sends what makes one valid."""
    statement = read_statement(sql)
    return statement.kind is DdlKind.ALTER_TABLE and makes_key(schema, list(changes_of(statement)), catalog)


def creates_key(sql: str) -> bool:
    """Whether a CREATE TABLE defines a primary key, or a unique key over columns that are NOT NULL and stored.

    A table made LIKE another has its keys, and that one is there only if it has a valid index.
    """
    if read_statement(sql).like is not None:
        return True
    return bool(valid_keys(read_table(sql)))


_KEY_EVENTS = {Event.DROP_INDEX, Event.DROP_PRIMARY_KEY}


def replicated(ddl: DdlEvent, wanted: ChangefeedFilter, catalog: Catalog) -> DdlEvent:
    """The DDL without what TiCDC leaves out of it: the clauses that drop a table's last valid index.

    What else its statement does is replicated, as it is where each clause is a statement of its own.
    """
    if len(ddl.adds) > 1 and ddl.removes:
        return _without_ignored_renames(ddl, wanted, catalog)
    keys = last_keys(ddl, wanted, catalog) if read_statement(ddl.sql).kind is DdlKind.ALTER_TABLE else set()
    return replace(ddl, replicated=_without_drops(ddl.sql, keys)) if keys else ddl


def without_idle_clauses(ddl: DdlEvent, catalog: Catalog, kept: Collection[str]) -> DdlEvent:
    """The DDL without its clauses with IF EXISTS or IF NOT EXISTS that upstream had nothing to do for.

    The condition comes in a comment that only TiDB reads. A DDL of which nothing would stay is as it came: TiCDC does
    not send those. `kept`: indexes, folded, that upstream has no more and the target has kept.
    """
    statement = read_statement(ddl.statement)
    schema = catalog.get(catalog.spelled(TableName(ddl.database, ddl.table)))
    if (
        statement.kind is not DdlKind.ALTER_TABLE
        or statement.renames
        or schema is None
        or "EXISTS" not in ddl.sql.upper()
    ):
        return ddl
    columns = {column.name.lower() for column in schema.columns}

    def changes_nothing(change: Change) -> bool:
        match change:
            case AddColumn(column):
                return column.name.lower() in columns
            case ChangeColumn(name) | DropColumn(name):
                return name.lower() not in columns
            case AddIndex(index):
                own = catalog.index_name(schema.here, index.known_as)
                return folded(index.known_as) not in kept and bool(schema.columns_of(own))
        return False

    left = without_idle(ddl.statement, changes_nothing)
    return replace(ddl, replicated=left) if left and left != ddl.statement else ddl


def last_keys(ddl: DdlEvent, wanted: ChangefeedFilter, catalog: Catalog) -> set[str]:
    """The last valid indexes that a DDL drops, which the target keeps; by their names as in the statement."""
    schema = catalog.get(catalog.spelled(TableName(ddl.database, ddl.table)))
    return _last_keys(schema, ddl.sql, catalog) if schema is not None and not wanted.force_replicate else set()


def _without_drops(sql: str, names: set[str]) -> str:
    return without(sql, lambda change: isinstance(change, DropIndex) and change.name in names)


def _drops_last_key(schema: TableSchema, sql: str, clauses: Clauses, catalog: Catalog) -> bool:
    """Whether all that it does is to take away that by which rows could be told apart."""
    if not _KEY_EVENTS & set(clauses.events):
        return False
    keys = _last_keys(schema, sql, catalog)
    if not keys or read_statement(sql).kind is DdlKind.DROP_INDEX:
        return bool(keys)
    rest = _without_drops(sql, keys)
    return not rest or not clauses_of(rest).events


def _last_keys(schema: TableSchema, sql: str, catalog: Catalog) -> set[str]:
    """The names, as in the statement, of valid indexes that it drops so that none is left; else nothing."""
    changes = list(changes_of(read_statement(sql)))
    ours = set(map(folded, schema.valid_indexes))
    dropped = {
        change.name: folded(change.name if change.name == "PRIMARY" else catalog.index_name(schema.here, change.name))
        for change in changes
        if isinstance(change, DropIndex)
    }
    keys = {name for name, known in dropped.items() if known in ours}
    left = ours - set(dropped.values())
    return keys if keys and not left and not makes_key(schema, changes, catalog) else set()
