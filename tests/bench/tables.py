"""Loads of several tables: transactions of 1 and of 1,000 rows, rows of a hundred columns, a thousand tables.

Deterministic as `tests.bench.load`; all values are texts, as in messages, in the order of their table's columns.
"""

import random
import zlib
from abc import ABC, abstractmethod
from collections.abc import Iterator
from typing import NamedTuple

import orjson

from tests.bench.load import BASE_MS, Digest, Mark, Message, create_database, ddl_message, digest_of, watermark

Values = tuple[str, ...]
_WORDS = 4096


class RowChange(NamedTuple):
    """One row event; `old` is None for an INSERT, `new` for a DELETE. The first value is the key."""

    commit_ts: int
    table: str
    old: Values | None
    new: Values | None


class TablesLoad(ABC):
    """A load of tables that `tables` creates and `steps` fills; every method walks it again."""

    columns: tuple[str, ...]
    types: tuple[str, ...]

    def __init__(self, events: int, *, partitions: int = 4, seed: int = 1, database: str = "bench") -> None:
        self.events, self.partitions, self.seed, self.database = events, partitions, seed, database
        chance = random.Random(seed)
        self.words = [f"{chance.getrandbits(40):010x}" for _ in range(_WORDS)]
        types = dict(zip(self.columns, self.types, strict=True))
        self._head = {"sqlType": dict.fromkeys(self.columns, 12), "mysqlType": types}

    @property
    @abstractmethod
    def tables(self) -> list[str]:
        """Their names."""

    @abstractmethod
    def steps(self) -> Iterator[RowChange | Mark]:
        """The row events in commitTs order, with watermarks between transactions and one behind the last."""

    def messages(self) -> Iterator[Message | Mark]:
        """The messages in the order of sending; a `Mark` precedes the messages of each watermark."""
        yield Message(0, create_database(self.database))
        columns = ", ".join(f"`{name}` {kind}" for name, kind in zip(self.columns, self.types, strict=True))
        for number, table in enumerate(self.tables):
            sql = f"CREATE TABLE `{table}` ({columns}, PRIMARY KEY (`{self.columns[0]}`))"
            ms = BASE_MS - 1
            yield Message(0, ddl_message(self.database, "CREATE", table, sql, ms, (ms << 18) + number))
        for step in self.steps():
            if isinstance(step, Mark):
                yield step
                for partition in range(self.partitions):
                    yield Message(partition, watermark(step.ts))
            else:
                row = step.new or step.old or ()
                yield Message(zlib.crc32(f"{step.table}.{row[0]}".encode()) % self.partitions, self._event(step))

    def expected(self) -> dict[str, Digest]:
        """What each table holds at the end."""
        live: dict[str, dict[str, Values]] = {table: {} for table in self.tables}
        for step in self.steps():
            if isinstance(step, Mark):
                continue
            if step.old is not None:
                del live[step.table][step.old[0]]
            if step.new is not None:
                live[step.table][step.new[0]] = step.new
        return {table: digest_of(rows[key] for key in sorted(rows, key=int)) for table, rows in live.items()}

    def _event(self, change: RowChange) -> bytes:
        kind = "INSERT" if change.old is None else "DELETE" if change.new is None else "UPDATE"
        ms = change.commit_ts >> 18
        head = {"id": 0, "database": self.database, "table": change.table, "pkNames": [self.columns[0]]}
        clock = {"isDdl": False, "type": kind, "es": ms, "ts": ms + 3, "sql": "", **self._head}
        old = [self._named(change.old)] if change.old and change.new else None
        images = {"old": old, "data": [self._named(change.new or change.old or ())]}
        return orjson.dumps(head | clock | images | {"_tidb": {"commitTs": change.commit_ts}})

    def _named(self, row: Values) -> dict[str, str]:
        return dict(zip(self.columns, row, strict=True))


class Shop(TablesLoad):
    """Forty tables; two hundred transactions of one row, then one of a thousand, and so on."""

    columns = ("id", "customer", "amount", "state", "note")
    types = ("bigint", "int", "decimal(12,2)", "varchar(16)", "varchar(80)")
    _small, _large = 200, 1000

    @property
    def tables(self) -> list[str]:
        """See `TablesLoad`."""
        return [f"shop_{number:02}" for number in range(40)]

    def steps(self) -> Iterator[RowChange | Mark]:
        """See `TablesLoad`: 60 % INSERT, 30 % UPDATE, 10 % DELETE."""
        chance, live = random.Random(self.seed + 1), _Living(self.tables)
        done = transactions = commit_ts = 0
        while done < self.events:
            transactions += 1
            commit_ts = (BASE_MS + transactions << 18) + 1
            large = transactions % (self._small + 1) == 0
            size = min(self._large if large else 1, self.events - done)
            touched: set[tuple[str, str]] = set()
            table = chance.choice(self.tables)
            for _ in range(size):
                yield self._change(chance, live, commit_ts, table, touched)
            done += size
            if large:
                yield Mark(commit_ts)
        yield Mark(commit_ts + 1)

    def _change(
        self, chance: random.Random, live: "_Living", commit_ts: int, table: str, touched: set[tuple[str, str]]
    ) -> RowChange:
        turn, rows = chance.random(), live.rows[table]
        key = chance.choice(live.keys[table]) if turn > 0.6 and live.keys[table] else None
        if key is None or (table, key) in touched:
            key, old = live.next_key(table), None
        else:
            old = rows[key]
        touched.add((table, key))
        if old is not None and turn > 0.9:
            live.forget(table, key)
            return RowChange(commit_ts, table, old, None)
        new = (key, str(chance.randrange(10**6)), f"{chance.randrange(10**7) / 100:.2f}", *self._texts(chance))
        live.keep(table, key, new)
        return RowChange(commit_ts, table, old, new)

    def _texts(self, chance: random.Random) -> Values:
        return chance.choice(("new", "paid", "sent", "back")), "-".join(chance.choices(self.words, k=6))


