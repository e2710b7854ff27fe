"""Random histories with crashes, proven on the way: `python -m tests.service.proof_histories TRIALS SEED [TARGET]`.

A history has rows that come, change, move to another key and go in five tables, one of them without a key and one
without it at times, DDLs, repeated messages, and runs that are killed at any step in any consistency; in between the
tables are proven, at once or piece by piece, also right after a kill. No table may differ. At its end somebody changes
one cell or one row of the target: the next proof has to name that table, and no other one. Errors name the seed of the
trial. TARGET: sqlite, mariadb or postgres.
"""

import random
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack, closing
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path
from typing import Any
from unittest.mock import patch

from consumer.demo.fake_ticdc.changefeed import Message
from consumer.proof import scrub as scrubbing
from consumer.proof.report import Proof, ProofVerdict
from consumer.proof.run import Proving
from consumer.proof.scrub import Scrub
from consumer.wiring import target_of
from sinks.steps import Step
from tests.embedded.mariadb import MariaDbServer
from tests.embedded.postgres import PostgresServer
from tests.service.cells import MariaDbCells, SqliteCells
from tests.service.local import Killed, LocalFeed
from tests.service.messages import ddl, delete, insert, keyed, update, watermarks
from tests.service.postgres_cells import PostgresCells

TABLES = {
    "t": ("CREATE TABLE `t` (id INT PRIMARY KEY, v INT, s VARCHAR(20))", ("id",)),
    "k": ("CREATE TABLE `k` (id VARCHAR(20) PRIMARY KEY, v INT, s VARCHAR(20))", ("id",)),
    "c": ("CREATE TABLE `c` (id INT, v INT, s VARCHAR(20), PRIMARY KEY (id, v))", ("id", "v")),
    "n": ("CREATE TABLE `n` (id INT, v INT, s VARCHAR(20))", ()),
    "q": ("CREATE TABLE `q` (id INT NOT NULL, v INT, s VARCHAR(20), UNIQUE KEY `u` (id))", ("id",)),
    "p": (
        (
            "CREATE TABLE `p` (id INT PRIMARY KEY, v INT, s VARCHAR(20)) PARTITION BY RANGE (`id`)"
            " (PARTITION `low` VALUES LESS THAN (7), PARTITION `high` VALUES LESS THAN MAXVALUE)"
        ),
        ("id",),
    ),
}
LOW = 7
"""Below it keys are in the first partition."""
DDLS = (
    "CREATE INDEX `i{n}` ON `{t}` (`s`)", "ALTER TABLE `{t}` ADD COLUMN `x{n}` INT", "TRUNCATE TABLE `{t}`",
    "ALTER TABLE `{t}` DROP COLUMN `{x}`", "ALTER TABLE `{t}` MODIFY COLUMN `s` VARCHAR({wide})",
    "ALTER TABLE `{t}` RENAME COLUMN `{x}` TO `x{n}`", "ALTER TABLE `{t}` ADD COLUMN `x{n}` INT DEFAULT 7",
    "DROP TABLE `{t}`", "RENAME TABLE `{t}` TO `{t}{n}`", "DROP INDEX `u` ON `{t}`",
    "ALTER TABLE `{t}` TRUNCATE PARTITION `low`", "ALTER TABLE `{t}` COMMENT = 'at {n}'",
    "ALTER TABLE `{t}` ADD COLUMN `x{n}` INT FIRST",
)  # fmt: skip
PARTS = 12
Row = dict[str, object]


