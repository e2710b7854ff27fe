"""What TiDB makes of values when their column gets another type: every pair of types, recorded as a vector.

    python -m tests.differential.pairs OUT.json.gz [OUT-LOOSE.json.gz]

The second file gets what a session without strict mode makes of values that strict mode refuses.
`{"old -> new": [[before, after], ...]}`, texts as messages spell values; only what TiDB takes. A value is copied from
one table into another by INSERT, which converts as MODIFY COLUMN does and is fifty times as fast.
"""

import gzip
import json
import sys
import tempfile
from pathlib import Path
from urllib.parse import urlsplit

import pymysql

from sinks.ddl.model import TypeDef
from sinks.ddl.parse.columns import read_type
from sinks.ddl.parse.words import Words
from tests.embedded import TidbServer

INTS = ("0", "1", "-1", "5", "24", "70", "99", "100", "127", "2024", "101112", "20240102", "1901")
BIGS = (*INTS, "9223372036854775807", "20240102030405", "101112000000", "-9223372036854775808")
UNSIGNED = (*(text for text in BIGS if text[0] != "-"), "18446744073709551615", "9223372036854775808")
REALS = (
    "0", "0.5", "1.5", "2.5", "-0.5", "-2.5", "0.1", "2.55", "1.005", "16777217", "1e20", "1e15", "1e-7", "0.000001",
    "123456.789", "101112", "20240102", "24", "1e30", "3.3333333333",
)  # fmt: skip
DECIMALS = (
    "0", "0.5", "1.5", "2.5", "-0.5", "-1.5", "2.55", "2.455", "101112.5", "20240102", "24.4", "24.5", "0.05", "0.25",
    "0.35", "99.9",
)  # fmt: skip
TEXTS = (
    "''", "'a'", "'b'", "'15'", "'2'", "'1'", "'2.5'", "'1e2'", "'-1'", "'  7 '", "'2024'", "'24'", "'0'", "'70'",
    "'20240102'", "'2024-01-02'", "'24-01-02'", "'2024-1-2 3:4:5'", "'2024-01-02 03:04:05.5'",
    "'2024-01-02 23:59:59.9999999'", "'10:11:12'", "'101112'", "'10:11'", "'-01:02:03.5'", "'1 02:03:04'",
    "'10:11:12.5'", "'x,y'", "'z,x'", "'X'", "'A'", "'null'", "'1.0'", "'[1, 2]'", "'{\"a\":1}'", "'\"q\"'", "'true'",
    "'é'", "'ab'", "'18446744073709551615'", "'1e20'", "'-0.5'", "'0.5'", "'3'", "'-00:00:00.5'",
)  # fmt: skip
MOMENTS = (
    "'2024-01-02 03:04:05'", "'1999-12-31 23:59:59'", "'1970-01-01 00:00:01'", "'2024-02-29 12:00:00'",
    "'2024-01-02 03:04:05.5'", "'1999-12-31 23:59:59.5'", "'1999-12-31 23:59:59.499'", "'1990-05-05 05:05:05.0505'",
    "'1999-12-31 23:59:59.999999'", "'2024-01-02 03:04:05.123456'", "'1985-01-01 00:00:00.125'",
)  # fmt: skip
TIMES = (
    "'10:11:12'", "'-10:11:12'", "'838:59:59'", "'00:00:00'", "'-00:00:01'", "'25:00:00'", "'10:11:12.5'",
    "'-10:11:12.5'", "'-00:00:00.5'", "'00:00:00.499'", "'-00:00:01.499'", "'23:59:59.999'",
)  # fmt: skip
TYPES: dict[str, tuple[str, ...]] = {
    "TINYINT": INTS, "SMALLINT UNSIGNED": INTS, "INT": INTS, "BIGINT": BIGS, "BIGINT UNSIGNED": UNSIGNED,
    "DECIMAL(12,3)": DECIMALS, "DECIMAL(30,0)": UNSIGNED, "DECIMAL(4,1)": DECIMALS,
    "FLOAT": REALS, "DOUBLE": REALS, "FLOAT(7,2)": REALS, "DOUBLE(9,3)": REALS,
    "VARCHAR(40)": TEXTS, "CHAR(12)": TEXTS, "TEXT": TEXTS,
    "VARBINARY(30)": (*TEXTS, "x'00'", "x'ff00'"), "BINARY(8)": TEXTS, "BLOB": (*TEXTS, "x'00ff'"),
    "YEAR": ("2024", "1999", "2070", "1970", "0"),
    "BIT(9)": ("0", "1", "5", "65", "255", "300"),
    "BIT(64)": ("0", "2", "18446744073709551615", "9223372036854775808", "16961"),
    "ENUM('a','b','15','2')": ("'a'", "'b'", "'15'", "'2'"),
    "SET('x','y','z')": ("''", "'x'", "'x,y'", "'z'", "'x,y,z'"),
    "DATETIME": MOMENTS, "DATETIME(3)": MOMENTS, "DATETIME(6)": MOMENTS, "TIMESTAMP": MOMENTS,
    "TIMESTAMP(2)": MOMENTS, "DATE": MOMENTS, "TIME": TIMES, "TIME(3)": TIMES,
    "JSON": ("'1'", "'2.5'", "'\"ab\"'", "'null'", "'true'", "'[1,2]'", "'{\"b\":1,\"a\":2}'", "'1e20'"),
}  # fmt: skip
GOALS = (
    *TYPES, "VARCHAR(3)", "ENUM('b','15','a','A b')", "SET('z','y','x')", "TIME(6)", "TINYINT UNSIGNED", "MEDIUMINT",
    "BIT(1)", "CHAR(40)", "DATETIME(1)", "DECIMAL(20,6)", "MEDIUMTEXT",
)  # fmt: skip
TODAY = ("TIME", "DATE")
"""A TIME becomes a date of the day of its conversion: in no recording."""
_BYTES = {"binary", "varbinary", "blob"}


