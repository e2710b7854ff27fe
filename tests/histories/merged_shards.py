"""Random histories of two to four shards of one merged table, and what the target has to hold after them.

The model, `Shards`, keeps each shard as upstream has it. A merged table is the union of its shards' rows, each with its
origin; of a column that a shard lacks, its rows hold the default until the shard has had the column once.

    python -m tests.histories.merged_shards 5000 [FIRST SEED]     plays so many histories into SQLite, with kills
"""

import sys
import tempfile
from collections.abc import Iterator
from copy import deepcopy
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from typing import Any

from consumer.demo.fake_ticdc.changefeed import Message
from consumer.operate.decisions import decide_ddl
from ordering.errors import InputError
from sinks.bookkeeping.ddl_log import DdlState
from sinks.steps import Step
from tests.service.cells import SqliteCells
from tests.service.local import Killed, LocalFeed
from tests.service.messages import at, ddl, delete, insert, update, watermarks

NAMES = ("s1.t_a", "s1.t_b", "s2.t_a", "s2.t_c", "s1.t_z")
SINK = {
    "dispatchers": [
        {
            "matcher": ["s*.t_*"],
            "target-schema": "m",
            "target-table": "t",
            "merge": True,
            "extract-schema": {"schema-regexp": "s(.*)", "target-column": "db"},
            "extract-table": {"table-regexp": "t_(.*)", "target-column": "shard"},
        }
    ]
}
COLUMNS = {"c1": "5", "c2": None, "c3": "7"}
"""Columns that come and go, and their defaults."""
_KILLED_AT = 0.04
Row = dict[str, str | None]


@dataclass
class Shard:
    """A table upstream. `had`: columns that it had and has lost since its rows were last all gone."""

    columns: set[str] = field(default_factory=set)
    rows: dict[int, Row] = field(default_factory=dict)
    had: set[str] = field(default_factory=set)


@dataclass
class Shards:
    """The model. `columns`: those of the target besides `id`, `v` and the origin."""

    shards: dict[str, Shard] = field(default_factory=dict)
    columns: set[str] = field(default_factory=set)

    def create(self, name: str, columns: set[str]) -> bool:
        """Whether it is followed: a further shard has what the others have, or lacks what one of them lacks."""
        others = list(self.shards.values())
        missing = self.columns - columns
        if others and not (columns <= self.columns and all(any(c not in o.columns for o in others) for c in missing)):
            return False
        self.columns = self.columns if others else set(columns)
        self.shards[name] = Shard(set(columns))
        return True

    def add(self, name: str, column: str) -> bool:
        """Whether it is followed: not where rows still hold what the column held before."""
        shard = self.shards[name]
        if column in self.columns and column in shard.had:
            return False
        if column not in self.columns:
            self.columns.add(column)
            for one in self.shards.values():
                one.had.discard(column)
        shard.columns.add(column)
        for row in shard.rows.values():
            row[column] = COLUMNS[column]
        return True

    def drop(self, name: str, column: str) -> None:
        shard = self.shards[name]
        shard.columns.discard(column)
        shard.had.add(column)
        for row in shard.rows.values():
            row.pop(column, None)  # of a column that came back, nothing is said
        if not any(column in one.columns for one in self.shards.values()):
            self.columns.discard(column)

    def faults(self, found: list[dict[str, Any]] | None) -> Iterator[str]:
        """How the target's rows differ. `found`: None: there is no table."""
        if (found is None) != (not self.shards):
            yield f"a table: {found is not None}, of shards {sorted(self.shards)}"
        left = {(one["db"], one["shard"], int(one["id"])): one for one in found or ()}
        if len(left) != len(found or ()):
            yield "two rows of one key"
        for name, shard in self.shards.items():
            database, table = name.split(".")
            for number, row in shard.rows.items():
                one = left.pop((database[1:], table[2:], number), None)
                if one is None:
                    yield f"{name} {number} is missing"
                    continue
                if set(one) - {"id", "v", "db", "shard"} != self.columns:
                    yield f"{name} {number} has columns {sorted(one)}, not {sorted(self.columns)}"
                told = {column: None if one[column] is None else str(one[column]) for column in one}
                wanted = row | {c: COLUMNS[c] for c in self.columns - shard.columns - shard.had}
                yield from (
                    f"{name} {number}: {c} is {told.get(c)}, not {value}"
                    for c, value in wanted.items()
                    if told.get(c) != value
                )
        yield from (f"{key} is extra" for key in left)


