"""Deletes and writes the rows of a unit: multi-row statements where they are few, LOAD DATA where they are many.

Keys are compared as their column compares, by values of its own type: literals only where they are that (whole
numbers, bytes, texts), else a temporary table of the same types. What the column's collation takes for equal is
compared byte by byte besides (R11).

Three ways lead into a table. REPLACE where no other unique key and no column of the target's own can be hurt; plain
INSERT where all touched keys were deleted before (R5). INSERT ... ON DUPLICATE KEY UPDATE, which looks at the key of
the row that is there, where a collation takes keys for one that upstream tells apart; by a temporary table of the same
column types where the target has columns that upstream lacks, for they keep their values, and where an ENUM holds the
invalid value '', which a strict server takes only from there. So too where a strict server complains of a column that
it computes: it has looked at what is sent when it took the stage.
"""

from collections.abc import Iterator
from contextlib import contextmanager

from ordering.drift import Met
from ordering.errors import NO_ROW_AT_FAULT, TargetError
from ordering.events import TableName
from sinks.bookkeeping.tables import PROGRESS_DATABASE
from sinks.mysql.catalog import place_of, quoted
from sinks.mysql.connection import SQL_MODE, MysqlConnection
from sinks.mysql.row_statements import EXPRESSIONS, literals, parts, rows_of
from sinks.rows.accounting import Keys, check_changed
from sinks.rows.schema import Column, Shape, TableSchema
from sinks.rows.spool import Group

_BULK_ROWS = 200
"""From so many rows on LOAD DATA is faster than a multi-row statement."""
_FEW_BYTES = 1 << 20
"""Few rows may be large too."""
NUMBER = "bigint unsigned"
"""The type in which an ENUM's number waits."""
_TRUNCATED = 1265
_DUPLICATE = 1062
_NULL = 1048
_KEYS = f"{PROGRESS_DATABASE}.deleted_keys"
_STAGE = f"{PROGRESS_DATABASE}.staged_rows"
_OWN_KEY = f"{PROGRESS_DATABASE}_row"
"""The primary key of temporary tables, beside the columns of the table that they are like.

One of theirs may have this name, and would get its type and numbers for NULL: then more follows (`_own_key`).
"""
_ALIAS = "`ticdc_reconciler row`"
"""What statements call our rows beside those of a table: a name that no table has, for servers take `k.id` for the
column of a table `k` too."""
_NEW = f"{_ALIAS}.{{}}"
_TEXTS = {"char", "varchar", "tinytext", "text", "mediumtext", "longtext"}
_BYTES = {"binary", "varbinary", "tinyblob", "blob", "mediumblob", "longblob"}
_WHOLE = {"tinyint", "smallint", "mediumint", "int", "bigint"}
_EXACT = _TEXTS | _BYTES | _WHOLE
"""Types whose literals compare with a column as its own values do. As text a DECIMAL compares as a DOUBLE, and a
number with a YEAR as one of two digits."""


