"""A bank: transactions over several tables whose balances always add up to the same total.

The accounts' tables differ in how TiKV finds a row: clustered key, nonclustered key, only a unique key, and a clustered
key with a nullable unique tag beside it. What the transactions do is what goes wrong in pipelines: keys that move,
swap and chain, rows deleted and inserted again, money and rows that cross tables. An audit table, which holds no
money, is made, truncated, renamed away and dropped, and columns come and go.

From `opened_ts` on, every upstream state has the sum `total`: a reader that sees another one saw half a transaction.
"""

from __future__ import annotations

import random
from typing import TYPE_CHECKING

from consumer.demo.fake_ticdc.database import Clock, Database, Table
from consumer.demo.fake_ticdc.ddl import (
    AddColumnDdl,
    CreateDatabase,
    CreateTable,
    DropColumnDdl,
    DropTable,
    RenameTable,
    TruncateTable,
)

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from consumer.demo.fake_ticdc.database import DdlStatement, Entry, Key, Row, Transaction

START_BALANCE = 1000

_MONEY = (("bal", "bigint", False), ("note", "varchar(40)", True))


def account_table(database: str, number: int) -> Table:
    """Define the accounts' table of this number; the four kinds take turns."""
    name, by_id = f"acc{number}", (("id", "int", False), *_MONEY)
    match number % 4:
        case 0:
            return Table(database, name, by_id, ("id",), "clustered")
        case 1:
            return Table(database, name, by_id, ("id",), "nonclustered")
        case 2:
            by_no = (("no", "varchar(20)", False), *_MONEY)
            return Table(database, name, by_no, ("no",), "unique_only", (("uno", ("no",)),))
        case _:
            tagged = (*by_id, ("tag", "varchar(20)", True))
            return Table(database, name, tagged, ("id",), "clustered", (("utag", ("tag",)),))


def audit_table(database: str) -> Table:
    """Define the table of what was done."""
    columns = (("id", "bigint", False), ("entry", "varchar(60)", True))
    return Table(database, "audit", columns, ("id",), "nonclustered")


