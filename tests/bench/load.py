"""A deterministic load of one sysbench table, as TiCDC sends it, and what the table holds after any commitTs.

The first tenth inserts rows; then random rows are updated (78 %), deleted and inserted again (11 % each): over all
20 % INSERT, 70 % UPDATE, 10 % DELETE. 1 to 6 rows a transaction, no row twice in one; the partition follows from the
key; a watermark goes to every partition each `watermark_every` events and at the end.
"""

import hashlib
import random
import zlib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import NamedTuple

import orjson

BASE_MS = 1_700_000_000_000
_UPDATES, _DELETES = 0.78, 0.89
_NUMBERS = 8192
_LEAST = 100
"""So many ids are always there to choose from."""
_TYPES = '"sqlType":{"c":1,"id":4,"k":4,"pad":1},"mysqlType":{"c":"char(120)","id":"int","k":"int","pad":"char(60)"}'
_CREATE = (
    "CREATE TABLE `%s` (`id` INT PRIMARY KEY,`k` INT NOT NULL DEFAULT 0,"
    "`c` CHAR(120) NOT NULL DEFAULT _UTF8MB4'',`pad` CHAR(60) NOT NULL DEFAULT _UTF8MB4'')"
)

Row = tuple[int, int, int]
"""k, and the random bits that the texts c and pad are made of."""


class Change(NamedTuple):
    """One row event; `old` is None for an INSERT, `new` for a DELETE."""

    commit_ts: int
    id: int
    old: Row | None
    new: Row | None


class Mark(NamedTuple):
    """A watermark for every partition."""

    ts: int


class Message(NamedTuple):
    """One Kafka message."""

    partition: int
    value: bytes


@dataclass(frozen=True)
class Digest:
    """What tells two tables apart: how many rows, and the SHA-256 over lines such as `id|k|c|pad` in id order."""

    rows: int
    sha256: str


def digest_of(rows: Iterable[Iterable[object]]) -> Digest:
    """Digest rows that come in the order of their keys."""
    count, sha = 0, hashlib.sha256()
    for row in rows:
        count += 1
        sha.update(("|".join(map(str, row)) + "\n").encode())
    return Digest(count, sha.hexdigest())


