"""A statement that was begun, or decided about, as one source spells it, and goes on as another one does."""

from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest

from consumer.demo.fake_ticdc.changefeed import Message
from consumer.operate.decisions import decide_ddl
from consumer.operate.progress import Export, import_progress, reset_progress, rewind_progress
from consumer.wiring import target_of
from ordering.errors import ConfigError, InputError, TargetError
from ordering.sources.archive import taken_up
from sinks.bookkeeping.ddl_log import DdlState
from sinks.bookkeeping.progress_rows import Lease
from sinks.steps import Step
from tests.histories.archived import Play
from tests.service.local import Killed, LocalFeed
from tests.service.messages import at, ddl, insert, watermarks

pytestmark = pytest.mark.service
MINUTE = 60_000
RANGES = "PARTITION BY RANGE (`id`) (PARTITION `p0` VALUES LESS THAN (100), PARTITION `p1` VALUES LESS THAN (9000))"
EXCHANGE = ddl("d.p", 60 * MINUTE, "ALTER TABLE `d`.`p` EXCHANGE PARTITION `p0` WITH TABLE `d`.`t`", kind="QUERY")
CIRCLE = [
    ddl(f"d.{new}", 60 * MINUTE, f"RENAME TABLE `d`.`{old}` TO `d`.`{new}`", kind="RENAME")
    for old, new in (("p", "z"), ("t", "p"), ("z", "t"))
]
STEPS = [Step.DDL_RECORDED, Step.DDL_EXECUTED, Step.DDL_DONE]


