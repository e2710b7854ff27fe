"""A topic per table: topics that appear, and that end with their table (R6)."""

import pytest

from ordering.errors import InputError
from tests.simulation.script import CREATE, Script
from tests.simulation.world import config_of


def script_with(other: str = "default") -> Script:
    """Table t in topic t, a topic for everything else; both at watermark 9."""
    script = Script(partitions=2)
    script.ddl(1, CREATE)
    script.mark(1, topic=other)
    script.row(5, 1)
    script.mark(9, topic=other)
    script.mark(9)
    assert script.run().checkpoint_ts == 9
    return script


def tables(script: Script) -> list[str]:
    return sorted(name.table for name in script.disk.tables)


def test_a_topic_whose_table_is_dropped_holds_nothing_back() -> None:
    script = script_with()
    script.row(11, 2, p=1)
    script.ddl(12, "DROP TABLE `d`.`t`")
    script.mark(20, topic="default")
    assert script.run().checkpoint_ts == 20
    assert tables(script) == []
    assert script.stored.counts.events == 2


def test_a_topic_that_only_ever_carried_a_renamed_table_ends_with_it() -> None:
    script = script_with()
    script.ddl(12, "RENAME TABLE `d`.`t` TO `d`.`u`", table="u")
    script.mark(15, topic="default")
    script.mark(15, topic="u")
    assert script.run().checkpoint_ts == 15
    script.ddl(16, "RENAME TABLE `d`.`u` TO `d`.`w`", table="w", topic="u")
    script.mark(20, topic="default")
    script.mark(20, topic="w")
    assert script.run().checkpoint_ts == 20
    assert tables(script) == ["w"]


def test_a_table_that_lived_shorter_than_a_watermark_takes_its_topic_with_it() -> None:
    script = script_with()
    script.ddl(12, CREATE.replace("`t`", "`n`"), table="n", topic="n")
    script.ddl(13, "RENAME TABLE `d`.`n` TO `d`.`u`", table="u", topic="n")
    script.mark(20, topic="default")
    script.mark(20)
    script.mark(20, topic="u")
    assert script.run().checkpoint_ts == 20
    assert tables(script) == ["t", "u"]


@pytest.mark.parametrize(("gone", "topic"), [("DROP VIEW `d`.`look`", "look"), ("DROP DATABASE `d`", "default")])
def test_the_topic_of_a_view_ends_with_it(gone: str, topic: str) -> None:
    script = script_with()
    script.ddl(12, "CREATE OR REPLACE VIEW `d`.`look` AS SELECT `id` FROM `d`.`t`", table="look", topic="look")
    for name in ("look", "default", "t"):
        script.mark(13, topic=name)
    assert script.run().checkpoint_ts == 13
    script.ddl(14, gone, table="look" if topic == "look" else "", topic=topic)
    script.mark(20, topic="default")
    if topic == "look":
        script.mark(20)
    assert script.run().checkpoint_ts == 20


def test_a_topic_without_any_watermark_can_have_ended_before_the_first_window() -> None:
    script = Script(partitions=2)
    script.mark(5, topic="default")
    script.ddl(6, CREATE)
    script.ddl(7, "DROP TABLE `d`.`t`")
    script.mark(9, topic="default")
    assert script.run().checkpoint_ts == 9
    assert script.stored.counts.ddls == 2


def test_an_ended_topic_counts_again_once_its_table_is_back() -> None:
    script = script_with()
    script.ddl(12, "DROP TABLE `d`.`t`")
    script.mark(14, topic="default")
    assert script.run().checkpoint_ts == 14
    script.ddl(16, CREATE)
    script.row(17, 2, p=0)
    script.mark(20, topic="default")
    script.mark(17, only=0)
    script.mark(16, only=1)
    assert script.run().checkpoint_ts == 16
    script.row(18, 3, p=1)
    script.mark(20)
    assert script.run().checkpoint_ts == 20
    assert script.rows() == {"2": "x", "3": "x"}


def test_the_watermarks_of_the_only_topic_count_though_its_last_table_is_gone() -> None:
    script = Script()
    script.ddl(1, CREATE)
    script.mark(5)
    script.ddl(5, "DROP TABLE `d`.`t`")
    script.mark(6)
    assert script.run().checkpoint_ts == 6
    script.mark(8)
    assert script.run(once=False).checkpoint_ts == 8