class MysqlWriter:
    """Writes groups over one connection, inside the caller's transaction."""

    _computes_as_upstream = False
    """Whether a generated column's value is upstream's, also where the server warns of it or would refuse it."""

    def __init__(self, connection: MysqlConnection) -> None:
        self._db = connection

    def delete(self, group: Group, schema: TableSchema) -> Met:
        """Delete rows by their keys. Raises TargetError."""
        columns = _columns(group, schema)
        with _naming(schema):
            is_small = group.rows < _BULK_ROWS and len(columns) == 1
            # a server may warn of what it computes in a row that goes, and of literals warnings are errors
            if is_small and self._takes_literals(columns[0]) and not schema.computes:
                deleted = self._delete_by_literals(group, schema.name, columns[0])
            else:
                deleted = self._delete_by_join(group, schema.name, columns)
        return Met(deleted, deleted)

    def _takes_literals(self, column: Column) -> bool:
        """Whether literals find the rows of a key column exactly."""
        return base_of(column) in _EXACT

    def _delete_by_literals(self, group: Group, table: TableName, column: Column) -> int:
        name, total = quoted(column.name), 0
        head, tail = f"DELETE FROM {place_of(table)} WHERE {name} IN (", ")"  # noqa: S608 quoted
        is_folding = column.folds or column.pads
        bytes_of = f") AND CAST(CONVERT({name} USING utf8mb4) AS BINARY) IN ("
        spelled = literals(self._db, [column], ([_as_held(column, key)] for (key,) in rows_of(group)))
        twice = self._db.statement_bytes // 2  # each key may stand there twice
        for part in parts(self._db, table, spelled, _around(head, bytes_of) + twice):
            exactly = bytes_of + ", ".join(f"CAST({key} AS BINARY)" for key in part) if is_folding else ""
            deleted = self._db.write(f"{head}{', '.join(part)}{exactly}{tail}")
            check_changed(deleted, len(part), table, ([key] for key in part), self._db.where)
            total += deleted
        return total

    def _delete_by_join(self, group: Group, table: TableName, columns: list[Column]) -> int:
        """Delete by a temporary table of keys. An ENUM's '' is taken as a number only: a strict server refuses it."""
        try:
            return self._delete_joined(group, table, columns)
        except NO_ROW_AT_FAULT:
            raise
        except TargetError as error:
            numbers = [column if column.shape is not Shape.ENUM else _number(column) for column in columns]
            if numbers == columns or f" {_TRUNCATED} " not in error.fact:
                raise
            return self._delete_joined(group, table, numbers)

    def _delete_joined(self, group: Group, table: TableName, columns: list[Column]) -> int:
        """The temporary table is typed and collated as the table's own, and looked up by its index."""
        place = place_of(table)
        with self._temporary(_KEYS, table, columns):
            self._insert("INSERT", _KEYS, group, columns)
            # the table under its full name: an alias is looked for in the current database, and there may be none
            sides = [(f"{place}.{quoted(c.name)}", f"{_ALIAS}.{quoted(c.name)}", c) for c in columns]
            match = " AND ".join(f"{left} = {right}{_exactly(left, right, c)}" for left, right, c in sides)
            deleted = self._db.run(f"DELETE {place} FROM {_KEYS} {_ALIAS} STRAIGHT_JOIN {place} ON {match}")
            check_changed(deleted, group.rows, table, rows_of(group), self._db.where)
        return deleted

    def write(self, group: Group, schema: TableSchema) -> Met:
        """Write full rows. Raises TargetError; also for a row that would take another one's place unseen.

        A row that was there and is replaced counts twice, but once where it was the same already: so not all that were
        there are known (MySQL documentation, "REPLACE Statement", "INSERT ... ON DUPLICATE KEY UPDATE Statement").
        """
        columns = _columns(group, schema)
        with _naming(schema):
            if schema.own_columns(group.first.columns) and not group.first.plain_insert:
                changed = self._by_stage(group, schema, columns)
            elif any(column.shape is Shape.ENUM for column in columns) or schema.computes:
                changed = self._put_or_staged(group, schema, columns)
            else:
                changed = self._put(group, schema, columns)
        return Met(changed - group.rows, group.rows)

    def _put(self, group: Group, schema: TableSchema, columns: list[Column]) -> int:
        """INSERT where no row is in the way, else whatever replaces rows with the very same key and no others."""
        if group.first.plain_insert:
            return self._insert("INSERT", place_of(schema.name), group, columns)
        if not _pads(schema, columns):
            return self._insert("REPLACE", place_of(schema.name), group, columns)
        if self._is_bulk(group):
            return self._by_stage(group, schema, columns)
        return self._by_statements("INSERT", place_of(schema.name), group, columns, self._update_of(schema, columns))

    def _update_of(self, schema: TableSchema, columns: list[Column]) -> str:
        """What follows the VALUES: a row that is there takes the new values over."""
        alias = f" AS {_ALIAS}" if self._db.has_row_alias else ""
        return f"{alias} ON DUPLICATE KEY UPDATE {_updates(schema, columns, _NEW if alias else 'VALUES({})')}"

    def _put_or_staged(self, group: Group, schema: TableSchema, columns: list[Column]) -> int:
        """What the server refuses of an ENUM's '', or of what it computes itself, it may take from a stage."""
        self._db.run("SAVEPOINT before_put")
        try:
            return self._put(group, schema, columns)
        except NO_ROW_AT_FAULT:
            raise
        except TargetError as error:
            if f" {_TRUNCATED} " not in error.fact and not schema.computes:
                raise
            self._db.run("ROLLBACK TO SAVEPOINT before_put")
            return self._by_stage(group, schema, columns)

    def _by_stage(self, group: Group, schema: TableSchema, columns: list[Column]) -> int:
        """Load into a table of the same types, with numbers for ENUMs; strict there, so that it need not be after."""
        place, names = place_of(schema.name), _names(columns)
        is_plain = group.first.plain_insert
        update = "" if is_plain else " ON DUPLICATE KEY UPDATE " + _updates(schema, columns, _NEW)
        staged = [column if column.shape is not Shape.ENUM else _number(column) for column in columns]
        with self._temporary(_STAGE, schema.name, staged):
            self._insert("INSERT", _STAGE, group, staged)
            if not is_plain:
                self._refuse_folded(schema, _pads(schema, columns))
            if staged != columns or self._computes_as_upstream:
                self._db.run("SET SESSION sql_mode = %s", (SQL_MODE.replace("STRICT_ALL_TABLES,", ""),))
            rows = f"SELECT {names} FROM {_STAGE} AS {_ALIAS}"  # noqa: S608 quoted
            try:
                changed = self._db.run(f"INSERT INTO {place} ({names}) {rows}{update}")
            finally:
                self._db.run("SET SESSION sql_mode = %s", (SQL_MODE,))
        self._check_written(changed, group.rows, schema.name, _key_texts(group, schema, columns), is_plain=is_plain)
        return changed

    def _refuse_folded(self, schema: TableSchema, pads: list[Column]) -> None:
        """Refuse a staged row whose key the server takes for that of a row with another one, there or staged too."""
        if not pads:
            return
        place, key = place_of(schema.name), [quoted(name) for name in schema.handle_key]
        match = " AND ".join(f"{place}.{name} = {_NEW.format(name)}" for name in key)
        sides = ((f"{place}.{quoted(c.name)}", _NEW.format(quoted(c.name))) for c in pads)
        same = " AND ".join(f"LENGTH({left}) = LENGTH({right})" for left, right in sides)
        # not as a condition: TiDB puts one of two equal columns in the other one's place, though their bytes differ
        others = f"COUNT(*) - COALESCE(SUM({same}), 0)"
        there = f"SELECT {others} FROM {_STAGE} AS {_ALIAS} STRAIGHT_JOIN {place} ON {match}"  # noqa: S608 quoted
        twice = f"SELECT 1 FROM {_STAGE} AS {_ALIAS} GROUP BY {', '.join(key)} HAVING COUNT(*) > 1 LIMIT 1"  # noqa: S608 quoted
        if self._db.value(there) or self._db.value(twice):
            raise _folded(schema, pads, self._db.where)

    @contextmanager
    def _temporary(self, name: str, table: TableName, columns: list[Column]) -> Iterator[None]:
        """A table with some columns of another, in its types; those that are to be numbers are numbers."""
        self._db.run(f"CREATE TEMPORARY TABLE {name} {self._like(table, columns)}")
        try:
            yield
        finally:
            self._db.run(f"DROP TEMPORARY TABLE IF EXISTS {name}")

    def _like(self, table: TableName, columns: list[Column]) -> str:
        names = [(quoted(column.name), column.type == NUMBER) for column in columns]
        typed = ", ".join(f"CAST({name} AS UNSIGNED) AS {name}" if is_number else name for name, is_number in names)
        # servers may demand a primary key of every table (sql_require_primary_key, innodb_force_primary_key)
        own = f"({_own_key(columns)} BIGINT UNSIGNED NOT NULL AUTO_INCREMENT PRIMARY KEY)"
        return f"{own} ENGINE=InnoDB AS SELECT {typed} FROM {place_of(table)} LIMIT 0"  # noqa: S608 quoted

    def _is_bulk(self, group: Group) -> bool:
        return (group.rows >= _BULK_ROWS or sum(group.sizes) > _FEW_BYTES) and self._db.takes_load_data

    def _insert(self, verb: str, place: str, group: Group, columns: list[Column]) -> int:
        if self._is_bulk(group):
            return self._load_data(verb, place, group, columns)
        return self._by_statements(verb, place, group, columns)

    def _by_statements(self, verb: str, place: str, group: Group, columns: list[Column], end: str = "") -> int:
        head, table = f"{verb} INTO {place} ({_names(columns)}) VALUES ", group.first.table
        is_plain, total = verb == "INSERT" and not end, 0
        for part in parts(self._db, table, literals(self._db, columns, rows_of(group)), _around(head, end)):
            changed = self._db.write(f"{head}({'), ('.join(part)}){end}")
            self._check_written(changed, len(part), table, ([row] for row in part), is_plain=is_plain)
            total += changed
        return total

    def _load_data(self, verb: str, place: str, group: Group, columns: list[Column]) -> int:
        computed = [(f"@v{i}", column) for i, column in enumerate(columns) if column.shape in EXPRESSIONS]
        variables = {column.name: variable for variable, column in computed}
        fields = ", ".join(variables.get(c.name) or quoted(c.name) for c in columns)
        settings = [f"{quoted(c.name)} = {EXPRESSIONS[c.shape].format(variable)}" for variable, c in computed]
        replace = "REPLACE " if verb == "REPLACE" else ""
        sql = f"{replace}INTO TABLE {place} CHARACTER SET utf8mb4 ({fields})"
        changed = self._db.load(sql + (f" SET {', '.join(settings)}" if settings else ""), group.path())
        self._check_written(changed, group.rows, group.first.table, rows_of(group), is_plain=not replace)
        return changed

    def _check_written(self, changed: int, rows: int, table: TableName, keys: Keys, *, is_plain: bool) -> None:
        """INSERT adds each row; what replaces a row that is there counts it too."""
        check_changed(changed, rows if is_plain else 2 * rows, table, keys, self._db.where, at_least=rows)