@dataclass
class History:
    """One history: what upstream holds, and what was sent of it."""

    chance: random.Random
    rows: dict[str, dict[tuple[object, ...], Row]] = field(default_factory=lambda: {name: {} for name in TABLES})
    columns: dict[str, list[str]] = field(default_factory=lambda: {name: [] for name in TABLES})
    named: dict[str, str] = field(default_factory=lambda: {name: name for name in TABLES})
    """Their names at present."""
    number: int = 10
    keys: int = 20
    """How many keys a table has: few, so that they meet."""
    ddl_share: float = 0.05
    """Of the transactions, so many are DDLs."""
    last: list[Message] = field(default_factory=list)
    """The row messages of the last part, which a restart of TiCDC repeats."""

    def begun(self) -> list[Message]:
        """The database and its tables."""
        made = (ddl(f"d.{name}", 2, sql) for name, (sql, _) in TABLES.items())
        return [ddl("d.", 1, "CREATE DATABASE `d`", kind="QUERY"), *made, *watermarks(3)]

    def part(self) -> list[Message]:
        """Some transactions, a DDL among them at times, repetitions, and watermarks up to their middle or end."""
        repeated = (
            self.last[self.chance.randrange(len(self.last)) :] if self.last and self.chance.random() < 0.4 else []
        )
        sent: list[Message] = []
        for _ in range(self.chance.randrange(1, 12)):
            self.number += 1
            if self.chance.random() < self.ddl_share:
                sent += self.ddl()
                self.last = repeated = []
            else:
                some = self.transaction()
                self.last = [*self.last[-30:], *some]
                sent += some
        self.number += 1
        return [*repeated, *sent, *watermarks(self.number)]

    def ddl(self) -> list[Message]:
        """A DDL, once all before it is resolved."""
        name, wide = self.chance.choice(list(TABLES)), 20 + self.number % 200
        x = self.chance.choice(self.columns[name] or [""])
        some = (one for one in DDLS if (x or "{x}" not in one) and ("PARTITION" not in one or name == "p"))
        sql = self.chance.choice([one for one in some if "`u`" not in one or name == "q"])
        if "INDEX `u`" in sql:
            return self.without_key()
        told = sql.format(t=self.named[name], n=self.number, x=x, wide=wide)
        found = self.executed(name, told)
        self.changed(name, sql, x)
        if "DROP TABLE" in sql:
            self.number += 1
            self.named[name] = name
            found += self.executed(name, TABLES[name][0])
        return found

    def executed(self, name: str, sql: str) -> list[Message]:
        """A DDL as it is sent: all before it is resolved. After a RENAME messages name the new table."""
        words = sql.replace("`", "").split()
        place = words[-1] if words[0] == "RENAME" else self.named[name]
        return [*watermarks(self.number - 1), ddl(f"d.{place}", self.number, sql, kind=words[0])]

    def changed(self, name: str, sql: str, x: str) -> None:
        """What becomes of the rows."""
        if "RENAME TABLE" in sql:
            self.named[name] += str(self.number)
        if "PARTITION" in sql:
            self.rows[name] = {key: row for key, row in self.rows[name].items() if int(str(row["id"])) >= LOW}
        elif "TRUNCATE" in sql or "DROP TABLE" in sql:
            self.rows[name].clear()
        self.changed_columns(name, sql, x)

    def changed_columns(self, name: str, sql: str, x: str) -> None:
        """What becomes of the columns, and of the rows with them."""
        new, columns = f"x{self.number}", self.columns[name]
        if "DROP TABLE" in sql:
            columns.clear()
        if "DROP COLUMN" in sql or "RENAME COLUMN" in sql:
            columns.remove(x)
        if "x{n}" in sql:
            columns.append(new)
        for row in self.rows[name].values():
            if "ADD COLUMN" in sql:
                row[new] = 7 if "DEFAULT" in sql else None
            elif "RENAME COLUMN" in sql:
                row[new] = row.pop(x)
            elif "DROP COLUMN" in sql:
                del row[x]

    def without_key(self) -> list[Message]:
        """For a while a table has no key, and equal rows: one stays where no other one has its id."""
        table = f"d.{self.named['q']}"
        found = self.executed("q", f"DROP INDEX `u` ON `{self.named['q']}`")
        self.number += 1
        row = {**self.row("q"), "id": 1000 + self.number}
        some = [keyed(insert(table, self.number, 0, **row))] * self.chance.randrange(2, 4)
        found += [*some, *watermarks(self.number), *(some if self.chance.random() < 0.5 else [])]
        self.number += 1
        gone = len(some) - self.chance.randrange(2)
        found += [keyed(delete(table, self.number, 0, **row))] * gone
        if gone < len(some):
            self.rows["q"][(row["id"],)] = row
        self.number += 1
        return found + self.executed("q", f"CREATE UNIQUE INDEX `u` ON `{self.named['q']}` (`id`)")

    def transaction(self) -> list[Message]:
        """Changes of different rows at one commitTs, in the partitions of their keys."""
        name = self.chance.choice(list(TABLES))
        keys = TABLES[name][1]
        found: list[Message] = []
        touched: set[tuple[object, ...]] = set()
        for _ in range(self.chance.randrange(1, 5)):
            new = self.row(name)
            # a row without a key has a number that nobody sends
            key = tuple(new[column] for column in keys) if keys else (self.chance.randrange(self.keys),)
            if key in touched:
                continue
            touched.add(key)
            old = self.rows[name].get(key)
            free = [one for one in self.rows[name] if keys and one not in touched]
            if old is None and free and self.chance.random() < 0.3:
                touched.add(one := self.chance.choice(free))
                found += self.move(name, one, key, new)
                continue
            found += self.change(name, key, old, new)
        return [keyed(message, *keys) for message in found]

    def change(self, name: str, key: tuple[object, ...], old: Row | None, new: Row) -> Iterator[Message]:
        """One row comes, changes or goes."""
        place = hash_of(key) if TABLES[name][1] else 0
        if old is None:
            self.rows[name][key] = new
            yield insert(f"d.{self.named[name]}", self.number, place, **new)
        elif self.chance.random() < 0.4:
            del self.rows[name][key]
            yield delete(f"d.{self.named[name]}", self.number, place, **old)
        else:
            self.rows[name][key] = new
            changed = {column: value for column, value in old.items() if new[column] != value}
            yield update(f"d.{self.named[name]}", self.number, changed, place, **new)

    def move(self, name: str, old_key: tuple[object, ...], key: tuple[object, ...], new: Row) -> Iterator[Message]:
        """A row gets another key: one event, or a DELETE and an INSERT."""
        old, table = self.rows[name].pop(old_key), f"d.{self.named[name]}"
        self.rows[name][key] = new
        if self.chance.random() < 0.5:
            changed = {column: value for column, value in old.items() if new[column] != value}
            yield update(table, self.number, changed, hash_of(key), **new)
        else:
            yield delete(table, self.number, hash_of(old_key), **old)
            yield insert(table, self.number, hash_of(key), **new)

    def row(self, name: str) -> Row:
        """A row."""
        key: object = self.chance.randrange(self.keys)
        text = "".join(self.chance.choices("ab|: N1", k=self.chance.randrange(6)))
        more = {column: self.chance.choice([None, 1, 2]) for column in self.columns[name]}
        value = self.chance.choice([None, *range(4)]) if name != "c" else self.chance.randrange(3)
        return {"id": f"key {key}" if name == "k" else key, "v": value, "s": self.chance.choice([None, text]), **more}


