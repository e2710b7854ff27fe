"""Conversions of rows by MODIFY COLUMN, tried on a copy of the column's values before the table is touched.

MySQL and MariaDB convert many values in another way than TiDB, in silence. Each distinct value is converted by the
server in the reconciler's database and compared with what TiDB makes of it (`sinks.ddl.rows.modify_column`): where one
differs the DDL is refused. Changes that keep every value are not tried.
"""

import json
import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from decimal import Decimal
from math import isclose

import xxhash

from ordering.errors import TargetError, TargetUnreachableError
from ordering.events import TableName
from sinks.ddl.kept_definitions import in_charset
from sinks.ddl.model import ChangeColumn, TypeDef
from sinks.ddl.parse.columns import read_type
from sinks.ddl.parse.statement import DdlKind, read_statement
from sinks.ddl.parse.tables import changed_columns
from sinks.ddl.parse.words import Words
from sinks.ddl.rows.default_values import BYTES, INTEGERS, REALS
from sinks.ddl.rows.modify_column import Convert, converter, keeps_values
from sinks.ddl.rows.null_moments import fills_in_now, not_sent
from sinks.ddl.rows.out_of_range import shortest
from sinks.mysql.catalog import place_of, quoted
from sinks.mysql.connection import MysqlConnection
from sinks.mysql.ddl.pre_conversion import prepared
from sinks.mysql.ddl.translate import upstreams
from sinks.rows.schema import Catalog, Column, Shape, TableSchema

_DATABASE = "ticdc_reconciler"
_COLUMN = "c"
_PAGE = 5_000
"""Values compared at once."""
_WHOLE = re.compile(r"-?\d+", re.ASCII)
"""A JSON that a DOUBLE has become here: 12, which upstream is 12.0; or it is a whole number."""
_SINGLE = 1e-7
"""How far two texts of one FLOAT may be apart."""
_HINT = "make the change in the target by hand, with the values that upstream shows, and leave this DDL out"


@dataclass(frozen=True, slots=True)
class _Conversion:
    """One column's: its type there, the goal's, and the goal as the statement writes it."""

    table: TableName
    column: Column
    old: TypeDef
    new: TypeDef
    source: str
    copy: TableName
    """Where the column's values are tried."""
    texts: str
    """The character set of the table, as it is written behind a table."""

    @property
    def place(self) -> str:
        """The copy, quoted."""
        return f"{quoted(self.copy.database)}.{quoted(self.copy.table)}"


def check_conversions(db: MysqlConnection, changefeed: str, sql: str, session: str | None, catalog: Catalog) -> bool:
    """Try what an ALTER TABLE makes of rows, in the session's settings.

    Whether a value is beyond its new type, so that upstream's session was not strict, and ours may not be. Raises
    TargetError with the value that the server would convert in another way than TiDB.
    """
    copy = TableName(_DATABASE, f"conversion_{xxhash.xxh3_64_hexdigest(changefeed.encode())}")
    check_nulls(db, sql, session, catalog)
    loose = False
    for conversion in _conversions(db, sql, session, catalog, copy):
        with _copied(db, conversion):
            loose |= _check(db, conversion)
    return loose


def _conversions(
    db: MysqlConnection, sql: str, session: str | None, catalog: Catalog, copy: TableName
) -> Iterator[_Conversion]:
    charset = ""
    for table, column, change, source in _changes(sql, session, catalog):
        charset = charset or _charset(db, table)
        old, changed = type_there(column), in_charset(change, upstreams(charset.rpartition(" ")[2]))
        if isinstance(changed, ChangeColumn) and not _keeps(old, changed):
            yield _Conversion(table, column, old, changed.column.type, source, copy, charset)


