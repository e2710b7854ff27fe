"""How SQLite spells values, rows and digests. Its columns store whatever they are given: the other side tells the form.

A reader holds a lock under which nobody commits to these files: more than one would only wait for each other.
"""

import sqlite3
from collections.abc import Iterator, Sequence
from functools import partial
from hashlib import sha256
from pathlib import Path
from typing import Any

from ordering.events import TableName
from sinks.compare.digests import DIGITS, HALF, Span, TableReader
from sinks.compare.value_forms import Form, Trait, real_text
from sinks.rows.chained import chained
from sinks.rows.schema import Catalog, Column, Shape
from sinks.sqlite.catalog import place_of
from sinks.sqlite.ddl.schema_text import quoted
from sinks.sqlite.repair_sql import SqliteMender
from sinks.sqlite.session import SqliteSession
from sinks.target_session import TargetSession

_DIGEST, _ADDED, _REAL = "ticdc_digest", "ticdc_added", "ticdc_real"
_HASHED, _NUMBER = "ticdc_hashed", "ticdc_number"
_TEXT = partial(str, encoding="utf-8", errors="surrogateescape")
"""What somebody wrote by hand may be no UTF-8: it is a difference and no error."""
_FRACTIONS = {Form.DATETIME, Form.TIMESTAMP, Form.TIME}


def digest_of(text: bytes) -> int:
    """The digest of a row's text, as every dialect computes it."""
    return int(sha256(text).hexdigest()[:DIGITS], 16)


def _hashed(text: bytes | None) -> str | None:
    return None if text is None else sha256(text).hexdigest()


def _signed(digits: str) -> int:
    """SQLite's integers have a sign; modulo 2^64 it makes no difference."""
    number = int(digits, 16)
    return number - (1 << 64) if number >> 63 else number


class _Added:
    """A sum of any size: SQLite's own has 64 bits."""

    def __init__(self) -> None:
        self.total = 0

    def step(self, digest: int) -> None:
        """Add one."""
        self.total += digest

    def finalize(self) -> str:
        """The sum, as a text."""
        return str(self.total)


class SqliteReader(TableReader):
    """A connection with all databases of a directory attached."""

    several = False

    def __init__(self, at: TargetSession[SqliteSession], directory: Path) -> None:
        self._at, self._directory = at, directory
        self._connection: sqlite3.Connection | None = None

    def begin(self, snapshot: str = "") -> str:
        """See `TableReader.begin`."""
        del snapshot
        connection = self._at.db.execute("SELECT 1").connection
        connection.create_function(_DIGEST, 1, digest_of, deterministic=True)
        connection.create_function(_REAL, 1, _real, deterministic=True)
        connection.create_function(_HASHED, 1, _hashed, deterministic=True)
        connection.create_function(_NUMBER, 1, _signed, deterministic=True)
        connection.create_aggregate(_ADDED, 1, _Added)  # type: ignore[arg-type]  # its sum is a text
        connection.text_factory = _TEXT
        connection.rollback()
        self._at.db.execute("BEGIN")
        # every commit of ours writes the file of the progress: locked first, it keeps all others from changing
        self._at.db.execute("SELECT COUNT(*) FROM main.sqlite_master").fetchall()
        self._connection = connection
        return ""

    def mender(self) -> SqliteMender:
        """See `TableReader.mender`."""
        return SqliteMender(self, self._directory)

    def query(self, sql: str) -> list[tuple[Any, ...]]:
        """See `TableReader.query`."""
        return self._at.db.execute(sql).fetchall()

    def stream(self, sql: str) -> Iterator[tuple[Any, ...]]:
        """See `TableReader.stream`."""
        return self._at.db.stream(sql)

    def catalog(self) -> Catalog:
        """See `TableReader.catalog`."""
        return self._at.catalog()

    def close(self) -> None:
        """Let go of the lock; the connection is the target's."""
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    def place(self, table: TableName) -> str:
        """See `TableReader.place`."""
        return place_of(table)

    def quoted(self, name: str) -> str:
        """See `TableReader.quoted`."""
        return quoted(name)

    def is_comparable(self, column: Column) -> bool:
        """See `TableReader.is_comparable`."""
        del column
        return True

    def trait(self, column: Column) -> Trait | None:
        """See `TableReader.trait`."""
        del column
        return None

    def is_whole_number(self, column: Column) -> bool:
        """See `TableReader.is_whole_number`: what passes 64 bits is a text, and texts lie above all numbers."""
        return column.shape is Shape.INTEGER

    def text(self, form: Form, column: Column) -> str:
        """See `TableReader.text`."""
        name = quoted(column.name)
        odd = f"WHEN {_odd(column, name)} THEN typeof({name}) || ' ' || hex({name})"
        if form in {Form.REAL, Form.FLOAT}:
            return f"CASE {odd} ELSE {_REAL}({name}) END"
        if form is Form.BYTES:
            return f"CASE {odd} WHEN {name} IS NOT NULL THEN hex({name}) END"  # of NULL it makes an empty text
        if form in _FRACTIONS:
            odd += f" WHEN instr({name}, '.') THEN rtrim(rtrim({name}, '0'), '.')"
        return f"CASE {odd} ELSE CAST({name} AS TEXT) END"

    def late_value(self, form: Form, column: Column) -> str:
        """See `TableReader.late_value`: what somebody wrote by hand may be no UTF-8."""
        text = self.text(form, column)
        return text if form in {Form.REAL, Form.FLOAT} else f"CAST({text} AS BLOB)"

    def sized(self, text: str) -> str:
        """See `TableReader.sized`."""
        return f"(length(CAST({text} AS BLOB)) || ':' || {text})"

    def joined(self, parts: Sequence[str]) -> str:
        """See `TableReader.joined`."""
        return chained(" || '|' || ", parts) if parts else "''"

    def digest(self, text: str) -> str:
        """See `TableReader.digest`."""
        return f"{_DIGEST}(CAST({text} AS BLOB))"

    def hashed(self, text: str) -> str:
        """See `TableReader.hashed`."""
        return f"{_HASHED}(CAST({text} AS BLOB))"

    def half(self, name: str, at: int) -> str:
        """See `TableReader.half`."""
        return f"{_NUMBER}(SUBSTR({name}, {1 + HALF * at}, {HALF}))"

    def once(self, span: Span, table: str) -> str:
        """See `TableReader.once`."""
        del span, table
        return " LIMIT -1"

    def added(self, digest: str) -> str:
        """See `TableReader.added`."""
        return f"{_ADDED}({digest})"


def _odd(column: Column, name: str) -> str:
    """The condition that a value has another storage class than we give it, so that no statement of ours finds it.

    One bit of a record's header makes a text of a blob, and a text of a number equals no number
    (SQLite documentation, "Record Format" and "Datatypes In SQLite", 4.1).
    """
    if column.shape is Shape.BYTES:
        return f"typeof({name}) NOT IN ('blob', 'null')"
    if column.shape is Shape.REAL:
        return f"typeof({name}) IN ('blob', 'text')"
    if column.shape not in {Shape.INTEGER, Shape.EXACT}:
        return f"typeof({name}) = 'blob'"
    fits = f"CAST({name} AS TEXT) = CAST(CAST({name} AS INTEGER) AS TEXT)"  # larger ones are texts
    return f"typeof({name}) = 'blob' OR (typeof({name}) = 'text' AND {fits})"


def _real(value: object) -> str | None:
    if value is None:
        return None
    return real_text(float(value)) if isinstance(value, int | float) else str(value)
