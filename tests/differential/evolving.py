"""A table that upstream changes for long: many clauses in a statement, odd names, keys, partitions, rows in between.

Nothing is known here of what TiDB takes: a TiDB runs each statement, and what it refuses is not in the script.
"""

import random
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field

from sinks.ddl.parse.words import Words
from sinks.ddl.rows.default_values import BYTES, INTEGERS
from sinks.ddl.rows.modify_column import TEXTS
from tests.differential.literals import is_modified
from tests.differential.pairs import kind_of
from tests.differential.spellings import COMMENTS, KEYS, KINDS, NAMES, OPTIONS, PARTITION_CHANGES, PARTITIONS
from tests.differential.vetting import Column, Vetting

_LITERALS = {(kind_of(kind).base): literals for kind, literals in KINDS.items()}
_BESIDE = (
    "u TIMESTAMP NULL DEFAULT CURRENT_TIMESTAMP ON UPDATE CURRENT_TIMESTAMP", "d DATETIME(3) DEFAULT NOW(3)",
    "f INT AS (id + 1) STORED", "g BIGINT AS (id * 2) VIRTUAL", "CHECK (id >= 0)", "x VARCHAR(40) DEFAULT (UUID())",
    "KEY ((id + 1))", "KEY ki (id DESC)", "y DATE DEFAULT (CURRENT_DATE)",
)  # fmt: skip
"""What else a new table may have."""
_ATTEMPTS = 6
_ALIKE = (INTEGERS, TEXTS | BYTES)
"""Types of which a smaller one takes the place of a larger one without rows being written again."""


def quoted(name: str) -> str:
    """As an identifier."""
    return "`{}`".format(name.replace("`", "``"))


def _name_in(definition: str) -> str:
    """The column that a definition begins with, in lower case."""
    return Words(definition).name().lower()


def _may_shrink(old: str, new: str) -> bool:
    before, after = kind_of(old).base, kind_of(new).base
    return any(before in some and after in some for some in _ALIKE)


