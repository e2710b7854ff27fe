"""What the source finds out before a window is planned: bounds, watermarks, topics that end."""

import time
from collections.abc import Iterable
from dataclasses import replace

import pytest

from consumer.pipeline.round import Round
from consumer.source import probe
from consumer.source.clock import check_kept_marks
from ordering.errors import ConfigError, InputError, SourceUnreachableError
from ordering.events import Partition
from ordering.progress import Progress
from ordering.rewind import rewound
from ordering.timestamps import MAX_TSO, CheckpointTs, ResolvedTs
from tests.simulation.script import CREATE, Script
from tests.simulation.world import config_of


def test_a_watermark_that_was_found_far_ahead_counts_only_with_the_messages_before_it() -> None:
    script = Script(config_of(window_rows=2), partitions=2)
    script.ddl(1, CREATE)
    for key in range(20):
        script.row(10 + key, key, p=0)
    script.mark(40, only=0)
    assert not Round(script.session).run()
    script.mark(40, only=1)
    script.run()
    assert script.stored.checkpoint_ts == 40
    assert len(script.rows()) == 20


def test_a_look_for_watermarks_that_failed_is_done_again() -> None:
    script = Script()
    script.ddl(1, CREATE)
    script.row(5, 1)
    script.mark(9)
    script.faults.rates, script.faults.left = {"kafka hiccup": 1.0}, 1
    with pytest.raises(SourceUnreachableError):
        Round(script.session).run()
    script.restarted()
    assert script.run().checkpoint_ts == 9


def test_a_topic_that_seems_to_have_ended_is_looked_at_again_after_the_watermarks() -> None:
    script = Script(partitions=2)
    script.ddl(1, CREATE)
    script.row(4, 1)
    script.mark(5)
    script.ddl(5, "RENAME TABLE `d`.`t` TO `d`.`u`", table="u")  # the topic is one for all tables
    script.mark(6)
    assert script.run().checkpoint_ts == 6
    ends = script.log.ends

    def slow(partitions: Iterable[Partition]) -> dict[Partition, int]:
        script.log.ends = ends  # type: ignore[method-assign]
        before = ends(partitions)
        script.row(8, 2, p=1, table="u")
        script.mark(9)
        return {p: before[p] if p.partition else ends([p])[p] for p in before}

    script.log.ends = slow  # type: ignore[method-assign]
    assert script.run().checkpoint_ts == 9
    assert script.rows("u") == {"1": "x", "2": "x"}


def test_caps_of_a_moment_that_was_none_lose_nothing() -> None:
    script = Script(partitions=2)
    script.ddl(1, CREATE)
    script.row(4, 1)
    script.mark(5)
    script.ddl(5, "RENAME TABLE `d`.`t` TO `d`.`u`", table="u")
    script.mark(6)
    assert script.run().checkpoint_ts == 6
    first, second = Partition("t", 0), Partition("t", 1)
    cap = script.log.ends([second])
    script.row(8, 2, p=1, table="u")
    script.mark(9)
    caps = {**script.log.ends([first]), **cap}
    while Round(script.session).run(caps, to_end=True):
        pass
    assert script.stored.checkpoint_ts == 6
    assert script.run().checkpoint_ts == 9
    assert script.rows("u") == {"1": "x", "2": "x"}


def test_another_start_ts_counts_or_is_refused() -> None:
    """Of a changefeed that has applied nothing: else rows below the first one would be left out without a word."""
    script = Script(config_of(start_ts=50))
    script.ddl(1, CREATE)
    script.row(3, 1)
    script.mark(4)
    script.run()
    with pytest.raises(ConfigError, match="start-ts is 2, but") as caught:
        Script(config_of(start_ts=2), disk=script.disk)
    first, _, then = caught.value.hint.partition("; ")
    assert ("take start-ts out" in first, "all up to 50" in first, "all up to 2" in then) == (True, True, True)
    assert "progress reset" in then, "what it begins at, the target has to hold"
    script.restarted()
    script.mark(60)
    script.run()
    Script(config_of(start_ts=2), disk=script.disk)  # it says nothing any more


@pytest.mark.parametrize("looked", [True, False])
def test_a_watermark_of_the_far_future_is_not_believed(looked: bool) -> None:
    """One that was written by something else, or by a clock that jumped: every later row would count as applied."""
    script = Script(partitions=2)
    script.ddl(1, CREATE)
    script.row(3, 1)
    script.mark(5)
    if looked:
        script.run()
    script.mark(2**62, only=1)
    with pytest.raises(InputError, match="in the future by this machine's clock") as caught:
        script.run()
    assert "partition=1" in caught.value.where
    assert "limits.clock-ahead-seconds" in caught.value.hint


