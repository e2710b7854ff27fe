"""What rows that are there show in a new column: every type with many spellings of a default, recorded as a vector.

    python -m tests.differential.defaults PROGRAM OUT.json.gz

PROGRAM as in `tests.histories`. `[[clause, text or null], ...]`: the column's clause as a message has it, and TiDB's
cell as an oracle spells it; only what TiDB takes.
"""

import gzip
import json
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlsplit

import pymysql

from tests.embedded import TidbServer
from tests.histories.__main__ import recorded

MOMENTS = (
    "'2024-01-02 03:04:05'", "'2024-01-02 03:04:05.678'", "20240102030405", "'2024-1-2 3:4:5'", "'24-01-02'",
    "'2024-01-02'", "'20240102'", "20240102", "20240102030405", "'2024-01-02T03:04:05'", "'2024/01/02 03.04.05'",
    "'2024-01-02 23:59:59.9999999'", "'2024-01-02 23:59:59.6'", "'2024-01-02 03'", "'0000-00-00'", "'240102'",
    "240102", "240102030405", "'240102030405'", "'20240102T030405'", "20240102030405.6", "'20240102030405.678'",
    "'70-1-1'", "'2024-12-31 23:59:59.5'", "'2024^01^02'", "'2024-01-02 03:04'", "'2024-01-02 10:11:12.1234565'",
    "'2024.01.02 3:4:5'", "'2024.01.02'", "'2024.01.02 3.4'", "'2024-01-02  03:04:05'", "' 2024-01-02 03:04:05'",
    "'2024-01-02 03:04:05+02:00'", "'2024-01-02 03:04:05Z'", "'2024-01-02T03:04:05.5-05:00'",
    "'2024-01-02 03:04:05-05'",
    "'99-12-31 23:59:59.9999999'", "701231", "20240102.5", "0", "'0'", "'2024-01-02 03:04:05 '", "'2024010203'",
    "'24010203'", "'1-2-3'", "'100-2-3'", "'2024-0-0'", "'2024-02-30'", "101", "'101'", "'20240102 030405'",
    "'2024 01 02'", "'2024-01-02-03-04-05'", "'20240102.5'", "'20240102.111213'", "'240102.1112'", "'2401021112'",
    "'24010211121'", "'2401021'", "'24102'", "'2024--01--02'", "'2024-01-02 -03:04'", "'2024-01-02 03:04:05.'",
    "'2024-01-02 03:04:05a'", "'2024-01-02 25:04:05'", "'2024-01-02 03:60:05'", "'2024-13-02'", "'2024-01-02\\t3:4:5'",
    "1012", "10203", "7010203", "102030405", "'2024-01-02 03:04:05.4999999'", "'002024-01-02'", "'2024-01-02T3:4'",
    "20240102030405e0", "2.0240102e7", "TRUE",
)  # fmt: skip
TIMES = (
    "'10:11:12'", "'101112'", "'10:11'", "101112", "'-01:02:03.5'", "'1 02:03:04'", "'10'", "'00:00:01.9999999'", "10",
    "0", "'0'", "'11:12.5'", "1112", "'1112'", "'101112.5'", "101112.5", "'-101112.5'", "-101112", "'34 22:59:59'",
    "'-1 10:11'", "'1 10'", "'838:59:59'", "'100:00:00'", "'2024-01-02 10:11:12'", "'2024-01-02 10:11:12.6'",
    "'20240102101112'", "20240102101112", "'10:11:12.499'", "'10:11:12.4995'", "'-10:11:12.5'", "'-00:00:00.5'",
    "'-00:00:00.4'", "'1:2:3'", "' 10:11:12'", "'10:11:12 '", "'0 1:2:3'", "'10:11:59.9'", "'23:59:59.9'", "1.5",
    "'1.5'", "-1.5", "1e2", "101112e0", "'8385959'", "8385959", "'12:34:56:78'", "'10 : 11 : 12'", "'1  2:3:4'",
    "'- 1:2'",
    "'-0'", "'2024-01-02'", "'24-01-02 3:4:5'", "'240102101112'", "240102101112", "'10.5'", "'1 10.5'", "'1 1011'",
    "'10:60:00'", "'1060'", "'839:00:00'", "'20240102'", "20240102", "TRUE", "'10:11:12.'", "'.5'",
)  # fmt: skip
NUMBERS = (
    "0", "7", "-3", "2.5", "-2.5", "'2.5'", "2.5e0", "3.5e0", "-2.5e0", "1e2", "'1e2'", "x'41'", "b'101'", "TRUE",
    "0.125",
    "0.375", "'-0.5'", "0.5", "-0.5", "'  7'", "'7 '", "2.5555", "'2.5555'", "-0.0005", "2.0005", "2.5555e0", "1.005",
    "16777217", "'3.5'", "0.1", "'0.1'", "1e20", "1e-10", "123456789", "3.3333333333", "1.5", "0.0625", "1.0005",
    "'12345678901234567890123456789.5'", "123456789012345678901234567890", "18446744073709551615",
    "'18446744073709551615'", "9223372036854775807", "-9223372036854775808", "9223372036854775806.5", "1e19",
    "x'ffffffffffffffff'", "16777215", "'16777214.5'", "1234567.8915", "123456.7895", "99999.99", "1e300", "'1e-2'",
    "+5",
)  # fmt: skip
TEXTS = (
    "''", "'a'", "'b  '", "1e2", "2.50", "x'4142'", "b'1000001'", "'it''s'", "'é'", "1e20", "1e15", "1e14", "1e-7",
    "0.5e0",
    "TRUE", "-5", "-1e2", "'100%'", "'a\\\\b'", "123456789012345678", "1.10e1", "x'C3A9'", "12345678901234567890e0",
    "0.000001e0", "x'00ff'", "x'ff00'", "x''", "-1.5", "x'e282ff41'", "x'f0908041'", "7",
)  # fmt: skip
FORMS: dict[str, tuple[str, ...]] = {
    **dict.fromkeys(
        ("tinyint", "smallint unsigned", "mediumint unsigned", "int", "bigint", "bigint unsigned", "decimal(12,3)",
         "decimal(30,0)", "decimal(65,30)", "float", "double", "float(7,2)", "double(9,3)"), NUMBERS),
    **dict.fromkeys(("varchar(20)", "char(8)", "varbinary(12)", "binary(6)"), TEXTS),
    **dict.fromkeys(("datetime", "datetime(3)", "datetime(6)", "timestamp", "timestamp(2)", "date"), MOMENTS),
    **dict.fromkeys(("time", "time(3)", "time(6)"), TIMES),
    "year": (
        "'24'", "24", "'2024'", "'70'", "'69'", "0", "'0'", "'00'", "'000'", "'0000'", "1999", "99", "5", "'5'",
        "'1901'",
        "2155", "24.4", "24.6", "'24.4'", "TRUE", "x'18'", "100", "'070'",
    ),
    "bit(9)": ("b'101'", "5", "x'41'", "'a'", "0", "'5'", "TRUE", "b'0'", "x'01ff'", "2.5"),
    "bit(16)": ("'ab'", "x'4142'", "300", "'é'", "'a'"),
    "bit(64)": ("'abcdefgh'", "18446744073709551615", "x'ffffffffffffffff'", "9223372036854775808"),
    "bit(1)": ("1", "b'1'", "TRUE", "x'01'"),
    "enum('a','b','15')": ("'a'", "'B'", "'15'", "2", "'2'", "'3'", "x'61'", "1.0", "0", "b'1100010'"),
    "enum('3','1','2')": ("'1'", "1", "'2'", "x'33'"),
    "set('x','y','z')": ("'x,z'", "'z,x'", "''", "'0'", "3", "5", "'X'", "0", "'7'", "x'782C79'", "b'1111000'"),
}  # fmt: skip
"""Types and literals that may be their defaults."""