class Load:
    """The load of a seed; every method walks it again from its beginning."""

    def __init__(
        self,
        events: int,
        *,
        ids: int = 0,
        partitions: int = 4,
        watermark_every: int = 2000,
        seed: int = 1,
        database: str = "bench",
        table: str = "sbtest1",
        ddls: int = 0,
    ) -> None:
        self.events, self.partitions, self.watermark_every, self.seed = events, partitions, watermark_every, seed
        self.ids = ids or max(_LEAST, events // 10)
        self.database, self.table, self.ddls = database, table, ddls
        chance = random.Random(seed)
        self._groups = [str(chance.randrange(10**10, 10**11)) for _ in range(_NUMBERS)]

    def changes(self) -> Iterator[Change | Mark]:
        """The row events in commitTs order, with watermarks between transactions and one behind the last."""
        return _History(self).steps()

    def messages(self) -> Iterator[Message | Mark]:
        """The messages in the order of sending; a `Mark` precedes the messages of each watermark."""
        self._marks = self._sent = 0
        yield Message(0, create_database(self.database))
        yield Message(0, ddl_message(self.database, "CREATE", self.table, _CREATE % self.table, BASE_MS - 1))
        for step in self.changes():
            if isinstance(step, Change):
                yield Message(self.partition_of(step.id), self._event(step))
            else:
                yield step
                for partition in range(self.partitions):
                    yield Message(partition, watermark(step.ts))
                yield from self._ddls_behind(step.ts)

    def _ddls_behind(self, ts: int) -> Iterator[Message]:
        """DDLs of other tables, spread evenly over the watermarks; each is a barrier for all rows."""
        self._marks += 1
        due = self.ddls * self._marks // max(1, self.events // self.watermark_every)
        while self._sent < min(due, self.ddls):
            self._sent += 1
            name = f"other{self._sent}"
            yield Message(0, ddl_message(self.database, "CREATE", name, _CREATE % name, ts >> 18, ts + 1))

    def partition_of(self, number: int) -> int:
        """The partition of an id."""
        return zlib.crc32(b"%d" % number) % self.partitions

    def expected(self) -> dict[str, Digest]:
        """What each table holds at the end."""
        return {self.table: self.digest()}

    def digest(self) -> Digest:
        """What the table holds at the end."""
        return self.digests([1 << 64])[1 << 64]

    def digests(self, checkpoints: Iterable[int]) -> dict[int, Digest]:
        """What the table holds once everything at or below each checkpoint was applied."""
        wanted = sorted(set(checkpoints), reverse=True)
        found: dict[int, Digest] = {}
        live: dict[int, Row] = {}
        for step in self.changes():
            if isinstance(step, Mark):
                continue
            while wanted and wanted[-1] < step.commit_ts:
                found[wanted.pop()] = self._digest(live)
            if step.new is None:
                del live[step.id]
            else:
                live[step.id] = step.new
        return found | dict.fromkeys(wanted, self._digest(live))

    def _digest(self, live: dict[int, Row]) -> Digest:
        return digest_of((i, live[i][0], self.text(live[i][1], 10), self.text(live[i][2], 5)) for i in sorted(live))

    def text(self, bits: int, words: int) -> str:
        """A text of so many words."""
        return "-".join([self._groups[bits >> 13 * i & _NUMBERS - 1] for i in range(words)])

    def image(self, number: int, row: Row) -> str:
        """A row as JSON."""
        c, pad = self.text(row[1], 10), self.text(row[2], 5)
        return f'{{"c":"{c}","id":"{number}","k":"{row[0]}","pad":"{pad}"}}'

    def _event(self, change: Change) -> bytes:
        kind = "INSERT" if change.old is None else "DELETE" if change.new is None else "UPDATE"
        old = f"[{self.image(change.id, change.old)}]" if change.old and change.new else "null"
        data = self.image(change.id, change.new or change.old or (0, 0, 0))
        ms = change.commit_ts >> 18
        return (
            f'{{"id":0,"database":"{self.database}","table":"{self.table}","pkNames":["id"],"isDdl":false,'
            f'"type":"{kind}","es":{ms},"ts":{ms + 3},"sql":"",{_TYPES},"old":{old},"data":[{data}],'
            f'"_tidb":{{"commitTs":{change.commit_ts}}}}}'
        ).encode()

    @property
    def place(self) -> str:
        """The table as statements name it."""
        return f"`{self.database}`.`{self.table}`"

    def line(self, change: Change) -> str:
        """An inserted row as LOAD DATA reads it."""
        k, c, pad = change.new or (0, 0, 0)
        return f"{change.id}\t{k}\t{self.text(c, 10)}\t{self.text(pad, 5)}\n"


def create_database(database: str) -> bytes:
    """The first message of a load."""
    return ddl_message(database, "QUERY", "", f"CREATE DATABASE `{database}`", BASE_MS - 1000)


def ddl_message(database: str, kind: str, table: str, sql: str, ms: int, commit_ts: int = 0) -> bytes:
    """A DDL message, committed at a time in ms, or at a commitTs in it."""
    empty = {
        "sqlType": None,
        "mysqlType": None,
        "data": None,
        "old": None,
        "_tidb": {"commitTs": commit_ts or ms << 18},
    }
    head = {"id": 0, "database": database, "table": table, "pkNames": None, "isDdl": True, "type": kind}
    return orjson.dumps(head | {"es": ms, "ts": ms, "sql": sql} | empty)


def create_statement(place: str) -> str:
    """The table of a load, in this place."""
    return _CREATE.replace("`%s`", place)


def watermark(ts: int) -> bytes:
    """A watermark message."""
    ms = ts >> 18
    return (
        '{"id":0,"database":"","table":"","pkNames":null,"isDdl":false,"type":"TIDB_WATERMARK",'
        f'"es":{ms},"ts":{ms},"sql":"","sqlType":null,"mysqlType":null,"data":null,"old":null,'
        f'"_tidb":{{"watermarkTs":{ts}}}}}'
    ).encode()


class _History:
    """One walk through a load."""

    def __init__(self, load: Load) -> None:
        self._load = load
        self._chance = random.Random(load.seed + 1)
        self._live: dict[int, Row] = {}
        self._ids: list[int] = []
        self._dead: list[int] = []
        self._in_transaction: set[int] = set()
        self._transactions = 0

    def steps(self) -> Iterator[Change | Mark]:
        """See `Load.changes`."""
        done, due, commit_ts = 0, self._load.watermark_every, 0
        while done < self._load.events:
            commit_ts = self._commit_ts()
            self._in_transaction.clear()
            for _ in range(min(self._chance.randrange(1, 7), self._load.events - done)):
                yield self._change(commit_ts, done)
                done += 1
            if done >= due:
                yield Mark(commit_ts)
                due += self._load.watermark_every
        yield Mark(commit_ts + 1)

    def _commit_ts(self) -> int:
        self._transactions += 1
        return (BASE_MS + self._transactions // 4 << 18) + self._transactions % 4 * 10 + 1

    def _change(self, commit_ts: int, done: int) -> Change:
        if done < self._load.ids:
            return self._insert(commit_ts, done + 1)
        turn = self._chance.random()
        if turn >= _DELETES and (number := self._taken(self._dead)) is not None:
            return self._insert(commit_ts, number)
        if _UPDATES <= turn < _DELETES and (number := self._taken(self._ids)) is not None:
            self._dead.append(number)
            return Change(commit_ts, number, self._live.pop(number), None)
        return self._update(commit_ts, grow=turn < _UPDATES / 2)

    def _insert(self, commit_ts: int, number: int) -> Change:
        self._in_transaction.add(number)
        self._ids.append(number)
        row = self._live[number] = (self._chance.randrange(1, self._load.ids + 1), *self._bits())
        return Change(commit_ts, number, None, row)

    def _update(self, commit_ts: int, *, grow: bool) -> Change:
        number = self._picked()
        old = self._live[number]
        new = (old[0] + 1, *old[1:]) if grow else (old[0], self._chance.getrandbits(130), old[2])
        self._live[number] = new
        return Change(commit_ts, number, old, new)

    def _bits(self) -> tuple[int, int]:
        return self._chance.getrandbits(130), self._chance.getrandbits(65)

    def _picked(self) -> int:
        """A living id that this transaction has not touched."""
        while (number := self._chance.choice(self._ids)) in self._in_transaction:
            pass
        self._in_transaction.add(number)
        return number

    def _taken(self, numbers: list[int]) -> int | None:
        """An id out of the list that this transaction has not touched; None while there are too few."""
        if len(numbers) < _LEAST:
            return None
        while True:
            at = self._chance.randrange(len(numbers))
            number = numbers[at]
            if number not in self._in_transaction:
                numbers[at] = numbers[-1]
                numbers.pop()
                self._in_transaction.add(number)
                return number