def test_a_commit_of_offsets_that_failed_is_not_tried_for_a_while(monkeypatch: pytest.MonkeyPatch) -> None:
    """It may have waited for a broker that hangs, between two windows; then the same offsets are committed."""
    script, tried = Script(), []
    source, offsets = script.source, {Partition("t", 0): 5}

    def commit(group: str, offsets: object) -> None:
        tried.append((group, offsets))
        if len(tried) == 1:
            raise SourceUnreachableError("no answer")

    monkeypatch.setattr(source.control, "commit", commit)
    monkeypatch.setattr(probe, "_COMMIT_EVERY_S", 0)
    source.commit_lazily(offsets)
    source.commit_lazily(offsets)
    assert len(tried) == 1
    monkeypatch.setattr(probe, "_REST_S", 0)
    source._committed_at = 0.0
    source.commit_lazily(offsets)
    source.commit_lazily(offsets)
    assert len(tried) == 2


DAY_MS = 86_400_000
WRITTEN_MS = 1_767_225_600_000
"""2026-01-01, when Kafka took the messages of the tests below."""


@pytest.mark.parametrize("far", [True, False], ids=["a year ago", "a week ago"])
@pytest.mark.parametrize("behind", [0, 1], ids=["the last one", "one that only tasks see"])
def test_a_watermark_of_the_future_is_not_believed_once_its_time_has_come(behind: int, far: bool) -> None:
    """By this machine's clock it would be a day later: what follows it in its partition would count as applied."""
    written = WRITTEN_MS if far else int(time.time() * 1000) - 7 * DAY_MS
    script = Script(partitions=2)
    script.log.time_of = lambda *_: written  # type: ignore[method-assign]
    script.ddl(1, CREATE)
    script.mark(written << 18, only=0)
    script.mark(written + 2 * DAY_MS << 18, only=1)
    for _ in range(behind):
        script.row(5, 1, p=1)
        for ts in range(200):
            script.mark(written + ts << 18, only=1)
        script.mark(written + 200 << 18, only=0)
    with pytest.raises(InputError, match="in the future by the clock of Kafka") as caught:
        script.run()
    assert "partition=1 offset=0" in caught.value.where
    assert "source.ignored-watermarks" in caught.value.hint
    assert script.stored.checkpoint_ts == 0
    source = script.source.config.source.model_copy(update={"ignored_watermarks": ["t/1/0"]})
    script.source.config = script.config = script.config.model_copy(update={"source": source})
    script.restarted()
    script.run()
    assert script.stored.checkpoint_ts == (written + 199 << 18 if behind else 0)
    script.row(written + 200 << 18, 2, p=1)
    script.mark(written + 300 << 18)
    script.run()
    assert script.rows() == ({"1": "x", "2": "x"} if behind else {"2": "x"})


def test_a_watermark_that_was_believed_by_another_limit_is_refused() -> None:
    """Its partition would hold nothing back until then: what it gets late would be lost."""
    config = config_of()
    limits = config.limits.model_copy(update={"clock_ahead_seconds": 4e9})
    allowed = Script(config.model_copy(update={"limits": limits}), partitions=2)
    allowed.ddl(1, CREATE)
    allowed.mark(5, only=0)
    allowed.mark(int(time.time() + 1e9) * 1000 << 18, only=1)
    allowed.run()
    allowed.source.config = allowed.config = config
    allowed.restarted()
    with pytest.raises(InputError, match="holds a watermark of the future") as caught:
        allowed.run()
    assert "partition=1" in caught.value.where


@pytest.mark.parametrize("kind", ["row", "DDL"])
def test_an_event_of_the_future_is_refused(kind: str) -> None:
    """No watermark would reach it: its partition would be read from it on in each window, until retention takes it."""
    script = Script()
    script.ddl(1, CREATE)
    later = int(time.time() + 1e9) * 1000 << 18
    script.row(later, 1) if kind == "row" else script.ddl(later, "ALTER TABLE `t` ADD COLUMN `x` INT")
    script.mark(5)
    with pytest.raises(InputError, match="in the future by this machine's clock") as caught:
        script.run()
    assert "partition=0 offset=1" in caught.value.where