def base_of(column: Column) -> str:
    """A column's type without length and attributes, in small letters."""
    return column.type.lower().partition("(")[0].partition(" ")[0]


def _own_key(columns: list[Column]) -> str:
    """A name that none of these columns has; the server does not tell case apart."""
    taken, name = {column.name.lower() for column in columns}, _OWN_KEY
    while name in taken:
        name += "_"
    return name


def _around(head: str, tail: str) -> int:
    """The bytes of a statement's fixed parts, at most."""
    return 4 * (len(head) + len(tail))


def _columns(group: Group, schema: TableSchema) -> list[Column]:
    return [c for name in group.first.columns if (c := schema.column(name)) is not None]


def _as_held(column: Column, key: str | None) -> str | None:
    """A key's text as the column holds it: a BINARY ends with zero bytes, here in hexadecimal digits."""
    if key is None or base_of(column) != "binary":
        return key
    return key.ljust(2 * int(column.type.partition("(")[2].partition(")")[0]), "0")


def _pads(schema: TableSchema, columns: list[Column]) -> list[Column]:
    """The key's columns of which the server does not see the blanks at their end."""
    return [c for c in columns if c.pads and c.name in schema.handle_key]


def _bytes(name: str) -> str:
    return f"CAST({name} AS BINARY)"