def statements(cursor: pymysql.cursors.Cursor) -> Iterator[str]:
    """A table for each type, and a column for each default that TiDB takes."""
    yield "CREATE DATABASE forms"
    yield "USE forms"
    for statement in ("CREATE DATABASE forms", "USE forms"):
        cursor.execute(statement)
    for number, (kind, literals) in enumerate(FORMS.items()):
        made = (f"CREATE TABLE t{number} (id INT PRIMARY KEY)", f"INSERT INTO t{number} VALUES (1)")
        columns = (
            f"ALTER TABLE t{number} ADD COLUMN c{at} {kind}{' NOT NULL' * (at % 2)} DEFAULT {literal}"
            for at, literal in enumerate(literals)
        )
        for statement in (*made, *columns):
            try:
                cursor.execute(statement)
            except pymysql.MySQLError:
                continue
            yield statement


def cells(out: Path, dump: Path) -> Iterator[tuple[str, str | None]]:
    """Each added column's clause, and its cell in the row that was there."""
    upstream = json.loads(dump.read_text())
    for line in out.read_text().splitlines():
        message = json.loads(json.loads(line)["value"] or "{}")
        clause = message.get("sql", "").partition(" ADD COLUMN ")[2]
        if clause:
            table = upstream[f"forms.{message['table']}"]
            yield clause, table["rows"][0][table["columns"].index(clause.split("`")[1])]


def main() -> int:
    """Record."""
    recorder, goal = sys.argv[1], Path(sys.argv[2])
    with tempfile.TemporaryDirectory(prefix="defaults-") as name, TidbServer(Path(name)) as server:
        place = Path(name)
        address = urlsplit(server.uri)
        connection = pymysql.connect(host=address.hostname, port=address.port, user="root", autocommit=True)
        script = place / "script.sql"
        script.write_text("".join(f"{statement};\n" for statement in statements(connection.cursor())))
        found = list(cells(*recorded(script, recorder)))
    goal.write_bytes(gzip.compress(json.dumps(found, ensure_ascii=False, indent=0).encode(), mtime=0))
    return 0


if __name__ == "__main__":
    sys.exit(main())
