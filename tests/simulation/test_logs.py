"""Logs that lose their end or their beginning, and transactions that stay open: nothing is passed over (R8, R12)."""

from collections.abc import Iterator, Sequence
from typing import Any

import pytest

from consumer.source.probe import Source
from ordering.errors import InputError, SourceUnreachableError
from ordering.events import Partition, TableName
from ordering.progress import Progress
from ordering.timestamps import CheckpointTs
from sinks.steps import Step
from tests.simulation.faults import Crash
from tests.simulation.log import FakeReader
from tests.simulation.script import CREATE, Script
from tests.simulation.world import config_of

ONE = Partition("t", 0)
TWO = Partition("t", 1)


@pytest.fixture
def script() -> Script:
    """Two rows, applied at 9."""
    made = Script(partitions=2)
    made.ddl(1, CREATE)
    made.row(5, 1)
    made.row(6, 2, p=1)
    made.mark(9)
    assert made.run().checkpoint_ts == 9
    return made


def made_anew(script: Script) -> Script:
    """The script as a new process finds it."""
    script.source = Source(script.config, script.log, tuning=script.tuning, marks=script.log.get())  # type: ignore[arg-type]
    script.restarted()
    return script


def refused(script: Script, *words: str) -> None:
    with pytest.raises(InputError) as caught:
        script.run()
    for word in words:
        assert word in str(caught.value)
    assert script.stored.checkpoint_ts == 9


def test_rows_of_an_open_transaction_are_waited_for(script: Script) -> None:
    script.log.begin(TWO)
    script.row(11, 3, p=1)
    script.mark(12)
    assert script.run().checkpoint_ts == 9
    script.log.commit_open(TWO)
    assert script.run().checkpoint_ts == 12
    assert script.rows() == {"1": "x", "2": "x", "3": "x"}


def test_a_range_that_can_not_be_read_to_its_stop_is_not_applied(script: Script) -> None:
    script.row(11, 3, p=1)
    script.mark(12)

    def opened(step: Step) -> None:
        if step is Step.PLANNED:
            script.log.open[TWO] = 2

    script.restarted(opened)
    with pytest.raises(SourceUnreachableError):
        script.run()
    script.log.open.clear()
    assert script.stored.checkpoint_ts == 9
    script.restarted()
    assert script.run().checkpoint_ts == 12


@pytest.mark.parametrize("new_process", [False, True])
@pytest.mark.parametrize("grown", [0, 1, 20])
def test_an_end_that_was_lost(script: Script, grown: int, *, new_process: bool) -> None:
    script.log.elect(TWO, lost=1)
    for key in range(grown):
        script.row(20 + key, 100 + key, p=1)
    script.mark(50)
    refused(made_anew(script) if new_process else script, "topic=t partition=1 offset=1", "lost its end")


def test_another_leader_that_has_all(script: Script) -> None:
    for number in range(3):
        script.log.elect(TWO)
        script.row(11 + 10 * number, 100 + number, p=1)
        script.mark(20 + 10 * number)
        assert script.run().checkpoint_ts == 20 + 10 * number
        assert script.stored.partitions[TWO].epoch == number + 1
        made_anew(script)
    assert script.run().checkpoint_ts == 40


def test_an_end_that_was_lost_before_it_was_applied(script: Script) -> None:
    """What was looked through ahead counts as read: its watermarks vouch for rows that went with the end."""
    script.row(20, 3, p=1)
    script.mark(30, only=1)
    script.run()
    script.log.elect(TWO, lost=2)
    script.mark(40)
    script.mark(41)
    refused(script, "topic=t partition=1 offset=2")


def test_an_end_that_was_lost_while_the_window_was_read(script: Script) -> None:
    script.row(20, 3, p=1)
    script.mark(30)
    script.restarted(lambda step: script.log.elect(TWO, lost=2) if step is Step.READ else None)
    with pytest.raises(InputError, match="lost its end"):
        script.run()