@dataclass(slots=True)
class Evolution:
    """The statements about one table. `vetting`: with the script's database begun."""

    chance: random.Random
    vetting: Vetting
    table: str
    _number: int = 0
    _rows: int = 0
    _late: set[str] = field(default_factory=set)
    """Columns that rows may lack, in lower case: TiDB shows such a row a new default, if the type becomes smaller."""
    _ways: dict[Callable[[], str], int] = field(init=False)

    def __post_init__(self) -> None:
        self._ways = {
            self._altered: 8, self._inserted: 5, self._updated: 3, self._indexed: 2, self._partitions: 0,
            self._renamed: 1, self._copied: 1, self._deleted: 1, self._told: 1, self._loose: 1,
        }  # fmt: skip

    def statements(self, most: int) -> Iterator[str]:
        """Up to so many that TiDB took."""
        yield from self._taken(self._made)
        yield from self._taken(self._inserted)
        for _ in range(most):
            if not self.vetting.has_key(self.table):
                return  # TiCDC sends no rows of it from then on
            yield from self._taken(self.chance.choices(list(self._ways), list(self._ways.values()))[0])

    def _taken(self, write: Callable[[], str]) -> Iterator[str]:
        """The first one that TiDB takes, if one of a few is."""
        for _ in range(_ATTEMPTS):
            statement = write()
            if statement and self.vetting.runs(statement):
                yield statement
                return

    def _any(self, choices: Sequence[str]) -> str:
        return self.chance.choice(choices)

    def _new(self) -> str:
        """A name that no column had before, unless in another case."""
        self._number += 1
        name = f"{self._any(('c', 'C', 'Col_'))}{self._number}"
        odd = self._any(NAMES)
        return quoted(odd) if self.chance.random() < 0.15 else self._any((name, quoted(name)))

    def _columns(self, *without: str) -> list[Column]:
        """Those that the table has, without its key."""
        return [c for c in self.vetting.columns(self.table) if c.name.lower() not in ("id", *without)]

    def _made(self) -> str:
        key, *more = self._any(KEYS).partition(", ")
        beside = self.chance.sample(_BESIDE, self.chance.choice((0, 0, 1, 2)))
        own = [key, *self._definitions(self.chance.randint(1, 5)), *beside, *filter(None, more[1:])]
        parts = ""
        if self.chance.random() < 0.25:
            parts = f" PARTITION BY {self._any(PARTITIONS)}"
            self._ways[self._partitions] = 6
        word = self._any(("CREATE TABLE", "CREATE TABLE IF NOT EXISTS", "create table"))
        return f"{word} {self.table} ({', '.join(own)}){self._any(OPTIONS)}{parts}"

    def _definitions(self, count: int) -> list[str]:
        found = (self._definition(self._new()) for _ in range(count))
        return [one for one in found if self.vetting.column(one)]

    def _definition(self, name: str, kinds: Sequence[str] = ()) -> str:
        kind = self._any(kinds or list(KINDS))
        null = self._any(("", "", " NOT NULL", " NULL"))
        default = self._any((f" DEFAULT {self._any(KINDS[kind])}", "", " DEFAULT NULL"))
        said = f" COMMENT {self._any(COMMENTS)}" if self.chance.random() < 0.2 else ""
        return f"{name} {kind}{null}{default}{said}"

    def _altered(self) -> str:
        """Several clauses, each about other columns."""
        left = self._columns()
        self.chance.shuffle(left)
        ways = [self._added, self._added, self._modified, self._modified, self._modified, self._dropped, self._other]
        clauses = [self.chance.choice(ways)(left) for _ in range(self.chance.choice((1, 1, 2, 3, 4, 5)))]
        clauses = [clause for clause in clauses if clause]
        return f"ALTER TABLE {self.table} {', '.join(clauses)}" if clauses else ""

    def _where(self, left: list[Column]) -> str:
        behind = f" AFTER {quoted(left[-1].name)}" if left else ""
        return self._any(("", "", " FIRST", behind, " AFTER id"))

    def _added(self, left: list[Column]) -> str:
        some = self._definitions(self.chance.choice((1, 1, 1, 2)))
        self._late.update(map(_name_in, some))
        if not some:
            return ""
        exists = self._any(("", "", " IF NOT EXISTS"))
        return f"ADD COLUMN{exists} {some[0]}{self._where(left)}" if len(some) == 1 else f"ADD ({', '.join(some)})"

    def _modified(self, left: list[Column]) -> str:
        """Of kinds that all values of the column can become."""
        if not left or left[0].generated:
            return ""
        column = left.pop(0)
        fitting = [k for k in self.chance.sample(list(KINDS), 8) if is_modified(column.kind, kind_of(k).base)]
        if column.name.lower() in self._late:
            fitting = [k for k in fitting if not _may_shrink(column.kind, k)]
        fitting = [k for k in fitting if self.vetting.becomes(self.table, quoted(column.name), k)]
        if not fitting:
            return ""
        new = self._any(("", "", self._new()))
        self._follow(quoted(column.name), new)
        way = f"CHANGE COLUMN {quoted(column.name)} {new}" if new else f"MODIFY {quoted(column.name)}"
        return f"{self._definition(way, fitting[:1])}{self._where(left)}"

    def _follow(self, name: str, new: str) -> None:
        if new and _name_in(name) in self._late:
            self._late.add(_name_in(new))

    def _dropped(self, left: list[Column]) -> str:
        return f"DROP COLUMN {quoted(left.pop(0).name)}" if len(left) > 1 else ""

    def _other(self, left: list[Column]) -> str:
        """What changes no row, or only its columns' names."""
        name, new = quoted(left.pop(0).name) if left else "id", self._new()
        self._follow(name, new)
        value = self._any([one for some in KINDS.values() for one in some])
        return self._any((
            f"RENAME COLUMN {name} TO {new}", f"RENAME COLUMN {name} TO {name.upper()}",
            f"ALTER COLUMN {name} SET DEFAULT {value}", f"ALTER {name} DROP DEFAULT", f"ADD INDEX ({name})",
            f"ADD UNIQUE INDEX `u{self._number}` ({name}, id)", f"ADD INDEX i{self._number} ({name}(2)) INVISIBLE",
            f"COMMENT = {self._any(COMMENTS)}", "AUTO_INCREMENT = 1000", "DROP INDEX ki", "ALTER INDEX ki INVISIBLE",
            f"ADD CONSTRAINT ck{self._number} CHECK (id > -1)", f"ADD INDEX (({name} IS NULL))", "ALGORITHM = INPLACE",
            f"ADD UNIQUE ({name})", f"DROP PRIMARY KEY, ADD UNIQUE uk{self._number} (id)",
            "ADD PRIMARY KEY (id)", "DROP INDEX `u k`, ADD PRIMARY KEY (id)", "DROP INDEX id, ADD UNIQUE KEY new (id)",
        ))  # fmt: skip

    def _inserted(self) -> str:
        """A few rows, of values that their columns take."""
        columns = [c for c in self._columns() if not c.generated and self.chance.random() < 0.85]
        rows = []
        for _ in range(self.chance.randint(1, 4)):
            rows.append(", ".join([str(self._rows), *(self._value(c) for c in columns)]))
            self._rows += 1
        into = ", ".join(["id", *(quoted(c.name) for c in columns)])
        way = self._any(("INSERT INTO", "INSERT INTO", "REPLACE INTO"))
        return f"{way} {self.table} ({into}) VALUES {', '.join(f'({row})' for row in rows)}"

    def _value(self, column: Column) -> str:
        own = _LITERALS.get(kind_of(column.kind).base, ("1",))
        found = (self._any(own) for _ in range(_ATTEMPTS))
        return next((one for one in found if self.vetting.value(f"{column.kind} NOT NULL", one)), "DEFAULT")

    def _updated(self) -> str:
        some = [c for c in self._columns() if not c.generated][:3]
        values = [f"{quoted(c.name)} = {self._value(c)}" for c in some]
        way = self._any((f"id = {self.chance.randint(0, 5)}", "id % 2 = 0", f"id >= {self._rows - 1}"))
        if not values or self.chance.random() < 0.1:
            values.append("id = id + 100")
        return f"UPDATE {self.table} SET {', '.join(values)} WHERE {way}"

    def _deleted(self) -> str:
        return f"DELETE FROM {self.table} WHERE id = {self.chance.randint(0, self._rows)}"

    def _indexed(self) -> str:
        name = quoted(self._any([c.name for c in self._columns()] or ["id"]))
        return self._any((
            f"CREATE INDEX `i {self._number}` ON {self.table} ({name}, id)",
            f"CREATE UNIQUE INDEX un ON {self.table} (id)",
            f"CREATE INDEX pre ON {self.table} ({name}(3) DESC)", f"DROP INDEX pre ON {self.table}",
            f"ALTER TABLE {self.table} RENAME INDEX pre TO `Pre 2`", f"DROP INDEX un ON {self.table}",
        ))  # fmt: skip

    def _partitions(self) -> str:
        return f"ALTER TABLE {self.table} {self._any(PARTITION_CHANGES)}"

    def _renamed(self) -> str:
        self._number += 1
        old, self.table = self.table, self._any((f"T{self._number}", f"`r {self._number}`", f"`täb%{self._number}`"))
        return self._any((f"RENAME TABLE {old} TO {self.table}", f"ALTER TABLE {old} RENAME TO {self.table}"))

    def _copied(self) -> str:
        self._number += 1
        return f"CREATE TABLE l{self._number} LIKE {self.table}"

    def _told(self) -> str:
        """Tables beside, with foreign keys, and views."""
        self._number += 1
        return self._any((
            f"CREATE TABLE o{self._number} (a INT PRIMARY KEY, b INT, FOREIGN KEY (b) REFERENCES o{self._number} (a))",
            f"CREATE VIEW v{self._number} AS SELECT id FROM {self.table}", f"TRUNCATE {self.table}",
            f"ALTER TABLE {self.table} CONVERT TO CHARACTER SET utf8mb4", f"ALTER TABLE {self.table} CHARSET utf8mb4",
            "ALTER DATABASE CHARACTER SET utf8mb4 COLLATE utf8mb4_general_ci", f"ALTER TABLE {self.table} FORCE",
            f"ALTER TABLE o{self._number - 1} DROP FOREIGN KEY fk_1",
        ))  # fmt: skip

    def _loose(self) -> str:
        return self._any(("SET sql_mode = ''", "SET sql_mode = DEFAULT", "SET sql_mode = 'NO_BACKSLASH_ESCAPES'"))
