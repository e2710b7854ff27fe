"""Which VIRTUAL columns MariaDB computes as TiDB does: no message has their values, so others are refused.

MariaDB divides DOUBLEs with the scale of DECIMALs, cuts fractions of seconds where TiDB rounds, and its session has a
time zone of its own. What is listed here gave the same in `tests.differential`. Pure.
"""

from sinks.ddl.model import ColumnDef
from sinks.ddl.parse.lexer import Canonical
from sinks.ddl.parse.words import Word, WordKind, Words

_FUNCTIONS = frozenset({
    "ABS", "ASCII", "CASE", "CHARACTER_LENGTH", "CHAR_LENGTH", "COALESCE", "CONCAT", "CONCAT_WS", "CRC32", "DATE",
    "DAY", "DAYOFMONTH", "DAYOFYEAR", "GREATEST", "HEX", "HOUR", "IF", "IFNULL", "INSTR", "JSON_EXTRACT",
    "JSON_UNQUOTE", "JSON_VALID", "LCASE", "LEAST", "LEFT", "LENGTH", "LOCATE", "LOWER", "LPAD", "LTRIM", "MD5",
    "MINUTE", "MOD", "MONTH", "NULLIF", "OCTET_LENGTH", "QUARTER", "REPEAT", "REPLACE", "REVERSE", "RIGHT", "RPAD",
    "RTRIM", "SECOND", "SHA", "SHA1", "SHA2", "SIGN", "STRCMP", "SUBSTR", "SUBSTRING", "SUBSTRING_INDEX", "TO_DAYS",
    "TRIM", "UCASE", "UNHEX", "UPPER", "WEEKDAY", "YEAR",
})  # fmt: skip
_OPERATORS = frozenset({
    "(", ")", ",", "+", "-", "*", "%", "=", "<", ">", "<=", ">=", "<>", "!=", "<=>", "!", "&&", "||", "&", "|",
    "DIV", "AND", "OR", "XOR", "NOT", "IN", "IS", "NULL", "TRUE", "FALSE", "BETWEEN", "LIKE", "THEN", "WHEN", "ELSE",
    "END", "BINARY",
})  # fmt: skip
_ROUNDED = frozenset({"time", "datetime", "timestamp", "float"})
"""Types into which the two convert in different ways."""


def unlike(column: ColumnDef) -> str:
    """What in a VIRTUAL column MariaDB may compute otherwise; empty for nothing."""
    if column.generated is None:
        return ""
    if column.type.base in _ROUNDED:
        return column.type.base.upper()
    words = Words(Canonical(column.generated.expression)).words
    return next((word.text.upper() for word in words if not _is_alike(word)), "")


def _is_alike(word: Word) -> bool:
    if word.kind is not WordKind.PLAIN:
        return True
    text = word.text.upper()
    return text in _FUNCTIONS or text in _OPERATORS or text.replace(".", "", 1).isdecimal() or text.startswith("_UTF8")