def _defined(column: str) -> str:
    default = COLUMNS[column]
    return f"`{column}` INT" + (f" NOT NULL DEFAULT {default}" if default is not None else "")


class History:
    """Makes events as it goes; `refused`: what is to be refused, with the model as it is before and after."""

    def __init__(self, seed: int) -> None:
        self.chance, self.model, self.number = Random(seed), Shards(), 1
        self.names = self.chance.sample(NAMES, self.chance.randint(2, 4))

    def step(self) -> tuple[list[Message], bool]:
        """Some messages, and whether the last one of them is refused."""
        chance, model = self.chance, self.model
        self.number += 1
        absent = [name for name in self.names if name not in model.shards]
        if absent and (not model.shards or chance.random() < 0.2):
            return self._create(chance.choice(absent))
        if not model.shards:
            raise AssertionError
        name = chance.choice(sorted(model.shards))
        kinds = {"row": 70, "add": 10, "drop": 8, "truncate": 3, "gone": 3, "rename": 4}
        kind = chance.choices(list(kinds), weights=list(kinds.values()))[0]
        return self._row(name) if kind == "row" else self._ddl(name, kind, absent)

    def _create(self, name: str) -> tuple[list[Message], bool]:
        model, chance = self.model, self.chance
        same = set(model.columns) if model.shards else set(chance.sample(list(COLUMNS), chance.randint(0, 2)))
        columns = same if chance.random() < 0.8 else {c for c in COLUMNS if chance.random() < 0.5}
        parts = ["`id` INT PRIMARY KEY", "`v` INT", *map(_defined, sorted(columns))]
        sql = f"CREATE TABLE `{name.split('.')[1]}` ({', '.join(parts)})"
        model_before = deepcopy(model)
        followed = model.create(name, columns)
        if not followed:
            self.model = model_before
        return [ddl(name, self.number, sql)], not followed

    def _ddl(self, name: str, kind: str, absent: list[str]) -> tuple[list[Message], bool]:
        model, chance, shard, table = self.model, self.chance, self.model.shards[name], name.split(".")[1]
        if kind in ("add", "drop"):
            may = sorted(shard.columns if kind == "drop" else COLUMNS.keys() - shard.columns)
            if not may:
                return self._row(name)
            column = chance.choice(may)
            clause = f"ADD COLUMN {_defined(column)}" if kind == "add" else f"DROP COLUMN `{column}`"
            refused = kind == "add" and not model.add(name, column)
            if refused:
                model.shards[name].columns.add(column)  # upstream has made it
            if kind == "drop":
                model.drop(name, column)
            return [ddl(name, self.number, f"ALTER TABLE `{table}` {clause}", kind="ALTER")], refused
        database = name.split(".", maxsplit=1)[0]
        if kind == "truncate":
            shard.rows, shard.had = {}, set()
            return [ddl(name, self.number, f"TRUNCATE TABLE `{database}`.`{table}`", kind="TRUNCATE")], False
        if kind == "gone":
            del model.shards[name]
            if not model.shards:
                model.columns = set()
            return [ddl(name, self.number, f"DROP TABLE `{database}`.`{table}`", kind="ERASE")], False
        if not absent:
            return self._row(name)
        goal = chance.choice(absent)
        model.shards[goal] = model.shards.pop(name)
        old, new = (f"`{one.replace('.', '`.`')}`" for one in (name, goal))
        return [ddl(goal, self.number, f"RENAME TABLE {old} TO {new}", kind="RENAME")], False

    def _row(self, name: str) -> tuple[list[Message], bool]:
        shard, chance = self.model.shards[name], self.chance
        number, partition = chance.randint(1, 4), chance.randint(0, 2)
        row: Row = {"v": str(chance.randint(0, 99))}
        row |= {c: str(chance.randint(0, 9)) for c in sorted(shard.columns)}
        if number not in shard.rows:
            shard.rows[number] = row
            return [insert(name, self.number, partition, id=number, **row)], False
        old = shard.rows.pop(number)
        if chance.random() < 0.3:
            return [delete(name, self.number, partition, id=number, **old)], False
        free = [one for one in range(1, 5) if one not in shard.rows]
        goal = chance.choice([number, *free])
        shard.rows[goal] = row
        return [update(name, self.number, {"id": number, **old}, partition, id=goal, **row)], False


