"""Statements that repair rows of a PostgreSQL target."""

from collections.abc import Iterable, Sequence

from sinks.compare.repair_sql import Mender, stands_bare
from sinks.compare.value_forms import Form, Pair
from sinks.postgres.catalog import has_equality
from sinks.postgres.names import literal
from sinks.rows.plain_values import is_unsigned
from sinks.rows.schema import Column

_QUICK = {Form.NUMBER, Form.TEXT, Form.DATE, Form.DATETIME, Form.TIMESTAMP, Form.TIME, Form.BYTES}


_SETTINGS = {
    "statement_timeout": "0",
    "client_encoding": "UTF8",
    "standard_conforming_strings": "on",
    "search_path": "pg_catalog",
    "timezone": "UTC",
    "datestyle": "ISO, YMD",
    "intervalstyle": "postgres",
    "extra_float_digits": "1",
    "bytea_output": "hex",
    "row_security": "off",
}
"""What statements mean by, and the spelling of values that they compare: as the sink's own session. Without
`row_security` off a statement would pass over rows that policies hide; with it, it is an error."""


_SILENT = (
    "-- triggers and foreign keys would change rows that are not shown here; see GRANT SET ON PARAMETER",
    "SET LOCAL session_replication_role = 'replica';",
)
"""Within the transaction: where it is refused, nothing of it counts."""


class PostgresMender(Mender):
    """Triggers and foreign keys do not act, as in the sink's own session."""

    overriding = " OVERRIDING SYSTEM VALUE"

    def head(self, databases: Iterable[str]) -> list[str]:
        """See `Mender.head`."""
        del databases
        return [*(f"SET {name} = '{value}';" for name, value in _SETTINGS.items()), "BEGIN;", *_SILENT]

    def literal(self, pair: Pair, text: str) -> str:
        """See `Mender.literal`."""
        column = pair.right
        if pair.form is Form.BYTES and stands_bare(pair.form, text):
            return f"decode('{text}', 'hex')"
        if pair.form is Form.BITS and is_unsigned(text) and column.type.startswith("bit"):
            width = int(column.type.partition("(")[2].rstrip(")") or 1)
            return f"B'{int(text):0{width}b}'"
        if pair.form is Form.TIMESTAMP:
            text += "+00"
        return f"{self.text(text)}::{column.type}"

    def quick(self, pair: Pair, text: str) -> str:
        """See `Mender.quick`."""
        if pair.form not in _QUICK or not pair.exact or not has_equality(pair.right):
            return ""
        return f"{self._reader.quoted(pair.right.name)} = {self.literal(pair, text)}"

    def text(self, text: str) -> str:
        """See `Mender.text`: one line, whatever it holds."""
        if text.isprintable() or "\0" in text:
            return literal(text)
        return "E'" + "".join(_escaped(char) for char in text) + "'"

    def exactly(self, spelled: str) -> str:
        """See `Mender.exactly`."""
        return f'({spelled}) COLLATE "C"'

    def delete_copy(self, place: str, where: str, columns: Sequence[Column]) -> str:
        """See `Mender.delete_copy`."""
        del columns
        one = f"SELECT tableoid, ctid FROM {place} WHERE {where} LIMIT 1"  # noqa: S608 quoted
        return f"DELETE FROM {place} WHERE (tableoid, ctid) IN ({one})"  # noqa: S608 quoted


def _escaped(char: str) -> str:
    if char in "'\\":
        return char * 2
    return char if char.isprintable() else f"\\U{ord(char):08x}"