def hash_of(key: tuple[object, ...]) -> int:
    """A partition."""
    return sum(map(ord, str(key))) % 3


@dataclass
class Trial:
    """A history, a target and its proofs. `counts`: what was tried."""

    seed: int
    counts: Counter[str]
    feed: LocalFeed
    chance: random.Random = field(init=False)
    at: float = 0.0
    windows: int = 0
    """All that its changefeed has applied so far."""
    scrubs: list[Scrub] = field(default_factory=list)
    """The latest ones: one that has lost the lead goes on for a while beside its successor."""

    def __post_init__(self) -> None:
        self.chance = random.Random(self.seed)
        self.feed.with_(filter={"force-replicate": True}, source={"equal-rows": "count"})

    def play(self) -> None:
        """The whole of it. Raises AssertionError that names the seed."""
        history = History(self.chance)
        self.feed.send(history.begun())
        self.apply()
        for _ in range(PARTS):
            self.feed.send(history.part())
            self.apply()
            self.look()
        for _ in range(2):  # the second one compares what a DDL has made start over
            final = self.prove()
        assert set(verdicts(final).values()) == {"equal"}, (self.seed, final.as_json())
        self.counts["windows"] += self.windows
        self.corrupt(history)

    def apply(self) -> None:
        """A run that is killed at some step, perhaps, and one that ends."""
        consistency = self.chance.choice(["snapshot", "transaction", "row"])
        self.feed.with_(target={"consistency": consistency})
        if self.chance.random() < 0.6:
            left = count(-self.chance.randrange(1, 25))

            def kill(_: Step) -> None:
                if not next(left):
                    raise Killed

            if not self.feed.lives(kill):
                self.counts["kills"] += 1
                self.look_after_kill()
        self.windows = self.feed.once().counts.windows

    def look_after_kill(self) -> None:
        """Prove what a killed run has left, unless it left a window that is half done."""
        with closing(target_of(self.feed.config)) as target:
            stored = target.stored(self.feed.name)
        if stored is not None and stored.progress.window is None and not stored.progress.is_torn:
            self.counts["proofs after kills"] += 1
            found = self.prove()
            assert found.having(ProofVerdict.DIFFERENT) == [], (self.seed, found.as_json())

    def look(self) -> None:
        """Prove at once, piece by piece, or not; by another process at times."""
        way = self.chance.randrange(4)
        if way == 0:
            return
        found = self.prove() if way == 1 else self.scrubbed(is_new=way == 3)
        assert found.having(ProofVerdict.DIFFERENT) == [], (self.seed, found.as_json())

    def prove(self) -> Proof:
        """All tables at once."""
        self.counts["proofs"] += 1
        log = self.feed.log_of_messages
        return Proving(self.feed.config, control=log, readers=log).run()  # type: ignore[arg-type]

    def scrubbed(self, *, is_new: bool) -> Proof:
        """A round of the scrub."""
        self.counts["scrubs"] += 1
        self.at += 7200
        log = self.feed.log_of_messages
        if is_new or not self.scrubs:
            config = self.feed.with_(proof={"rows-per-second": 10**6}).config
            new = Scrub(config, control=log, readers=log, now=lambda: self.at, round_s=1e9)  # type: ignore[arg-type]
            self.scrubs = [*self.scrubs[-1:], new]
            new.round()
            return new.round()
        scrub = self.chance.choice(self.scrubs)
        if self.chance.random() < 0.3:
            scrub._read_for_a_while()
            scrub = self.chance.choice(self.scrubs)
        return scrub.round()

    def corrupt(self, history: History) -> None:
        """Change a cell or a row by hand: just that table differs."""
        filled = [name for name, rows in history.rows.items() if rows]
        if not filled:
            return
        name = self.chance.choice(filled)
        row = self.chance.choice(list(history.rows[name].values()))
        where = " AND ".join(is_sql(column, row[column]) for column in TABLES[name][1] or row)
        columns = [column for column in row if column not in TABLES[name][1]]
        column, table = self.chance.choice(columns), history.named[name]
        one, two = ("'q'", "'r'") if column == "s" else ("1", "2")
        what = {
            "cell": f"UPDATE {table} SET {column} = CASE WHEN {column} = {one} THEN {two} ELSE {one} END WHERE {where}",
            "lost row": f"DELETE FROM {table} WHERE {where}",
            "foreign row": f"INSERT INTO {table} (id, v) VALUES ({sql('other') if name == 'k' else 999}, 1)",
            "moved row": f"UPDATE {table} SET id = {sql('other') if name == 'k' else 999} WHERE {where}",
        }
        kind = self.chance.choice(list(what))
        self.feed.cells.run("d", what[kind])
        found = self.prove() if self.chance.random() < 0.5 else self.scrubbed(is_new=True)
        differing = {table for table, verdict in verdicts(found).items() if verdict == "different"}
        assert differing == {table}, (self.seed, kind, what[kind], found.as_json())
        self.counts[kind] += 1