def played(seed: int, place: Path, uri: str = "", cells: Any = None, steps: int = 30) -> list[str]:
    """What is wrong with the target after a history of which drivers die on the way; a line each."""
    history = History(seed)
    chance = Random(-seed)

    def observe(_: Step) -> None:
        if chance.random() < _KILLED_AT:
            raise Killed

    feed = LocalFeed.into(uri or f"sqlite:///{place}", cells or SqliteCells(place), place)
    consistency = chance.choice(("snapshot", "transaction", "row"))
    feed.with_(sink=SINK, target={"consistency": consistency}, limits={"window-rows": chance.choice((1, 3, 1_000_000))})
    if consistency == "row":
        feed.by_tasks()
    feed.send([ddl("m.", 1, "CREATE DATABASE `m`", kind="QUERY"), *watermarks(1)])
    wrong, sent = list[str](), list[Message]()
    for at_step in range(steps):
        messages, refused = history.step()
        sent += messages
        again = [chance.choice(sent)] if chance.random() < 0.3 else []
        feed.send([*messages, *again])
        if refused:
            wrong += _refused(feed, history.number, observe)
            history.number += 1
        elif chance.random() < 0.15 or at_step == steps - 1:
            history.number += 1  # a DDL of the watermark's own commitTs may have company that is still to come
            feed.send(watermarks(history.number))
            while not feed.lives(observe):
                pass
            wrong += history.model.faults(_rows(feed))
    return [f"seed {seed} ({consistency}): {one}" for one in wrong]


def _refused(feed: LocalFeed, number: int, observe: Any) -> list[str]:
    feed.send(watermarks(number + 1))
    try:
        while not feed.lives(observe):
            pass
    except InputError:
        decide_ddl(feed.config, at(number), DdlState.SKIP, "the model says so")
        return []
    return [f"the DDL at {number} was followed"]


def _rows(feed: LocalFeed) -> list[dict[str, Any]] | None:
    found = feed.cells.tables(["m"]).get("m.t")
    return None if found is None else found[1]


def main() -> int:
    """Play histories; the exit code is 1 for any fault."""
    count, first = int(sys.argv[1]), int(sys.argv[2]) if len(sys.argv) > 2 else 0
    faults = 0
    for seed in range(first, first + count):
        with tempfile.TemporaryDirectory(dir="/dev/shm") as place:
            try:
                wrong = played(seed, Path(place))
            except Exception as error:  # noqa: BLE001 told with its seed
                wrong = [f"seed {seed}: {type(error).__name__}: {error}"]
        faults += bool(wrong)
        for line in wrong:
            print(line, flush=True)
        if (seed - first + 1) % 100 == 0:
            print(f"{seed - first + 1} histories, {faults} with faults", flush=True)
    return 1 if faults else 0


if __name__ == "__main__":
    raise SystemExit(main())