def kind_of(text: str) -> TypeDef:
    """A type by its text."""
    return read_type(Words(text))


class Upstream:
    """A TiDB, and the values of one type in it."""

    def __init__(self, cursor: pymysql.cursors.Cursor) -> None:
        self._cursor = cursor
        cursor.execute("CREATE DATABASE pairs")
        cursor.execute("USE pairs")

    def values(self, kind: str) -> dict[int, str]:
        """Fill the table of values; their texts by number."""
        self._made("old", kind)
        for number, literal in enumerate(TYPES[kind]):
            self._taken(f"INSERT INTO old VALUES ({number}, {literal})")
        return self._read("old", kind)

    def converted(self, kind: str, numbers: list[int]) -> dict[int, str]:
        """The values in another type; those that can't be are left out."""
        self._made("new", kind)
        self._copy(numbers)
        return self._read("new", kind)

    def _copy(self, numbers: list[int]) -> None:
        """All at once, or by halves."""
        ids = ", ".join(map(str, numbers))
        if not numbers or self._taken(f"INSERT INTO new SELECT id, c FROM old WHERE id IN ({ids})"):
            return
        half = len(numbers) // 2
        for some in (numbers[:half], numbers[half:]) if half else ():
            self._copy(some)

    def _made(self, table: str, kind: str) -> None:
        self._cursor.execute(f"DROP TEMPORARY TABLE IF EXISTS {table}")
        self._cursor.execute(f"CREATE TEMPORARY TABLE {table} (id INT PRIMARY KEY, c {kind})")

    def _taken(self, statement: str) -> bool:
        try:
            self._cursor.execute(statement)
        except pymysql.MySQLError:
            return False
        return True

    def _read(self, table: str, kind: str) -> dict[int, str]:
        base = kind_of(kind).base
        shown = {"enum": "c + 0", "set": "c + 0", "bit": "c + 0", "float": "c + 0e0"}.get(base, "c")
        look = f"SELECT id, {f'HEX({shown})' if base in _BYTES else f'CAST({shown} AS CHAR)'} FROM {table}"
        self._cursor.execute(look)
        found = {int(number): str(text) for number, text in self._cursor.fetchall()}
        return {n: bytes.fromhex(text).decode("latin-1") for n, text in found.items()} if base in _BYTES else found


def recorded(upstream: Upstream) -> dict[str, list[tuple[str, str]]]:
    """All pairs of types between which TiDB converts a value."""
    found = {}
    for old in TYPES:
        before = upstream.values(old)
        for new in GOALS:
            if new == old or (old.startswith(TODAY[0]) and not old.startswith("TIMESTAMP") and "DATE" in new):
                continue
            after = upstream.converted(new, list(before))
            found[f"{old} -> {new}"] = [(before[n], text) for n, text in after.items()]
    return {pair: values for pair, values in found.items() if values}


def main() -> int:
    """Record."""
    with tempfile.TemporaryDirectory(prefix="pairs-") as place, TidbServer(Path(place)) as server:
        address = urlsplit(server.uri)
        connection = pymysql.connect(host=address.hostname, port=address.port, user="root", autocommit=True)
        cursor = connection.cursor()
        upstream = Upstream(cursor)
        strict = recorded(upstream)
        cursor.execute("SET sql_mode = ''")
        loose = {
            pair: [one for one in values if one not in strict.get(pair, ())]
            for pair, values in recorded(upstream).items()
        }
    for path, pairs in zip(sys.argv[1:], (strict, loose), strict=False):
        text = json.dumps({pair: values for pair, values in pairs.items() if values}, ensure_ascii=False, indent=0)
        Path(path).write_bytes(gzip.compress(text.encode(), mtime=0))
    return 0


if __name__ == "__main__":
    sys.exit(main())
