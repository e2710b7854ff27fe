"""Statements that repair rows of a MySQL-family target."""

from collections.abc import Iterable, Sequence

from ordering.errors import TargetError
from sinks.compare.repair_sql import Mender, stands_bare
from sinks.compare.value_forms import Form, Pair
from sinks.mysql.connection import SQL_MODE
from sinks.rows.schema import Column

_PLAIN = {Form.NUMBER, Form.BITS}
_QUICK = {Form.DATE, Form.DATETIME, Form.TIMESTAMP, Form.TIME}


class MysqlMender(Mender):
    """As the sink's own connection is set: strict, UTC, foreign keys silent."""

    def head(self, databases: Iterable[str]) -> list[str]:
        """See `Mender.head`."""
        del databases
        return [
            "SET NAMES utf8mb4 COLLATE utf8mb4_bin;",
            f"SET SESSION sql_mode = '{SQL_MODE}';",
            "SET SESSION time_zone = '+00:00';",
            "SET SESSION foreign_key_checks = 0;",
            "SET SESSION unique_checks = 1 /*M! , check_constraint_checks = 0 */;",
            "START TRANSACTION;",
        ]

    def literal(self, pair: Pair, text: str) -> str:
        """See `Mender.literal`."""
        if not stands_bare(pair.form, text):
            return self.text(text)
        if pair.form is Form.BYTES:
            return f"X'{text}'"
        if pair.form in {Form.REAL, Form.FLOAT}:
            return text if "e" in text.lower() else f"{text}e0"
        return text

    def quick(self, pair: Pair, text: str) -> str:
        """See `Mender.quick`."""
        name = self._reader.quoted(pair.right.name)
        if pair.form is Form.BYTES:
            return f"{name} = {self.literal(pair, text)}"
        if pair.form is Form.TEXT and not pair.right.members:
            return f"{name} = {self.text(text)}"
        if pair.form in _QUICK:
            return f"{name} = {self.text(text)}"
        return f"{name} = {self.literal(pair, text)}" if pair.form in _PLAIN else ""

    def text(self, text: str) -> str:
        """See `Mender.text`: readable where it is, else by its bytes, which no mode of the server reads another way."""
        if text.isascii() and text.isprintable() and not {"'", "\\"} & set(text):
            return f"'{text}'"
        try:
            return self.characters(text.encode().hex())
        except UnicodeEncodeError as error:
            raise TargetError(f"{text[:50]!r} is no text of whole characters") from error

    def characters(self, digits: str) -> str:
        """A text by its bytes: a literal, which takes the collation of the column that it is compared with."""
        return f"_utf8mb4 X'{digits}'"

    def exactly(self, spelled: str) -> str:
        """See `Mender.exactly`: collations fold, and pad with spaces."""
        return f"CAST({spelled} AS BINARY)"

    def delete_copy(self, place: str, where: str, columns: Sequence[Column]) -> str:
        """See `Mender.delete_copy`."""
        del columns
        return f"DELETE FROM {place} WHERE {where} LIMIT 1"  # noqa: S608 quoted


class TidbMender(MysqlMender):
    """TiDB's.

    Of a column that equals a text its planner takes that text for the column's bytes, too: `k = 'b'` beside
    `CAST(k AS BINARY) = 'b'` finds the row 'b ' of a collation that pads. Of a range it does not.
    """

    def quick(self, pair: Pair, text: str) -> str:
        """See `Mender.quick`."""
        if pair.form is Form.TEXT and not pair.right.members:
            name, value = self._reader.quoted(pair.right.name), self.text(text)
            return f"{name} >= {value} AND {name} <= {value}"
        return super().quick(pair, text)

    def characters(self, digits: str) -> str:
        """See `MysqlMender.characters`: TiDB takes such a literal for bytes."""
        return f"CONVERT(X'{digits}' USING utf8mb4)"

    def head(self, databases: Iterable[str]) -> list[str]:
        """See `Mender.head`."""
        return ["SET SESSION allow_auto_random_explicit_insert = 1;", *super().head(databases)]
