"""Writes the scripts: statements about few tables with few rows, in many spellings, of pieces that a TiDB takes."""

import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

from tests.differential.evolving import Evolution
from tests.differential.literals import BARE, BOUNDS, DEFAULTS, EXPRESSIONS, KEYS, METHODS, MOVES, SETTINGS, is_modified
from tests.differential.vetting import Vetting

ZONES = ("UTC", "UTC", "Asia/Shanghai", "UTC", "America/New_York")
"""The time zone of TiCDC and of the sessions, by block of seeds."""
BLOCK = 50
"""Seeds that are recorded together."""
_ATTEMPTS = 20


def zone_of(seed: int) -> str:
    """The zone of a seed's block."""
    return ZONES[seed // BLOCK % len(ZONES)]


@dataclass(slots=True)
class Script:
    """One script; the same of a seed, whatever it is recorded with."""

    seed: int
    vetting: Vetting
    _chance: random.Random = field(init=False)
    _number: int = 0

    def __post_init__(self) -> None:
        self._chance = random.Random(self.seed)

    @property
    def _database(self) -> str:
        return f"s{self.seed}"

    def written(self) -> list[str]:
        """The statements."""
        zone = zone_of(self.seed)
        settings = [f"SET time_zone = '{zone}'"] if zone != "UTC" else []
        if self._chance.random() < 0.2:
            settings.append(self._chance.choice(SETTINGS))
        self.vetting.settings = tuple(settings)
        subjects = {
            self._added: 4, self._converted: 5, self._partitioned: 2, self._listed: 1, self._altered: 2,
            self._cased: 1, self._generated: 1, self._moved: 2, self._keyed: 2, self._evolved: 20,
        }  # fmt: skip
        subject = self._chance.choices(list(subjects), list(subjects.values()))[0]
        name = self._database
        return [*settings, f"CREATE DATABASE {name}", f"USE {name}", *subject(self._new("t"))]

    def _new(self, prefix: str) -> str:
        self._number += 1
        return f"{prefix}{self._number}"

    def _any(self, choices: tuple[str, ...]) -> str:
        return self._chance.choice(choices)

    def _taken(self, write: Callable[[], str], is_taken: Callable[[str], bool], otherwise: str) -> str:
        """The first that upstream takes."""
        return next((t for t in (write() for _ in range(_ATTEMPTS)) if is_taken(t)), otherwise)

    def _kind(self) -> str:
        return self._chance.choice(list(DEFAULTS))

    def _column(self, name: str = "") -> str:
        """A new column as ADD COLUMN has it."""
        name = name or self._new("c")
        return self._taken(lambda: self._drawn(name), self.vetting.column, f"{name} int")

    def _drawn(self, name: str) -> str:
        null = self._any(("", "", " NOT NULL", " NULL"))
        if self._chance.random() < 0.1:
            return f"{name} {self._any(BARE)}{null}"
        kind = self._kind()
        value = self._chance.choice(DEFAULTS[kind])
        return f"{name} {kind}{null}{self._any((f' DEFAULT {value}', f' DEFAULT {value}', ''))}"

    def _value(self, kind: str) -> str:
        return self._taken(lambda: self._any(DEFAULTS[kind]), lambda one: self.vetting.value(kind, one), "NULL")

    def _added(self, table: str) -> Iterator[str]:
        """What rows that are there show."""
        yield f"CREATE TABLE {table} (id INT PRIMARY KEY, v INT)"
        yield f"INSERT INTO {table} VALUES (1, 1), (2, NULL)"
        for _ in range(self._chance.randint(1, 4)):
            where = self._any(("", "", " FIRST", " AFTER id"))
            several = f"({self._column()}, {self._column()})", f"{self._column()}{where}, ADD COLUMN {self._column()}"
            yield f"ALTER TABLE {table} ADD COLUMN {self._any((*[f'{self._column()}{where}'] * 3, *several))}"
        yield f"UPDATE {table} SET v = 9 WHERE id = 2"

    def _converted(self, table: str) -> Iterator[str]:
        """MODIFY and CHANGE of columns with rows, beside one that the server may touch by itself."""
        beside = self._any(("", ", u TIMESTAMP NULL DEFAULT NULL ON UPDATE CURRENT_TIMESTAMP"))
        kinds = [self._kind() for _ in range(self._chance.randint(1, 3))]
        columns = "".join(f", c{i} {kind}" for i, kind in enumerate(kinds))
        yield f"CREATE TABLE {table} (id INT PRIMARY KEY{columns}{beside})"
        values = [[self._value(kind) for _ in range(self._chance.randint(1, 4))] for kind in kinds]
        for i, some in enumerate(values):
            rows = ", ".join(f"({10 * i + n}, {value})" for n, value in enumerate(some))
            yield f"INSERT INTO {table} (id, c{i}) VALUES {rows}"
        for i, kind in enumerate(kinds):
            yield from self._conversion(table, i, kind, values[i])

    def _goal(self, kind: str, values: list[str]) -> str:
        """A type that MODIFY COLUMN may give a column with these values; empty if none was found."""
        is_taken = lambda goal: is_modified(kind, goal) and self.vetting.converts(kind, values, goal)  # noqa: E731
        return self._taken(self._kind, is_taken, "")

    def _conversion(self, table: str, i: int, kind: str, values: list[str]) -> Iterator[str]:
        goal = self._goal(kind, values) or kind
        how = self._any((f"MODIFY COLUMN c{i}", f"CHANGE COLUMN c{i} C{i}", f"CHANGE COLUMN c{i} d{i}"))
        yield f"ALTER TABLE {table} {how} {goal}{self._any(('', '', ' FIRST', ' AFTER id'))}"

    def _partitioned(self, table: str) -> Iterator[str]:
        """Which rows go with a partition of a range."""
        kind, how, bound = self._chance.choice(BOUNDS)
        most = "(MAXVALUE)" if "COLUMNS" in how else "MAXVALUE"
        parts = f"PARTITION p0 VALUES LESS THAN ({bound}), PARTITION p1 VALUES LESS THAN {most}"
        yield f"CREATE TABLE {table} (id INT, k {kind} NOT NULL, PRIMARY KEY (id, k)) PARTITION BY {how} ({parts})"
        yield from self._filled(table, kind)
        yield from self._some_partition(table, "DROP", "TRUNCATE", exchanged=True)

    def _listed(self, table: str) -> Iterator[str]:
        """The same of lists, remainders and sums."""
        kind, how, parts = self._chance.choice(METHODS)
        own = f"({parts})" if parts else "PARTITIONS 2"
        yield f"CREATE TABLE {table} (id INT, k {kind} NOT NULL, PRIMARY KEY (id, k)) PARTITION BY {how} {own}"
        yield from self._filled(table, kind)
        yield from self._some_partition(table, *(("DROP", "TRUNCATE") if parts else ("TRUNCATE",)))

    def _filled(self, table: str, kind: str) -> Iterator[str]:
        for i, value in enumerate(KEYS.get(kind, KEYS["int"][1:])):
            yield f"INSERT INTO {table} VALUES ({i}, {value})"

    def _some_partition(self, table: str, *ways: str, exchanged: bool = False) -> Iterator[str]:
        if exchanged and self._chance.random() < 0.3:
            other = self._new("t")
            yield f"CREATE TABLE {other} LIKE {table}"
            yield f"ALTER TABLE {other} REMOVE PARTITIONING"
            part = self._any(("p0", "p1"))
            yield f"ALTER TABLE {table} EXCHANGE PARTITION {part} WITH TABLE {other}"
        else:
            yield f"ALTER TABLE {table} {self._any(ways)} PARTITION {self._any(('p0', 'p1'))}"

    def _altered(self, table: str) -> Iterator[str]:
        """Several clauses in one statement, some of which TiCDC leaves out."""
        yield f"CREATE TABLE {table} (id INT NOT NULL, v INT, w VARCHAR(9), UNIQUE KEY u (id), KEY i (w))"
        yield f"INSERT INTO {table} VALUES (1, 1, 'a'), (2, NULL, 'b')"
        clauses: list[tuple[str, Callable[[], str]]] = [
            ("", lambda: f"ADD COLUMN {self._column()}"),
            ("", lambda: f"ADD COLUMN {self._column()} FIRST"),
            ("u", lambda: self._any(("DROP INDEX u", "RENAME INDEX u TO uu"))),
            ("i", lambda: self._any(("DROP INDEX i", "RENAME INDEX i TO ii"))),
            ("c", lambda: "COMMENT = 'c'"),
            ("u2", lambda: "ADD UNIQUE KEY u2 (id)"),
            ("v", lambda: self._any(("MODIFY COLUMN v BIGINT", "RENAME COLUMN v TO vv", "DROP COLUMN v",
                                     "ALTER COLUMN v SET DEFAULT 5", "CHANGE COLUMN v vv VARCHAR(9)"))),
        ]  # fmt: skip
        used: set[str] = set()
        for _ in range(self._chance.randint(1, 2)):
            free = [pair for pair in clauses if not pair[0] or pair[0] not in used]
            some = self._chance.sample(free, min(len(free), self._chance.randint(2, 3)))
            used.update(touched for touched, _ in some)
            yield f"ALTER TABLE {table} {', '.join(clause() for _, clause in some)}"

    def _cased(self, table: str) -> Iterator[str]:
        """Names that are spelled in another case."""
        name = self._database.upper()
        yield f"CREATE TABLE {name}.{table.upper()} (id INT PRIMARY KEY, v INT)"
        yield f"INSERT INTO {name}.{table} VALUES (1, 1)"
        yield f"ALTER TABLE {name}.{table} ADD COLUMN {self._column('Ca')}"
        yield f"CREATE TABLE {name}.{self._new('T')} LIKE {name}.{table}"
        yield self._any((
            f"DROP TABLE {name}.{table.upper()}", f"DROP DATABASE {name}", f"TRUNCATE TABLE {name}.{table.upper()}",
            f"ALTER TABLE {name}.{table} RENAME COLUMN CA TO cB", f"ALTER TABLE {table} DROP COLUMN cA",
            f"RENAME TABLE {name}.{table} TO {name}.{table.upper()}x", f"CREATE INDEX Ix ON {table} (V)",
        ))  # fmt: skip

    def _generated(self, table: str) -> Iterator[str]:
        """Columns that upstream computes."""
        some = self._chance.sample(EXPRESSIONS, self._chance.randint(1, 3))
        ways = [self._any(("STORED", "STORED", "VIRTUAL")) for _ in some]
        own = "".join(f", g{i} {some[i][0]} AS ({some[i][1]}) {ways[i]}" for i in range(len(some)))
        yield f"CREATE TABLE {table} (id INT PRIMARY KEY, a INT, b INT, w VARCHAR(20), d DATETIME(3), f DOUBLE{own})"
        columns = f"{table} (id, a, b, w, d, f)"
        for i in range(3):
            number, other = self._any(("0", "7", "-5", "NULL")), self._any(("1", "-2", "2147483"))
            text, moment = (
                self._any(("'a'", "'éx'", "''")),
                self._any(("'2024-02-29 23:59:59.5'", "NULL", "'1999-1-1'")),
            )
            real = self._any(("0.05", "2.5", "-0.35", "1e10", "NULL"))
            yield f"INSERT INTO {columns} VALUES ({i}, {number}, {other}, {text}, {moment}, {real})"
        yield f"ALTER TABLE {table} ADD COLUMN {self._column()}"
        yield f"UPDATE {table} SET b = 3, w = 'zz' WHERE id = 1"

    def _moved(self, table: str) -> Iterator[str]:
        """Tables that get other names, are made of others, and go; rows in between."""
        second, third = self._new("t"), self._new("t")
        yield f"CREATE TABLE {table} (id INT PRIMARY KEY, {self._column('c')})"
        yield f"CREATE TABLE {second} LIKE {table}"
        yield f"CREATE TABLE {third} (id INT PRIMARY KEY, v INT)"
        yield f"INSERT INTO {third} VALUES (1, 1), (2, 2)"
        other = f"{self._database}b"
        way = self._any(MOVES).format(third=third, second=second, other=other, alter=f"ALTER TABLE {third}")
        yield from way.split("; ")

    def _evolved(self, table: str) -> Iterator[str]:
        """A table that goes through many changes."""
        self.vetting.begin(self._database)
        yield from Evolution(self._chance, self.vetting, table).statements(self._chance.randint(5, 14))
        self.vetting.end(self._database)

    def _keyed(self, table: str) -> Iterator[str]:
        """Keys that come, go and get other types, with rows that are found by them."""
        kind = self._kind()
        values = [one for one in [self._value(kind)] if one != "NULL"]
        key = self._any(("PRIMARY KEY (k) NONCLUSTERED", "PRIMARY KEY (k)", "UNIQUE KEY u (k)"))
        yield f"CREATE TABLE {table} (k {kind} NOT NULL, v INT, {key})"
        yield from (f"INSERT INTO {table} VALUES ({value}, {i})" for i, value in enumerate(values))
        alter = f"ALTER TABLE {table}"
        ways = [[f"{alter} ADD UNIQUE KEY u9 (v)"], [f"{alter} ADD COLUMN {self._column()} FIRST"]]
        if "NONCLUSTERED" in key:
            ways += [[f"{alter} DROP PRIMARY KEY, ADD UNIQUE KEY u3 (k)"]] * 2
        if "UNIQUE" in key:
            ways += [[f"{alter} ADD PRIMARY KEY (k)"], [f"{alter} ADD UNIQUE u3 (k)", f"DROP INDEX u ON {table}"]]
        if "UNIQUE" in key and (goal := self._goal(kind, values)):
            ways += [[f"{alter} MODIFY COLUMN k {goal} NOT NULL"]] * 3
        yield from self._chance.choice(ways)
        yield f"UPDATE {table} SET v = v + 10"
        if self._chance.random() < 0.5:
            yield f"DELETE FROM {table} WHERE v >= 10"
