"""Kills at every step around every kind of DDL: what is left is as if nothing had been killed."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from uuid import uuid4

import pytest

from consumer.operate.decisions import ddl_log
from ordering.errors import TargetError
from sinks.bookkeeping.ddl_log import KEPT
from sinks.steps import Step
from tests.service.cells import MariaDbCells, SqliteCells
from tests.service.ddl_story import Cells, Content, History, content, every_kind, named, partitions_and_recovery
from tests.service.local import Killed, LocalFeed
from tests.service.messages import at, watermarks
from tests.service.postgres_cells import PostgresCells

pytestmark = pytest.mark.service

AROUND = (Step.DDL_RECORDED, Step.DDL_EXECUTED, Step.DDL_DONE)


@dataclass
class Kills:
    """Kills at each of the steps around each DDL, once. Which DDL it is: counted by how many are done."""

    done: int = 0
    seen: set[tuple[int, Step]] = field(default_factory=set)

    def __call__(self, step: Step) -> None:
        """Kill if this step of this DDL has not been killed at yet."""
        place = (self.done, step)
        self.done += step is Step.DDL_DONE
        if step in AROUND and place not in self.seen:
            self.seen.add(place)
            raise Killed


MakeFeed = Callable[[str], LocalFeed]


@pytest.fixture
def make(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[MakeFeed]:
    """Makes feeds into a kind of target; what they leave on servers is dropped."""
    made: list[Cells] = []
    before: list[set[str]] = []

    def feed(kind: str) -> LocalFeed:
        name = f"local-{uuid4().hex[:12]}"
        uri = f"sqlite:///{tmp_path / name}" if kind == "sqlite" else request.getfixturevalue(f"{kind}_server").uri
        cells: Cells
        cells = SqliteCells(tmp_path / name) if kind == "sqlite" else CELLS[kind](uri)
        made.append(cells)
        before.append(cells.databases())
        return LocalFeed(None, "nowhere:1", name, uri, cells, tmp_path)  # type: ignore[arg-type]

    yield feed
    for cells, there in zip(made, before, strict=True):
        if not isinstance(cells, SqliteCells):
            cells.drop(cells.databases() - there)
            cells.close()


CELLS = {"mariadb": MariaDbCells, "tidb": MariaDbCells, "postgres": PostgresCells}
KINDS = ["sqlite", "mariadb", "postgres", "tidb"]


def left(feed: LocalFeed, prefix: str) -> Content:
    """All that lies in the target, under the names of the story."""
    found = content(feed.cells, {name for name in feed.cells.databases() if name.startswith(prefix)})
    return {
        name.removeprefix(prefix): (text.replace(prefix, ""), [row.replace(prefix, "") for row in rows])
        for name, (text, rows) in found.items()
    }


_SAFE_POINT = "REPLACE INTO mysql.tidb VALUES ('tikv_gc_safe_point', '20200101-00:00:00 +0000', '')"
"""RECOVER TABLE looks at it; a TiDB with its store in memory collects no garbage and has none."""


def told(make: MakeFeed, history: History, prefix: str, **target: object) -> LocalFeed:
    feed = make(history.kind).with_(target=target)
    if history.kind == "tidb":
        feed.cells.query(_SAFE_POINT)
    feed.send(named(history.ended(), prefix))
    return feed


@pytest.mark.by_turns
@pytest.mark.parametrize("kind", [*KINDS[:-1], pytest.param("tidb", marks=pytest.mark.soak)])
def test_kills_around_every_kind_of_ddl(kind: str, make: MakeFeed, database_prefix: str) -> None:
    shaken_as_calm(every_kind(kind), make, database_prefix)


@pytest.mark.by_turns
@pytest.mark.tidb
def test_kills_around_what_tidb_alone_does(make: MakeFeed, database_prefix: str) -> None:
    history = History("tidb")
    history.ddl("d.", "CREATE DATABASE `d`")
    partitions_and_recovery(history)
    shaken_as_calm(history, make, database_prefix)


@pytest.mark.soak
def test_kills_around_indexes_that_are_no_part_of_a_transaction(make: MakeFeed, database_prefix: str) -> None:
    shaken_as_calm(every_kind("postgres"), make, database_prefix, **{"concurrent-indexes": True})


def shaken_as_calm(history: History, make: MakeFeed, database_prefix: str, **target: object) -> None:
    """A run with a kill at every step ends as one without, and all messages once more change nothing."""
    kind = history.kind
    undisturbed = told(make, history, database_prefix)
    assert undisturbed.lives()
    expected = left(undisturbed, database_prefix)
    if kind != "sqlite":
        undisturbed.cells.drop({name for name in undisturbed.cells.databases() if name.startswith(database_prefix)})  # type: ignore[union-attr]
    feed = told(make, history, database_prefix, **target)
    kills = Kills()
    while not feed.lives(kills):
        pass
    ddls = sum(b'"isDdl":true' in message.value for message in history.messages)
    assert kills.done == ddls
    assert kills.seen == {(number, step) for number in range(ddls) for step in AROUND}
    assert left(feed, database_prefix) == expected
    assert expected
    feed.send([*named(history.messages, database_prefix), *watermarks(history.number + 2)])
    assert feed.lives()
    assert left(feed, database_prefix) == expected
    assert feed.checkpoint() == at(history.number + 2)
    assert {line.state for line in ddl_log(feed.config, KEPT)} == {"done"}


HAND = {
    "a-column-of-another-type": ("ADD COLUMN `w` VARCHAR(9)", "ADD COLUMN `w` INT DEFAULT 7", ""),
    "the-column-with-other-rows": (
        "ADD COLUMN `w` INT DEFAULT 7",
        "ADD COLUMN `w` INT DEFAULT 7",
        "UPDATE `t` SET `w` = 8",
    ),
    "a-lacking-column": ("DROP COLUMN `v`", "MODIFY COLUMN `v` BIGINT", ""),
}
"""What was done by hand to the target, the DDL that comes, and more by hand."""


def begun_at(feed: LocalFeed, prefix: str) -> History:
    history = History("mariadb")
    history.ddl("d.", "CREATE DATABASE `d`")
    history.ddl("d.t", "CREATE TABLE `t` (`id` INT PRIMARY KEY,`v` INT,`s` VARCHAR(10))")
    history.row("d.t", id=1, v=1, s="one")
    feed.send(named(history.ended(), prefix))
    history.messages.clear()
    return history


def by_hand(feed: LocalFeed, prefix: str, *statements: str) -> None:
    for statement in filter(None, statements):
        feed.cells.query(statement.replace("`t`", f"`{prefix}d`.`t`", 1))  # type: ignore[union-attr]


@pytest.mark.parametrize("name", HAND)
def test_a_target_changed_by_hand_stops_what_does_not_fit(name: str, make: MakeFeed, database_prefix: str) -> None:
    change, comes, more = HAND[name]
    feed = make("mariadb")
    history = begun_at(feed, database_prefix)
    assert feed.lives()
    by_hand(feed, database_prefix, f"ALTER TABLE `t` {change}", more)
    history.ddl("d.t", f"ALTER TABLE `t` {comes}")
    stopped_at = history.number
    history.row("d.t", id=2, v=2, s="two")
    feed.send(named(history.ended(), database_prefix))
    before = left(feed, database_prefix)
    for _ in "ab":
        with pytest.raises(TargetError) as failure:
            feed.lives()
        assert failure.value.exit_code == 4
        assert comes in failure.value.fact
        assert f"ddl skip CONFIG {at(stopped_at)}" in failure.value.hint
    assert left(feed, database_prefix) == before
    assert ddl_log(feed.config, 1)[0].state == "failed"


SO = {
    "the-index": ("ADD INDEX `i` (`v`)", "ADD INDEX `i`(`v`)"),
    "the-column-and-its-rows": ("ADD COLUMN `w` INT DEFAULT 7", "ADD COLUMN `w` INT DEFAULT 7"),
    "no-index": ("COMMENT = ''", "DROP INDEX `i`"),
    "no-column": ("DROP COLUMN `v`", "DROP COLUMN `v`"),
}


@pytest.mark.parametrize("name", SO)
def test_what_is_so_already_is_done(name: str, make: MakeFeed, database_prefix: str) -> None:
    change, comes = SO[name]
    feed = make("mariadb")
    history = begun_at(feed, database_prefix)
    assert feed.lives()
    by_hand(feed, database_prefix, f"ALTER TABLE `t` {change}")
    before = left(feed, database_prefix)
    history.ddl("d.t", f"ALTER TABLE `t` {comes}")
    feed.send(named(history.ended(), database_prefix))
    assert feed.lives()
    assert left(feed, database_prefix) == before
    (last,) = ddl_log(feed.config, 1)
    assert last.state == "done"
    assert last.executed.startswith("-- nothing") or "IF EXISTS" in last.executed


def test_a_table_that_is_there_is_the_one_that_is_created_only_if_it_is_empty(
    make: MakeFeed, database_prefix: str
) -> None:
    feed = make("mariadb")
    cells = feed.cells
    assert isinstance(cells, MariaDbCells)
    cells.query(f"CREATE DATABASE `{database_prefix}d` CHARACTER SET latin1")
    begun_at(feed, database_prefix)
    create = "CREATE TABLE `t` (`id` INT PRIMARY KEY,`v` INT,`s` VARCHAR(10))"
    by_hand(
        feed,
        database_prefix,
        f"{create} CHARACTER SET utf8mb4 COLLATE utf8mb4_bin",
        "INSERT INTO `t` VALUES (9, 9, '')",
    )
    with pytest.raises(TargetError):
        feed.lives()
    by_hand(feed, database_prefix, "DELETE FROM `t`")
    assert feed.lives()
    assert [row["id"] for row in cells.query(f"SELECT id FROM `{database_prefix}d`.t")] == ["1"]
    (made,) = cells.query(f"SHOW CREATE DATABASE `{database_prefix}d`")
    assert "utf8mb4_bin" in str(made)


@pytest.mark.cells("kind", "statement")
@pytest.mark.parametrize(
    "statement", ["TRUNCATE TABLE `t`", "ALTER TABLE `t` ADD COLUMN `w` INT", "RENAME TABLE `t` TO `u`"]
)
@pytest.mark.parametrize("kind", ["sqlite", "mariadb", "postgres"])
def test_a_table_that_the_target_lacks_stops_its_ddl(
    kind: str, statement: str, make: MakeFeed, database_prefix: str
) -> None:
    feed = make(kind)
    history = begun_at(feed, database_prefix)
    assert feed.lives()
    quoted = f'"{database_prefix}d"."t"' if kind == "postgres" else f"`{database_prefix}d`.`t`"
    if kind == "sqlite":
        feed.cells.run(f"{database_prefix}d", "DROP TABLE t")
    else:
        feed.cells.query(f"DROP TABLE {quoted}")  # type: ignore[union-attr]
    history.ddl("d.u" if "RENAME" in statement else "d.t", statement)
    history.ddl("d.n", "CREATE TABLE `n` (`id` INT PRIMARY KEY)")
    feed.send(named(history.ended(), database_prefix))
    with pytest.raises(TargetError) as failure:
        feed.lives()
    assert statement in failure.value.fact
    assert f"{database_prefix}d.n" not in feed.cells.tables({f"{database_prefix}d"})


@pytest.mark.parametrize("hand", ["ALTER TABLE `t` ADD COLUMN `x` INT", "ALTER TABLE `t` ADD COLUMN `w` BIGINT"])
def test_a_change_by_hand_while_the_driver_was_dead_is_not_taken_for_the_ddl(
    hand: str, make: MakeFeed, database_prefix: str
) -> None:
    feed = make("mariadb")
    history = begun_at(feed, database_prefix)
    assert feed.lives()
    history.ddl("d.t", "ALTER TABLE `t` ADD COLUMN `w` INT")
    history.row("d.t", id=2, v=2, s="two", w=2)
    feed.send(named(history.ended(), database_prefix))
    assert not feed.lives(Kills())
    by_hand(feed, database_prefix, hand)
    before = left(feed, database_prefix)
    with pytest.raises(TargetError) as failure:
        feed.lives()
    assert "by hand" in failure.value.fact
    assert left(feed, database_prefix) == before
