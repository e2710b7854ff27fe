"""Writes a random history about keys: tables are created again, renamed and altered so that their rows' keys change.

Valid by construction, so it needs no TiDB to be written: values of all key columns are unique within a table.
"""

import random
from dataclasses import dataclass, field, replace

KEYS = ("id", "a", "b")
"""Columns that may be (part of) a key; no two rows of a table have a value in common."""
_ENUMS = ("'p','q','r'", "'r','q','p'", "'q','x','p','r'")
_NAMES = ("t", "u", "v")


@dataclass(frozen=True, slots=True)
class Table:
    """A table as the script has made it. `nullable`: key columns that may hold NULL, though none does."""

    columns: tuple[str, ...]
    primary: tuple[str, ...]
    uniques: frozenset[tuple[str, ...]]
    nullable: frozenset[str] = frozenset()

    def is_keyed(self) -> bool:
        """Whether TiCDC sends its rows without `force-replicate`."""
        return bool(self.primary) or any(not self.nullable & set(key) for key in self.uniques)


@dataclass(slots=True)
class KeysWriter:
    """One history. `forced`: with tables that have no valid index at times (`force-replicate`)."""

    seed: int
    forced: bool = False
    lines: list[str] = field(default_factory=list)
    tables: dict[str, Table] = field(default_factory=dict)
    rows: dict[str, list[int]] = field(default_factory=dict)
    _chance: random.Random = field(init=False)
    _number: int = 0

    def __post_init__(self) -> None:
        self._chance = random.Random(self.seed)

    def written(self, statements: int) -> str:
        """The script."""
        self.lines += ["CREATE DATABASE k", "USE k"]
        self._create("t")
        while len(self.lines) < statements:
            if self.tables and self._chance.random() < 0.7:
                self._change_rows(self._chance.choice(sorted(self.tables)))
            else:
                self._change_tables()
        return "".join(f"{line};\n" for line in self.lines)

    def _next(self) -> int:
        self._number += 1
        return self._number

    def _create(self, name: str) -> None:
        columns = tuple(sorted(self._chance.sample(KEYS, self._chance.randint(1, 3))))
        uniques = {tuple(self._chance.sample(columns, self._chance.randint(1, len(columns)))) for _ in range(2)}
        primary = self._chance.choice([(), (), *((c,) for c in columns), columns])
        nullable = frozenset(c for c in columns if c not in primary and self._chance.random() < 0.2)
        table = Table(columns, primary, frozenset(uniques), nullable)
        if not (self.forced or table.is_keyed()):
            table = replace(table, nullable=frozenset())
        if self.forced and self._chance.random() < 0.3:
            table = replace(table, primary=(), uniques=frozenset())
        told = [f"{c} INT{'' if c in table.nullable else ' NOT NULL'}" for c in table.columns]
        told += ["s VARCHAR(20)", f"e ENUM({self._chance.choice(_ENUMS)})"]
        told += [f"PRIMARY KEY ({', '.join(table.primary)}) NONCLUSTERED"] if table.primary else []
        told += [f"UNIQUE KEY {self._index(key)} ({', '.join(key)})" for key in sorted(table.uniques)]
        self.lines.append(f"CREATE TABLE {name} ({', '.join(told)})")
        self.tables[name], self.rows[name] = table, []

    def _index(self, key: tuple[str, ...]) -> str:
        return "u_" + "_".join(key)

    def _change_rows(self, name: str) -> None:
        several = self._chance.random() < 0.3
        self.lines += ["BEGIN"] if several else []
        for _ in range(self._chance.randint(2, 4) if several else 1):
            self._change_row(name)
        self.lines += ["COMMIT"] if several else []

    def _change_row(self, name: str) -> None:
        table, rows, roll = self.tables[name], self.rows[name], self._chance.random()
        if not rows or roll < 0.5:
            number = self._next()
            values = ", ".join(str(number * 10 + i) for i, _ in enumerate(table.columns))
            enum = self._chance.choice(["'p'", "'q'", "'r'", "NULL"])
            columns = ", ".join((*table.columns, "s", "e"))
            self.lines.append(f"INSERT INTO {name} ({columns}) VALUES ({values}, 's{number}', {enum})")
            rows.append(number)
            return
        first = table.columns[0]
        number = self._chance.choice(rows)
        where = f"WHERE s LIKE 's{number}%' AND (s = 's{number}' OR s LIKE 's{number}.%')"
        if roll < 0.7:
            self.lines.append(f"UPDATE {name} SET s = 's{number}.{self._next()}' {where}")
        elif roll < 0.85:
            self.lines.append(
                f"UPDATE {name} SET {self._chance.choice(table.columns)} = {self._next() * 10 + 7} {where}"
            )
        else:
            self.lines.append(f"DELETE FROM {name} {where} OR {first} < 0")
            rows.remove(number)

    def _change_tables(self) -> None:
        free = [name for name in _NAMES if name not in self.tables]
        if free and (not self.tables or self._chance.random() < 0.25):
            self._create(self._chance.choice(free))
            return
        name = self._chance.choice(sorted(self.tables))
        roll = self._chance.random()
        if roll < 0.2:
            self.lines.append(f"DROP TABLE {name}")
            self._create(name)
        elif roll < 0.25:
            self.lines.append(f"DROP TABLE {name}")
            del self.tables[name], self.rows[name]
        elif roll < 0.4 and free:
            self._rename(name, self._chance.choice(free))
        elif roll < 0.45:
            self.lines.append(f"TRUNCATE TABLE {name}")
            self.rows[name] = []
        elif roll < 0.5:
            self.lines.append(f"ALTER TABLE {name} MODIFY COLUMN e ENUM({_ENUMS[2]})")
        elif roll < 0.52:
            self.lines += ["DROP DATABASE k", "CREATE DATABASE k", "USE k"]
            self.tables.clear()
            self.rows.clear()
        else:
            self._alter(name)

    def _rename(self, name: str, new: str) -> None:
        self.lines.append(f"RENAME TABLE {name} TO {new}")
        self.tables[new], self.rows[new] = self.tables.pop(name), self.rows.pop(name)
        if self._chance.random() < 0.7:
            self._create(name)

    def _alter(self, name: str) -> None:
        table = self.tables[name]
        statement, after = self._chance.choice(self._alterations(table))
        if statement and (self.forced or after.is_keyed()):
            self.lines.append(f"ALTER TABLE {name} {statement}")
            self.tables[name] = after

    def _alterations(self, table: Table) -> list[tuple[str, Table]]:
        found: list[tuple[str, Table]] = []
        for key in sorted({(c,) for c in table.columns} | {table.columns}):
            index, told = self._index(key), ", ".join(key)
            if key not in table.uniques:
                found.append((f"ADD UNIQUE KEY {index} ({told})", replace(table, uniques=table.uniques | {key})))
            if not table.primary and not table.nullable & set(key):
                found.append((f"ADD PRIMARY KEY ({told}) NONCLUSTERED", replace(table, primary=key)))
        for key in sorted(table.uniques):
            found += [(f"DROP INDEX {self._index(key)}", replace(table, uniques=table.uniques - {key}))]
        if table.primary:
            found.append(("DROP PRIMARY KEY", replace(table, primary=())))
        for column in table.columns:
            if column in table.nullable:
                found.append(
                    (f"MODIFY COLUMN {column} INT NOT NULL", replace(table, nullable=table.nullable - {column}))
                )
            elif column not in table.primary:
                found.append((f"MODIFY COLUMN {column} INT NULL", replace(table, nullable=table.nullable | {column})))
            if (
                column not in table.primary
                and not any(column in key for key in table.uniques)
                and len(table.columns) > 1
            ):
                left = replace(table, columns=tuple(c for c in table.columns if c != column))
                found.append((f"DROP COLUMN {column}", replace(left, nullable=left.nullable - {column})))
        return found