class Wide(TablesLoad):
    """One table of a hundred columns and rows of 5 KB: a quarter INSERTs, then UPDATEs of three columns each."""

    columns = ("id", *(f"n{i:02}" for i in range(49)), *(f"s{i:02}" for i in range(50)))
    types = ("bigint", *["int"] * 49, *["varchar(100)"] * 50)
    _every = 500

    @property
    def tables(self) -> list[str]:
        """See `TablesLoad`."""
        return ["wide"]

    def steps(self) -> Iterator[RowChange | Mark]:
        """See `TablesLoad`."""
        chance, ids = random.Random(self.seed + 1), max(1, self.events // 4)
        rows: list[Values] = []
        commit_ts = 0
        for done in range(self.events):
            commit_ts = (BASE_MS + done << 18) + 1
            old = None if done < ids else chance.choice(rows)
            new = self._fresh(chance, done) if old is None else self._changed(chance, old)
            if old is None:
                rows.append(new)
            else:
                rows[int(old[0])] = new
            yield RowChange(commit_ts, "wide", old, new)
            if done % self._every == 0:
                yield Mark(commit_ts)
        yield Mark(commit_ts + 1)

    def _fresh(self, chance: random.Random, number: int) -> Values:
        numbers = (str(chance.randrange(10**9)) for _ in range(49))
        return (str(number), *numbers, *(self._text(chance) for _ in range(50)))

    def _changed(self, chance: random.Random, old: Values) -> Values:
        new = list(old)
        for at in chance.sample(range(50, 100), 3):
            new[at] = self._text(chance)
        return tuple(new)

    def _text(self, chance: random.Random) -> str:
        return "-".join(chance.choices(self.words, k=7))


class Many(TablesLoad):
    """A thousand tables, created one after the other; then INSERTs into all of them in turn, two a transaction."""

    columns = ("id", "customer", "amount", "state", "note")
    types = ("bigint", "int", "decimal(12,2)", "varchar(16)", "varchar(80)")
    _watermark_every = 1000

    def __init__(self, events: int, *, count: int = 1000, database: str = "bench") -> None:
        self._count = count
        super().__init__(events, database=database)

    @property
    def tables(self) -> list[str]:
        """See `TablesLoad`."""
        return [f"many_{number:04}" for number in range(self._count)]

    def steps(self) -> Iterator[RowChange | Mark]:
        """See `TablesLoad`."""
        chance, tables, commit_ts = random.Random(self.seed + 1), self.tables, 0
        for number in range(self.events):
            if number and number % self._watermark_every == 0:
                yield Mark(commit_ts)
            commit_ts = (BASE_MS + number // 2 << 18) + 1
            key, customer = str(number // self._count + 1), str(chance.randrange(10**6))
            row = (key, customer, f"{number}.25", "new", "-".join(chance.choices(self.words, k=6)))
            yield RowChange(commit_ts, tables[number % self._count], None, row)
        yield Mark(commit_ts + 1)


class _Living:
    """The rows that are there, and keys to choose from."""

    def __init__(self, tables: list[str]) -> None:
        self.rows: dict[str, dict[str, Values]] = {table: {} for table in tables}
        self.keys: dict[str, list[str]] = {table: [] for table in tables}
        self._at: dict[tuple[str, str], int] = {}
        self._last = dict.fromkeys(tables, 0)

    def next_key(self, table: str) -> str:
        """A key that no row has had."""
        self._last[table] += 1
        return str(self._last[table])

    def keep(self, table: str, key: str, row: Values) -> None:
        """Note a row as it is now."""
        if key not in self.rows[table]:
            self._at[table, key] = len(self.keys[table])
            self.keys[table].append(key)
        self.rows[table][key] = row

    def forget(self, table: str, key: str) -> None:
        """Note that a row is gone; the last key takes its place."""
        keys, at, last = self.keys[table], self._at.pop((table, key)), self.keys[table].pop()
        if last != key:
            keys[at], self._at[table, last] = last, at
        del self.rows[table][key]
