"""Writes a random history, statement by statement: what TiDB takes is kept, and tells what may come next."""

import random
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import pymysql

_VALUES = {
    "int": ["0", "1", "-7", "42", "2147483647"],
    "bigint": ["5", "-9000000000", "123456789012"],
    "smallint": ["3", "-4"],
    "bigint unsigned": ["0", "18446744073709551615", "7"],
    "decimal(12,3)": ["1.5", "-2.345", "1000000.001", "0"],
    "double": ["0.5", "2.5", "-1e3", "123.25"],
    "varchar(20)": ["'a'", "'b  '", "''", "'15'", "'it''s'", "'é\\\\x'", "'2026-01-02'"],
    "char(8)": ["'c'", "'x y'", "''"],
    "text": ["'long text'", "''", "'7'"],
    "varbinary(12)": ["x'00ff'", "'ab'", "x''"],
    "datetime(3)": ["'2026-01-02 03:04:05.678'", "'1999-12-31 23:59:59.999'"],
    "datetime": ["'2026-05-06 07:08:09'", "'2001-02-03 00:00:00'"],
    "timestamp": ["'2026-01-02 03:04:05'"],
    "date": ["'2026-02-28'", "'1970-01-01'"],
    "time": ["'12:34:56'", "'-01:02:03'"],
    "year": ["2026", "1999"],
    "bit(9)": ["b'101'", "b'0'"],
    "enum('a','b','15')": ["'a'", "'15'"],
    "set('x','y','z')": ["'x,z'", "''"],
    "json": ['\'{"a": [1, true], "k": null}\'', "'[]'"],
}
_SAME_EVERYWHERE = {
    "int": ["bigint", "varchar(20)", "decimal(12,3)", "double"],
    "smallint": ["int", "bigint", "varchar(20)"],
    "bigint": ["varchar(20)", "decimal(30,2)", "int"],
    "decimal(12,3)": ["decimal(12,1)", "bigint", "varchar(20)", "double"],
    "double": ["bigint", "decimal(12,3)", "varchar(40)"],
    "varchar(20)": ["varchar(40)", "text", "int", "char(20)"],
    "char(8)": ["varchar(20)", "text"],
    "text": ["varchar(40)"],
    "varbinary(12)": ["varbinary(40)", "blob", "binary(20)"],
    "datetime(3)": ["datetime", "date", "varchar(40)", "bigint"],
    "datetime": ["datetime(3)", "date", "timestamp", "time"],
    "timestamp": ["datetime", "varchar(30)"],
    "date": ["datetime", "varchar(20)", "int"],
    "time": ["varchar(20)", "time(3)"],
    "year": ["int", "varchar(8)"],
    "bit(9)": ["bit(20)", "int"],
    "enum('a','b','15')": ["enum('b','a','15','q')", "varchar(20)"],
    "set('x','y','z')": ["set('x','y','z','w')", "varchar(20)"],
    "json": ["text"],
}
"""Changes of types that every target can make."""
_PARTITIONS = (
    "PARTITION BY RANGE (id) (PARTITION p0 VALUES LESS THAN (4), PARTITION p2 VALUES LESS THAN (MAXVALUE))",
    "PARTITION BY HASH (id) PARTITIONS 3",
    "PARTITION BY KEY (id) PARTITIONS 3",
    "PARTITION BY LIST (id) (PARTITION p0 VALUES IN (0,1,2,3,4), PARTITION p2 DEFAULT)",
)
_KEYS = 12


