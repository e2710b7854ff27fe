"""Seeded stories of one table: transactions, the messages that they become, and the dict that a target must equal."""

import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from itertools import count
from typing import Any

from consumer.demo.fake_ticdc.changefeed import Message
from tests.matrix.forms import COLUMNS, Form
from tests.matrix.kinds import Kind
from tests.service.lab import PARTITIONS
from tests.service.messages import TOPIC, at, encoded, row_value, watermarks

Row = dict[str, str]
Ident = tuple[str, ...]
_TWINS: dict[str, Callable[[str], str]] = {"utf8mb4_bin": lambda text: text + " ", "utf8mb4_general_ci": str.swapcase}
"""How a text becomes another one that upstream's collation takes for the same; of a CHAR there is none."""
_SAME: dict[str, Callable[[str], str]] = {
    "utf8mb4_bin": lambda text: text.rstrip(" "),
    "utf8mb4_general_ci": str.casefold,
}
_LONGEST = 55
"""Characters of a text that grows; the columns hold 60."""


@dataclass
class StoryWindow:
    """What is sent before a round, and what the target must hold after it."""

    messages: list[Message]
    rows: list[Row]


@dataclass
class Story:
    """One table's life. `rows`: how many it begins with."""

    random: random.Random
    kind: Kind
    form: Form
    database: str
    rows: int
    free: list[str] = field(default_factory=list)
    held: dict[Ident, Row] = field(default_factory=dict)
    touched: set[Ident] = field(default_factory=set)
    sent: list[Message] = field(default_factory=list)
    number: int = 10
    fresh: Iterator[int] = field(default_factory=lambda: count(1))

    def __post_init__(self) -> None:
        pool = list(dict.fromkeys(self.kind.texts(self.random)))
        # neighbours stay together, so that half of a run goes and its other half stays
        start = self.random.randrange(max(1, len(pool) - 2 * self.rows))
        self.free = pool[start:] + pool[:start]
        self.rows = min(self.rows, len(pool) * 2 // 3)

    def windows(self, many: int) -> Iterator[StoryWindow]:
        """The first one fills the table, the others change it."""
        yield self._window([self._insert] * self.rows, transactions=1)
        for _ in range(many):
            yield self._window(self._work(), transactions=self.random.choice((1, 1, 3)))

    def _work(self) -> list[Callable[[], list[Message]]]:
        """What one transaction does, in which order."""
        share = max(1, self.rows // 2)
        kinds = [self._delete, self._insert, self._update, self._move, self._swap_keys, self._twin]
        kinds += [self._swap_second, self._rotate] if self.form.second else []
        most = self.random.choice(kinds)
        found = [most] * share + self.random.choices(kinds, k=max(2, self.rows // 4))
        return [*found, *([self._insert] * (self.rows - len(self.held)))]

    def _window(self, work: list[Callable[[], list[Message]]], transactions: int) -> StoryWindow:
        again = list(self.sent) if self.random.random() < 0.3 else []
        new: list[Message] = []
        for _ in range(transactions):
            self.number += 1
            self.touched.clear()
            made = [message for step in work[: -(-len(work) // transactions)] for message in step()]
            self.random.shuffle(made)
            new += made
        twice = self.random.sample(new, len(new) // 3) if self.random.random() < 0.3 else []
        self.sent = (self.sent + new)[-600:]
        return StoryWindow([*again, *new, *twice, *watermarks(self.number)], [dict(row) for row in self.held.values()])

    def ident(self, row: Row) -> Ident:
        """A row's handle key."""
        return tuple(row[name] for name in COLUMNS[self.form.key])

    def _message(self, kind: str, row: Row, old: Row | None = None) -> Message:
        key = () if self.form.key == "unique" else COLUMNS[self.form.key]
        value: dict[str, Any] = row_value(kind, f"{self.database}.t", at(self.number), row, old, key)
        value["mysqlType"] = {"k": self.kind.sent, "n": "int", "u": "int", "v": "varchar"}
        value["pkNames"] = list(key) or None
        return Message(TOPIC, self.random.randrange(PARTITIONS), encoded(value))

    def _some(self, many: int) -> list[Row]:
        """Rows that this transaction has not touched yet; fewer if there are no more."""
        rest = [ident for ident in self.held if ident not in self.touched]
        chosen = self.random.sample(rest, min(many, len(rest)))
        return [self.held[ident] for ident in chosen]

    def _unused(self) -> str | None:
        """A key that is free, and that this transaction has not freed."""
        touched = {text for ident in self.touched for text in (ident[0], ident[-1])}
        used = {self._as_upstream(text) for text in touched | {row["k"] for row in self.held.values()}}
        for _ in range(len(self.free)):
            found = self.free.pop(0)
            self.free.append(found)
            if self._as_upstream(found) not in used:
                return found
        return None

    def _as_upstream(self, text: str) -> str:
        """What texts share that upstream's collation takes for the same, as far as `_twin` makes them."""
        return _SAME.get(self.kind.declared.rpartition(" ")[2], str)(text)

    def _insert(self) -> list[Message]:
        key = self._unused()
        if key is None:
            return []
        number = next(self.fresh)
        row = {"k": key, "n": str(number % 3), "u": str(number), "v": f"new {number}"}
        self.held[self.ident(row)] = row
        self.touched.add(self.ident(row))
        return [self._message("INSERT", row)]

    def _delete(self) -> list[Message]:
        for row in self._some(1):
            self.touched.add(self.ident(row))
            return [self._message("DELETE", self.held.pop(self.ident(row)))]
        return []

    def _replaced(self, pairs: list[tuple[Row, Row]]) -> list[Message]:
        """Rows become others at once, either as UPDATEs or as DELETEs and INSERTs."""
        messages = []
        for old, _ in pairs:
            self.touched.add(self.ident(self.held.pop(self.ident(old))))
        for old, new in pairs:
            self.touched.add(self.ident(new))
            self.held[self.ident(new)] = new
            if self.random.random() < 0.5 or self.form.key == "unique":
                messages += [self._message("DELETE", old), self._message("INSERT", new)]
            else:
                messages.append(self._message("UPDATE", new, old))
        return messages

    def _update(self) -> list[Message]:
        rows = self._some(1)
        news = [{**row, "v": f"upd {next(self.fresh)}"} for row in rows]
        for old, new in zip(rows, news, strict=True):
            self.touched.add(self.ident(new))
            self.held[self.ident(old)] = new
        return [self._message("UPDATE", new, old) for old, new in zip(rows, news, strict=True)]

    def _move(self) -> list[Message]:
        key, rows = self._unused(), self._some(1)
        return self._replaced([(row, {**row, "k": key}) for row in rows]) if key is not None else []

    def _twin(self) -> list[Message]:
        """A key becomes one that upstream takes for the same."""
        collation = self.kind.declared.rpartition(" ")[2]
        change = _TWINS.get(collation) if self.kind.sent == "varchar" else None
        rows = self._some(1)
        if change is None or not rows or len(change(rows[0]["k"])) != len(rows[0]["k"]) + (collation == "utf8mb4_bin"):
            return self._update()
        if len(rows[0]["k"]) > _LONGEST or change(rows[0]["k"]) == rows[0]["k"]:
            return self._update()
        return self._replaced([(rows[0], {**rows[0], "k": change(rows[0]["k"])})])

    def _swap_keys(self) -> list[Message]:
        rows = self._some(2)
        return self._replaced(self._rotated(rows, ("k", "n")))

    def _swap_second(self) -> list[Message]:
        return self._replaced(self._rotated(self._some(2), ("u",)))

    def _rotate(self) -> list[Message]:
        return self._replaced(self._rotated(self._some(4), ("u",)))

    @staticmethod
    def _rotated(rows: list[Row], names: tuple[str, ...]) -> list[tuple[Row, Row]]:
        """Each row takes some values of the next one over."""
        nexts = rows[1:] + rows[:1]
        return [(row, {**row, **{name: other[name] for name in names}}) for row, other in zip(rows, nexts, strict=True)]
