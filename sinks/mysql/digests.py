"""How the MySQL family spells values, rows and digests, and begins a snapshot."""

from collections.abc import Iterator, Sequence
from typing import Any

from ordering.events import TableName
from sinks.compare.digests import DIGITS, HALF, Span, TableReader
from sinks.compare.value_forms import Form, Trait
from sinks.mysql.catalog import place_of, quoted, read_catalog
from sinks.mysql.connection import MysqlConnection
from sinks.mysql.repair_sql import MysqlMender
from sinks.rows.schema import Catalog, Column, Shape

_SPATIAL = {
    "geometry", "point", "linestring", "polygon", "multipoint", "multilinestring", "multipolygon",
    "geomcollection", "geometrycollection",
}  # fmt: skip
_NO_TEXT = {*_SPATIAL, "vector"}
"""MariaDB's and MySQL's own vectors are bytes, and no column of upstream's becomes one."""
_FORMS = {
    Shape.INTEGER: Form.NUMBER,
    Shape.BYTES: Form.BYTES,
    Shape.BIT: Form.BITS,
    Shape.DATE: Form.DATE,
    Shape.DATETIME: Form.DATETIME,
    Shape.TIMESTAMP: Form.TIMESTAMP,
    Shape.TIME: Form.TIME,
    Shape.JSON: Form.JSON,
}
_ALL_ROWS = (1 << 64) - 1
_FRACTIONS = {Form.DATETIME, Form.TIMESTAMP, Form.TIME}


def _base(column: Column) -> str:
    return column.type.lower().partition("(")[0].partition(" ")[0]


def _scale(column: Column) -> int:
    """Digits behind the point, or of a second."""
    inside = column.type.partition("(")[2].partition(")")[0]
    return int(inside.rpartition(",")[2]) if inside.replace(",", "").isdigit() else 0


def _number(text: str) -> str:
    """The number that a digest is; NULL for a text beyond max_allowed_packet."""
    return f"CAST(CONV(LEFT(SHA2({text}, 256), {DIGITS}), 16, 10) AS UNSIGNED)"


def _digits(number: str) -> str:
    """All digits of a float: MySQL gives a text of more than 22 characters an exponent, as the sign may make it."""
    return f"CONCAT(CASE WHEN {number} < 0 THEN '-' ELSE '' END, CAST(ABS({number}) AS CHAR))"