def test_renames_of_one_statement_are_executed_in_an_order_that_works() -> None:
    script = Script()
    script.ddl(1, CREATE)
    script.ddl(2, CREATE.replace("`t`", "`a`"), table="a", topic="a")
    script.row(3, 1)
    script.mark(4)
    script.mark(4, topic="a")
    script.run()
    script.ddl(6, "RENAME TABLE `d`.`t` TO `d`.`z`", table="z", topic="t")
    script.ddl(6, "RENAME TABLE `d`.`a` TO `d`.`t`", table="t", topic="a")
    script.ddl(6, "RENAME TABLE `d`.`z` TO `d`.`a`", table="a", topic="z")
    for topic in ("a", "t", "default"):
        script.mark(8, topic=topic)
    assert script.run().checkpoint_ts == 8
    assert (script.rows("a"), script.rows("t")) == ({"1": "x"}, {})


def test_a_rename_at_the_watermark_waits_for_the_one_that_makes_room() -> None:
    script = Script()
    script.ddl(1, CREATE)
    script.ddl(2, CREATE.replace("`t`", "`a`"), table="a", topic="a")
    for topic in ("a", "t", "default"):
        script.mark(6, topic=topic)
    script.ddl(6, "RENAME TABLE `d`.`a` TO `d`.`t`", table="t", topic="a")
    assert script.run().checkpoint_ts == 6
    assert tables(script) == ["a", "t"]
    script.ddl(6, "RENAME TABLE `d`.`t` TO `d`.`z`", table="z", topic="t")
    script.run()
    assert tables(script) == ["t", "z"]


def test_a_rename_waits_for_one_behind_the_watermark_that_ended_an_earlier_window() -> None:
    script = Script()
    script.ddl(1, CREATE)
    script.ddl(2, CREATE.replace("`t`", "`a`"), table="a", topic="a")
    for topic in ("a", "t", "default"):
        script.mark(3, topic=topic)
    script.ddl(4, CREATE.replace("`t`", "`c`"), table="c", topic="a")
    script.ddl(6, "RENAME TABLE `d`.`a` TO `d`.`t`", table="t", topic="a")
    script.run()  # both are known, so the next window ends at the first and is not read any further
    script.mark(6)
    script.ddl(6, "RENAME TABLE `d`.`t` TO `d`.`z`", table="z")
    for topic in ("a", "t", "default"):
        script.mark(9, topic=topic)
    assert script.run().checkpoint_ts == 9
    assert tables(script) == ["c", "t", "z"]


def test_a_topic_whose_ddl_had_to_wait_is_read_on_once_it_ran() -> None:
    script = Script()
    script.ddl(1, CREATE)
    script.ddl(2, CREATE.replace("`t`", "`a`"), table="a", topic="a")
    for topic in ("a", "t", "default"):
        script.mark(6, topic=topic)
    script.ddl(6, "RENAME TABLE `d`.`a` TO `d`.`t`", table="t", topic="a")
    script.run()
    script.ddl(6, "RENAME TABLE `d`.`t` TO `d`.`z`", table="z", topic="t")
    for topic in ("default", "z", "t"):
        script.mark(9, topic=topic)
    assert script.run().checkpoint_ts == 9


def test_the_ddl_that_ends_a_topic_is_its_watermark_only_where_it_is_read_to_its_end() -> None:
    script = Script(config_of(window_rows=2), partitions=2)
    script.ddl(1, CREATE)
    script.mark(1, topic="default")
    script.mark(9, topic="default")
    script.mark(9)
    assert script.run().checkpoint_ts == 9
    script.mark(10, only=1)
    for key in range(20):
        script.row(11 + key, key, p=1)
    script.ddl(40, "DROP TABLE `d`.`t`")
    script.mark(50, topic="default")
    assert script.run().checkpoint_ts == 50
    assert tables(script) == []
    assert script.stored.counts.rows_written == 20


def test_rows_at_or_below_the_checkpoint_in_a_new_topic_are_never_dropped() -> None:
    """Also where they lie behind a row that is not due yet, so that looking ahead passes over them."""
    script = script_with()
    script.redis.down = True
    script.row(30, 3, topic="new")
    script.row(7, 7, topic="new")
    assert script.run().checkpoint_ts == 9
    for topic in ("new", "t", "default"):
        script.mark(12, topic=topic)
    with pytest.raises(InputError, match="new to this changefeed"):
        script.run()
    assert script.rows() == {"1": "x"}
