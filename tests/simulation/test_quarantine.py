"""Messages that are quarantined: none is lost or doubled, whatever crashes; the target is the upstream but for them.

A history's rows with certain values are refused by the target, some messages are made undecodable. At every commit the
target has to be the upstream at its checkpoint without the rows whose last event is held, and the quarantine has to
hold exactly the refused events that the checkpoint has passed.
"""

import json
from dataclasses import replace
from random import Random
from typing import Any

import pytest

from consumer.config.model import config_from
from consumer.demo.fake_ticdc.changefeed import Message
from ordering.errors import InputError, TargetError
from ordering.events import Partition, Position, TableName
from ordering.quarantine import QuarantineState
from ordering.rewind import rewound
from ordering.timestamps import CheckpointTs
from sinks.steps import Step
from tests.simulation.checker import Checker, Wrong
from tests.simulation.faults import Faults
from tests.simulation.memory import UNFIT, Disk
from tests.simulation.memory_target import memory_target
from tests.simulation.plan import planned
from tests.simulation.script import CREATE, Script
from tests.simulation.world import CHANGEFEED, World, config_of

JUNK = b'{"junk'
HISTORIES = 24
SOAK = 2_000
FAULTS = {
    "crash at a step": 0.03,
    "crash at a row": 0.02,
    "answer of a commit lost": 0.05,
    "worker lost": 0.05,
    "attempt lost": 0.2,
}


def with_quarantine(config: Any, **more: Any) -> Any:
    return config_from(
        {**config.model_dump(by_alias=True), "quarantine": {"enabled": True, "limit": 10_000, **more}}, "simulation"
    )


def is_refused(table: TableName, row: dict[str, str | None]) -> bool:
    """One row in seven, by their content alone: the same row is refused whenever it comes."""
    return Random(f"{table} {sorted(row.items())}").random() < 0.15


class AsideChecker(Checker):
    """Expects the upstream without the rows whose last event the target refuses."""

    def _compare(self, disk: Disk, ts: int, expected: dict[str, dict[Any, Any]]) -> None:
        left = {
            table: {k: row for k, row in rows.items() if not is_refused(TableName(*table.split(".")), row)}
            for table, rows in expected.items()
        }
        super()._compare(disk, ts, left)
        missing = sum(map(len, expected.values())) - sum(map(len, left.values()))
        held = {
            one.row for one in disk.quarantine.values() if one.state is QuarantineState.HELD and one.row is not None
        }
        if not self._torn(disk) and len(held) != missing:
            raise Wrong(f"at {ts}: {len(held)} rows are held, {missing} are missing")
        above = [one for one in disk.quarantine.values() if (one.commit_ts or 0) > ts]
        if above:
            raise Wrong(f"at {ts}: quarantined before its time: {above[0]}")

    def _torn(self, disk: Disk) -> bool:
        """Whether a window of `transaction` is half done: rows that were written since are noted at its end."""
        progress = disk.restored(self.changefeed)
        return progress.base_ts < progress.checkpoint_ts

    def _never_back(self, before: Any, now: Any) -> None:
        super()._never_back(before, now)
        if now.counts.quarantined < before.counts.quarantined:
            raise Wrong("the count of quarantined messages went back")


def world_of(seed: int) -> World:
    plan = planned(seed)
    feed = {**plan.feed, "lags": {}, "stuck": {}}
    rates = {name: rate for name, rate in FAULTS.items() if seed % 2}
    steady = replace(plan, workload="churn", ddl=0.0, feed=feed, start_at=None, faults=rates, redis="stable")
    world = World(replace(steady, switches=False, restores=0.0))
    world.config = with_quarantine(world.config)
    world.disk.refuses = is_refused
    junk = Random(f"junk {seed}")
    for topic, partition, *_ in junk.sample(world.messages, 3):
        world.log.coming.insert(junk.randrange(len(world.log.coming)), Message(topic, partition, JUNK))
    world.checker = AsideChecker(world.upstream, world.messages, CHANGEFEED, 0)
    return world


def places_of_junk(world: World) -> set[Position]:
    return {Position(*p, at) for p in world.log.held for at, v in world.log.messages(p) if v == JUNK}


