"""Histories that come from topics and from an archive by turns, into real targets, with kills: as upstream ended."""

from pathlib import Path
from random import Random

import pytest

from consumer.demo.fake_ticdc.changefeed import Message
from ordering.timestamps import physical_ms
from sinks.steps import Step
from tests.histories.archived import Play, slowed
from tests.service.cells import differences, oracle
from tests.service.ddl.test_ddl import TARGETS, made
from tests.service.lab import recorded
from tests.service.local import Killed, LocalFeed
from tests.service.messages import BASE, ddl, insert, watermarks
from tests.service.rows.test_simple_vectors import CONSISTENCIES
from tests.storage_files import CsvOptions

__all__ = ["made"]
pytestmark = pytest.mark.service
MINUTE = 60_000
BASE_MS = physical_ms(BASE)
DDL_STEPS = {Step.DDL_RECORDED, Step.DDL_EXECUTED, Step.DDL_DONE}
RECORDINGS = (
    "iv.index-value.raw", "split.index-value.restarts", "ddl-basic.restarts", "crossing-3", "keys.index-value.split",
    "topics.topic-per-table",
)  # fmt: skip


@pytest.mark.cells(by_turns=("recording", ("made", "consistency")))
@pytest.mark.parametrize("recording", RECORDINGS)
@pytest.mark.parametrize("consistency", CONSISTENCIES)
@pytest.mark.parametrize("made", TARGETS, indirect=True)
def test_histories_end_as_upstream(made: LocalFeed, recording: str, consistency: str, tmp_path: Path) -> None:
    seed = sum(map(ord, recording + consistency + made.uri[:3]))
    made.with_(target={"consistency": consistency}, limits={"window-rows": Random(seed).choice([1, 3, 40, 10**6])})
    play = Play(made, slowed(recorded(recording)), tmp_path / "files", seed, CsvOptions() if seed % 2 else None)
    play.run()
    assert differences(oracle(recording.split(".", maxsplit=1)[0]), made.cells) == []
    if not play.retired:
        play.again()
        assert differences(oracle(recording.split(".", maxsplit=1)[0]), made.cells) == []


def rows(first: int, last: int) -> list[Message]:
    """A row every five minutes, and watermarks behind each."""
    found: list[Message] = []
    for minute in range(first, last, 5):
        found += [insert("d.t", minute * MINUTE, minute // 5 % 3, id=minute), *watermarks(minute * MINUTE + 1)]
    return found


def created(table: str, minute: int) -> Message:
    return ddl(f"d.{table}", minute * MINUTE, f"CREATE TABLE `{table}` (`id` INT PRIMARY KEY)")


BEGIN = [ddl("d", 1, "CREATE DATABASE `d`"), created("t", 2), *rows(5, 60)]
TWO = [created("a", 60), created("b", 60), *rows(65, 90)]


@pytest.mark.parametrize("killed_at", range(1, 7))
@pytest.mark.parametrize("feed", ["sqlite", "mariadb"], indirect=True)
def test_a_statement_in_parts_is_not_cut_in_two_by_a_switch(feed: LocalFeed, killed_at: int, tmp_path: Path) -> None:
    """The driver dies between two CREATE TABLEs of one commitTs, and the topics hold all that follows again."""
    play = Play(feed, [*BEGIN, *TWO], tmp_path / "files", 1, killed_at=0)

    def observe(step: Step) -> None:
        nonlocal killed_at
        if play.went["archive"] and step in DDL_STEPS:
            killed_at -= 1
            if killed_at == 0:
                raise Killed

    play.log.take(play.here, play.sent)
    play.log.arrive(14)
    play.archive(1)
    while play.one():
        pass
    play.observe = observe
    play.log.arrive(20)
    for partition, held in play.log.held.items():
        play.log.delete_before(partition, len(held))
    play.log.arrive(1_000)
    while play.archived_ms < BASE_MS + 61 * MINUTE:
        play.archive(1)
    play.until_done()
    play.archive(100)
    play.until_done()
    assert play.went == {"archive": 1, "back": 1, "kills": 1}
    assert {"d.a", "d.b"} <= feed.cells.tables(["d"]).keys()
