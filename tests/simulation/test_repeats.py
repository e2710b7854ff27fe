"""What comes again, too late, or twice with different contents."""

import pytest

from ordering.errors import InputError
from sinks.steps import Step
from tests.simulation.faults import Crash
from tests.simulation.script import CREATE, Script
from tests.simulation.world import config_of

KEYLESS = "CREATE TABLE `k` (`id` INT NOT NULL,`v` VARCHAR(9),UNIQUE `kid`(`id`))"


@pytest.fixture
def script() -> Script:
    """One row at 5, checkpoint 9; the ledger covers it."""
    script = Script()
    script.ddl(1, CREATE)
    script.row(5, 1)
    script.mark(9)
    assert script.run().checkpoint_ts == 9
    return script


def test_an_event_that_was_never_applied_stops_us_with_its_position(script: Script) -> None:
    script.row(7, 2)
    with pytest.raises(InputError, match=r"late event: commitTs 7 .*\n?.*topic=t partition=0 offset=3"):
        script.run()
    assert script.rows() == {"1": "x"}
    assert script.stored.checkpoint_ts == 9


def test_without_the_ledger_a_late_event_is_counted_as_unproven(script: Script) -> None:
    script.redis.flush()
    script.restarted()
    script.row(7, 2)
    script.run()
    assert script.stored.counts.duplicates_unproven == 1


def test_a_repetition_is_counted_as_proven(script: Script) -> None:
    script.row(5, 1)
    script.row(5, 1)
    script.restarted()
    script.run()
    assert script.stored.counts.duplicates_proven == 2
    assert script.stored.counts.duplicates_unproven == 0


def test_a_lost_value_of_the_ledger_covers_nothing(script: Script) -> None:
    for name in [name for name in script.redis.values if ":window:" in name]:
        del script.redis.values[name]
    script.restarted()
    script.row(7, 2)
    script.row(5, 1)
    script.run()
    assert (script.stored.counts.duplicates_proven, script.stored.counts.duplicates_unproven) == (0, 2)


def test_two_contents_under_one_identity_stop_us_with_both_positions(script: Script) -> None:
    script.row(12, 2, "one")
    script.row(12, 2, "other")
    script.mark(15)
    places = r"topic=t partition=0 offset=3 and topic=t partition=0 offset=4"
    with pytest.raises(InputError, match=r"(?s)one identity and different content.*" + places):
        script.run()
    assert script.stored.checkpoint_ts == 9


def test_one_content_spelt_twice_is_a_repetition(script: Script) -> None:
    script.row(12, 2, "one")
    script.row(12, 2, data=[{"v": "one", "id": "2"}])
    script.mark(15)
    assert script.run().checkpoint_ts == 15
    assert script.stored.counts.duplicates == 1
    assert script.rows() == {"1": "x", "2": "one"}


def test_a_watermark_that_goes_back_is_ignored(script: Script) -> None:
    script.row(12, 2)
    script.mark(15)
    script.mark(9)
    script.mark(11)
    assert script.run().checkpoint_ts == 15
    script.mark(3)
    script.restarted()
    assert script.run().checkpoint_ts == 15
    assert script.rows() == {"1": "x", "2": "x"}


def test_rows_of_a_table_that_is_gone_may_come_again() -> None:
    script = Script()
    script.ddl(1, KEYLESS, table="k")
    script.row(5, 1, table="k", pkNames=None)
    script.ddl(7, "DROP TABLE `d`.`k`", table="k")
    script.mark(9)
    script.run()
    script.row(5, 1, table="k", pkNames=None)
    script.mark(12)
    assert script.run().checkpoint_ts == 12
    assert script.stored.counts.duplicates_unproven == 1


def test_what_was_only_looked_through_is_judged_once_it_counts(script: Script) -> None:
    script.row(12, 2)
    script.row(12, 2)
    script.mark(12)
    script.row(14, 3)
    script.run(once=False)
    script.mark(20)
    script.row(14, 3)
    script.row(22, 4)
    script.run(once=True)
    assert script.stored.counts.duplicates == 2
    script.row(22, 4)
    script.run(once=True)
    script.mark(22)
    script.row(22, 4)
    script.run(once=True)
    script.mark(23)
    script.restarted()
    script.run()
    assert script.stored.counts.duplicates == 4
    assert script.stored.counts.events == 8


def test_a_late_event_that_was_looked_through_before_it_was_late_stops_us_too() -> None:
    script = Script(partitions=2)
    script.ddl(1, CREATE)
    script.mark(9)
    script.row(22, 1, p=0)
    script.mark(25, only=0)
    script.row(15, 2, p=0)
    assert script.run().checkpoint_ts == 9
    script.mark(20, only=1)
    assert script.run(once=False).checkpoint_ts == 20
    script.mark(26)
    with pytest.raises(InputError, match="late event: commitTs 15 "):
        script.run()


def test_a_crash_inside_the_first_window_is_no_new_topic() -> None:
    script = Script(config_of("transaction", start_ts=3))
    table = Script()
    table.ddl(1, CREATE)
    table.mark(2)
    table.run()
    script.disk.tables = table.disk.tables
    for ts in (2, 5, 6):
        script.row(ts, ts)
    script.mark(9)
    committed = iter([False, True])

    def die(step: Step) -> None:
        if step is Step.COMMITTED and next(committed):
            raise Crash

    script.restarted(die)
    with pytest.raises(Crash):
        script.run()
    assert script.stored.checkpoint_ts == 6
    script.restarted()
    assert script.run().checkpoint_ts == 9