def test_a_topic_that_was_made_anew(script: Script) -> None:
    script.log.make_anew("t")
    for key in range(9):
        script.row(20, 100 + key, p=key % 2)
    script.mark(30)
    refused(made_anew(script), "again")


def test_a_topic_that_was_made_anew_before_anything_was_committed() -> None:
    """The progress does not know its id yet; what a process that tries again has seen is not of this topic."""
    script = Script()
    for number in range(5):
        script.ddl(1 + number, CREATE.replace("`t`", f"`old{number}`"), table=f"old{number}")
    for key in range(40):
        script.row(10 + key, key, table="old0")
    script.mark(100)

    def die(step: Step) -> None:
        if step is Step.PLANNED:
            raise Crash(step)

    script.restarted(die)
    with pytest.raises(Crash):
        script.run()
    script.log.make_anew("t")
    script.ddl(1, CREATE)
    for key in range(60):
        script.row(20, key)
    script.mark(30)
    script.restarted()
    assert script.run(once=False).checkpoint_ts == 30
    assert set(script.disk.tables) == {TableName("d", "t")}
    script.row(60, 60)
    script.mark(70)
    assert (script.run().checkpoint_ts, len(script.rows())) == (70, 61)


def test_an_epoch_that_nobody_knows(script: Script) -> None:
    script.log.elect(TWO)
    script.mark(12)
    script.run()
    script.log.elections[TWO] = []
    with pytest.raises(InputError, match="another history"):
        made_anew(script).run()


def test_a_partition_that_was_empty_and_lost_its_beginning(script: Script) -> None:
    script.mark(20, topic="new", only=0)
    script.run()
    script.row(30, 3, topic="new", p=1)
    script.mark(40, topic="new")
    script.mark(40)
    script.log.delete_before(Partition("new", 1), 1)
    for again in (script, made_anew(script)):
        refused(again, "topic=new partition=1 offset=", "retention")


def test_what_is_deleted_between_two_looks_is_missed_though_nothing_was_saved() -> None:
    script = Script()
    script.ddl(1, CREATE)
    script.row(5, 1)
    nothing = Progress()
    script.source.probe(nothing)
    script.log.delete_before(ONE, 1)
    with pytest.raises(InputError, match="retention"):
        script.source.probe(nothing)


@pytest.mark.parametrize("partition", [0, 1])
def test_a_new_topic_that_lost_its_beginning(script: Script, partition: int) -> None:
    script.row(30, 3, topic="new", p=partition)
    script.mark(40, topic="new")
    script.mark(40)
    script.log.delete_before(Partition("new", partition), 1)
    refused(script, f"topic=new partition={partition} offset=1", "unproven-beginning")
    script.config = script.config.model_copy(
        update={"source": script.config.source.model_copy(update={"unproven_beginning": "accept"})}
    )
    assert made_anew(script).run().checkpoint_ts == 40


def started(begin: int, start_ts: int, **source: str) -> Script:
    """A changefeed that begins above its first rows, in a log that begins at an offset of partition 1."""
    config = config_of(start_ts=start_ts)
    script = Script(config.model_copy(update={"source": config.source.model_copy(update=source)}), partitions=2)
    for key in range(8):
        script.row(5 + key, key, p=1)
    script.mark(100)
    script.log.delete_before(TWO, begin)
    return script


def test_a_beginning_is_proven_by_the_time_of_what_is_left() -> None:
    hour = CheckpointTs(3_600_000 << 18)
    with pytest.raises(InputError, match="begins after start-ts") as caught:
        started(3, CheckpointTs(4)).run()
    assert "topic=t partition=1 offset=3" in str(caught.value)
    script = started(3, hour)
    script.mark(hour + 1)
    assert script.run().checkpoint_ts == hour + 1


@pytest.mark.parametrize("start_ts", [4, 3_600_000 << 18])
def test_nothing_that_is_left_proves_nothing(start_ts: int) -> None:
    script = started(9, start_ts)
    with pytest.raises(InputError, match="begins after start-ts"):
        script.run()
    script = started(9, start_ts, unproven_beginning="accept")
    script.mark(start_ts + 9)
    assert script.run().checkpoint_ts == start_ts + 9


