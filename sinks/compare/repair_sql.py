"""SQL that makes rows of a target as they are upstream: values as literals, names quoted, one statement a line.

It is for people to read before they run it with the database's own client.
"""

from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from typing import Protocol

from ordering.events import TableName
from sinks.compare.value_forms import Form, Pair
from sinks.rows.chained import chained
from sinks.rows.plain_values import is_hex, is_number
from sinks.rows.schema import Column, TableSchema

Texts = Sequence[str | None]
_NUMBERS = {Form.NUMBER, Form.REAL, Form.FLOAT, Form.BITS}


class NameSpeller(Protocol):
    """How a dialect's reader spells names and values; so statements find what it has read."""

    def place(self, table: TableName) -> str:
        """A table's name, quoted."""

    def quoted(self, name: str) -> str:
        """A column's name, quoted."""

    def text(self, form: Form, column: Column) -> str:
        """A column's value as the text that stands for it."""


class Mender(ABC):
    """A dialect's way to write. Texts are those that its reader gives."""

    no_limit = False
    """Whether DELETE knows no LIMIT."""
    overriding = ""
    """What lets an INSERT give values to columns that the target numbers by itself."""

    def __init__(self, reader: NameSpeller) -> None:
        self._reader = reader

    @abstractmethod
    def head(self, databases: Iterable[str]) -> list[str]:
        """What comes before all other statements: settings, and the beginning of the transaction."""

    @abstractmethod
    def literal(self, pair: Pair, text: str) -> str:
        """A value of upstream for the target's column."""

    @abstractmethod
    def quick(self, pair: Pair, text: str) -> str:
        """A condition that an index helps with; holds for more values than this one at most. "" where there is none."""

    @abstractmethod
    def text(self, text: str) -> str:
        """A text as a literal, on one line."""

    @abstractmethod
    def delete_copy(self, place: str, where: str, columns: Sequence[Column]) -> str:
        """Delete one of the rows for which a condition is true."""

    def tail(self) -> list[str]:
        """What comes after all other statements."""
        return ["COMMIT;"]

    def delete(self, table: TableName, pairs: Sequence[Pair], row: Texts) -> str:
        """Delete the rows of a key."""
        return f"DELETE FROM {self._reader.place(table)} WHERE {self._where(pairs, row)};"  # noqa: S608 quoted

    def delete_one(self, table: TableName, pairs: Sequence[Pair], row: Texts, columns: Sequence[Column]) -> str:
        """Delete one of the rows that are just so."""
        return self.delete_copy(self._reader.place(table), self._where(pairs, row), columns) + ";"

    def insert(self, table: TableName, pairs: Sequence[Pair], row: Texts) -> str:
        """Insert a row of upstream."""
        written = [(p, text) for p, text in zip(pairs, row, strict=True) if not p.right.generated]
        names = ", ".join(self._reader.quoted(p.right.name) for p, _ in written)
        values = ", ".join(self._value(p, text) for p, text in written)
        return f"INSERT INTO {self._reader.place(table)} ({names}){self.overriding} VALUES ({values});"  # noqa: S608 quoted

    def update(
        self, table: TableSchema, keys: Sequence[Pair], key: Texts, changed: Sequence[tuple[Pair, str | None]]
    ) -> str:
        """Give the row of a key other values; columns that an UPDATE sets to the present are set to what they hold."""
        written = [(p, text) for p, text in changed if not p.right.generated]
        if not written:
            return ""
        values = {p.right.name: self._value(p, text) for p, text in written}
        kept = {c.name: self._reader.quoted(c.name) for c in table.columns if c.moved and c.name not in values}
        assigned = ", ".join(f"{self._reader.quoted(name)} = {value}" for name, value in {**values, **kept}.items())
        return f"UPDATE {self._reader.place(table.here)} SET {assigned} WHERE {self._where(keys, key)};"  # noqa: S608 quoted

    def _value(self, pair: Pair, text: str | None) -> str:
        return "NULL" if text is None or pair.meaning(text) is None else self.literal(pair, text)

    def _where(self, pairs: Sequence[Pair], row: Texts) -> str:
        """The rows whose texts are these: exact whatever the collation, and quick where an index can help."""
        found = []
        for pair, text in zip(pairs, row, strict=True):
            if text is None:
                found.append(f"{self._reader.quoted(pair.right.name)} IS NULL")
            else:
                spelled = self._reader.text(pair.form, pair.right)
                found += filter(None, [self.quick(pair, text), f"{self.exactly(spelled)} = {self.text(text)}"])
        return chained(" AND ", found)

    def exactly(self, spelled: str) -> str:
        """A text, to be compared byte by byte."""
        return spelled


def stands_bare(form: Form, text: str) -> bool:
    """Whether a value of this form may stand in a statement as it is, or between the quotes of X''.

    A side that stores whatever it is given may hold anything in such a column, SQL too: that goes as a text.
    """
    return is_hex(text) if form is Form.BYTES else form in _NUMBERS and is_number(text)


def padded(pair: Pair, text: str) -> str:
    """A time with as many digits of a second as the side that knows them has."""
    whole, _, fraction = text.partition(".")
    return f"{whole}.{fraction.ljust(pair.digits, '0')}" if pair.digits else text