def is_sql(column: str, value: object) -> str:
    """The condition that a column has this value."""
    return f"{column} IS NULL" if value is None else f"{column} = {sql(value)}"


def sql(value: object) -> str:
    """A value as SQL spells it."""
    return f"'{value}'" if isinstance(value, str) else str(value)


def verdicts(proof: Proof) -> dict[str, str]:
    """What was found of each table."""
    return {name.table: one.verdict.value for name, (_, one) in proof.tables.items()}


def play(trials: int, first: int, place: Path, kind: str = "sqlite") -> Counter[str]:
    """So many trials, each with a seed of its own; what was tried."""
    counts: Counter[str] = Counter()
    with patch.object(scrubbing, "LOCKED_ROWS", 3), patch.object(scrubbing, "PIECE_ROWS", 3), ExitStack() as stack:
        server = None if kind == "sqlite" else stack.enter_context(SERVERS[kind](place))
        for seed in range(first, first + trials):
            feed = feed_into(server, place / f"target{seed}", place)
            Trial(seed, counts, feed).play()
            if not isinstance(feed.cells, SqliteCells):
                feed.cells.drop(["d"])
                feed.cells.close()
            counts["trials"] += 1
            if counts["trials"] % 50 == 0:
                print(dict(counts), flush=True)
    return counts


SERVERS: dict[str, Any] = {"mariadb": MariaDbServer, "postgres": PostgresServer}


def feed_into(server: Any, target: Path, place: Path) -> LocalFeed:
    """A new changefeed, into a new target or one that a trial has left empty."""
    if server is None:
        return LocalFeed.into(f"sqlite:///{target}", SqliteCells(target), place)
    cells = PostgresCells(server.uri) if isinstance(server, PostgresServer) else MariaDbCells(server.uri)
    return LocalFeed.into(server.uri, cells, place)


def main() -> int:
    """Play."""
    with tempfile.TemporaryDirectory() as place:
        print(dict(play(int(sys.argv[1]), int(sys.argv[2]), Path(place), *sys.argv[3:4])))
    return 0


if __name__ == "__main__":
    sys.exit(main())