def places_of_refused(world: World) -> set[Position]:
    """Where refused events lie."""
    found = set()
    for partition in world.log.held:
        for offset, value in world.log.messages(partition):
            message = {} if value == JUNK else json.loads(value or b"{}")
            if message.get("type") in ("INSERT", "UPDATE") and not message["isDdl"]:
                name = TableName(message["database"], message["table"])
                if is_refused(name, message["data"][0]):
                    found.add(Position(*partition, offset))
    return found


def run(seed: int) -> World:
    world = world_of(seed)
    world.run()
    progress = world.disk.restored(CHANGEFEED)
    refused, junk = places_of_refused(world), places_of_junk(world)
    aside = set(world.disk.quarantine)
    assert junk <= aside <= refused | junk
    assert len(junk) == 3
    assert progress.counts.quarantined == len(aside)
    if world.plan.consistency == "transaction":
        # each event is a unit's: repetitions in a later window are dropped, those of the same window go there too
        events = {one.commit_ts for one in world.disk.quarantine.values() if one.commit_ts is not None}
        assert events == {ts_of(world, position) for position in refused}
    for position, one in world.disk.quarantine.items():
        assert one.value == world.log.held[Partition(position.topic, position.partition)][position.offset]
    return world


def ts_of(world: World, position: Position) -> int:
    value = dict(world.log.messages(Partition(position.topic, position.partition)))[position.offset]
    return int(json.loads(value or b"{}")["_tidb"]["commitTs"])


def test_refused_rows_are_set_aside_once() -> None:
    aside = [len(run(seed).disk.quarantine) for seed in range(HISTORIES)]
    assert sum(count > 0 for count in aside) > HISTORIES // 2


@pytest.mark.soak
@pytest.mark.timeout(7200)
def test_refused_rows_are_set_aside_once_in_many_more_histories() -> None:
    for seed in range(HISTORIES, HISTORIES + SOAK):
        run(seed)


def test_after_mending_a_rewound_changefeed_takes_what_was_refused() -> None:
    for seed in range(0, HISTORIES, 3):
        world = run(seed)
        before = world.disk.restored(CHANGEFEED)
        world.disk.refuses = None
        low = CheckpointTs(max(e.commit_ts for e in world.upstream if not hasattr(e, "changes")))
        spans = {p: (0, len(world.log.held[p])) for p in before.partitions}
        back = rewound(before, low, spans, "new")
        memory_target(world.disk, Faults(Random(seed))).replace_progress(CHANGEFEED, back, before)
        world.checker = Checker(world.upstream, world.messages, CHANGEFEED, 0)
        world.session = world.source = None
        world._until_done(None)
        world.checker.committed(world.disk)


CONSISTENCIES = pytest.mark.parametrize("consistency", ["snapshot", "transaction", "row"])


def script_of(consistency: str, **more: Any) -> Script:
    script = Script(with_quarantine(config_of(consistency), **more))
    script.ddl(1, CREATE)
    script.row(5, 1, "a")
    script.mark(9)
    script.run()
    script.disk.refuses = lambda _, row: row["v"] == "bad"
    return script


def held(script: Script) -> list[tuple[int, int | None, str]]:
    return [(one.position.offset, one.commit_ts, one.state.value) for one in script.disk.quarantine.values()]


@CONSISTENCIES
def test_a_row_is_missing_until_a_later_event_writes_it(consistency: str) -> None:
    script = script_of(consistency)
    script.row(12, 1, "bad", type="UPDATE", old=[{"v": "a"}])
    script.row(13, 2, "b")
    script.mark(15)
    script.run()
    assert script.rows() == {"2": "b"}
    assert held(script) == [(3, 12, "held")]
    script.row(17, 1, "good", type="UPDATE", old=[{"v": "bad"}])
    script.mark(20)
    script.restarted()
    script.run()
    assert script.rows() == {"1": "good", "2": "b"}
    assert held(script) == [(3, 12, "superseded")]
    assert script.stored.counts.quarantined == 1