def _exactly(left: str, right: str, column: Column) -> str:
    """What holds besides for two values of a column that are the very same."""
    if column.members:
        return f" AND CAST({left} AS UNSIGNED) = CAST({right} AS UNSIGNED)"
    return f" AND {_bytes(left)} = {_bytes(right)}" if column.folds or column.pads else ""


def _names(columns: list[Column]) -> str:
    return ", ".join(quoted(column.name) for column in columns)


def _number(column: Column) -> Column:
    return Column(column.name, NUMBER, Shape.INTEGER)


def _key_texts(group: Group, schema: TableSchema, columns: list[Column]) -> Keys:
    at = [i for i, column in enumerate(columns) if column.name in schema.handle_key]
    return ([row[i] for i in at] for row in rows_of(group))


def _updates(schema: TableSchema, columns: list[Column], new: str) -> str:
    """What a row that is there takes over. Its key stays, which is said, lest it be set to the present (ON UPDATE).

    A key that only looks the same to the server becomes NULL, which a key can't be: the row is refused.
    """
    place = place_of(schema.name)
    return ", ".join(_update(f"{place}.{quoted(c.name)}", new.format(quoted(c.name)), c, schema) for c in columns)


def _update(name: str, new: str, column: Column, schema: TableSchema) -> str:
    if column.name not in schema.handle_key:
        return f"{name} = {new}"
    return f"{name} = IF({_bytes(name)} = {_bytes(new)}, {name}, NULL)" if column.pads else f"{name} = {name}"


def _folded(schema: TableSchema, pads: list[Column], where: str) -> TargetError:
    names = ", ".join(column.name for column in pads)
    return TargetError(
        f"a row of {schema.name} has the key of another one but for the blanks at its end, which the target does not"
        f" tell apart ({names})",
        where=where,
        hint="give the column a collation that does not pad, as upstream's does not (MariaDB: utf8mb4_nopad_bin,"
        " MySQL and TiDB: utf8mb4_0900_bin), then run again",
    )


@contextmanager
def _naming(schema: TableSchema) -> Iterator[None]:
    """Name the table in what the server says of its rows."""
    try:
        yield
    except TargetError as error:
        pads = [c for c in schema.columns if c.pads and c.name in schema.handle_key and f"'{c.name}'" in error.fact]
        if pads and f" {_NULL} " in error.fact:
            raise _folded(schema, pads, error.where) from error
        hint = error.hint or schema.conflict_hint(is_conflict=f" {_DUPLICATE} " in error.fact)
        raise type(error)(error.fact, where=f"{error.where}, table {schema.name}", hint=hint) from error
