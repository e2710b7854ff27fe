"""Writes the scripts: statements that a TiDB takes, about few tables with few rows, in many spellings."""

import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

import pymysql

SETTINGS = ("SET sql_mode = ''", "SET sql_mode = 'ANSI_QUOTES'", "SET NAMES latin1")
"""What sessions upstream may have set; most have nothing."""
NUMBERS = (
    "0",
    "7",
    "-3",
    "2.5",
    "-2.5",
    "2.5e0",
    "'12'",
    "'3.5'",
    "1e2",
    "x'41'",
    "b'101'",
    "TRUE",
    "0.125",
    "0.375",
    "16777217",
)
TEXTS = ("''", "'a'", "'b  '", "'15'", "1e2", "2.50", "x'4142'", "b'1000001'", "'it''s'", "'é'", "'20240102'")
MOMENTS = (
    "'2024-01-02 03:04:05'", "'2024-01-02 03:04:05.678'", "'20240102030405'", "'2024-1-2 3:4:5'", "'24-01-02'",
    "'2024-01-02'", "'20240102'", "20240102", "20240102030405", "'2024-01-02T03:04:05'", "'2024/01/02 03.04.05'",
    "'2024-01-02 23:59:59.9999999'", "'2024-01-02 23:59:59.6'", "'2024-01-02 03'", "'0000-00-00'",
)  # fmt: skip
TIMES = ("'10:11:12'", "'101112'", "'10:11'", "101112", "'-01:02:03.5'", "'1 02:03:04'", "'10'", "'00:00:01.9999999'")
DEFAULTS: dict[str, tuple[str, ...]] = {
    **dict.fromkeys(("tinyint", "smallint", "int", "bigint", "bigint unsigned", "mediumint unsigned"), NUMBERS),
    **dict.fromkeys(("decimal(12,3)", "decimal(30,0)", "float", "double", "float(7,2)", "double(9,3)"), NUMBERS),
    **dict.fromkeys(("varchar(20)", "char(8)", "varbinary(12)", "binary(4)"), TEXTS),
    "year": ("'24'", "24", "'2024'", "2024", "0", "'0'", "'70'", "1999"),
    "bit(9)": ("b'101'", "5", "x'41'", "'a'", "0"),
    "bit(16)": ("'ab'", "x'4142'", "300"),
    "enum('a','b','15')": ("'a'", "'B'", "'15'", "2", "'2'"),
    "set('x','y','z')": ("'x,z'", "'z,x'", "''", "'0'", "'3'", "5", "'X'"),
    **dict.fromkeys(("datetime", "datetime(3)", "datetime(6)", "timestamp", "timestamp(2)", "date"), MOMENTS),
    **dict.fromkeys(("time", "time(3)"), TIMES),
}
"""Types, and literals that may be their defaults and values."""
BARE = ("text", "blob", "json")
"""Types without defaults."""
BOUNDS = (
    ("date", "RANGE COLUMNS (k)", "'20240101'"), ("date", "RANGE COLUMNS (k)", "'2024-1-1'"),
    ("datetime", "RANGE COLUMNS (k)", "'2024-01-01'"), ("datetime", "RANGE COLUMNS (k)", "'20240101'"),
    ("date", "RANGE (TO_DAYS(k))", "TO_DAYS('20240101')"), ("date", "RANGE (TO_DAYS(k))", "TO_DAYS('2024-1-1')"),
    ("date", "RANGE (YEAR(k))", "2024"), ("date", "RANGE (TO_DAYS(k))", "TO_DAYS('24-01-01')"),
    ("timestamp", "RANGE (UNIX_TIMESTAMP(k))", "UNIX_TIMESTAMP('2024-01-01')"),
    ("timestamp", "RANGE (UNIX_TIMESTAMP(k))", "UNIX_TIMESTAMP('20240101000000')"),
    ("int", "RANGE (k)", "5"), ("varchar(9)", "RANGE COLUMNS (k)", "'m'"),
)  # fmt: skip
"""A column's type, how partitions go by it, and a bound."""
KEYS = {
    "int": ("-1", "4", "5", "900"),
    "varchar(9)": ("'a'", "'m'", "'z'", "''"),
    "timestamp": ("'2023-12-31 20:00:00'", "'2024-01-01 00:00:00'", "'2024-01-01 04:00:00'"),
    **dict.fromkeys(("date", "datetime"), ("'2023-12-31'", "'2024-01-01'", "'2024-05-05'", "'1999-01-01'")),
}
"""Values around the bounds."""


