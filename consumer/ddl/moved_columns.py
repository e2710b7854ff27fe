"""DDLs after which other rules count for a column: what was left out or masked would be written as it is.

Rules go by names. TiCDC's own selectors go on with the new name; here an operator decides about such a DDL. Pure.
"""

from collections.abc import Iterator
from itertools import permutations

from consumer.ddl.guard import exchanged, subjects
from consumer.ddl.lost_keys import changes_of
from consumer.filters.columns import TEXTS, ColumnRules
from consumer.filters.tables import TableFilter
from ordering.errors import InputError
from ordering.events import DdlEvent, TableName
from sinks.ddl.model import AddColumn, ChangeColumn, ColumnDef, RenameColumn
from sinks.ddl.parse.statement import DdlKind, Statement, named_tables, read_statement
from sinks.rows.schema import Catalog, TableSchema

_HINT = (
    "have the same rules for both names, under another changefeed id with a new target; or execute it by hand, if the"
    " column may be replicated from now on as its new name has it, and say so with `reconciler ddl done`"
)

_NARROW = (
    "leave it out with `reconciler ddl skip`, so that the target's column stays as wide as it is; or have another mask"
    " for it, under another changefeed id with a new target"
)

_BY_HAND = (
    "add the column in the target by hand, with masks in the rows that are there, and say so with"
    " `reconciler ddl done`; or have no mask for it, under another changefeed id with a new target"
)


def refuse_moved_columns(ddl: DdlEvent, columns: ColumnRules, tables: TableFilter, catalog: Catalog) -> None:
    """Raise InputError where a column's new name, or its table's, has other rules, or its type has no room for a mask.

    `tables`: what counts at all.
    """
    statement = read_statement(ddl.sql)
    own = TableName(ddl.database, ddl.table)
    for old, new, defined in _changed_columns(statement):
        _check(columns, (own, old), (own, new))
        if defined is not None and tables(*own):
            _check_fits(columns, own, defined)
    if tables(*own):
        _check_added(columns, own, statement, catalog.get(catalog.spelled(own)))
    for before, after in _moved_rows(ddl, statement):
        names = map(catalog.spelled, (before, after))  # it may have been executed
        schema = next(filter(None, map(catalog.get, names)), None)
        if tables(*after):
            _check_rows(columns, before, after, schema)


def _check_rows(columns: ColumnRules, before: TableName, after: TableName, schema: TableSchema | None) -> None:
    """`schema`: None of a table that was dropped and comes back: nobody knows its columns, so all rules count."""
    for column in () if schema is None else schema.columns:
        _check(columns, (before, column.name), (after, column.name))
    if schema is None and not columns.are_alike(before, after):
        raise _refused(str(before), str(after))


def _check_added(columns: ColumnRules, table: TableName, statement: Statement, schema: TableSchema | None) -> None:
    """Rows without a key are found by all their values: those that hold a default in the place of its mask never."""
    if schema is None or schema.handle_key:
        return
    for change in changes_of(statement):
        if isinstance(change, AddColumn) and change.column.fills_rows and columns.is_masked(table, change.column.name):
            fact = (
                f"a DDL gives rows of {table}, which has no key, a default in {change.column.name!r}, and events name"
                " its mask: no later one would find these rows"
            )
            raise InputError(fact, hint=_BY_HAND)


def _check_fits(columns: ColumnRules, table: TableName, column: ColumnDef) -> None:
    """A column is made narrower for upstream's values: the target would cut masks off, and no row would be equal."""
    is_taken, mask = columns.fate(table, column.name)
    if not is_taken or mask is None:
        return
    kind, needed = column.type, mask.length if mask.key else len(mask.value)
    is_narrow = kind.base in {"char", "varchar"} and kind.number(0, 1) < needed
    if is_narrow or (mask.key and kind.base not in TEXTS):
        fact = (
            f"a DDL gives {column.name!r} of {table} the type {kind}, in which its mask of {needed} characters can't be"
        )
        raise InputError(fact, hint=_NARROW)


def _changed_columns(statement: Statement) -> Iterator[tuple[str, str, ColumnDef | None]]:
    """Each column's old and new name, and how it is defined where the statement says so."""
    for change in changes_of(statement):
        if isinstance(change, RenameColumn):
            yield change.old, change.new, None
        elif isinstance(change, ChangeColumn):
            yield change.old, change.column.name, change.column


def _moved_rows(ddl: DdlEvent, statement: Statement) -> Iterator[tuple[TableName, TableName]]:
    """Tables whose rows are another one's afterwards."""
    if ddl.removes and ddl.adds:
        yield from zip(ddl.removes, ddl.adds, strict=True)
    if exchanged(ddl, statement):  # messages name either side
        yield from permutations(subjects(ddl, statement), 2)
    if statement.kind is DdlKind.OTHER and statement.tables:  # RECOVER or FLASHBACK
        _, (old, *new) = named_tables(ddl.sql)
        before, *after = (TableName(one.reference.database or ddl.database, one.reference.table) for one in (old, *new))
        yield from ((before, name) for name in after)


def _check(columns: ColumnRules, before: tuple[TableName, str], after: tuple[TableName, str]) -> None:
    if columns.fate(*before) != columns.fate(*after):
        raise _refused(f"{before[1]!r} of {before[0]}", f"{after[1]!r} of {after[0]}")


def _refused(old: str, new: str) -> InputError:
    fact = f"a DDL makes {old} into {new}, for which sink.column-selectors or sink.column-masks say something else"
    return InputError(fact, hint=_HINT)
