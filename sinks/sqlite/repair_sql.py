"""Statements that repair rows of an SQLite target."""

from collections.abc import Iterable, Sequence
from math import isfinite
from pathlib import Path

from ordering.errors import TargetError
from sinks.compare.repair_sql import Mender, NameSpeller, padded, stands_bare
from sinks.compare.value_forms import INFINITIES, Form, Pair
from sinks.rows.chained import chained
from sinks.rows.plain_values import is_number, is_whole
from sinks.rows.schema import Column, Shape
from sinks.sqlite.catalog import file_of, quoted_database
from sinks.sqlite.ddl.schema_text import literal

_LEAST, _LARGEST = -(2**63), 2**63 - 1
_ODD = ("blob ", "text ")
"""How the reader's text of a value begins that has another storage class than its column's."""
_ROW_IDS = ("rowid", "_rowid_", "oid")


def _real(text: str) -> str:
    """A number as SQLite's literal; one beyond its range is the infinity that SQLite makes of it."""
    number = float(text)
    return repr(number) if isfinite(number) else f"{'-' * (number < 0)}9e999"


class SqliteMender(Mender):
    """Values have the types in which the sink writes them; floats are compared as the sink's reader spells them."""

    def __init__(self, reader: NameSpeller, directory: Path) -> None:
        super().__init__(reader)
        self._directory = directory

    def head(self, databases: Iterable[str]) -> list[str]:
        """See `Mender.head`."""
        files = ((d, str(file_of(self._directory.absolute(), d))) for d in databases)
        attached = [f"ATTACH DATABASE {literal(path)} AS {quoted_database(d)};" for d, path in files]
        return ["PRAGMA foreign_keys = OFF;", *attached, "BEGIN;"]

    def literal(self, pair: Pair, text: str) -> str:
        """See `Mender.literal`."""
        shape = pair.right.shape
        if shape is Shape.BYTES and stands_bare(Form.BYTES, text):
            return f"X'{text}'"
        if shape is Shape.REAL and is_number(text):
            return _real(text)
        if shape in {Shape.INTEGER, Shape.EXACT} and is_whole(text) and _LEAST <= int(text) <= _LARGEST:
            return text
        return self.text(padded(pair, text))

    def quick(self, pair: Pair, text: str) -> str:
        """See `Mender.quick`."""
        is_odd = text.startswith(_ODD)  # or only looks like a value of another storage class
        if pair.right.shape not in {Shape.INTEGER, Shape.TEXT} or pair.digits or is_odd:
            return ""
        return f"{self._reader.quoted(pair.right.name)} = {self.literal(pair, text)}"

    def _where(self, pairs: Sequence[Pair], row: Sequence[str | None]) -> str:
        """A client has no function of ours: floats are compared as numbers."""
        found = []
        for pair, text in zip(pairs, row, strict=True):
            if text is not None and pair.form in {Form.REAL, Form.FLOAT}:
                found.append(self._is_float(pair.right, text))
            else:
                found.append(super()._where([pair], [text]))
        return chained(" AND ", found)

    def _is_float(self, column: Column, text: str) -> str:
        """A column that is not of numbers may hold one as a text."""
        name, odd = self._reader.quoted(column.name), text.startswith(_ODD)
        found = [f"{name} = {_real(text)}"] if is_number(text) or text in INFINITIES else []
        found += [f"typeof({name}) || ' ' || hex({name}) = {self.text(text)}"] if odd else []
        found += [f"{name} = {self.text(text)}"] if column.shape is not Shape.REAL else []
        return f"({' OR '.join(found)})"

    def text(self, text: str) -> str:
        """See `Mender.text`: by its bytes where a line would not hold it."""
        return (
            literal(text) if text.isprintable() else f"CAST(X'{text.encode(errors='surrogateescape').hex()}' AS TEXT)"
        )

    def exactly(self, spelled: str) -> str:
        """See `Mender.exactly`."""
        return f"({spelled}) COLLATE BINARY"

    def delete_copy(self, place: str, where: str, columns: Sequence[Column]) -> str:
        """See `Mender.delete_copy`."""
        taken = {column.name.lower() for column in columns}
        row_id = next((name for name in _ROW_IDS if name not in taken), None)
        if row_id is None:
            raise TargetError(f"the columns of {place} take all names of SQLite's row id: {', '.join(_ROW_IDS)}")
        return f"DELETE FROM {place} WHERE {row_id} IN (SELECT {row_id} FROM {place} WHERE {where} LIMIT 1)"  # noqa: S608 quoted
