"""`reconciler prove`: equal through everything that is right, different at whatever is not, honest about the rest."""

import json
import random
from collections.abc import Callable, Iterator
from contextlib import closing
from itertools import count
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest

from consumer.demo.fake_ticdc.changefeed import Message
from consumer.proof.report import Proof, ProofVerdict
from consumer.proof.run import Proving
from consumer.tasks import order
from consumer.verify.sides import Side
from consumer.wiring import target_of
from ordering.errors import InputError
from ordering.events import Partition, TableName
from sinks.rows.schema import Catalog
from sinks.steps import Step
from tests.service.cells import MariaDbCells, SqliteCells, emptied
from tests.service.lab import Feed, databases_of, recorded
from tests.service.local import Killed, LocalFeed
from tests.service.messages import at, begun, ddl, delete, insert, update, watermarks
from tests.service.postgres_cells import PostgresCells
from tests.verifying.upstreams import connected

pytestmark = pytest.mark.service
T = TableName("d", "t")
STORIES = (
    "bank.index-value.restarts",
    "split.index-value.restarts",
    "bank.table.raw",
    "keys.index-value.split",
    "iv.index-value.raw",
)


def in_sqlite(place: Path) -> LocalFeed:
    target = place / "target"
    return LocalFeed(None, "nowhere:1", f"t{uuid4().hex[:8]}", f"sqlite:///{target}", SqliteCells(target), place)  # type: ignore[arg-type]


@pytest.fixture
def feed(tmp_path: Path) -> LocalFeed:
    return in_sqlite(tmp_path)