def _changes(sql: str, session: str | None, catalog: Catalog) -> Iterator[tuple[TableName, Column, ChangeColumn, str]]:
    """The columns that an ALTER TABLE changes, as they are there; see `changed_columns`."""
    statement = read_statement(sql)
    if statement.kind is not DdlKind.ALTER_TABLE:
        return
    reference = statement.tables[0]
    schema = catalog.get(catalog.spelled(TableName(reference.database or session or "", reference.table)))
    if schema is None:
        return
    own = {column.name.lower(): column for column in schema.columns if not column.generated}
    for change, source in changed_columns(sql):
        if (column := own.get(change.old.lower())) is not None:
            yield schema.name, column, change, source


def check_nulls(db: MysqlConnection, sql: str, session: str | None, catalog: Catalog) -> None:
    """Raises TargetError where upstream has filled in the time of the change: see `fills_in_now`."""
    for table, column, change, _ in _changes(sql, session, catalog):
        look = f"SELECT EXISTS (SELECT 1 FROM {place_of(table)} WHERE {quoted(column.name)} IS NULL)"  # noqa: S608 quoted
        if fills_in_now(type_there(column).base, change.column) and db.value(look):
            raise not_sent(table, column.name)


def _charset(db: MysqlConnection, table: TableName) -> str:
    """The character set of a table: it is that of a column for which none is said."""
    look = "SELECT TABLE_COLLATION FROM information_schema.TABLES WHERE TABLE_SCHEMA = %s AND TABLE_NAME = %s"
    collation = str(db.value(look, table))
    return f"CHARACTER SET {collation.partition('_')[0]} COLLATE {collation}"


def type_there(column: Column) -> TypeDef:
    """A column's type by the server's own words."""
    kind = read_type(Words(column.type))
    return replace(kind, base="json" if column.shape is Shape.JSON else kind.base, members=column.members)


def _keeps(old: TypeDef, change: ChangeColumn) -> bool:
    """Whether the server keeps every value, as upstream."""
    new = change.column.type
    # MySQL tells of a whole number only whether it is unsigned, MariaDB a width too
    same = (old.base, old.members, old.unsigned) == (new.base, new.members, new.unsigned)
    wider = same and not {*old.numbers, *new.numbers}
    return wider or (keeps_values(old, new) and new.base not in REALS)


@contextmanager
def _copied(db: MysqlConnection, conversion: _Conversion) -> Iterator[None]:
    """A temporary table of the column's distinct values, in our own database: none outlives the session."""
    table, name = conversion.table, quoted(conversion.column.name)
    look = (
        "SELECT CHARACTER_SET_NAME, COLLATION_NAME FROM information_schema.COLUMNS"
        " WHERE TABLE_SCHEMA = %s AND TABLE_NAME = %s AND COLUMN_NAME = %s"
    )
    ((charset, collation),) = db.query(look, (*table, conversion.column.name))
    texts = f" CHARACTER SET {charset} COLLATE {collation}" if charset else ""
    kind = f"{conversion.column.type}{texts} NULL"
    db.run(f"DROP TEMPORARY TABLE IF EXISTS {conversion.place}")
    db.run(
        f"CREATE TEMPORARY TABLE {conversion.place} (id BIGINT NOT NULL AUTO_INCREMENT PRIMARY KEY, {_COLUMN} {kind})"
        f" {conversion.texts}"
    )
    db.run(
        f"INSERT INTO {conversion.place} ({_COLUMN}) SELECT {name} FROM {quoted(table.database)}.{quoted(table.table)}"  # noqa: S608 quoted
        f" WHERE {name} IS NOT NULL GROUP BY {name}, BINARY {name}"
    )
    try:
        yield
    finally:
        db.run(f"DROP TEMPORARY TABLE IF EXISTS {conversion.place}")


