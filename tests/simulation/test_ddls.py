"""DDLs at the edges: at the watermark, at start-ts, several at one commitTs, as the last message."""

import pytest

from consumer.pipeline.round import Round
from sinks.steps import Step
from tests.simulation.script import CREATE, Script
from tests.simulation.world import config_of

ADD = "ALTER TABLE `t` ADD COLUMN `w` INT"


def columns(script: Script) -> list[str]:
    (table,) = script.disk.tables.values()
    return list(table.columns)


def test_start_ts_counts_as_having_executed_what_lies_at_it() -> None:
    dumped = Script()
    dumped.ddl(1, CREATE)
    dumped.ddl(5, ADD)
    dumped.mark(6)
    dumped.run()
    dumped.disk.progress.clear()
    dumped.disk.epochs.clear()
    script = Script(config_of(start_ts=5), disk=dumped.disk)
    script.ddl(1, CREATE)
    script.ddl(5, ADD)
    script.row(7, 1, data=[{"id": "1", "v": "x", "w": None}])
    script.mark(9)
    assert script.run().checkpoint_ts == 9
    assert columns(script) == ["id", "v", "w"]
    assert script.stored.counts.ddls == 0


def test_a_ddl_that_comes_after_the_watermark_of_its_commit_ts_is_executed() -> None:
    script = Script()
    script.ddl(1, CREATE)
    script.row(5, 1)
    script.mark(7)
    assert script.run().checkpoint_ts == 7
    script.ddl(7, ADD)
    script.row(8, 2, data=[{"id": "2", "v": "y", "w": "3"}])
    script.mark(9)
    assert script.run(once=False).checkpoint_ts == 9
    assert columns(script) == ["id", "v", "w"]
    assert script.rows() == {"1": "x", "2": "y"}


def test_a_ddl_as_the_very_last_message_is_executed() -> None:
    script = Script(partitions=2)
    script.ddl(1, CREATE)
    script.row(5, 1, p=1)
    script.mark(7)
    script.ddl(7, ADD)
    progress = script.run()
    assert progress.checkpoint_ts == 7
    assert columns(script) == ["id", "v", "w"]
    assert script.at(0) == 3
    assert not Round(script.restarted()).run(to_end=True) or columns(script) == ["id", "v", "w"]


def test_ddls_that_share_a_commit_ts_are_each_executed_once_in_their_order() -> None:
    script = Script()
    script.ddl(1, CREATE)
    script.mark(4)
    script.ddl(4, "RENAME TABLE `d`.`t` TO `d`.`u`", table="u")
    script.run()
    assert [name.table for name in script.disk.tables] == ["u"]
    script.restarted()
    script.ddl(4, "RENAME TABLE `d`.`u` TO `d`.`w`", table="w")
    script.ddl(4, "RENAME TABLE `d`.`t` TO `d`.`u`", table="u")  # sent again
    script.run()
    assert [name.table for name in script.disk.tables] == ["w"]
    script.ddl(4, "RENAME TABLE `d`.`u` TO `d`.`w`", table="w")  # sent again
    script.mark(9)
    script.restarted()
    assert script.run().checkpoint_ts == 9
    assert script.stored.counts.ddls == 3


def test_rows_with_the_commit_ts_of_a_ddl_belong_before_it() -> None:
    script = Script()
    script.ddl(1, CREATE)
    script.row(5, 1)
    script.ddl(5, "TRUNCATE TABLE `t`")
    script.row(6, 2)
    script.mark(9)
    script.run()
    assert script.rows() == {"2": "x"}


class _Died(BaseException):
    """What no code of ours catches."""


@pytest.mark.parametrize("end", ["", ";", " ;\n"])
def test_ddls_that_wait_are_met_again_after_a_crash_however_they_end(end: str) -> None:
    """TiCDC's new architecture leaves a `;` behind the parts of a statement about several tables."""
    script = Script()
    script.ddl(1, CREATE)
    script.row(3, 1, "one")
    script.mark(5)
    script.run(once=False)
    script.row(6, 2, "two")
    script.ddl(7, f"RENAME TABLE `d`.`t` TO `d`.`o`{end}", table="o")
    script.ddl(7, CREATE.replace("`t`", "`d`.`t`") + end, table="t")
    script.row(8, 3, "three")
    script.mark(9)

    def observe(step: Step) -> None:
        if step is Step.COMMITTED:
            raise _Died

    script.restarted(observe)
    with pytest.raises(_Died):
        script.run(once=False)
    script.restarted()
    script.run(once=False)
    assert {str(name): script.rows(name.table) for name in script.disk.tables} == {
        "d.o": {"1": "one", "2": "two"},
        "d.t": {"3": "three"},
    }