@pytest.mark.parametrize("hours", [1, 20])
def test_one_that_was_believed_before_it_is_listed_is_refused(hours: int) -> None:
    """It is not far enough ahead to be refused by any clock, and the progress would rest on it until its time."""
    now = int(time.time() * 1000)
    script = Script(partitions=2)
    script.ddl(1, CREATE)
    script.mark(now - 100 << 18)
    script.mark(now + hours * DAY_MS // 24 << 18, only=1)
    script.run()
    ignoring(script, "t/1/0", "t/1/9", "t/7/1", "u/0/1")
    script.run()
    ignoring(script, "t/1/1")
    with pytest.raises(InputError, match="holds an ignored watermark") as caught:
        script.run()
    assert "partition=1 offset=1" in caught.value.where
    script.mark(now + hours * DAY_MS // 24 << 18, only=0)
    ignoring(script)
    assert script.run().checkpoint_ts == now + hours * DAY_MS // 24 << 18
    ignoring(script, "t/1/1")
    with pytest.raises(InputError, match="holds an ignored watermark"):
        script.run()  # the checkpoint rests on it: what comes up to it would be dropped
    script.mark(now + hours * DAY_MS // 24 << 18, only=1)
    script.restarted()
    script.run()  # it promises nothing any more
    script.log.delete_before(Partition("t", 1), 2)
    script.restarted()
    script.run()  # what it was is not known any more


def ignoring(script: Script, *places: str) -> None:
    """Ignore watermarks from the next run on."""
    source = script.source.config.source.model_copy(update={"ignored_watermarks": list(places)})
    script.source.config = script.config = script.config.model_copy(update={"source": source})
    script.restarted()


@pytest.mark.parametrize("days", [2, 10_000], ids=["whose time has come", "of the future"])
@pytest.mark.parametrize("consistency", ["snapshot", "transaction"])
@pytest.mark.parametrize("native", [True, False], ids=["core", "python"])
def test_an_ignored_watermark_among_watermarks_alone(consistency: str, days: int, native: bool) -> None:
    """A run of them is taken at once where rows are not read by the core; another partition has none yet."""
    written = int(time.time() * 1000) - 7 * DAY_MS
    script = Script(config_of(consistency, native=native), partitions=2)
    script.log.time_of = lambda *_: written  # type: ignore[method-assign]
    script.mark(written + days * DAY_MS << 18, only=1)
    script.mark(written << 18, only=1)
    ignoring(script, "t/1/0")
    script.run()
    script.ddl(1, CREATE)
    script.mark(written + 100 << 18, only=0)
    script.run()
    assert script.stored.checkpoint_ts == written << 18
    script.row(written + 50 << 18, 1, p=1)
    script.mark(written + 100 << 18, only=1)
    script.run()
    assert script.rows() == {"1": "x"}


def test_a_watermark_of_the_future_before_many_rows_is_not_believed(monkeypatch: pytest.MonkeyPatch) -> None:
    """Only tasks see it, and it does not end their range: which of its messages it is they tell."""
    monkeypatch.setattr(probe, "_LOOK_BACK", 8)
    now = int(time.time() * 1000)
    written = now - 7 * DAY_MS
    script = Script(partitions=2)
    script.log.time_of = lambda p, offset: now if p.partition == 0 or offset else written  # type: ignore[method-assign]
    script.ddl(1, CREATE)
    script.mark(written + 2 * DAY_MS << 18, only=1)
    for key in range(30):
        script.row(written + key << 18, key, p=1)
    with pytest.raises(InputError, match="in the future by the clock of Kafka") as caught:
        script.run()
    assert "partition=1 offset=0" in caught.value.where
    ignoring(script, "t/1/0")
    script.mark(written + 100 << 18)
    script.run()
    assert len(script.rows()) == 30


@pytest.mark.parametrize(
    ("ago", "ahead", "end"), [(36, 48, 36), (168, 26, 3), (168, 48, 40)], ids=["now", "next to it", "with a barrier"]
)
@pytest.mark.parametrize("before", [0, 2], ids=["first", "behind rows"])
def test_one_that_ends_a_range_is_judged_though_later_ones_are_higher(
    ago: int, ahead: int, end: int, before: int
) -> None:
    """Rows behind it would wait for the next window, and count as repetitions there. Hours; `end`: of the window."""
    hour, now = DAY_MS // 24, int(time.time() * 1000)
    written = now - ago * hour
    script = Script(partitions=2)
    script.log.time_of = lambda p, o: now if p.partition == 0 or o > before else written  # type: ignore[method-assign]
    script.ddl(1, CREATE)
    for key in range(before):
        script.row(written - 1 << 18, 100 + key, p=1)
    script.mark(written + ahead * hour << 18, only=1)
    for key in range(5):
        script.row(written + key << 18, key, p=1)
    for more in range(50):
        script.mark(written + end * hour + more - 50 << 18)
    script.mark(now << 18, only=1)
    with pytest.raises(InputError, match="in the future by the clock of Kafka") as caught:
        script.run()
    assert f"partition=1 offset={before}" in caught.value.where
    ignoring(script, f"t/1/{before}")
    script.run()
    assert len(script.rows()) == 5 + before


def test_no_ddl_of_the_future_is_planned_by() -> None:
    """Where the quarantine holds it, a DROP of the future would end a topic, and stand for its watermarks."""
    script = Script()
    script.ddl(1, CREATE)
    script.ddl(int(time.time() + 1e9) * 1000 << 18, "DROP TABLE `t`")
    for key in range(200):
        script.row(2, key)
    assert [ddl.commit_ts for ddl in script.source.probe(Progress()).ddls] == [1]


def test_a_kept_one_of_a_retired_topic_holds_up_nothing() -> None:
    """No rewind reaches a topic that is gone, and nothing waits for its watermark."""
    script = Script()
    script.ddl(1, CREATE)
    script.mark(5)
    known = script.run()
    partitions = {p: replace(at, watermark=ResolvedTs(MAX_TSO)) for p, at in known.partitions.items()}
    held = replace(known, partitions=partitions)
    with pytest.raises(InputError, match="holds a watermark of the future"):
        check_kept_marks(held, script.config.limits)
    retired = {name: replace(topic, retired=True) for name, topic in known.topics.items()}
    check_kept_marks(replace(held, topics=retired), script.config.limits)
    after = rewound(held, CheckpointTs(3), {}, "l", set(partitions))
    check_kept_marks(after, script.config.limits)
