"""A changefeed at rest: watermarks alone need no task, and move the checkpoint now and then; rows never wait."""

import random
from dataclasses import replace

import pytest

from consumer.pipeline.read import read_spec
from consumer.pipeline.round import Round
from consumer.tasks.order import ReadTask
from consumer.tasks.report import Report
from consumer.tasks.shuffle_blocks import REPORTS
from ordering.events import Partition
from ordering.window import Window
from tests.simulation.jobs import LocalJobs
from tests.simulation.script import CREATE, SMALL, Script, config_of
from tests.simulation.test_probing import ignoring


def begun(partitions: int = 2, rests_s: float = 3600.0) -> Script:
    script = Script(config_of("snapshot"), partitions, tuning=replace(SMALL, rests_s=rests_s, first_chunk=64))
    script.ddl(1, CREATE)
    script.row(2, 1)
    script.mark(3)
    script.run()
    return script


def planned(script: Script) -> Window | None:
    session = script.session
    probe = script.source.probe(session.progress)
    return session.planner.next_window(session.progress, probe.resolved.ts, probe.ranges)


def told_by_task(script: Script, window: Window) -> list[Report]:
    spec = read_spec(script.session, window)
    records = ReadTask(spec, script.log)([(0, window.ranges)])
    return [payload for bucket, payload in records if bucket == REPORTS and isinstance(payload, Report)]


@pytest.mark.parametrize("seed", range(60))
def test_the_reports_are_those_of_a_task(seed: int) -> None:
    """Watermarks, some twice or older ones, marks of transactions, new leaders, one that is ignored; and rows."""
    chance, script, ts, alone = random.Random(seed), begun(), 3, 0
    if chance.random() < 0.3:
        ignoring(script, f"t/1/{script.at(1)}")
        script.mark(4, only=1)
    for _ in range(12):
        rows = sum(_comes(script, ts, chance) for _ in range(chance.randrange(1, 8)))
        ts += chance.randrange(1, 4)
        script.mark(ts)
        window = planned(script)
        if window is None:
            continue
        known = script.source.reports(read_spec(script.session, window))
        alone += known is not None
        assert known is None or (not rows and known == told_by_task(script, window))
        script.run()
    assert alone


def _comes(script: Script, ts: int, chance: random.Random) -> int:
    """Something comes to a partition; how many rows it is."""
    number, what = chance.randrange(2), chance.random()
    partition = Partition("t", number)
    if what < 0.1:
        script.log.elect(partition)
    elif what < 0.2:
        script.log.begin(partition)
        script.log.commit_open(partition)
    elif what < 0.25:
        script.row(ts + 1, 7, p=number)
        return 1
    else:
        script.mark(ts - chance.randrange(2), only=number)
    return 0


def test_they_begin_no_job(monkeypatch: pytest.MonkeyPatch) -> None:
    script = begun()
    script.mark(5)
    monkeypatch.setattr(LocalJobs, "job", None)
    assert script.run().checkpoint_ts == 5


def test_watermarks_alone_wait_and_rows_do_not() -> None:
    script = begun()
    for ts in (4, 5):
        script.mark(ts)
        assert not Round(script.session).run(unhurried=True)
        assert script.stored.checkpoint_ts == 3
    script.row(6, 2)
    script.mark(7)
    assert Round(script.session).run(unhurried=True)
    assert (script.stored.checkpoint_ts, script.rows()) == (7, {"1": "x", "2": "x"})
    script.ddl(8, "ALTER TABLE `t` ADD COLUMN `w` INT")
    script.mark(9)
    assert Round(script.session).run(unhurried=True)
    assert script.run().checkpoint_ts == 9


def test_a_row_that_waits_for_its_watermark_is_applied_with_it() -> None:
    script = begun()
    script.row(6, 2)
    for ts in (4, 7):
        script.mark(ts)
        Round(script.session).run(unhurried=True)
    assert (script.stored.checkpoint_ts, script.rows()) == (7, {"1": "x", "2": "x"})


def test_after_a_while_they_move_the_checkpoint() -> None:
    script = begun(rests_s=0.0)
    script.mark(5)
    assert Round(script.session).run(unhurried=True)
    assert script.stored.checkpoint_ts == 5


def test_nothing_is_kept_that_no_window_will_hold() -> None:
    script = begun(rests_s=0.0)
    for ts in range(4, 200):
        script.mark(ts)
        assert Round(script.session).run(unhurried=True)
        kept = script.source.watermarks._alone.values()
        assert all(len(stretch.messages) <= 1 for stretch in kept)
    for ts in range(200, 300):
        script.mark(ts, only=1)
        script.source.probe(script.session.progress)
    assert {len(stretch.messages) for stretch in script.source.watermarks._alone.values()} == {0, 32}