@CONSISTENCIES
def test_a_repetition_of_a_refused_message_is_proven(consistency: str) -> None:
    script = script_of(consistency)
    script.row(12, 2, "bad")
    script.mark(15)
    script.run()
    script.row(12, 2, "bad")
    script.mark(20)
    script.run()
    assert held(script) == [(3, 12, "held")]
    counts = script.stored.counts
    assert (counts.events, counts.duplicates_proven, counts.duplicates_unproven) == (3, 1, 0)


@CONSISTENCIES
def test_what_can_not_be_encoded_waits_for_its_transaction(consistency: str) -> None:
    """It is found before the transactions that come first are applied; a key that no column holds makes no hole."""
    script = script_of(consistency)
    script.row(12, 2, "b")
    script.row(13, 1, UNFIT, type="UPDATE", old=[{"v": "a"}])
    script.row(14, 4, data=[{"id": UNFIT, "v": "x"}])
    script.mark(15)
    seen: set[int] = set()

    def look(step: Step) -> None:
        if step is Step.COMMITTED:
            seen.add(script.stored.checkpoint_ts)
            assert all((one.commit_ts or 0) <= script.stored.checkpoint_ts for one in script.disk.quarantine.values())

    script.restarted(look)
    script.run()
    assert script.rows() == {"2": "b"}
    assert held(script) == [(4, 13, "held"), (5, 14, "held")]
    assert 15 in seen


@CONSISTENCIES
def test_both_halves_of_a_moved_row(consistency: str) -> None:
    script = script_of(consistency)
    script.row(12, 7, "bad", type="UPDATE", old=[{"id": "1", "v": "a"}])
    script.mark(15)
    script.run()
    assert script.rows() == {}
    script.row(17, 7, "c", type="UPDATE", old=[{"v": "bad"}])
    script.mark(20)
    script.run()
    assert script.rows() == {"7": "c"}


@CONSISTENCIES
def test_undecodable_messages_are_passed(consistency: str) -> None:
    script = script_of(consistency)
    script.log.add("t", 0, b"{")
    script.row(12, 2, "b")
    script.log.add("t", 0, None)
    script.row(12, 3, data=[{"v": "without its key"}])
    script.row(12, 4, data=[{"id": "4", "v": 5}])
    script.row(12, 5, "bad")
    script.mark(15)
    script.log.add("t", 0, b"\xff")
    script.run()
    assert script.rows() == {"1": "a", "2": "b"}
    nameless = [(3, None, "held"), (5, None, "held"), (6, None, "held"), (10, None, "held")]
    assert sorted(held(script), key=str) == sorted([*nameless, (7, 12, "held"), (8, 12, "held")], key=str)
    assert script.stored.counts.quarantined == 6
    script.config = script.source.config = config_of(consistency)
    script.restarted()
    script.mark(20)
    assert script.run().checkpoint_ts == 20
    script.log.add("t", 0, b"{")
    with pytest.raises(InputError, match="not valid JSON"):
        script.run()


def test_without_opting_in_everything_ends_the_run() -> None:
    script = script_of("snapshot")
    script.config = script.source.config = config_of("snapshot")
    script.restarted()
    script.row(12, 2, "bad")
    script.mark(15)
    with pytest.raises(TargetError, match="does not take"):
        script.run()
    assert script.disk.quarantine == {}


@CONSISTENCIES
def test_a_full_quarantine_ends_the_run(consistency: str) -> None:
    script = script_of(consistency, limit=2)
    for number in range(2, 5):
        script.row(10 + number, number, "bad")
    script.mark(15)
    with pytest.raises(InputError, match="the quarantine is full") as told:
        script.run()
    assert "offset=" in told.value.where
    assert len(script.disk.quarantine) <= 2
    assert script.stored.checkpoint_ts < 14


def test_a_table_that_does_not_fit_is_nobodys_message() -> None:
    script = script_of("snapshot")
    script.row(12, 2, data=[{"id": "2", "v": "x", "w": "1"}])
    script.mark(15)
    with pytest.raises(TargetError, match="has no column"):
        script.run()
    assert script.disk.quarantine == {}