def test_without_start_ts_a_new_changefeed_takes_what_is_left() -> None:
    script = Script(partitions=2)
    script.ddl(1, CREATE)
    script.mark(9)
    script.log.delete_before(TWO, 1)
    script.mark(10)
    assert script.run().checkpoint_ts == 10
    script.mark(12)
    assert made_anew(script).run().checkpoint_ts == 12


def test_messages_that_get_lost_between_reader_and_scan(script: Script, monkeypatch: pytest.MonkeyPatch) -> None:
    read, lost = FakeReader.read, [True]

    def losing(reader: FakeReader, spans: Sequence[tuple[Partition, int, int]]) -> Iterator[Any]:
        for partition, run in read(reader, spans):
            some = [message for message in run if b'"11"' not in (message.value() or b"")]
            yield partition, run if len(some) == len(run) or not lost or not lost.pop() else some

    script.row(11, 11, p=1)
    script.mark(12)
    script.restarted(lambda step: monkeypatch.setattr(FakeReader, "read", losing) if step is Step.PLANNED else None)
    with pytest.raises(SourceUnreachableError, match="messages were taken"):
        script.run()
    script.restarted()
    assert script.run().checkpoint_ts == 12
    assert script.rows()["11"] == "x"


def test_a_topic_is_not_dead_while_a_transaction_is_open_in_it(script: Script) -> None:
    script.mark(10, topic="default")
    script.mark(10)
    assert script.run().checkpoint_ts == 10
    script.log.begin(TWO)
    script.row(11, 3, p=1)
    script.ddl(12, "RENAME TABLE `d`.`t` TO `d`.`u`", table="u")
    script.mark(20, topic="default")
    script.mark(20, topic="u")
    assert script.run().checkpoint_ts == 10
    script.log.commit_open(TWO)
    assert script.run().checkpoint_ts == 20
    assert script.rows("u") == {"1": "x", "2": "x", "3": "x"}


def test_a_topic_that_ends_in_an_open_transaction_of_a_partition_without_watermarks(script: Script) -> None:
    """What the transaction holds counts, but nobody can read it, not even to look at the protocol."""
    script.mark(10, topic="default")
    script.mark(10)
    assert script.run().checkpoint_ts == 10
    script.ddl(11, CREATE.replace("`t`", "`n`"), topic="new", table="n")
    script.log.begin(Partition("new", 1))
    script.row(12, 3, p=1, topic="new", table="n")
    script.ddl(13, "RENAME TABLE `d`.`n` TO `d`.`u`", topic="new", table="u")
    for topic in ("default", "t", "u"):
        script.mark(20, topic=topic)
    assert script.run().checkpoint_ts < 13
    script.log.commit_open(Partition("new", 1))
    assert script.run().checkpoint_ts == 20
    assert script.rows("u") == {"3": "x"}


def test_a_partition_that_was_seen_empty_is_new_still(script: Script) -> None:
    """Rows at or below the checkpoint in it were applied by nobody."""
    script.mark(20, topic="new", only=0)
    script.run()
    assert script.stored.partitions[Partition("new", 1)].is_unread
    script.row(8, 3, topic="new", p=1)
    script.mark(40, topic="new")
    script.mark(40)
    refused(script, "new to this changefeed")


def test_what_was_looked_through_before_the_first_window_is_known_after_it() -> None:
    """The window has nothing left to read in partition 0; what TiCDC then sends again there is a repetition."""
    script = Script(config_of(start_ts=9), partitions=2)
    script.row(5, 1)
    script.mark(20, only=0)
    assert script.run().checkpoint_ts == 9
    script.mark(20, only=1)
    assert script.run().checkpoint_ts == 20
    script.row(5, 1)
    script.mark(30)
    assert script.run().checkpoint_ts == 30
    assert script.stored.counts.duplicates == 2
