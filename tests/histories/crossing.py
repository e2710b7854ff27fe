"""Writes a random history of tables that take each other's names, with few rows between two DDLs.

Tables are renamed over each other and into other databases, exchanged with partitions, dropped and made again with
other keys, and the same few keys come again in all of them. So a row that is applied to another table than its own, or
to its own at another moment, shows at the end. Valid by construction: no TiDB is needed to write it.
"""

import random
from dataclasses import dataclass, field, replace

DATABASES = ("sa", "sb")
_NAMES = ("t", "u", "v", "w")
_KEYS = 8
"""Values of `id`: so few that most events meet a row, or one that was there."""
_TYPES = {
    "INT": ("0", "-7", "42"),
    "BIGINT": ("5", "-9000000000"),
    "VARCHAR(20)": ("'a'", "''", "'15'", "'it''s'", "'é'"),
    "DECIMAL(10,2)": ("1.5", "-2.25"),
    "DATETIME": ("'2026-05-06 07:08:09'",),
    "VARBINARY(12)": ("x'00ff'", "'ab'"),
}
_WIDER = {
    "INT": "BIGINT",
    "VARCHAR(20)": "VARCHAR(60)",
    "DECIMAL(10,2)": "DECIMAL(20,4)",
    "VARBINARY(12)": "VARBINARY(40)",
}
_BY_RANGE = "PARTITION BY RANGE (id) (PARTITION p0 VALUES LESS THAN (4), PARTITION p1 VALUES LESS THAN (MAXVALUE))"


@dataclass(frozen=True, slots=True)
class Crossed:
    """A table: `id` of a small range, `n` that no two rows share, and what was added. `key`: the columns of its key."""

    key: tuple[str, ...]
    more: tuple[tuple[str, str], ...] = ()
    partitioned: bool = False
    primary: bool = True
    has_n_index: bool = False