class MysqlReader(TableReader):
    """MySQL and MariaDB: each connection has a snapshot of its own."""

    piece_rows = 50_000
    """What is kept of them fits into 16 MiB, the default of `tmp_table_size`."""

    def __init__(self, db: MysqlConnection) -> None:
        self._db = db

    def begin(self, snapshot: str = "") -> str:
        """See `TableReader.begin`."""
        del snapshot
        self._db.rollback()
        self._db.run("SET SESSION TRANSACTION ISOLATION LEVEL REPEATABLE READ")
        self._db.run("START TRANSACTION WITH CONSISTENT SNAPSHOT, READ ONLY")
        return ""

    def mender(self) -> MysqlMender:
        """See `TableReader.mender`."""
        return MysqlMender(self)

    def query(self, sql: str) -> list[tuple[Any, ...]]:
        """See `TableReader.query`."""
        return self._db.query(sql)

    def stream(self, sql: str) -> Iterator[tuple[Any, ...]]:
        """See `TableReader.stream`."""
        return self._db.stream(sql)

    def catalog(self) -> Catalog:
        """See `TableReader.catalog`."""
        return read_catalog(self._db.query, self._db.made_indexes, mariadb=self._db.is_mariadb)

    def close(self) -> None:
        """See `TableReader.close`."""
        self._db.close()

    def place(self, table: TableName) -> str:
        """See `TableReader.place`."""
        return place_of(table)

    def quoted(self, name: str) -> str:
        """See `TableReader.quoted`."""
        return quoted(name)

    def is_comparable(self, column: Column) -> bool:
        """See `TableReader.is_comparable`."""
        return _base(column) not in _NO_TEXT

    def trait(self, column: Column) -> Trait | None:
        """See `TableReader.trait`."""
        if _base(column) == "decimal":
            return Trait(Form.NUMBER, _scale(column))
        if column.shape is Shape.REAL:
            return Trait(Form.FLOAT if _base(column) == "float" else Form.REAL)
        form = _FORMS.get(column.shape, Form.TEXT)
        if form in _FRACTIONS:
            return Trait(form, _scale(column))
        return Trait(form, 0 if form is Form.NUMBER else None)

    def is_whole_number(self, column: Column) -> bool:
        """See `TableReader.is_whole_number`: a year is compared with a number as with one of two digits."""
        return _base(column) != "year" and super().is_whole_number(column)

    def hides_members(self, column: Column) -> bool:
        """See `TableReader.hides_members`: the server shows `?` for what `as_shown` says.

        A member '' is not the invalid value '', whose number is 0.
        """
        return any(not name or "?" in name for name in column.members)

    def text(self, form: Form, column: Column) -> str:
        """See `TableReader.text`."""
        name = quoted(column.name)
        own = self.trait(column)
        if form is Form.BITS and column.members:
            return f"CAST(CAST({name} AS UNSIGNED) AS CHAR)"
        if form is Form.BYTES:
            return f"HEX({name})"
        if own is None or own.form is not form:
            return f"CONVERT({name} USING utf8mb4)"
        return self._own_text(form, column, name)

    def _own_text(self, form: Form, column: Column, name: str) -> str:
        """The text of a value in its column's own form."""
        if form in {Form.TEXT, Form.JSON}:
            return f"CAST({name} AS CHAR)" if _base(column) == "vector" else f"CONVERT({name} USING utf8mb4)"
        if form is Form.BITS or column.shape is Shape.INTEGER or "zerofill" in column.type.lower():
            return f"CAST({name} + 0 AS CHAR)"  # not as bytes, and without the zeros of ZEROFILL
        if form is Form.FLOAT:
            return _digits(f"({name} + 0e0)")  # the server tells six digits
        if form is Form.REAL and "(" in column.type:
            return _digits(f"(CAST({name} AS CHAR) + 0e0)")  # what DOUBLE(9,2) shows, without zeros: see `truncates`
        if form in _FRACTIONS and _scale(column):
            return f"TRIM(TRAILING '.' FROM TRIM(TRAILING '0' FROM CAST({name} AS CHAR)))"
        return f"CAST({name} AS CHAR)"

    def held(self, form: Form, column: Column) -> str:
        """See `TableReader.held`."""
        return _digits(f"({quoted(column.name)} + 0e0)") if form is Form.REAL else self.text(form, column)

    def truncates(self, column: Column) -> int | None:
        """See `TableReader.truncates`: -0.05 in a DOUBLE(9,2) shows as such, and is -0.050000000000000044."""
        return _scale(column) if column.shape is Shape.REAL and "(" in column.type else None

    def late_value(self, form: Form, column: Column) -> str:
        """See `TableReader.late_value`: CAST AS CHAR may cut the digits of a float off."""
        return f"({quoted(column.name)} + 0e0)" if form in {Form.REAL, Form.FLOAT} else self.text(form, column)

    def fetched(self, form: Form, column: Column) -> str:
        """See `TableReader.fetched`; what passes max_allowed_packet in another charset equals nothing, not NULL."""
        if form is Form.BYTES and column.shape is Shape.BYTES:
            return quoted(column.name)
        text = self.text(form, column)
        if form not in {Form.TEXT, Form.JSON}:
            return text
        too_long = "CONCAT('longer than max_allowed_packet: ', RAND())"
        return f"CASE WHEN {quoted(column.name)} IS NOT NULL THEN COALESCE({text}, {too_long}) END"

    def sized(self, text: str) -> str:
        """See `TableReader.sized`."""
        return f"CONCAT(LENGTH({text}), ':', {text})"

    def joined(self, parts: Sequence[str]) -> str:
        """See `TableReader.joined`."""
        between = ", '|', "
        return f"CONCAT({between.join(parts)})" if parts else "''"

    def digest(self, text: str) -> str:
        """See `TableReader.digest`.

        A text beyond max_allowed_packet becomes NULL (MySQL documentation, "String Functions and Operators"). A random
        number in its place makes the sum differ, so that such rows are compared one by one.
        """
        return f"COALESCE({_number(text)}, CAST(1e18 * RAND() AS UNSIGNED))"

    def shared_out(self, text: str, count: int) -> str:
        """See `TableReader.shared_out`: rows whose text is too long lie in the first part, where sums always differ."""
        return f"COALESCE({_number(text)} % {count}, 0)"

    def hashed(self, text: str) -> str:
        """See `TableReader.hashed`."""
        return f"SHA2({text}, 256)"

    def half(self, name: str, at: int) -> str:
        """See `TableReader.half`."""
        return f"CAST(CONV(SUBSTR({name}, {1 + HALF * at}, {HALF}), 16, 10) AS UNSIGNED)"

    def once(self, span: Span, table: str) -> str:
        """See `TableReader.once`: it is a table then that is kept until its end, in memory if it is small."""
        del table
        return f" LIMIT {_ALL_ROWS}" if span.column else ""

    def added(self, digest: str) -> str:
        """See `TableReader.added`."""
        return f"SUM({digest})"
