"""Rewinding through the real pipeline: a target that mixes moments of (W, C] becomes the upstream's, crashes or not."""

from dataclasses import replace
from random import Random
from typing import Any

import pytest

from consumer.demo.fake_ticdc.database import Commit
from consumer.demo.fake_ticdc.oracle import Oracle
from ordering.errors import LeadershipLostError
from ordering.events import TableName
from ordering.rewind import rewound
from ordering.timestamps import CheckpointTs
from sinks.bookkeeping.progress_rows import Lease
from tests.simulation.checker import Checker
from tests.simulation.faults import Faults
from tests.simulation.memory import Disk
from tests.simulation.memory_target import memory_target
from tests.simulation.plan import planned
from tests.simulation.script import CREATE, Script
from tests.simulation.world import CHANGEFEED, World, config_of

HISTORIES = 60
SOAK = 2_000
FAULTS = {"crash at a step": 0.05, "crash at a row": 0.02, "worker lost": 0.05, "attempt lost": 0.2}


def rewinding(seed: int) -> int:
    """Run a world to its end, mix its target, rewind, go on; returns how many rows stood at another moment."""
    plan = planned(seed)
    feed = {**plan.feed, "lags": {}, "stuck": {}, "topic": "ticdc"}
    world = World(replace(plan, workload="churn", ddl=0.0, feed=feed, start_at=None, faults={}))
    world.run()
    chance, progress = Random(seed), world.disk.restored(CHANGEFEED)
    built = max(e.commit_ts for e in world.upstream if not isinstance(e, Commit))
    low = chance.choice([e.commit_ts for e in world.upstream if built <= e.commit_ts < progress.checkpoint_ts])
    moved = mix(world.disk, moments(world, low, progress.checkpoint_ts), chance)
    ends = world.log.ends(list(progress.partitions))
    # where the log begins to hold what is above W is found by time; here, from anywhere before
    spans = {p: (chance.randrange(at.start + 1), ends[p]) for p, at in progress.partitions.items()}
    spans = {p: (min(start, first_above(world, p, low)), end) for p, (start, end) in spans.items()}
    back = rewound(progress, CheckpointTs(low), spans, "new")
    memory_target(world.disk, Faults(chance)).replace_progress(CHANGEFEED, back, progress)
    world.checker = Checker(world.upstream, world.messages, CHANGEFEED, 0)
    world.session = world.source = None
    world.faults.rates, world.faults.left = dict(FAULTS), 12
    world._until_done(None)
    world.jobs.haunt(1.0)
    after = world.disk.restored(CHANGEFEED)
    assert (after.checkpoint_ts, after.window) == (progress.checkpoint_ts, None)
    assert after.counts.events == progress.counts.events
    assert after.counts.duplicates_proven == progress.counts.duplicates_proven
    world.checker.committed(world.disk)
    return moved


def first_above(world: World, partition: Any, low: int) -> int:
    for offset, value in world.log.messages(partition):
        text = value or b""
        if b'"commitTs":' in text and int(text.rpartition(b'"commitTs":')[2].split(b"}")[0].split(b",")[0]) > low:
            return offset
    return len(world.log.held[partition])


def moments(world: World, low: int, high: int) -> list[dict[str, dict[Any, Any]]]:
    """The upstream's tables at every commitTs of [low, high]."""
    oracle, found = Oracle(), []
    for entry in world.upstream:
        if entry.commit_ts > high:
            break
        oracle.apply(entry)
        if entry.commit_ts >= low:
            found.append({name: dict(rows) for name, rows in oracle.snapshot().items()})
    return found


def mix(disk: Disk, at: list[dict[str, dict[Any, Any]]], chance: Random) -> int:
    """Put each row of the target to a moment of its own."""
    moved = 0
    for table in at[-1]:
        rows = {}
        for key in sorted({key for moment in at for key in moment[table]}, key=repr):
            row = chance.choice(at)[table].get(key)
            moved += row != at[-1][table].get(key)
            if row is not None:
                rows[key] = row
        disk.tables[TableName(*table.split("."))].rows = rows
    return moved


def test_any_mixture_of_moments_becomes_the_upstream() -> None:
    moved = [rewinding(seed) for seed in range(HISTORIES)]
    assert sum(some > 0 for some in moved) > HISTORIES // 2


@pytest.mark.soak
@pytest.mark.timeout(7200)
def test_many_more_mixtures_become_the_upstream() -> None:
    for seed in range(HISTORIES, HISTORIES + SOAK):
        rewinding(seed)


@pytest.mark.parametrize("consistency", ["snapshot", "transaction", "row"])
def test_a_row_of_the_future_holds_a_unique_value(consistency: str) -> None:
    """Row 1 gives its value to row 2 after W: one unit up to the old checkpoint never sets them side by side."""
    script = Script(config_of(consistency))
    script.ddl(1, CREATE.replace(",PRIMARY", ",UNIQUE `u`(`v`),PRIMARY"))
    script.row(5, 1, "a")
    script.mark(9)
    script.run()
    script.row(11, 3, "b")
    script.row(13, 1, "c", type="UPDATE", old=[{"v": "a"}])
    script.row(15, 2, "a")
    script.mark(20)
    before = script.run()
    spans = dict.fromkeys(before.partitions, (0, 100))
    back = rewound(before, CheckpointTs(9), spans, "new")
    target = memory_target(script.disk, script.faults)
    target.replace_progress(CHANGEFEED, back, before)
    with pytest.raises(LeadershipLostError, match="ran meanwhile"):
        target.replace_progress(CHANGEFEED, back, before)
    old = Lease(CHANGEFEED, script.session.lease.epoch)
    assert script.disk.epochs[CHANGEFEED] == old.epoch + 2
    script.row(22, 4, "d")
    script.mark(30)
    steps: list[int] = []
    script.restarted(lambda _: steps.append(script.stored.checkpoint_ts))
    after = script.run()
    assert (after.checkpoint_ts, after.window) == (30, None)
    assert {9, 20, 30} <= set(steps)
    assert not any(9 < step < 20 for step in steps)
    assert script.rows() == {"1": "c", "2": "a", "3": "b", "4": "d"}
    assert (after.counts.events, after.counts.duplicates) == (5, 0)