@dataclass(slots=True)
class CrossingWriter:
    """One history. With an even seed all tables have the same key."""

    seed: int
    lines: list[str] = field(default_factory=list)
    tables: dict[tuple[str, str], Crossed] = field(default_factory=dict)
    _chance: random.Random = field(init=False)
    _number: int = 0
    _used: str = ""
    _alike: bool = False
    """All tables have the same key: a name that is another table's now is not known by it."""

    def __post_init__(self) -> None:
        self._chance = random.Random(self.seed)
        self._alike = self.seed % 2 == 0

    def written(self, statements: int) -> str:
        """The script."""
        self.lines += [f"CREATE DATABASE {name}" for name in DATABASES]
        for name in _NAMES[:3]:
            self._create(("sa", name))
        self._create(("sb", "t"))
        while len(self.lines) < statements:
            for _ in range(self._chance.choice([0, 1, 1, 2, 3, 6])):
                self._rows()
            self._change()
        for _ in range(4):
            self._rows()
        return "".join(f"{line};\n" for line in self.lines)

    def _next(self) -> int:
        self._number += 1
        return self._number

    def _place(self, table: tuple[str, str]) -> str:
        """A table's name, at times after a USE of its database."""
        if self._chance.random() < 0.15:
            if self._used != table[0]:
                self.lines.append(f"USE {table[0]}")
                self._used = table[0]
            return f"`{table[1]}`"
        return f"{table[0]}.{table[1]}"

    def _free(self, database: str | None = None) -> list[tuple[str, str]]:
        names = [(d, n) for d in DATABASES for n in _NAMES if database in (None, d)]
        return [name for name in names if name not in self.tables]

    def _any(self) -> tuple[str, str]:
        return self._chance.choice(sorted(self.tables))

    def _rows(self) -> None:
        if not self.tables:
            return
        several = self._chance.random() < 0.35
        self.lines += ["BEGIN"] if several else []
        for _ in range(self._chance.randint(2, 6) if several else 1):
            self._row(self._any())
        self.lines += ["COMMIT"] if several else []

    def _row(self, name: tuple[str, str]) -> None:
        table, roll, key = self.tables[name], self._chance.random(), self._chance.randrange(_KEYS)
        place = f"{name[0]}.{name[1]}"
        if roll < 0.5:
            self._write(name, key)
        elif roll < 0.65:
            self.lines.append(f"UPDATE {place} SET n = {self._next()} WHERE id = {key} LIMIT 1")
        elif roll < 0.72 and table.more:
            column, kind = self._chance.choice(table.more)
            self.lines.append(f"UPDATE {place} SET {column} = {self._value(kind)} WHERE id >= {key}")
        elif roll < 0.82:
            self.lines.append(f"UPDATE IGNORE {place} SET id = {self._chance.randrange(_KEYS)} WHERE id = {key}")
        elif roll < 0.86:
            self.lines.append(f"DELETE FROM {place}")
        else:
            self.lines.append(f"DELETE FROM {place} WHERE id = {key}")

    def _write(self, name: tuple[str, str], key: int) -> None:
        more = self.tables[name].more
        columns = ", ".join(("id", "n", *(column for column, _ in more)))
        values = ", ".join((str(key), str(self._next()), *(self._value(kind) for _, kind in more)))
        self.lines.append(f"REPLACE INTO {name[0]}.{name[1]} ({columns}) VALUES ({values})")

    def _value(self, kind: str) -> str:
        found = _TYPES.get(kind) or _TYPES[next(narrow for narrow, wide in _WIDER.items() if wide == kind)]
        return "NULL" if self._chance.random() < 0.15 else self._chance.choice(found)

    def _create(self, name: tuple[str, str]) -> None:
        roll, more = self._chance.random() * (0.45 if self._alike else 1.0), self._columns()
        if roll < 0.3:
            table, keys = Crossed(("id",), more), "PRIMARY KEY (id)"
        elif roll < 0.45:
            table, keys = Crossed(("id",), more, partitioned=True), "PRIMARY KEY (id)"
        elif roll < 0.6:
            table, keys = Crossed(("n",), more), "PRIMARY KEY (n) NONCLUSTERED"
        elif roll < 0.75:
            table, keys = Crossed(("id", "n"), more), f"PRIMARY KEY (id, n){self._chance.choice(['', ' NONCLUSTERED'])}"
        elif roll < 0.88:
            table, keys = Crossed(("id",), more, primary=False), "UNIQUE KEY u_id (id)"
        else:
            table, keys = Crossed(("n",), more, primary=False, has_n_index=True), "UNIQUE KEY u_n (n)"
        told = "".join(f", {column} {kind}" for column, kind in more)
        end = f" {_BY_RANGE}" if table.partitioned else ""
        self.lines.append(f"CREATE TABLE {self._place(name)} (id INT NOT NULL, n BIGINT NOT NULL{told}, {keys}){end}")
        self.tables[name] = table

    def _columns(self) -> tuple[tuple[str, str], ...]:
        return tuple((f"c{i}", self._chance.choice(sorted(_TYPES))) for i in range(self._chance.randint(0, 2)))

    def _change(self) -> None:
        changes = [
            (3, self._add), (2, self._drop_column), (1, self._widen), (2, self._rename_column), (1, self._swap_columns),
            (3, self._key), (3, self._anew), (1, self._drop), (2, self._truncate), (4, self._rename), (3, self._swap),
            (3, self._several), (4, self._exchange), (2, self._partition), (2, self._like), (1, self._view),
            (1, self._database), (2, self._nothing), (2, self._new),
        ]  # fmt: skip
        if not self.tables:
            self._new()
            return
        self._chance.choices([do for _, do in changes], [weight for weight, _ in changes])[0]()

    def _alter(self, name: tuple[str, str], what: str) -> None:
        self.lines.append(f"ALTER TABLE {self._place(name)} {what}")

    def _new(self) -> None:
        if free := self._free():
            self._create(self._chance.choice(free))

    def _drop(self) -> None:
        name = self._any()
        self.lines.append(f"DROP TABLE {self._place(name)}")
        del self.tables[name]

    def _anew(self) -> None:
        name = self._any()
        self.lines.append(f"DROP TABLE {self._place(name)}")
        del self.tables[name]
        if self._chance.random() < 0.3:
            self._rows()
        self._create(name)

    def _truncate(self) -> None:
        self.lines.append(f"TRUNCATE TABLE {self._place(self._any())}")

    def _add(self) -> None:
        name = self._any()
        table = self.tables[name]
        free = [f"c{i}" for i in range(4) if f"c{i}" not in dict(table.more)]
        if not free:
            return
        column, kind = self._chance.choice(free), self._chance.choice(sorted(_TYPES))
        default = f" DEFAULT {self._chance.choice(_TYPES[kind])}" if self._chance.random() < 0.5 else ""
        where = self._chance.choice(["", "", " FIRST", " AFTER id"])
        self._alter(name, f"ADD COLUMN {column} {kind}{default}{where}")
        self.tables[name] = replace(table, more=(*table.more, (column, kind)))

    def _drop_column(self) -> None:
        name = self._any()
        table = self.tables[name]
        if not table.more:
            return
        gone = self._chance.choice(table.more)
        self._alter(name, f"DROP COLUMN {gone[0]}")
        self.tables[name] = replace(table, more=tuple(one for one in table.more if one != gone))

    def _with(self, name: tuple[str, str], old: tuple[str, str], new: tuple[str, str]) -> None:
        table = self.tables[name]
        self.tables[name] = replace(table, more=tuple(new if one == old else one for one in table.more))

    def _widen(self) -> None:
        name = self._any()
        found = [one for one in self.tables[name].more if one[1] in _WIDER]
        if found:
            column, kind = self._chance.choice(found)
            self._alter(name, f"MODIFY COLUMN {column} {_WIDER[kind]}")
            self._with(name, (column, kind), (column, _WIDER[kind]))

    def _rename_column(self) -> None:
        name = self._any()
        more = self.tables[name].more
        free = [f"c{i}" for i in range(4) if f"c{i}" not in dict(more)]
        if more and free:
            old = self._chance.choice(more)
            new = (self._chance.choice(free), old[1])
            self._alter(name, f"RENAME COLUMN {old[0]} TO {new[0]}")
            self._with(name, old, new)

    def _swap_columns(self) -> None:
        name = self._any()
        more = self.tables[name].more
        if len(more) > 1:
            one, two = self._chance.sample(more, 2)
            self._alter(name, f"RENAME COLUMN {one[0]} TO cx")
            self._alter(name, f"RENAME COLUMN {two[0]} TO {one[0]}")
            self._alter(name, f"RENAME COLUMN cx TO {two[0]}")
            swapped = {one: (two[0], one[1]), two: (one[0], two[1])}
            table = self.tables[name]
            self.tables[name] = replace(table, more=tuple(swapped.get(c, c) for c in table.more))

    def _key(self) -> None:
        """The handle key goes from one index to another; `id` is only made a key again where there are no rows."""
        name = self._any()
        table = self.tables[name]
        if table.partitioned:
            return
        if table.key == ("id",) and not table.primary:
            self._alter(name, "ADD UNIQUE KEY u_n (n)")
            if self._chance.random() < 0.5:
                self._rows()
            self._alter(name, "DROP INDEX u_id")
            self.tables[name] = replace(table, key=("n",), has_n_index=True)
        elif table.key == ("n",) and table.has_n_index and not table.primary:
            self.lines.append(f"TRUNCATE TABLE {self._place(name)}")
            self._alter(name, "ADD UNIQUE KEY u_id (id)")
            self._alter(name, "DROP INDEX u_n")
            self.tables[name] = replace(table, key=("id",), has_n_index=False)
        elif table.key == ("n",) and table.primary and not table.has_n_index:
            self._alter(name, "ADD UNIQUE KEY u_n (n)")
            self._alter(name, "DROP PRIMARY KEY")
            self.tables[name] = replace(table, primary=False, has_n_index=True)

    def _move(self, old: tuple[str, str], new: tuple[str, str]) -> str:
        self.tables[new] = self.tables.pop(old)
        return f"{old[0]}.{old[1]} TO {new[0]}.{new[1]}"

    def _rename(self) -> None:
        old, free = self._any(), self._free()
        if not free:
            return
        new = self._chance.choice(free)
        if old[0] == new[0] and self._chance.random() < 0.3:
            place = self._place(old)
            where = new[1] if place.startswith("`") else f"{new[0]}.{new[1]}"
            self.lines.append(f"ALTER TABLE {place} RENAME TO {where}")
            self._move(old, new)
        else:
            self.lines.append(f"RENAME TABLE {self._move(old, new)}")
        if self._chance.random() < 0.5:
            self._create(old)

    def _swap(self) -> None:
        if len(self.tables) < 2 or not self._free():
            return
        one, two = self._chance.sample(sorted(self.tables), 2)
        free = self._chance.choice(self._free())
        for step in ((one, free), (two, one), (free, two)):
            self.lines.append(f"RENAME TABLE {self._move(*step)}")
            if self._chance.random() < 0.4:
                self._rows()

    def _several(self) -> None:
        """One statement renames two tables, at times the second to the first one's name."""
        free = self._free()
        if len(self.tables) < 2 or len(free) < 2:
            return
        one, two = self._chance.sample(sorted(self.tables), 2)
        new, other = self._chance.sample(free, 2)
        first = self._move(one, new)
        second = self._move(two, one if self._chance.random() < 0.6 else other)
        self.lines.append(f"RENAME TABLE {first}, {second}")

    def _like(self) -> None:
        model, free = self._any(), self._free()
        if free:
            name = self._chance.choice(free)
            self.lines.append(f"CREATE TABLE {name[0]}.{name[1]} LIKE {model[0]}.{model[1]}")
            self.tables[name] = self.tables[model]

    def _exchange(self) -> None:
        """A partition and a table change places; the table is made for it where there is none."""
        found = [name for name, table in self.tables.items() if table.partitioned]
        if not found:
            return
        name = self._chance.choice(sorted(found))
        table = self.tables[name]
        free = self._free()
        if not free:
            return
        other = self._chance.choice(free)
        self.lines.append(f"CREATE TABLE {other[0]}.{other[1]} LIKE {name[0]}.{name[1]}")
        self._alter(other, "REMOVE PARTITIONING")
        self.tables[other] = replace(table, partitioned=False)
        part = self._chance.randrange(2)
        for _ in range(self._chance.randint(0, 3)):
            self._write(other, part * 4 + self._chance.randrange(4))
        for _ in range(self._chance.randint(1, 2)):
            self._alter(name, f"EXCHANGE PARTITION p{part} WITH TABLE {other[0]}.{other[1]}")

    def _partition(self) -> None:
        found = sorted(name for name, table in self.tables.items() if table.partitioned)
        if found:
            name, roll = self._chance.choice(found), self._chance.random()
            if roll < 0.7:
                self._alter(name, f"TRUNCATE PARTITION p{self._chance.randrange(2)}")
            else:
                self._alter(name, "REMOVE PARTITIONING")
                self.tables[name] = replace(self.tables[name], partitioned=False)

    def _view(self) -> None:
        name = self._any()
        self.lines.append(f"CREATE OR REPLACE VIEW {name[0]}.look AS SELECT id, n FROM {name[0]}.{name[1]}")

    def _database(self) -> None:
        gone = self._chance.choice(DATABASES)
        self.lines += [f"DROP DATABASE {gone}", f"CREATE DATABASE {gone}"]
        self._used = "" if self._used == gone else self._used
        self.tables = {name: table for name, table in self.tables.items() if name[0] != gone}
        self._create((gone, self._chance.choice(_NAMES)))

    def _nothing(self) -> None:
        """A DDL that changes no row."""
        self._alter(self._any(), f"COMMENT = 'c{self._next()}'")