def rows(first: int, last: int) -> list[Message]:
    found: list[Message] = []
    for minute in range(first, last, 5):
        found += [insert("d.p", minute * MINUTE, minute // 5 % 3, id=1000 + minute), *watermarks(minute * MINUTE + 1)]
    return found


BEGIN = [
    ddl("d", 1, "CREATE DATABASE `d`"), ddl("d.t", 2, "CREATE TABLE `t` (`id` INT PRIMARY KEY)"),
    ddl("d.p", 3, f"CREATE TABLE `p` (`id` INT PRIMARY KEY) {RANGES}"),
    insert("d.t", 4, id=1), insert("d.p", 4, id=2), *watermarks(5),
]  # fmt: skip
LOST, KEPT = rows(5, 30), [*rows(30, 60), *watermarks(60 * MINUTE)]


def once(play: Play, killed_at: Step) -> Callable[[Step], None]:
    """Kills a driver at a step."""

    def observe(step: Step) -> None:
        if step is killed_at and not play.went["kills"]:
            raise Killed

    return observe


def until_killed(play: Play) -> None:
    while not play.went["kills"]:
        assert play.one()


def idle(play: Play) -> None:
    while play.one():
        pass


def expired(play: Play) -> None:
    for partition, held in play.log.held.items():
        play.log.delete_before(partition, len(held))


def begun(feed: LocalFeed, root: Path, moved: list[Message], first: int) -> Play:
    """So many messages, from topics."""
    play = Play(feed, [*BEGIN, *LOST, *KEPT, *moved, *rows(65, 150)], root / "files", 1, killed_at=0)
    play.log.take(play.here, play.sent)
    play.log.arrive(first)
    idle(play)
    return play


def in_topics(feed: LocalFeed, root: Path, moved: list[Message]) -> Play:
    """Up to before the DDLs."""
    return begun(feed, root, moved, len([*BEGIN, *LOST, *KEPT]))


def in_archive(feed: LocalFeed, root: Path, moved: list[Message]) -> Play:
    """Up to before the DDLs, from files; of what the topics lost nothing is needed any more."""
    play = begun(feed, root, moved, len(BEGIN))
    play.log.arrive(len(LOST))
    expired(play)
    while play.archived_ms < at(60 * MINUTE) >> 18:
        play.archive(1)
    idle(play)
    assert play.went["archive"] == 1
    return play


def ids(feed: LocalFeed, table: str) -> list[int]:
    return sorted(row["id"] for row in feed.cells.tables(["d"])[table][1] if row["id"] < 1000)


def check_ended(play: Play, feed: LocalFeed, way: str) -> None:
    """Let all arrive, on both ways: the run went this way once, and each table has the other's row."""
    play.log.arrive(1_000)
    play.archive(1_000)
    play.until_done()
    assert play.went[way] == 1
    assert (ids(feed, "d.t"), ids(feed, "d.p")) == ([2], [1])


@pytest.mark.parametrize("step", STEPS)
@pytest.mark.parametrize("feed", ["sqlite", "mariadb"], indirect=True)
def test_what_was_begun_from_topics_is_ended_from_files(feed: LocalFeed, step: Step, tmp_path: Path) -> None:
    play = in_topics(feed, tmp_path, [EXCHANGE])
    play.observe = once(play, step)
    play.log.arrive(10)
    until_killed(play)
    expired(play)
    check_ended(play, feed, "archive")


@pytest.mark.parametrize("step", STEPS)
@pytest.mark.parametrize("feed", ["sqlite", "mariadb"], indirect=True)
def test_what_was_begun_from_files_is_ended(feed: LocalFeed, step: Step, tmp_path: Path) -> None:
    play = in_archive(feed, tmp_path, [EXCHANGE])
    play.observe = once(play, step)
    play.archive(1)
    until_killed(play)
    check_ended(play, feed, "back")


@pytest.mark.parametrize("feed", ["sqlite", "mariadb"], indirect=True)
def test_what_was_done_by_hand_is_done_before_the_topics_are_read_again(feed: LocalFeed, tmp_path: Path) -> None:
    play = in_archive(feed, tmp_path, CIRCLE)
    play.archive(1)
    with pytest.raises(InputError, match="swaps names"):
        idle(play)
    for old, new in (("p", "z"), ("t", "p"), ("z", "t")):
        feed.cells.run("d", f"ALTER TABLE {old} RENAME TO {new}")
    with closing(target_of(feed.config)) as target:
        target.connect()
        claimed = target.claim(feed.name, target.stored(feed.name).progress)
        (line,) = target.ddl_log.unsettled(feed.name)
        target.decide_ddl(line, DdlState.TAKE, "by hand", Lease(feed.name, claimed.epoch))
    check_ended(play, feed, "back")


@pytest.mark.parametrize("step", STEPS)
@pytest.mark.parametrize("feed", ["mariadb"], indirect=True)
def test_what_was_begun_is_not_done_again_after_an_import(feed: LocalFeed, step: Step, tmp_path: Path) -> None:
    play = in_topics(feed, tmp_path, [EXCHANGE])
    play.observe = once(play, step)
    play.log.arrive(10)
    until_killed(play)
    with closing(target_of(feed.config)) as target:
        target.connect()
        progress = target.stored(feed.name).progress
        target.replace_progress(feed.name, progress, progress)
    play.log.arrive(1_000)
    play.until_done()
    assert (ids(feed, "d.t"), ids(feed, "d.p")) == ([2], [1])


@pytest.mark.parametrize("feed", ["mariadb"], indirect=True)
def test_nothing_goes_back_before_what_was_begun(feed: LocalFeed, tmp_path: Path) -> None:
    """The rows would be written once more behind a statement that may have been executed."""
    play = in_topics(feed, tmp_path, [EXCHANGE])
    play.observe = once(play, Step.DDL_EXECUTED)
    play.log.arrive(10)
    until_killed(play)
    with pytest.raises(ConfigError, match="was begun"):
        rewind_progress(feed.config, at(30 * MINUTE), 0)


@pytest.mark.parametrize("feed", ["sqlite"], indirect=True)
def test_what_was_decided_is_settled_before_a_move(feed: LocalFeed, tmp_path: Path) -> None:
    play = in_archive(feed, tmp_path, CIRCLE)
    play.archive(1)
    with pytest.raises(InputError, match="swaps names"):
        idle(play)
    with closing(target_of(feed.config)) as target:
        target.connect()
        progress = target.stored(feed.name).progress
        (line,) = target.ddl_log.unsettled(feed.name)
        target.decide_ddl(line, DdlState.SKIP, "", Lease(feed.name, target.claim(feed.name, progress).epoch))
    moved = Export(taken_up(progress, because="", ledger="another"), [], {})
    with pytest.raises(ConfigError, match="decided about"):
        import_progress(feed.config, moved)


@pytest.mark.parametrize("step", STEPS)
@pytest.mark.parametrize("feed", ["sqlite", "mariadb"], indirect=True)
def test_of_several_renames_in_files_each_is_filtered_by_itself(feed: LocalFeed, step: Step, tmp_path: Path) -> None:
    """As in topics, which hold a message of each; and what was begun without one is ended without it."""
    feed.with_(filter={"event-filters": [{"matcher": ["*.p"], "ignore-event": ["rename table"]}]})
    moved = [ddl(f"d.{old}2", 60 * MINUTE, f"RENAME TABLE `d`.`{old}` TO `d`.`{old}2`", kind="RENAME") for old in "pt"]
    play = begun(feed, tmp_path, [*moved, *watermarks(61 * MINUTE)], len(BEGIN))
    play.log.arrive(len(LOST))
    expired(play)
    while play.archived_ms < at(60 * MINUTE) >> 18:
        play.archive(1)
    play.observe = once(play, step)
    while not play.went["kills"]:
        play.archive(1)
        play.one()
    while play.one():
        pass
    assert set(feed.cells.tables(["d"])) == {"d.p", "d.t2"}


def decided(feed: LocalFeed) -> None:
    """A table in two parts, a statement about one that this target can't execute, and the word that it is done."""
    made = "CREATE TABLE `t` (`id` INT PRIMARY KEY) PARTITION BY RANGE (CRC32(`id`)) (PARTITION `p0` VALUES LESS THAN"
    made += " (2147483648), PARTITION `p1` VALUES LESS THAN MAXVALUE)"
    feed.send([ddl("d.", 1, "CREATE DATABASE `d`", kind="QUERY"), ddl("d.t", 2, made)])
    feed.send([insert("d.t", 4, id=1), insert("d.t", 4, id=2), *watermarks(5)])
    feed.once()
    feed.send([ddl("d.t", 6, "ALTER TABLE `t` TRUNCATE PARTITION `p0`", kind="TRUNCATE PARTITION")])
    feed.send([insert("d.t", 8, id=3), *watermarks(9)])
    assert "CRC32" in feed.failing(TargetError).fact
    feed.cells.run("d", "DELETE FROM t WHERE id = 1")
    decide_ddl(feed.config, at(6), DdlState.TAKE, "by hand")


def test_a_decision_does_not_outlive_a_reset(sqlite_feed: LocalFeed) -> None:
    """It was about tables that are not there any more."""
    feed = sqlite_feed
    decided(feed)
    feed.cells.run("d", "DROP TABLE t")
    reset_progress(feed.config)
    assert "CRC32" in feed.failing(TargetError).fact
    assert ids(feed, "d.t") == [1, 2]


def test_a_decision_is_not_taken_for_one_about_restored_tables(sqlite_feed: LocalFeed) -> None:
    feed = sqlite_feed
    decided(feed)
    with closing(target_of(feed.config)) as target:
        progress = target.stored(feed.name).progress
    with pytest.raises(ConfigError, match="decided about") as caught:
        import_progress(feed.config, Export(progress, [], {}))
    assert "progress reset" in caught.value.hint
    feed.cells.run("d", "INSERT INTO t VALUES (1)")
    reset_progress(feed.config)
    import_progress(feed.config, Export(progress, [], {}))
    assert "partition p0" in feed.failing(TargetError).fact
