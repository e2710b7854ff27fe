"""Which VIRTUAL columns MySQL and MariaDB compute as TiDB does: no message has their values, so others are refused.

So are STORED ones of a dump, which lacks their values.

Both spell DOUBLE and FLOAT in another way where these become texts, MySQL also JSON objects. MariaDB divides DOUBLEs
with the scale of DECIMALs, cuts fractions of seconds where TiDB rounds, and its session has a time zone of its own.
MySQL divides whole numbers to fewer digits, and rounds a moment to a day where TiDB cuts it. What is listed here gave
the same in `tests.differential`, or side by side on TiDB and MySQL. Pure.
"""

import re
from collections.abc import Collection, Iterable, Mapping

from sinks.ddl.model import ColumnDef, TypeDef
from sinks.ddl.parse.lexer import Canonical
from sinks.ddl.parse.words import Word, WordKind, Words
from sinks.ddl.rows.default_values import BYTES, INTEGERS, REALS

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
_ON_MYSQL = frozenset({
    "AS", "BIN", "CAST", "CEIL", "CEILING", "CHAR", "CONV", "DATEDIFF", "DATETIME", "DATE_ADD", "DATE_FORMAT",
    "DAYNAME", "DECIMAL", "ELT", "FIELD", "FLOOR", "FORMAT", "FROM_DAYS", "INTERVAL", "JSON_LENGTH", "LAST_DAY",
    "MICROSECOND", "ROUND", "SIGNED", "SQRT", "TIMESTAMPDIFF", "TIME_TO_SEC", "TO_BASE64", "TRUNCATE", "UNSIGNED",
    "WEEK", "->", "->>", "<<",
})  # fmt: skip
"""What is alike on MySQL besides."""
_ROUNDED = frozenset({"time", "datetime", "timestamp", "float"})
"""Types into which MariaDB and TiDB convert in different ways."""
_AS = re.compile(r"\bAS\b", re.IGNORECASE)
_DAYS = frozenset({"DATE", "CAST", "LAST_DAY", "FROM_DAYS"})
"""Functions that give days, so that no moment is left to become one."""


_OF_NUMBERS = frozenset({
    "ABS", "AS", "CASE", "CAST", "CEIL", "CEILING", "COALESCE", "DECIMAL", "FLOOR", "GREATEST", "IF", "IFNULL", "LEAST",
    "MOD", "NULLIF", "ROUND", "SIGN", "SIGNED", "SQRT", "TRUNCATE", "UNSIGNED",
})  # fmt: skip
"""Functions that make no text of a number."""
_IN_JSON = frozenset({"JSON_EXTRACT", "JSON_LENGTH", "JSON_VALID", "->", "->>"})
"""What takes a value out of a JSON, which is rarely an object."""
_OF_BYTES = frozenset({
    "ASCII", "BINARY", "CRC32", "HEX", "LENGTH", "MD5", "OCTET_LENGTH", "SHA", "SHA1", "SHA2", "TO_BASE64", "UNHEX",
})  # fmt: skip
"""What shows how a text is encoded."""
_ALIKE_ENCODED = frozenset({"", "ascii", "binary", "utf8", "utf8mb3", "utf8mb4"})
"""Character sets whose texts have the same bytes everywhere: TiDB keeps latin1 in UTF-8, MariaDB has no gb18030."""
_NUMERIC = INTEGERS | REALS | {"decimal", "bit", "year"}


TYPES = """
SELECT COLUMN_NAME, DATA_TYPE, CHARACTER_SET_NAME FROM information_schema.COLUMNS
WHERE TABLE_SCHEMA = %s AND TABLE_NAME = %s"""
TABLE_COLLATION = """
SELECT TABLE_COLLATION FROM information_schema.TABLES WHERE TABLE_SCHEMA = %s AND TABLE_NAME = %s"""
DATABASE_COLLATION = "SELECT DEFAULT_COLLATION_NAME FROM information_schema.SCHEMATA WHERE SCHEMA_NAME = %s"
"""What a server says of columns, and of what is said of none."""


def may_compute(sql: str) -> bool:
    """Whether a statement may define a column that is computed."""
    return _AS.search(sql) is not None


def unlike(column: ColumnDef, types: Mapping[str, TypeDef], *, mariadb: bool) -> str:
    """What in a generated column the server may compute otherwise; empty for nothing.

    `types`: of the table's columns, as far as they are known, by their names in lower case.
    """
    if column.generated is None:
        return ""
    words = Words(Canonical(column.generated.expression)).words
    base, first = column.type.base, next((word.text.upper() for word in words if word.text != "("), "")
    if base in _ROUNDED if mariadb else base == "time" or (base == "date" and first not in _DAYS):
        return base.upper()
    alike = _FUNCTIONS | _OPERATORS if mariadb else _FUNCTIONS | _OPERATORS | _ON_MYSQL
    unknown = next((word.text.upper() for word in words if not _is_alike(word, alike)), "")
    read = [types[word.text.lower()] for word in words if word.kind is WordKind.NAME and word.text.lower() in types]
    plain = {word.text.upper() for word in words if word.kind is WordKind.PLAIN}
    return unknown or _spelled_otherwise(base, plain, read, mariadb=mariadb) or _encoded_otherwise(base, plain, read)


def _encoded_otherwise(base: str, plain: Collection[str], types: Iterable[TypeDef]) -> str:
    """The character set of a column whose bytes are looked at and are others upstream; empty if none are."""
    if base not in BYTES and not _OF_BYTES & set(plain):
        return ""
    charsets = {kind.charset or kind.collation.partition("_")[0] for kind in types}
    return next((f"bytes of {charset}" for charset in sorted(charsets - _ALIKE_ENCODED)), "")


def _spelled_otherwise(base: str, plain: Collection[str], types: Iterable[TypeDef], *, mariadb: bool) -> str:
    """The type of a column that becomes a text which the server spells otherwise; empty if none does."""
    read = {kind.base for kind in types}
    is_text = base not in _NUMERIC or bool(((_FUNCTIONS | _ON_MYSQL) - _OF_NUMBERS) & set(plain)) or "LIKE" in plain
    if is_text and (reals := read & REALS):
        return f"{min(reals).upper()} as text"
    if not mariadb and is_text and base != "json" and "json" in read and not _IN_JSON & set(plain):
        return "JSON as text"
    return ""


def _is_alike(word: Word, alike: Collection[str]) -> bool:
    if word.kind is not WordKind.PLAIN:
        return True
    text = word.text.upper()
    return text in alike or text.replace(".", "", 1).isdecimal() or text.startswith("_UTF8")
