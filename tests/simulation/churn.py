"""A workload without sense: few keys, many tables' kinds, every statement that moves a key, and DDLs of all sorts."""

import random
from contextlib import suppress
from itertools import pairwise

from consumer.demo.fake_ticdc.database import (
    Commit,
    ConstraintError,
    Database,
    DdlStatement,
    Executed,
    KeyKind,
    Table,
    Transaction,
)
from consumer.demo.fake_ticdc.ddl import (
    AddColumnDdl,
    CreateDatabase,
    CreateTable,
    DropColumnDdl,
    DropDatabase,
    DropTable,
    RenameTable,
    TruncateTable,
)

KINDS: tuple[KeyKind, ...] = ("clustered", "nonclustered", "unique_only")
KEYS = 5


class Churn:
    """Tables of two databases, made, renamed, dropped and made again under few names."""

    def __init__(self, seed: int, *, ddl: float, unique: float = 0.5) -> None:
        self.database = Database()
        self._chance = random.Random(seed)
        self._ddl, self._unique = ddl, unique
        self._serial = 0
        for name in ("d", "e"):
            self.database.execute(CreateDatabase(name))
        for _ in range(self._chance.randrange(1, 4)):
            self._create()

    def run(self, transactions: int) -> "Churn":
        """Do so many transactions, with DDLs in between."""
        for _ in range(transactions):
            while self._chance.random() < self._ddl:
                self._change()
            if self.database.state.tables:
                with self.database.transaction() as transaction:
                    for _ in range(self._chance.randrange(1, 6)):
                        self._statement(transaction)
        return self

    def _free(self) -> list[str]:
        return [n for n in ("d.a", "d.b", "d.c", "e.a", "e.x") if n not in self.database.state.tables]

    def _create(self) -> None:
        database, _, name = self._chance.choice(self._free()).partition(".")
        kind = self._chance.choice(KINDS)
        columns = (("id", "int", False), ("v", "varchar(9)", True), ("u", "int", True))
        uniques = [("ku", ("u",))] if self._chance.random() < self._unique else []
        uniques += [("kid", ("id",))] if kind == "unique_only" else []
        self.database.execute(CreateTable(Table(database, name, columns, ("id",), kind, tuple(uniques))))

    def _change(self) -> None:
        """Run a DDL; after a RENAME now and then others at the same commitTs, as of several tables at once.

        No new name twice: then their order could not be told from different topics.
        """
        before = len(self.database.log)
        self._ddl_once()
        if len(self.database.log) == before:
            return
        taken: set[str] = set()
        while isinstance(last := self.database.log[-1], Executed) and isinstance(last.ddl, RenameTable):
            taken.add(last.ddl.new_name)
            free = [name for name in self._free() if name not in taken]
            if not free or self._chance.random() < 0.5:
                return
            self.database.clock.ticks -= 1
            name = self._chance.choice(sorted(self.database.state.tables))
            self.database.execute(RenameTable(name, self._chance.choice(free)))

    def _ddl_once(self) -> None:
        tables = sorted(self.database.state.tables)
        if not tables or (self._free() and self._chance.random() < 0.2):
            self._create()
            return
        found = self._chosen(self._chance.choice(tables))
        if found is not None:
            self.database.execute(found)

    def _chosen(self, name: str) -> DdlStatement | None:
        self._serial += 1
        database, free = name.partition(".")[0], self._free()
        extra = [n for n in self.database.state.tables[name].names if n.startswith("x")]
        column, text = f"x{self._serial}", self._chance.choice([None, "it's"])
        found: tuple[DdlStatement | None, ...] = (
            *[RenameTable(name, self._chance.choice(free)) if free else None] * 2,
            DropTable(name),
            TruncateTable(name),
            *[AddColumnDdl(name, (column, "varchar(10)", True), text)] * 2,
            AddColumnDdl(name, (column, "int", False), "5"),
            DropColumnDdl(name, extra[0]) if extra else None,
            DropDatabase(database) if self._chance.random() < 0.4 and self._known(database) else None,
        )
        return self._chance.choice(found)

    def _known(self, database: str) -> bool:
        """Whether rows were seen of every table under its name: else its topic can't be known to end."""
        seen: set[str] = set()
        for entry in self.database.log:
            if isinstance(entry, Commit):
                seen |= {change.table.full_name for change in entry.changes}
            elif isinstance(entry.ddl, RenameTable):
                seen -= {entry.ddl.full_name, entry.ddl.new_name}
            elif isinstance(entry.ddl, CreateTable):
                seen.add(entry.ddl.table.full_name)
        return all(n in seen for n in self.database.state.tables if n.startswith(f"{database}."))

    def _statement(self, transaction: Transaction) -> None:
        """One statement, or several that belong together; what a constraint refuses is left out."""
        name = self._chance.choice(sorted(self.database.state.tables))
        with suppress(ConstraintError, LookupError):
            match self._chance.randrange(8):
                case 0 | 1 | 2:
                    transaction.insert(name, self._row(name))
                case 3:
                    transaction.delete(name, self._key(transaction, name))
                case 4:
                    transaction.update(name, self._key(transaction, name), self._new_values())
                case 5:
                    transaction.update(name, self._key(transaction, name), {"id": self._any_id()})
                case 6:
                    self._cycle(transaction, name)
                case _:
                    self._rotate_unique(transaction, name)

    def _any_id(self) -> str:
        return str(self._chance.randrange(KEYS))

    def _new_values(self) -> dict[str, str | None]:
        return {"u": self._chance.choice([None, self._any_id()]), "v": self._chance.choice([None, "p", "q", "r"])}

    def _row(self, name: str) -> dict[str, str | None]:
        required = dict.fromkeys(self.database.state.tables[name].required, "7")
        return {**required, **self._new_values(), "id": self._any_id()}

    def _key(self, transaction: Transaction, name: str) -> tuple[str | None, ...]:
        return self._chance.choice(sorted(transaction.keys(name), key=repr))

    def _cycle(self, transaction: Transaction, name: str) -> None:
        """Move each of some rows to the next one's key; sometimes delete one on the way and insert it again."""
        keys = sorted(transaction.keys(name), key=repr)
        some = self._chance.sample(keys, min(len(keys), self._chance.randrange(2, 4)))
        spare = {"id": f"{100 + self._serial}"}
        transaction.update(name, some[0], spare)
        for hole, key in pairwise(some):
            row = transaction.get(name, key)
            if self._chance.random() < 0.3:
                transaction.delete(name, key)
                transaction.insert(name, {**row, "id": hole[0]})
            else:
                transaction.update(name, key, {"id": hole[0]})
        transaction.update(name, (spare["id"],), {"id": some[-1][0]})

    def _rotate_unique(self, transaction: Transaction, name: str) -> None:
        """Pass unique values around while the keys stay."""
        keys = sorted(transaction.keys(name), key=repr)[:3]
        values = [transaction.get(name, key)["u"] for key in keys]
        for key in keys:
            transaction.update(name, key, {"u": None})
        for key, value in zip(keys, values[1:] + values[:1], strict=True):
            transaction.update(name, key, {"u": value})