@dataclass(slots=True)
class Script:
    """One script. `cursor`: of a TiDB of one's own, for only what it takes is kept."""

    seed: int
    cursor: pymysql.cursors.Cursor
    kept: list[str] = field(default_factory=list)
    _chance: random.Random = field(init=False)
    _number: int = 0

    def __post_init__(self) -> None:
        self._chance = random.Random(self.seed)

    def written(self) -> list[str]:
        """The statements."""
        self.cursor.execute("DROP DATABASE IF EXISTS ha")
        self.cursor.execute("SET sql_mode = DEFAULT")
        self._try("CREATE DATABASE ha")
        self._try("USE ha")
        if self._chance.random() < 0.2:
            self._try(self._chance.choice(SETTINGS))
        subject = self._chance.choice([self._added, self._converted, self._partitioned, self._altered, self._cased])
        for statement in subject(self._new("t")):
            self._try(statement)
        return self.kept

    def _try(self, statement: str) -> None:
        try:
            self.cursor.execute(statement)
        except pymysql.MySQLError:
            return
        self.kept.append(statement)

    def _new(self, prefix: str) -> str:
        self._number += 1
        return f"{prefix}{self._number}"

    def _pair(self) -> tuple[str, str]:
        kind = self._chance.choice(list(DEFAULTS))
        return kind, self._chance.choice(DEFAULTS[kind])

    def _any(self, choices: tuple[str, ...]) -> str:
        return self._chance.choice(choices)

    def _column(self) -> str:
        """A new column as ADD COLUMN has it."""
        null = self._any(("", "", " NOT NULL", " NULL"))
        if self._chance.random() < 0.1:
            return f"{self._new('c')} {self._any(BARE)}{null}"
        kind, value = self._pair()
        default = self._any((f" DEFAULT {value}", f" DEFAULT {value}", ""))
        return f"{self._new('c')} {kind}{null}{default}"

    def _added(self, table: str) -> Iterator[str]:
        """What rows that are there show."""
        yield f"CREATE TABLE {table} (id INT PRIMARY KEY, v INT)"
        yield f"INSERT INTO {table} VALUES (1, 1), (2, NULL)"
        for _ in range(12):
            yield f"ALTER TABLE {table} ADD COLUMN {self._column()}{self._any(('', '', ' FIRST', ' AFTER id'))}"
        yield f"UPDATE {table} SET v = 9 WHERE id = 2"
        yield f"INSERT INTO {table} (id) VALUES (3)"

    def _converted(self, table: str) -> Iterator[str]:
        """MODIFY and CHANGE of columns with rows, beside one that the server may touch by itself."""
        beside = self._any(("", ", u TIMESTAMP NULL DEFAULT NULL ON UPDATE CURRENT_TIMESTAMP"))
        kinds = [self._pair()[0] for _ in range(6)]
        columns = "".join(f", c{i} {kind}" for i, kind in enumerate(kinds))
        yield f"CREATE TABLE {table} (id INT PRIMARY KEY{columns}{beside})"
        for number in range(3):
            for i, kind in enumerate(kinds):
                value = self._any(DEFAULTS[kind])
                yield f"INSERT INTO {table} (id, c{i}) VALUES ({10 * number + i}, {value})"
        for i, _ in enumerate(kinds):
            goal = self._pair()[0]
            how = self._any((f"MODIFY COLUMN c{i}", f"CHANGE COLUMN c{i} C{i}"))
            yield f"ALTER TABLE {table} {how} {goal}"
        yield f"INSERT INTO {table} (id) VALUES (99)"

    def _partitioned(self, table: str) -> Iterator[str]:
        """Which rows go with a partition."""
        kind, how, bound = self._chance.choice(BOUNDS)
        parts = f"(PARTITION p0 VALUES LESS THAN ({bound}), PARTITION p1 VALUES LESS THAN MAXVALUE)"
        if "COLUMNS" in how:
            parts = parts.replace("THAN MAXVALUE", "THAN (MAXVALUE)")
        yield f"CREATE TABLE {table} (id INT, k {kind} NOT NULL, PRIMARY KEY (id, k)) PARTITION BY {how} {parts}"
        for i, value in enumerate(KEYS[kind]):
            yield f"INSERT INTO {table} VALUES ({i}, {value})"
        yield f"ALTER TABLE {table} {self._any(('DROP', 'TRUNCATE'))} PARTITION {self._any(('p0', 'p1'))}"

    def _altered(self, table: str) -> Iterator[str]:
        """Several clauses in one statement, some of which TiCDC leaves out."""
        yield f"CREATE TABLE {table} (id INT NOT NULL, v INT, w VARCHAR(9), UNIQUE KEY u (id), KEY i (v))"
        yield f"INSERT INTO {table} VALUES (1, 1, 'a'), (2, NULL, 'b')"
        clauses: list[Callable[[], str]] = [
            lambda: f"ADD COLUMN {self._column()}",
            lambda: "DROP COLUMN w",
            lambda: "RENAME COLUMN v TO vv",
            lambda: "DROP INDEX i",
            lambda: "DROP INDEX u",
            lambda: "COMMENT = 'c'",
            lambda: "ALTER COLUMN v SET DEFAULT 5",
            lambda: "ADD UNIQUE KEY u2 (id)",
            lambda: "MODIFY COLUMN v BIGINT",
        ]
        for _ in range(3):
            some = self._chance.sample(clauses, self._chance.randint(2, 3))
            yield f"ALTER TABLE {table} {', '.join(clause() for clause in some)}"
        self.cursor.execute(f"SHOW INDEX FROM {table} WHERE Non_unique = 0")
        if self.cursor.fetchall():  # rows of a table without a valid index are not sent
            yield f"INSERT INTO {table} (id) VALUES (3)"

    def _cased(self, table: str) -> Iterator[str]:
        """Names that are spelled in another case."""
        yield f"CREATE TABLE HA.{table.upper()} (id INT PRIMARY KEY, v INT)"
        yield f"INSERT INTO Ha.{table} VALUES (1, 1)"
        yield f"ALTER TABLE hA.{table} ADD COLUMN {self._column()}"
        yield f"CREATE TABLE Ha.{self._new('T')} LIKE HA.{table}"
        yield self._any((f"DROP TABLE HA.{table.upper()}", "DROP DATABASE HA", f"TRUNCATE TABLE HA.{table.upper()}"))