def _check(db: MysqlConnection, conversion: _Conversion) -> bool:
    """See `check_conversions`."""
    before = list(_values(db, conversion, conversion.old, rounded=conversion.old.base == "double"))
    if not before:
        return False
    convert = converter(conversion.old, conversion.new)
    sql = f"ALTER TABLE {quoted(conversion.copy.table)} MODIFY COLUMN {quoted(_COLUMN)} {conversion.source}"
    copy = replace(conversion.column, name=_COLUMN, moved=False)
    schema = TableSchema(conversion.copy, (copy,), (), ())
    for update in prepared(sql, _DATABASE, Catalog({conversion.copy: schema})):
        db.run(update)
    db.run(f"USE {quoted(_DATABASE)}")
    loose = _changed(db, sql)
    after = dict(_values(db, conversion, conversion.new))
    for number, text in before:
        _compare(conversion, convert, text, after.get(number, ""))
        if conversion.old.base == "json" != conversion.new.base and _WHOLE.fullmatch(text):
            raise _other(conversion, text, after.get(number, ""), f"makes {text + '.0'!r} if it once was a DOUBLE")
    return loose


def _changed(db: MysqlConnection, sql: str) -> bool:
    """Change the copy; whether it took a session that is not strict."""
    try:
        db.run(sql)
    except TargetUnreachableError:
        raise
    except TargetError:
        with db.loosely():
            db.run(sql)
        return True
    return False


def _values(
    db: MysqlConnection, conversion: _Conversion, kind: TypeDef, *, rounded: bool = False
) -> Iterator[tuple[int, str]]:
    """The values as messages spell them, by their numbers; `rounded`: as the column's own digits show them."""
    number = kind.base in {"enum", "set", "bit"}
    shown = (
        f"{_COLUMN} + 0"
        if number
        else f"{_COLUMN} + 0e0"
        if kind.base in REALS and not (rounded and kind.numbers)
        else _COLUMN
    )
    shown = f"HEX({_COLUMN})" if kind.base in BYTES else f"CAST({shown} AS CHAR)"
    look = f"SELECT id, {shown} FROM {conversion.place} WHERE id > %s ORDER BY id LIMIT {_PAGE}"  # noqa: S608 quoted
    last = 0
    while rows := db.query(look, (last,)):
        yield from ((int(at), message_text(str(text), kind)) for at, text in rows)
        last = int(rows[-1][0])


def message_text(text: str, kind: TypeDef) -> str:
    """A value that the server shows, as a message would spell it."""
    if kind.base in BYTES:
        return bytes.fromhex(text).decode("latin-1")
    if kind.base == "double":
        return format(Decimal(repr(float(text))), "f").removesuffix(".0")  # DOUBLE(M,D) too
    return shortest(float(text)) if kind.base == "float" else text


def _compare(conversion: _Conversion, convert: Convert, before: str, after: str) -> None:
    try:
        wanted = convert(before)
    except (ArithmeticError, LookupError, ValueError):
        wanted = None
    if wanted is None or not is_same(conversion.new, wanted, after):
        raise _other(conversion, before, after, "is not known here" if wanted is None else f"makes {wanted[:100]!r}")


def _other(conversion: _Conversion, before: str, after: str, upstream: str) -> TargetError:
    """`upstream`: what is known of what TiDB makes of the value."""
    return TargetError(
        f"column {conversion.column.name!r} of {conversion.table}: of {before[:100]!r} the server makes"
        f" {after[:100]!r} by the change from {conversion.old} to {conversion.new}, what TiDB {upstream}",
        hint=_HINT,
    )


def is_json(text: str) -> bool:
    """Whether it can be read: a DATE becomes a text that is none in MariaDB, whose JSON is a text."""
    try:
        json.loads(text)
    except ValueError:
        return False
    return True


def is_same(kind: TypeDef, wanted: str, found: str) -> bool:
    """Whether two texts are one value of this type."""
    if kind.base in REALS:
        return isclose(float(wanted), float(found), rel_tol=_SINGLE if kind.base == "float" else 0)
    if kind.base == "json":
        return is_json(found) and bool(json.loads(wanted) == json.loads(found))
    if kind.base in INTEGERS | {"year", "bit", "enum", "set"}:
        return int(wanted) == int(found)
    return wanted.rstrip(" ") == found.rstrip(" ") if kind.base == "char" else wanted == found