class Bank:
    """The workload: `database.log` is what a changefeed reads. `ddl` is the chance of a DDL before a transaction."""

    def __init__(
        self,
        seed: int = 0,
        *,
        accounts: int = 20,
        tables: int = 4,
        ddl: float = 0.0,
        name: str = "bank",
        clock: Clock | None = None,
    ) -> None:
        self.database = Database(clock)
        self.total = accounts * tables * START_BALANCE
        self.accounts = [account_table(name, number) for number in range(tables)]
        self._audit = audit_table(name)
        self._chance = random.Random(seed)  # noqa: S311 -- a seeded history, not a secret
        self._ddl_chance = ddl
        self._serial = self._tags = 0
        self._keys: dict[str, list[Key]] = {table.full_name: [] for table in self.accounts}
        self._extras: dict[str, dict[str, str | None]] = {table.full_name: {} for table in self.accounts}
        self._retired: list[str] = []
        self._least, self._most = max(2, accounts // 2), accounts * 2
        self._actions = (
            self._transfer,
            self._rekey,
            self._swap,
            self._chain,
            self._close,
            self._open,
            self._reinsert,
            self._cross,
            self._come_to_nothing,
            self._retag,
        )
        self._open_doors(name, accounts)
        self.opened_ts = self.database.log[-1].commit_ts

    def run(self, transactions: int) -> Bank:
        """Do so many transactions, with DDLs in between."""
        for _ in range(transactions):
            if self._chance.random() < self._ddl_chance:
                self.database.execute(self._next_ddl())
            self._transact()
        return self

    def entries(self) -> Iterator[Entry]:
        """Yield the log and go on for ever; entries are forgotten once yielded, so `log` is no history then."""
        while True:
            yield from self.database.log
            self.database.log.clear()
            self.run(1)

    @staticmethod
    def balance(tables: Mapping[str, Mapping[Key, Row]]) -> int:
        """Add up all balances in a snapshot."""
        return sum(int(row["bal"] or 0) for rows in tables.values() for row in rows.values() if "bal" in row)

    def _open_doors(self, name: str, accounts: int) -> None:
        self.database.execute(CreateDatabase(name))
        for table in self.accounts:
            self.database.execute(CreateTable(table))
        for table in self.accounts:
            with self.database.transaction() as transaction:
                for _ in range(accounts):
                    self._insert(transaction, table, START_BALANCE, "init")

    # Accounts

    def _fresh(self, table: Table) -> Key:
        """Make a key that was never used."""
        self._serial += 1
        return (f"n{self._serial:04d}" if table.key_kind == "unique_only" else str(self._serial),)

    def _pick(self) -> tuple[Table, Key]:
        """Choose an account."""
        table = self._chance.choice(self.accounts)
        return table, self._chance.choice(self._keys[table.full_name])

    def _insert(self, transaction: Transaction, table: Table, balance: int, note: str, key: Key | None = None) -> None:
        key = key or self._fresh(table)
        row = {table.handle_key[0]: key[0], "bal": str(balance), "note": note, **self._extras[table.full_name]}
        if "tag" in table.names and self._chance.random() < 0.5:  # noqa: PLR2004 -- a coin
            self._tags += 1  # tags move between accounts: one that was made with this key may be another's now
            row["tag"] = f"t{self._tags}.{key[0]}"
        transaction.insert(table.full_name, row)
        self._keys[table.full_name].append(key)

    def _delete(self, transaction: Transaction, table: Table, key: Key) -> int:
        """Delete an account; returns what was in it."""
        balance = int(transaction.get(table.full_name, key)["bal"] or 0)
        transaction.delete(table.full_name, key)
        self._keys[table.full_name].remove(key)
        return balance

    def _add(self, transaction: Transaction, table: Table, key: Key, amount: int, note: str) -> None:
        balance = int(transaction.get(table.full_name, key)["bal"] or 0)
        transaction.update(table.full_name, key, {"bal": str(balance + amount), "note": note})

    def _move(self, transaction: Transaction, table: Table, old: Key, new: Key) -> None:
        """Change an account's key."""
        transaction.update(table.full_name, old, {table.handle_key[0]: new[0]})
        keys = self._keys[table.full_name]
        keys[keys.index(old)] = new

    # What a transaction may do

    def _transact(self) -> None:
        audit = self._audit.full_name
        with self.database.transaction() as transaction:
            self._transfer(transaction)
            for _ in range(self._chance.randrange(3)):
                self._chance.choice(self._actions)(transaction)
            if audit in self.database.state.tables:
                self._serial += 1
                entry = {"id": str(self._serial), "entry": f"after {len(self._retired)} rotations"}
                transaction.insert(audit, entry)

    def _transfer(self, transaction: Transaction) -> None:
        """Move money, mostly between tables; to the same account it is a row changed there and back."""
        amount = self._chance.randrange(1, 50)
        note = f"tx{amount}"
        self._add(transaction, *self._pick(), -amount, note)
        self._add(transaction, *self._pick(), amount, note)

    def _rekey(self, transaction: Transaction) -> None:
        table, key = self._pick()
        self._move(transaction, table, key, self._fresh(table))

    def _swap(self, transaction: Transaction) -> None:
        """Exchange the keys of two accounts."""
        table, one = self._pick()
        other = self._chance.choice(self._keys[table.full_name])
        spare = self._fresh(table)
        if one != other:
            self._move(transaction, table, one, spare)
            self._move(transaction, table, other, one)
            self._move(transaction, table, spare, other)

    def _chain(self, transaction: Transaction) -> None:
        """Free a key, let another account take it, and a third that one's."""
        table, _ = self._pick()
        keys = self._chance.sample(self._keys[table.full_name], min(3, len(self._keys[table.full_name])))
        free = self._fresh(table)
        for key in keys:
            self._move(transaction, table, key, free)
            free = key

    def _close(self, transaction: Transaction) -> None:
        table, key = self._pick()
        if len(self._keys[table.full_name]) > self._least:
            self._add(transaction, *self._other_than(table, key), self._delete(transaction, table, key), "close")

    def _other_than(self, table: Table, key: Key) -> tuple[Table, Key]:
        while True:
            found = self._pick()
            if found != (table, key):
                return found

    def _open(self, transaction: Transaction) -> None:
        table, key = self._pick()
        if len(self._keys[table.full_name]) < self._most:
            self._add(transaction, table, key, -10, "open")
            self._insert(transaction, table, 10, "open")

    def _reinsert(self, transaction: Transaction) -> None:
        """Delete an account and insert it again under the same key."""
        table, key = self._pick()
        self._insert(transaction, table, self._delete(transaction, table, key), "again", key)

    def _cross(self, transaction: Transaction) -> None:
        """Move an account to another table."""
        (table, key), target = self._pick(), self._chance.choice(self.accounts)
        if len(self._keys[table.full_name]) > self._least and len(self._keys[target.full_name]) < self._most:
            self._insert(transaction, target, self._delete(transaction, table, key), "moved")

    def _come_to_nothing(self, transaction: Transaction) -> None:
        """Insert an account and delete it."""
        table, _ = self._pick()
        key = self._fresh(table)
        self._insert(transaction, table, 0, "gone", key)
        self._delete(transaction, table, key)

    def _retag(self, transaction: Transaction) -> None:
        """Pass a tag from one account to another: a unique value that moves while the keys stay."""
        for table in self.accounts:
            if "tag" in table.names:
                name, keys = table.full_name, self._keys[table.full_name]
                giver, taker = self._chance.choice(keys), self._chance.choice(keys)
                given, taken = (transaction.get(name, key)["tag"] for key in (giver, taker))
                transaction.update(name, giver, {"tag": None})
                transaction.update(name, taker, {"tag": given})
                if giver != taker:
                    transaction.update(name, giver, {"tag": taken})

    # DDL

    def _next_ddl(self) -> DdlStatement:
        audit = self._audit.full_name
        if audit not in self.database.state.tables:
            return CreateTable(self._audit)
        match self._chance.randrange(5):
            case 0:
                return TruncateTable(audit)
            case 1:
                return self._rotate(audit)
            case 2:
                return self._drop_column() or self._add_column()
            case _:
                return self._add_column()

    def _rotate(self, audit: str) -> DdlStatement:
        """Rename the audit table away, or drop one that was."""
        if self._retired and self._retired[-1] in self.database.state.tables:
            return DropTable(self._retired[-1])
        self._retired.append(f"{audit}_{len(self._retired)}")
        return RenameTable(audit, self._retired[-1])

    def _add_column(self) -> DdlStatement:
        table = self._chance.choice(self.accounts).full_name
        self._serial += 1
        name, kinds = (
            f"x{self._serial}",
            (("int", False, "5"), ("varchar(10)", True, "it's"), ("varchar(10)", True, None)),
        )
        kind, nullable, default = self._chance.choice(kinds)
        self._extras[table][name] = default
        return AddColumnDdl(table, (name, kind, nullable), default)

    def _drop_column(self) -> DdlStatement | None:
        """Drop a column that was added."""
        table = self._chance.choice(self.accounts).full_name
        if not self._extras[table]:
            return None
        name = self._chance.choice(list(self._extras[table]))
        del self._extras[table][name]
        return DropColumnDdl(table, name)