@pytest.fixture(params=["sqlite", "mariadb", "postgres", "tidb"])
def every(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[LocalFeed]:
    """A changefeed into each kind of target."""
    if request.param == "sqlite":
        yield in_sqlite(tmp_path)
        return
    server = request.getfixturevalue(f"{request.param}_server")
    if request.param == "tidb":
        connected(server).close()
    with emptied(PostgresCells(server.uri) if request.param == "postgres" else MariaDbCells(server.uri)) as cells:
        yield LocalFeed.into(server.uri, cells, tmp_path)


def prove(feed: LocalFeed, *rebase: str) -> Proof:
    log = feed.log_of_messages
    return Proving(feed.config, rebase, control=log, readers=log).run()  # type: ignore[arg-type]


def verdicts(proof: Proof) -> dict[str, str]:
    return {name.table: one.verdict.value for name, (_, one) in proof.tables.items()}


def reason(proof: Proof, name: TableName = T) -> str:
    return proof.tables[name][1].reason


def ddl_amid_a_look(feed: LocalFeed, monkeypatch: pytest.MonkeyPatch, message: Message) -> list[Side]:
    """Let a DDL be executed between a proof's snapshot and its first look at the tables; empty until it was."""
    catalog, looks = Side.catalog, list[Side]()

    def meanwhile(side: Side) -> Catalog:
        if not looks:
            looks.append(side)
            feed.send([*watermarks(6), message, *watermarks(9)])
            feed.apply()
        return catalog(side)

    monkeypatch.setattr(Side, "catalog", meanwhile)
    return looks


def changes(number: int) -> list[Message]:
    """Rows that come, change, get another key and go."""
    first = number * 10
    return [
        insert("d.t", number, id=first, v=1, s="a|b"),
        insert("d.t", number, 1, id=first + 1, v=None, s="1:x"),
        update("d.t", number + 1, {"v": 1}, id=first, v=2, s="a|b"),
        update("d.t", number + 2, {"id": first + 1}, 2, id=first + 2, v=None, s="1:x"),
        delete("d.t", number + 3, id=first, v=2, s="a|b"),
    ]


def test_it_goes_on_from_proof_to_proof_and_finds_what_is_changed_by_hand(every: LocalFeed) -> None:
    every.send([*begun(), *watermarks(3)])
    every.apply()
    first = prove(every)
    assert verdicts(first) == {"t": "equal"}, "from the topic's beginning on"
    every.send([*changes(4), *watermarks(9)])
    every.apply()
    second = prove(every)
    assert verdicts(second) == {"t": "equal"}
    assert (second.since, second.checkpoint_ts) == (at(3), at(9))
    for change, back in (
        ("UPDATE t SET v = 77 WHERE id = 1", "UPDATE t SET v = 1 WHERE id = 1"),
        ("UPDATE t SET s = NULL WHERE id = 1", "UPDATE t SET s = 'one' WHERE id = 1"),
        ("UPDATE t SET s = 'one ' WHERE id = 1", "UPDATE t SET s = 'one' WHERE id = 1"),
        ("INSERT INTO t VALUES (5, 5, 'x')", "DELETE FROM t WHERE id = 5"),
        ("DELETE FROM t WHERE id = 1", "INSERT INTO t VALUES (1, 1, 'one')"),
    ):
        every.cells.run("d", change)
        found = prove(every)
        assert verdicts(found) == {"t": "different"}, change
        every.send([insert("d.t", 20, id=200, v=1, s="x"), *watermarks(21)])
        every.apply()
        assert verdicts(prove(every)) == {"t": "different"}, "other events change nothing about it"
        every.cells.run("d", back)
        assert verdicts(prove(every)) == {"t": "equal"}, back


def test_repetitions_and_splits_count_once(feed: LocalFeed) -> None:
    """TiCDC restarts: what was one UPDATE comes again as DELETE and INSERT, within an interval and after it."""
    feed.send([*begun(), *watermarks(3)])
    feed.apply()
    prove(feed)
    split = [delete("d.t", 5, id=40, v=1, s="a|b"), insert("d.t", 5, 1, id=40, v=2, s="a|b")]
    feed.send([*changes(4), *split, *changes(4), *watermarks(9)])
    feed.apply()
    assert verdicts(prove(feed)) == {"t": "equal"}
    feed.send([*changes(4), *split, *changes(10), *watermarks(19)])
    feed.apply()
    assert verdicts(prove(feed)) == {"t": "equal"}


def test_an_old_image_may_hold_changed_columns_only(feed: LocalFeed) -> None:
    feed.send([*begun(), *watermarks(3)])
    feed.apply()
    prove(feed)
    feed.send([update("d.t", 4, {"s": "one"}, id=1, v=1, s="two"), *watermarks(5)])
    feed.apply()
    assert verdicts(prove(feed)) == {"t": "equal"}


def test_deletes_that_hold_the_key_alone_prove_nothing(feed: LocalFeed) -> None:
    feed.send([*begun(), *watermarks(3)])
    feed.apply()
    prove(feed)
    feed.send([delete("d.t", 4, id=1), *watermarks(5)])
    feed.apply()
    found = prove(feed)
    assert verdicts(found) == {"t": "base"}
    assert "lacks the column 'v', as DELETEs do if the changefeed has delete-only-output" in reason(found)
    assert verdicts(prove(feed)) == {"t": "equal"}, "from the new base on"


@pytest.mark.parametrize(
    ("sql", "kind", "becomes"),
    [
        ("ALTER TABLE `t` ADD COLUMN `x` INT NOT NULL DEFAULT 5", "ALTER", "base"),
        ("ALTER TABLE `t` MODIFY COLUMN `v` BIGINT", "ALTER", "base"),
        ("TRUNCATE TABLE `t`", "TRUNCATE", "base"),
        ("CREATE INDEX `i` ON `t` (`v`)", "CINDEX", "equal"),
    ],
)
def test_what_a_ddl_may_have_changed_begins_anew(feed: LocalFeed, sql: str, kind: str, becomes: str) -> None:
    feed.send([*begun(), ddl("d.other", 3, "CREATE TABLE `other` (id INT PRIMARY KEY)"), *watermarks(3)])
    feed.apply()
    prove(feed)
    feed.send([ddl("d.t", 5, sql, kind=kind), ddl("d.fresh", 6, "CREATE TABLE `fresh` (id INT PRIMARY KEY)")])
    feed.send([insert("d.fresh", 7, id=1), *watermarks(9)])
    feed.apply()
    assert verdicts(prove(feed)) == {"t": becomes, "other": "equal", "fresh": "equal"}
    assert set(verdicts(prove(feed)).values()) == {"equal"}


def test_tables_that_change_places_begin_anew(feed: LocalFeed) -> None:
    """Renamed, dropped and created again, dropped with their database: never a verdict about another table's rows."""
    names = ("t", "a", "b", "c")
    feed.send([*begun(), *(ddl(f"d.{n}", 3, f"CREATE TABLE `{n}` (id INT PRIMARY KEY)") for n in names[1:])])
    feed.send(
        [ddl("e.", 3, "CREATE DATABASE `e`", kind="QUERY"), ddl("e.t", 3, "CREATE TABLE `t` (id INT PRIMARY KEY)")]
    )
    feed.send([*(insert(f"d.{n}", 4, id=i) for i, n in enumerate(names[1:])), insert("e.t", 4, id=9), *watermarks(5)])
    feed.apply()
    assert set(verdicts(prove(feed)).values()) == {"equal"}
    feed.send([ddl("d.z", 6, "RENAME TABLE `d`.`a` TO `d`.`z`", kind="RENAME"), insert("d.z", 7, id=70)])
    feed.send(
        [ddl("d.b", 8, "DROP TABLE `d`.`b`", kind="ERASE"), ddl("d.b", 9, "CREATE TABLE `b` (id INT PRIMARY KEY)")]
    )
    feed.send([insert("d.b", 10, id=100), insert("d.c", 10, id=101), *watermarks(11)])
    feed.apply()
    found = prove(feed)
    assert verdicts(found) == {"z": "base", "b": "base", "c": "equal", "t": "equal"}
    feed.send([ddl("e.", 12, "DROP DATABASE `e`", kind="QUERY"), ddl("e.", 13, "CREATE DATABASE `e`", kind="QUERY")])
    feed.send([ddl("e.t", 14, "CREATE TABLE `t` (id INT PRIMARY KEY)"), insert("e.t", 15, id=1), *watermarks(16)])
    feed.apply()
    found = prove(feed)
    assert {str(name): one.verdict.value for name, (_, one) in found.tables.items()} == {
        "d.z": "equal", "d.b": "equal", "d.c": "equal", "d.t": "equal", "e.t": "base",
    }  # fmt: skip


@pytest.mark.kafka
def test_what_lies_in_kafka_is_read_by_the_command(sqlite_feed: Feed) -> None:
    """Over a real broker: nothing before a run; equal; different, with exit code 6; a new base, with 7; equal again."""
    path = sqlite_feed.file()
    assert sqlite_feed.command("prove", str(path)).returncode == 2
    sqlite_feed.send([*begun(), *changes(4), *changes(4), *watermarks(9)])
    sqlite_feed.once()
    done = sqlite_feed.command("prove", str(path), "--json")
    assert done.returncode == 0, done.stderr
    (table,) = json.loads(done.stdout)["tables"]
    assert (table["verdict"], table["rows"], table["proven_since"]) == ("equal", 2, 0)
    sqlite_feed.send([*changes(10), *watermarks(19)])
    sqlite_feed.once()
    sqlite_feed.cells.run("d", "UPDATE t SET v = v + 1 WHERE id = 1")
    found = sqlite_feed.command("prove", str(path))
    assert found.returncode == 6, found.stderr
    assert found.stdout.startswith("different d.t: 3 rows, 3 expected; buckets ")
    with closing(target_of(sqlite_feed.config)) as target:
        target.connect()
        kept = [json.loads(one) for one in target.proofs.certificates(sqlite_feed.name, 9)]
    assert [one["tables"][0]["verdict"] for one in kept] == ["different", "equal"]
    assert sqlite_feed.command("prove", str(path), "--rebase", "*.*").returncode == 7
    assert sqlite_feed.command("prove", str(path)).returncode == 0


def test_a_difference_is_not_forgotten_at_a_ddl(feed: LocalFeed) -> None:
    feed.send([*begun(), *watermarks(3)])
    feed.apply()
    prove(feed)
    feed.cells.run("d", "UPDATE t SET v = 9")
    assert verdicts(prove(feed)) == {"t": "different"}
    feed.send([ddl("d.t", 5, "ALTER TABLE `t` ADD COLUMN `x` INT", kind="ALTER"), *watermarks(9)])
    feed.apply()
    assert "it differed at an earlier proof" in reason(prove(feed))
    feed.cells.run("d", "UPDATE t SET v = 1")
    assert verdicts(prove(feed)) == {"t": "different"}
    rebased = prove(feed, "d.*")
    assert (verdicts(rebased), reason(rebased)) == ({"t": "base"}, "an operator said so")
    assert verdicts(prove(feed)) == {"t": "equal"}


def test_lost_messages_and_a_rewound_progress_begin_anew(feed: LocalFeed) -> None:
    feed.send([*begun(), *watermarks(3)])
    feed.apply()
    prove(feed)
    feed.send([*changes(4), *watermarks(9)])
    feed.apply()
    log = feed.log_of_messages
    for partition, held in log.held.items():
        log.delete_before(partition, len(held))
    found = prove(feed)
    assert verdicts(found) == {"t": "base"}
    assert "retention" in reason(found)


@pytest.mark.parametrize("consistency", ["snapshot", "transaction", "row"])
def test_after_a_crash_at_any_step_the_sums_are_those_of_the_rows(tmp_path: Path, consistency: str) -> None:
    """Each run is killed one step later than the one before; what it left is proven each time."""
    feed = in_sqlite(tmp_path).by_tasks().with_(target={"consistency": consistency})
    feed.send([*begun(), *watermarks(3)])
    feed.apply()
    prove(feed)
    for number in count(1):
        ts = number * 10
        feed.send([*changes(ts), ddl(f"d.u{number}", ts + 5, f"CREATE TABLE `u{number}` (id INT PRIMARY KEY)")])
        feed.send([insert(f"d.u{number}", ts + 6, id=1), *watermarks(ts + 9)])
        steps = iter(range(number))

        def kill(_: Step, steps: Iterator[int] = steps) -> None:
            if next(steps, None) is None:
                raise Killed

        if feed.lives(kill):
            break
        with closing(target_of(feed.config)) as target:
            stored = target.stored(feed.name)
        if stored is not None and stored.progress.window is None and not stored.progress.is_torn:
            assert set(verdicts(prove(feed)).values()) == {"equal"}, number
        feed.apply()
        assert set(verdicts(prove(feed)).values()) == {"equal"}, number
    assert number > 12


def _without_the_last(net: Callable[..., Any]) -> Callable[..., Any]:
    return lambda halves: list(net(halves))[:-1]


def _with_another_value(net: Callable[..., Any]) -> Callable[..., Any]:
    return lambda halves: [(k, o, image.replace(b'"v":"2"', b'"v":"3"'), *more) for k, o, image, *more in net(halves)]


@pytest.mark.parametrize("mutant", [_without_the_last, _with_another_value])
def test_what_a_run_loses_or_changes_is_found(
    feed: LocalFeed, mutant: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    feed.send([*begun(), *watermarks(3)])
    feed.apply()
    prove(feed)
    monkeypatch.setattr(order, "net_effect", mutant(order.net_effect))
    feed.by_tasks()
    feed.send([insert("d.t", i, i % 3, id=i, v=2, s="x") for i in range(4, 40)])
    feed.send(watermarks(50))
    feed.apply()
    assert verdicts(prove(feed)) == {"t": "different"}


@pytest.mark.cells("story", "seed")
@pytest.mark.parametrize("story", STORIES)
@pytest.mark.parametrize("seed", range(3))
def test_no_false_alarm_over_recorded_messages(tmp_path: Path, story: str, seed: int) -> None:
    """Cut anywhere, with TiCDC's restarts in them, in any consistency; a proof after each part."""
    chance = random.Random(seed)
    feed = in_sqlite(tmp_path).with_(target={"consistency": ["snapshot", "transaction", "row"][seed]})
    messages = recorded(story)
    cuts = sorted(chance.sample(range(1, len(messages)), min(6, len(messages) - 1)))
    seen: set[str] = set()
    for low, high in zip([0, *cuts], [*cuts, len(messages)], strict=True):
        feed.send(messages[low:high])
        feed.apply()
        if feed.log_of_messages and has_begun(feed):
            proof = prove(feed)
            assert proof.having(ProofVerdict.DIFFERENT) == [], json.dumps(proof.as_json())
            seen |= set(verdicts(proof).values())
    assert databases_of(messages)
    assert "equal" in seen


def has_begun(feed: LocalFeed) -> bool:
    """Whether a run has saved progress."""
    with closing(target_of(feed.config)) as target:
        return target.applied(feed.name) is not None


def test_a_first_proof_says_that_it_is_one(feed: LocalFeed) -> None:
    feed.make_database("d", "CREATE TABLE t (id INT PRIMARY KEY, v INT, s VARCHAR(10))")
    feed.send([insert("d.t", 3, id=1, v=1, s="one"), *watermarks(5)])
    feed.apply()
    assert reason(prove(feed)).startswith("this is the first proof")


def test_a_log_that_lost_its_end_proves_nothing(feed: LocalFeed) -> None:
    """It has grown again: what took the place of the rows that were applied is not what the target has to hold."""
    log, place = feed.log_of_messages, Partition(feed.topic, 0)
    feed.send(begun())
    feed.once()
    prove(feed)
    feed.send([*changes(1), *watermarks(20)])
    feed.once()
    for lost in (1, 2):
        log.elect(place, lost=lost)
        feed.send([*changes(2), *watermarks(20)])
        with pytest.raises(InputError, match="lost its end"):
            prove(feed)


def test_a_topic_that_was_made_anew_proves_nothing(feed: LocalFeed) -> None:
    log = feed.log_of_messages
    feed.send(begun())
    feed.once()
    prove(feed)
    feed.send([*changes(1), *watermarks(20)])
    feed.once()
    before = {place: list(held) for place, held in log.held.items()}
    log.make_anew(feed.topic)
    log.held.update(before)
    with pytest.raises(InputError, match="created again"):
        prove(feed)