@dataclass(slots=True)
class Writer:
    """One history. `cursor`: of a TiDB of one's own; only what it takes is kept."""

    seed: int
    cursor: pymysql.cursors.Cursor
    kept: list[str] = field(default_factory=list)
    _chance: random.Random = field(init=False)
    _number: int = 0

    def __post_init__(self) -> None:
        self._chance = random.Random(self.seed)

    def written(self, statements: int) -> str:
        """The script."""
        for database in ("ha", "hb"):
            self.cursor.execute(f"DROP DATABASE IF EXISTS {database}")
            self._try(f"CREATE DATABASE {database}")
        self._try("USE ha")
        for _ in range(3):
            self._try(self._create())
        while len(self.kept) < statements:
            self._step()
        return "".join(f"{statement};\n" for statement in self.kept)

    def _step(self) -> None:
        tables = self._tables()
        if not tables:
            self._try(self._create())
            return
        table = self._chance.choice(tables)
        if self._chance.random() < 0.55:
            self._rows(table)
        else:
            self._try(self._chance.choice(list(self._changes(table, tables))))

    def _try(self, statement: str) -> bool:
        try:
            self.cursor.execute(statement)
        except pymysql.MySQLError:
            return False
        self.kept.append(statement)
        return True

    def _ask(self, sql: str, *values: str) -> list[tuple[Any, ...]]:
        self.cursor.execute(sql, values)
        return list(self.cursor.fetchall())

    def _tables(self) -> list[str]:
        look = "SELECT CONCAT(TABLE_SCHEMA, '.', TABLE_NAME) FROM information_schema.TABLES"
        own = "TABLE_TYPE = 'BASE TABLE' AND TABLE_SCHEMA IN ('ha', 'hb')"
        return [name for (name,) in self._ask(f"{look} WHERE {own}")]

    def _columns(self, table: str) -> dict[str, str]:
        look = "SELECT COLUMN_NAME, COLUMN_TYPE FROM information_schema.COLUMNS WHERE COLUMN_NAME <> 'id'"
        own = "TABLE_SCHEMA = %s AND TABLE_NAME = %s ORDER BY ORDINAL_POSITION"
        return dict(self._ask(f"{look} AND {own}", *table.split(".")))

    def _new(self, prefix: str) -> str:
        self._number += 1
        return f"{prefix}{self._number}"

    def _kind(self) -> str:
        return self._chance.choice(list(_VALUES))

    def _create(self) -> str:
        columns = "".join(f", {self._new('c')} {self._kind()}" for _ in range(self._chance.randint(1, 4)))
        roll = self._chance.random()
        extra = f" {self._chance.choice(_PARTITIONS)}" if roll < 0.4 else ""
        key = " NONCLUSTERED" if self._chance.random() < 0.3 else ""
        database = self._chance.choice(["", "", "hb."])
        return f"CREATE TABLE {database}{self._new('t')} (id INT NOT NULL{columns}, PRIMARY KEY (id){key}){extra}"

    def _value(self, kind: str) -> str:
        known = _VALUES.get(kind) or next(
            (v for k, v in _VALUES.items() if k.split("(")[0] == kind.split("(", maxsplit=1)[0]), None
        )
        return "NULL" if known is None or self._chance.random() < 0.15 else self._chance.choice(known)

    def _rows(self, table: str) -> None:
        columns = self._columns(table)
        several = self._chance.random() < 0.3
        before = len(self.kept)
        if several:
            self._try("BEGIN")
        for _ in range(self._chance.randint(2, 4) if several else 1):
            self._row(table, columns)
        if several:
            self._try("COMMIT")
            if len(self.kept) == before + 2:
                del self.kept[before:]  # an empty one

    def _row(self, table: str, columns: dict[str, str]) -> None:
        number = self._chance.randrange(_KEYS)
        roll = self._chance.random()
        if roll < 0.55 or not columns:
            values = ", ".join([str(number), *(self._value(kind) for kind in columns.values())])
            self._try(f"REPLACE INTO {table} (id{''.join(f', `{c}`' for c in columns)}) VALUES ({values})")
        elif roll < 0.85:
            name = self._chance.choice(list(columns))
            self._try(f"UPDATE {table} SET `{name}` = {self._value(columns[name])} WHERE id >= {number}")
        elif roll < 0.92:
            self._try(f"UPDATE {table} SET id = id + {_KEYS} WHERE id = {number}")
        else:
            self._try(f"DELETE FROM {table} WHERE id = {number}")

    def _changes(self, table: str, tables: list[str]) -> Iterator[str]:
        """One statement of each kind; many will be refused."""
        chance, columns = self._chance, self._columns(table)
        names = list(columns) or ["id"]
        name, new, bare = chance.choice(names), self._new("c"), self._new("t")
        kind = self._kind()
        given = next(v for v in _VALUES[kind] if v)
        yield self._create()
        default = f" DEFAULT {given}" if chance.random() < 0.5 and kind not in {"text", "json"} else ""
        null = (
            " NOT NULL"
            if chance.random() < 0.4 and kind not in {"date", "datetime", "datetime(3)", "timestamp"}
            else ""
        )
        for _ in range(2):
            yield f"ALTER TABLE {table} ADD COLUMN {new} {kind}{null}{default}"
        yield f"ALTER TABLE {table} ADD COLUMN {new} {kind}, ADD COLUMN {new}b INT DEFAULT 3, COMMENT = 'c {new}'"
        yield f"ALTER TABLE {table} DROP COLUMN `{name}`"
        for _ in range(3):
            goals = _SAME_EVERYWHERE.get(columns.get(name, ""), ["bigint"])
            yield f"ALTER TABLE {table} MODIFY COLUMN `{name}` {chance.choice(goals)}"
        goal = chance.choice(_SAME_EVERYWHERE.get(columns.get(name, ""), ["int"]))
        yield f"ALTER TABLE {table} CHANGE COLUMN `{name}` {new} {goal}"
        yield f"ALTER TABLE {table} RENAME COLUMN `{name}` TO {new}"
        yield f"ALTER TABLE {table} ALTER COLUMN `{name}` SET DEFAULT {self._value(columns.get(name, 'int'))}"
        yield f"ALTER TABLE {table} ADD INDEX i_{new} (`{name}`)"
        yield f"ALTER TABLE {table} ADD UNIQUE INDEX u_{new} (id, `{name}`)"
        yield f"ALTER TABLE {table} DROP INDEX i_{name}"
        yield f"TRUNCATE TABLE {table}"
        yield f"DROP TABLE {table}"
        yield f"CREATE TABLE {table.split('.', maxsplit=1)[0]}.{bare} LIKE {table}"
        yield f"RENAME TABLE {table} TO {chance.choice(['ha', 'hb'])}.{bare}"
        yield f"ALTER TABLE {table} RENAME TO {table.split('.', maxsplit=1)[0]}.{bare}"
        other = chance.choice(tables)
        yield f"RENAME TABLE {table} TO {table.split('.', maxsplit=1)[0]}.{bare}, {other} TO {table}"
        part = f"p{chance.randrange(3)}"
        for _ in range(2):
            yield f"ALTER TABLE {table} TRUNCATE PARTITION {part}"
        yield f"ALTER TABLE {table} DROP PARTITION {part}"
        yield f"ALTER TABLE {table} EXCHANGE PARTITION {part} WITH TABLE {other}"
        yield f"ALTER TABLE {table} REMOVE PARTITIONING"
        yield f"ALTER TABLE {table} {chance.choice(_PARTITIONS)}"
        yield f"ALTER TABLE {table} COALESCE PARTITION 1"
        yield f"CREATE OR REPLACE VIEW ha.v{chance.randrange(3)} AS SELECT id, `{name}` FROM {table}"
        yield f"DROP VIEW ha.v{chance.randrange(3)}"
        yield f"ALTER TABLE {table} ADD UNIQUE INDEX uid (id)"
        if self._ask(f"SHOW INDEX FROM {table} WHERE Key_name = 'uid'"):
            yield f"ALTER TABLE {table} DROP PRIMARY KEY"  # without another key TiCDC sends its rows no more
        yield f"ALTER TABLE {table} ADD PRIMARY KEY (id) NONCLUSTERED"
