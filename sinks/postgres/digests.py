"""How PostgreSQL spells values, rows and digests, and begins or joins a snapshot."""

from collections.abc import Iterator, Sequence
from typing import Any

from ordering.events import TableName
from sinks.compare.digests import DIGITS, HALF, Span, TableReader
from sinks.compare.value_forms import Form, Trait
from sinks.postgres.catalog import base_type, read_catalog
from sinks.postgres.connection import PostgresConnection
from sinks.postgres.names import literal, place, quoted
from sinks.postgres.preconditions import firing_triggers, unfit_tables
from sinks.postgres.repair_sql import PostgresMender
from sinks.rows.chained import chained
from sinks.rows.schema import Catalog, Column, Shape

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
_TIME_OF_DAY = "time without time zone"
"""Of a column made by hand: our own DDL makes intervals of TIME."""
_TWO_TO_64 = 1 << 64


class PostgresReader(TableReader):
    """A transaction whose snapshot others may join (PostgreSQL manual, "Snapshot Synchronization Functions")."""

    calendar_only = True

    def __init__(self, db: PostgresConnection) -> None:
        self._db = db

    def begin(self, snapshot: str = "") -> str:
        """See `TableReader.begin`."""
        self._db.rollback()
        self._db.run("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY")
        if snapshot:
            self._db.run(f"SET TRANSACTION SNAPSHOT {literal(snapshot)}")
        self._db.check_settings()
        if snapshot:
            return snapshot
        return str(self._db.value("SELECT pg_export_snapshot()"))

    def mender(self) -> PostgresMender:
        """See `TableReader.mender`."""
        return PostgresMender(self)

    def query(self, sql: str) -> list[tuple[Any, ...]]:
        """See `TableReader.query`."""
        return self._db.query(sql)

    def stream(self, sql: str) -> Iterator[tuple[Any, ...]]:
        """See `TableReader.stream`."""
        return self._db.stream(sql)

    def catalog(self) -> Catalog:
        """See `TableReader.catalog`."""
        return read_catalog(self._db.query, unfit_tables(self._db), firing_triggers(self._db))

    def close(self) -> None:
        """See `TableReader.close`."""
        self._db.close()

    def place(self, table: TableName) -> str:
        """See `TableReader.place`."""
        return place(table)

    def quoted(self, name: str) -> str:
        """See `TableReader.quoted`."""
        return quoted(name)

    def is_comparable(self, column: Column) -> bool:
        """See `TableReader.is_comparable`."""
        return base_type(column.type) != "bit varying"

    def trait(self, column: Column) -> Trait | None:
        """See `TableReader.trait`."""
        base = base_type(column.type)
        if base == "numeric":
            inside = column.type.partition("(")[2].partition(")")[0]
            return Trait(Form.NUMBER, int(inside.rpartition(",")[2]) if "," in inside else 0 if inside else None)
        if base == "boolean":
            return Trait(Form.NUMBER, 0)
        if column.shape is Shape.REAL:
            return Trait(Form.FLOAT if base == "real" else Form.REAL)
        form = Form.TIME if base == _TIME_OF_DAY else _FORMS.get(column.shape, Form.TEXT)
        return Trait(form, 0 if form is Form.NUMBER else None)

    def is_whole_number(self, column: Column) -> bool:
        """See `TableReader.is_whole_number`."""
        return base_type(column.type) != "boolean" and super().is_whole_number(column)

    def text(self, form: Form, column: Column) -> str:
        """See `TableReader.text`."""
        name, own = quoted(column.name), self.trait(column)
        if form is Form.BYTES:
            held = name if column.shape is Shape.BYTES else f"convert_to({name}::text, 'UTF8')"
            return f"upper(encode({held}, 'hex'))"
        if own is None or own.form is not form:
            return f"{name}::text"
        return self._own_text(form, column, name)

    def _own_text(self, form: Form, column: Column, name: str) -> str:
        """The text of a value in its column's own form."""
        if base_type(column.type) == "boolean":
            return f"{name}::integer::text"
        if form is Form.BITS:
            number = f"{name}::bigint"
            return f"({number}::numeric + CASE WHEN {number} < 0 THEN {_TWO_TO_64} ELSE 0 END)::text"
        if form is Form.FLOAT:
            return f"{name}::float8::text"
        if form is Form.TIMESTAMP:
            return f"({name} AT TIME ZONE 'UTC')::text"
        return f"{name}::text"

    def fetched(self, form: Form, column: Column) -> str:
        """See `TableReader.fetched`."""
        return quoted(column.name) if form is Form.BYTES and column.shape is Shape.BYTES else self.text(form, column)

    def sized(self, text: str) -> str:
        """See `TableReader.sized`."""
        return f"octet_length({text})::text || ':' || {text}"

    def joined(self, parts: Sequence[str]) -> str:
        """See `TableReader.joined`."""
        return chained(" || '|' || ", parts) if parts else "''"

    def digest(self, text: str) -> str:
        """See `TableReader.digest`."""
        digits = f"left(encode(sha256(convert_to({text}, 'UTF8')), 'hex'), {DIGITS})"
        return f"('x' || {digits})::bit({4 * DIGITS})::bigint"

    def hashed(self, text: str) -> str:
        """See `TableReader.hashed`."""
        return f"encode(sha256(convert_to({text}, 'UTF8')), 'hex')"

    def bucket(self, text: str) -> str:
        """See `TableReader.bucket`."""
        return f"get_byte(sha256(convert_to({text}, 'UTF8')), 0) >> 4"

    def halves(self, text: str) -> str:
        """See `TableReader.halves`: the bytes, for digits cost more than the digest itself."""
        return f"sha256(convert_to({text}, 'UTF8'))"

    def half(self, name: str, at: int) -> str:
        """See `TableReader.half`."""
        size = HALF // 2
        parts = (f"get_byte({name}, {at * size + one})::bigint << {8 * (size - 1 - one)}" for one in range(size))
        return " | ".join(f"({part})" for part in parts)

    def once(self, span: Span, table: str) -> str:
        """See `TableReader.once`: several processes may read a whole table, as the server is set."""
        return " OFFSET 0" if span.column else f" UNION ALL SELECT NULL, NULL FROM {table} WHERE false"  # noqa: S608 quoted

    def added(self, digest: str) -> str:
        """See `TableReader.added`."""
        return f"SUM({digest})"
