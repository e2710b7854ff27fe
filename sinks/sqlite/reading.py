"""How SQLite spells values, rows and digests. Its columns store whatever they are given: the other side tells the form.

A reader holds a lock under which nobody commits to these files: more than one would only wait for each other.
"""

import sqlite3
from collections.abc import Callable, Sequence
from decimal import Decimal
from hashlib import sha256
from pathlib import Path
from typing import Any

from ordering.events import TableName
from sinks.forms import Form, Trait
from sinks.reading import DIGITS, Reader
from sinks.schema import Catalog, Column, Shape
from sinks.sqlite.catalog import place_of
from sinks.sqlite.mending import SqliteMender
from sinks.sqlite.schema_text import quoted

_DIGEST, _ADDED, _REAL = "ticdc_digest", "ticdc_added", "ticdc_real"
_FRACTIONS = {Form.DATETIME, Form.TIMESTAMP, Form.TIME}
_PLAIN_FROM, _PLAIN_TO = 1e-4, 1e15
"""Between these servers spell floats without an exponent."""


def digest_of(text: bytes) -> int:
    """The digest of a row's text, as every dialect computes it."""
    return int(sha256(text).hexdigest()[:DIGITS], 16)


def real_text(number: float) -> str:
    """A float as servers spell it, in the usual range."""
    plain = _PLAIN_FROM <= abs(number) < _PLAIN_TO
    return format(Decimal(repr(number)), "f").removesuffix(".0") if plain or not number else repr(number)


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


class SqliteReader(Reader):
    """A connection with all databases of a directory attached."""

    several = False

    def __init__(self, run: Callable[[str], sqlite3.Cursor], catalog: Callable[[], Catalog], directory: Path) -> None:
        self._run, self._catalog, self._directory = run, catalog, directory
        self._connection: sqlite3.Connection | None = None

    def begin(self, snapshot: str = "") -> str:
        """See `Reader.begin`."""
        del snapshot
        connection = self._run("SELECT 1").connection
        connection.create_function(_DIGEST, 1, digest_of, deterministic=True)
        connection.create_function(_REAL, 1, _real, deterministic=True)
        connection.create_aggregate(_ADDED, 1, _Added)  # type: ignore[arg-type]  # its sum is a text
        connection.rollback()
        self._run("BEGIN")
        # every commit of ours writes the file of the progress: locked first, it keeps all others from changing
        self._run("SELECT COUNT(*) FROM main.checkpoint").fetchall()
        self._connection = connection
        return ""

    def mender(self) -> SqliteMender:
        """See `Reader.mender`."""
        return SqliteMender(self, self._directory)

    def query(self, sql: str) -> list[tuple[Any, ...]]:
        """See `Reader.query`."""
        return self._run(sql).fetchall()

    def catalog(self) -> Catalog:
        """See `Reader.catalog`."""
        return self._catalog()

    def close(self) -> None:
        """Let go of the lock; the connection is the target's."""
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    def place(self, table: TableName) -> str:
        """See `Reader.place`."""
        return place_of(table)

    def quoted(self, name: str) -> str:
        """See `Reader.quoted`."""
        return quoted(name)

    def is_comparable(self, column: Column) -> bool:
        """See `Reader.is_comparable`."""
        del column
        return True

    def trait(self, column: Column) -> Trait | None:
        """See `Reader.trait`."""
        del column
        return None

    def is_whole_number(self, column: Column) -> bool:
        """See `Reader.is_whole_number`: what passes 64 bits is a text, and texts lie above all numbers."""
        return column.shape is Shape.INTEGER

    def text(self, form: Form, column: Column) -> str:
        """See `Reader.text`."""
        name = quoted(column.name)
        if form is Form.BYTES:
            return f"CASE WHEN {name} IS NOT NULL THEN hex({name}) END"  # of NULL it makes an empty text
        if form in {Form.REAL, Form.FLOAT}:
            return f"{_REAL}({name})"
        if form in _FRACTIONS:
            return f"CASE WHEN instr({name}, '.') THEN rtrim(rtrim({name}, '0'), '.') ELSE CAST({name} AS TEXT) END"
        return f"CAST({name} AS TEXT)"

    def sized(self, text: str) -> str:
        """See `Reader.sized`."""
        return f"(length(CAST({text} AS BLOB)) || ':' || {text})"

    def joined(self, parts: Sequence[str]) -> str:
        """See `Reader.joined`."""
        return " || '|' || ".join(parts) if parts else "''"

    def digest(self, text: str) -> str:
        """See `Reader.digest`."""
        return f"{_DIGEST}(CAST({text} AS BLOB))"

    def added(self, digest: str) -> str:
        """See `Reader.added`."""
        return f"{_ADDED}({digest})"


def _real(value: object) -> str | None:
    if value is None:
        return None
    return real_text(float(value)) if isinstance(value, int | float) else str(value)
