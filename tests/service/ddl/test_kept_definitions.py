"""Definitions that are kept where a target has no partitions: a DDL that is left out, a dump, a reset change them too.

Rows of another partition were deleted, for the target went on with the partitions of before.
"""

from contextlib import closing
from pathlib import Path

import pytest

from consumer.demo.fake_ticdc.changefeed import Message
from consumer.load.run import Load, LoadOptions
from consumer.operate.decisions import decide_ddl
from consumer.operate.progress import reset_progress
from consumer.wiring import target_of
from ordering.errors import InputError, TargetError
from sinks.bookkeeping.ddl_log import DdlState
from tests.loading.dumping import METADATA
from tests.service.lab import Feed
from tests.service.messages import at, ddl, insert, typed, watermarks

pytestmark = pytest.mark.service
TARGETS = ["sqlite", "postgres"]
TABLE = "CREATE TABLE `t` (`id` INT PRIMARY KEY) PARTITION BY RANGE (`id`) "
WIDE = "(PARTITION `p0` VALUES LESS THAN (100),PARTITION `p1` VALUES LESS THAN (200))"
NARROW = "(PARTITION `p0` VALUES LESS THAN (50),PARTITION `p1` VALUES LESS THAN (200))"
REORGANIZE = f"ALTER TABLE `t` REORGANIZE PARTITION `p0`,`p1` INTO {NARROW}"
TRUNCATE = "ALTER TABLE `t` TRUNCATE PARTITION `p0`"


@pytest.fixture(params=TARGETS)
def feed(request: pytest.FixtureRequest) -> Feed:
    found: Feed = request.getfixturevalue(f"{request.param}_feed")
    return found


def begun(*ids: int, partitions: str = WIDE, table: str = TABLE) -> list[Message]:
    rows = (insert("d.t", 3, id=one) for one in ids)
    return [ddl("d.", 1, "CREATE DATABASE `d`"), ddl("d.t", 2, table + partitions), *rows, *watermarks(3)]


def ids(feed: Feed) -> list[int]:
    return sorted(int(str(row["id"])) for row in feed.cells.tables(["d"])["d.t"][1])


def ignoring(feed: Feed, event: str) -> None:
    feed.with_(filter={"event-filters": [{"matcher": ["d.*"], "ignore-event": [event]}]})


def dumped(place: Path, partitions: str, *rows: int) -> Path:
    place.mkdir()
    place.joinpath("metadata").write_text(METADATA.format(tso=at(20)))
    place.joinpath("d-schema-create.sql").write_text("CREATE DATABASE `d`;\n")
    place.joinpath("d.t-schema.sql").write_text(f"{TABLE}{partitions};\n")
    values = ",".join(f"({one})" for one in rows)
    place.joinpath("d.t.000000000.sql").write_text(f"INSERT INTO `t` VALUES\n{values};\n")
    return place


@pytest.mark.parametrize("event", ["reorganize table partition", "add table partition", "drop table partition"])
def test_partitions_of_a_ddl_that_a_filter_ignores(feed: Feed, event: str) -> None:
    """60 went with p0, which upstream had in p1."""
    ignoring(feed, event)
    changes = {
        "reorganize table partition": (REORGANIZE, TRUNCATE, [60, 150]),
        "add table partition": (
            "ALTER TABLE `t` ADD PARTITION (PARTITION `p2` VALUES LESS THAN (300))",
            "ALTER TABLE `t` TRUNCATE PARTITION `p2`",
            [10, 60, 150],
        ),
        "drop table partition": ("ALTER TABLE `t` DROP PARTITION `p0`", "ALTER TABLE `t` TRUNCATE PARTITION `p1`", []),
    }
    change, removal, left = changes[event]
    feed.send([
        *begun(10, 60, 150), ddl("d.t", 4, change), *([insert("d.t", 5, id=250)] if "ADD" in change else []),
        ddl("d.t", 6, removal), *watermarks(9),
    ])  # fmt: skip
    feed.once()
    assert ids(feed) == left


def test_partitions_that_were_divided_without_a_binary_log(feed: Feed) -> None:
    """60 went with p0, which upstream had in p1."""
    unlogged = REORGANIZE.replace("PARTITION", "PARTITION NO_WRITE_TO_BINLOG", 1)
    feed.send([*begun(10, 60, 150), ddl("d.t", 4, unlogged), ddl("d.t", 6, TRUNCATE), *watermarks(9)])
    feed.once()
    assert ids(feed) == [60, 150]


def test_an_index_among_added_columns_is_no_column(feed: Feed) -> None:
    added = "ALTER TABLE `t` ADD COLUMN (`date` DATE,UNIQUE `year`(`id`))"
    feed.send([*begun(10), ddl("d.t", 4, added), *watermarks(9)])
    feed.once()
    assert [sorted(row) for row in feed.cells.tables(["d"])["d.t"][1]] == [["date", "id"]]


@pytest.mark.parametrize("decision", [DdlState.SKIP, DdlState.TAKE])
def test_partitions_of_a_ddl_that_an_operator_decides_about(feed: Feed, decision: DdlState) -> None:
    """By hand, and in a spelling that upstream takes for the same."""
    change = REORGANIZE.replace("`t`", "`T` ADD COLUMN `id` INT,")
    feed.send([*begun(10, 60, 150), ddl("d.T", 4, change), *watermarks(5)])
    feed.failing()
    decide_ddl(feed.config, at(4), decision, "a test")
    feed.send([ddl("d.t", 6, TRUNCATE), *watermarks(9)])
    feed.once()
    assert ids(feed) == [60, 150]


def test_after_a_statement_that_can_not_be_read_nothing_is_known(feed: Feed) -> None:
    feed.send([*begun(10, 60, 150), ddl("d.t", 4, "ALTER TABLE `t"), *watermarks(5)])
    feed.failing(InputError)
    decide_ddl(feed.config, at(4), DdlState.TAKE, "a test")
    feed.send([ddl("d.t", 6, TRUNCATE), *watermarks(9)])
    assert "is not known" in feed.failing(TargetError).fact
    assert ids(feed) == [10, 60, 150]


def test_partitions_by_the_key_of_a_table_that_an_alter_table_divides(feed: Feed) -> None:
    """The target's error was about its own SQL: it has no checksum of no columns."""
    table = "CREATE TABLE `t` (`id` INT PRIMARY KEY)"
    divided = ddl("d.t", 4, "ALTER TABLE `t` PARTITION BY KEY () PARTITIONS 3")
    feed.send([*begun(10, 60, partitions="", table=table), divided, ddl("d.t", 5, TRUNCATE), *watermarks(6)])
    assert "KEY () divides" in feed.failing(TargetError).fact
    assert ids(feed) == [10, 60]


def test_a_table_that_a_skipped_create_table_defines_anew(feed: Feed) -> None:
    ignoring(feed, "drop table")
    again = ddl("d.t", 5, TABLE + NARROW)
    feed.send([*begun(10, 60, 150), ddl("d.t", 4, "DROP TABLE `t`", kind="ERASE"), again, *watermarks(6)])
    feed.failing(TargetError)
    decide_ddl(feed.config, at(5), DdlState.SKIP, "it is there")
    feed.send([insert("d.t", 7, id=20), insert("d.t", 7, id=70), ddl("d.t", 8, TRUNCATE), *watermarks(9)])
    assert "is not known" in feed.failing(TargetError).fact
    assert ids(feed) == [10, 20, 60, 70, 150]


@pytest.mark.parametrize("change", ["RENAME TABLE `t` TO `u`", "DROP DATABASE `d`"])
def test_a_table_that_is_another_one_upstream_is_not_known(feed: Feed, change: str) -> None:
    ignoring(feed, "drop schema" if "DROP" in change else "rename table")
    feed.send([*begun(10, 60, 150), ddl("d.u" if "u" in change else "d.", 4, change, kind="QUERY"), *watermarks(5)])
    feed.once()
    feed.send([ddl("d.t", 6, TRUNCATE), *watermarks(9)])
    assert "is not known" in feed.failing(TargetError).fact


def test_types_of_columns_that_an_ignored_ddl_changed_are_not_known(feed: Feed) -> None:
    ignoring(feed, "modify column")
    table = "CREATE TABLE `t` (`id` INT PRIMARY KEY,`v` INT) PARTITION BY RANGE COLUMNS (`id`) "
    feed.send([
        *begun(10, 60, 150, table=table), ddl("d.t", 4, "ALTER TABLE `t` MODIFY COLUMN `id` BIGINT"),
        ddl("d.t", 6, TRUNCATE), *watermarks(9),
    ])  # fmt: skip
    assert "which is not known" in feed.failing(TargetError).fact
    assert ids(feed) == [10, 60, 150]


def test_what_is_ignored_of_a_table_without_partitions_harms_nothing(feed: Feed) -> None:
    ignoring(feed, "reorganize table partition")
    feed.send([*begun(10, 60, partitions="", table="CREATE TABLE `t` (`id` INT PRIMARY KEY)")])
    feed.send([ddl("d.t", 4, REORGANIZE), ddl("d.t", 5, "ALTER TABLE `t` ADD COLUMN `v` INT"), *watermarks(9)])
    feed.once()
    assert ids(feed) == [10, 60]


def test_a_dump_defines_a_table_that_is_there(feed: Feed, tmp_path: Path) -> None:
    """As docs/recovery.md says: 60 was lost."""
    feed.send(begun(10))
    feed.once()
    feed.send([ddl("d.t", 4, "ALTER TABLE `t` TRUNCATE PARTITION ALL"), *watermarks(9)])
    feed.once()
    feed.with_(source={"start-ts": at(20)})
    reset_progress(feed.config)
    assert Load(feed.config, LoadOptions(dumped(tmp_path / "dump", NARROW, 10, 60, 150))).run().finished
    feed.send([ddl("d.t", 21, TRUNCATE), insert("d.t", 22, id=170), *watermarks(29)])
    feed.once()
    assert ids(feed) == [60, 150, 170]


@pytest.mark.parametrize("there", ["TEXT", "BIGINT"])
def test_a_dump_says_nothing_of_a_column_of_another_type(sqlite_feed: Feed, tmp_path: Path, there: str) -> None:
    """SQLite compares '60' with 100 as texts."""
    feed = sqlite_feed
    feed.make_database("d", f"CREATE TABLE t (id {there} PRIMARY KEY)")
    feed.with_(source={"start-ts": at(20)})
    Load(feed.config, LoadOptions(dumped(tmp_path / "dump", NARROW, 10, 60, 150))).run()
    feed.send([ddl("d.t", 21, TRUNCATE), *watermarks(29)])
    assert "which is not known" in feed.failing(TargetError).fact
    assert ids(feed) == [10, 60, 150]


@pytest.mark.parametrize(("start", "left"), [(20, [10, 60, 150]), (9, [150])])
def test_after_a_reset_only_what_can_not_have_changed_is_known(feed: Feed, start: int, left: list[int]) -> None:
    feed.send([*begun(10, 60, 150), *watermarks(9)])
    feed.once()
    feed.with_(source={"start-ts": at(start)})
    reset_progress(feed.config)
    feed.send([ddl("d.t", 21, TRUNCATE), *watermarks(29)])
    if start == 20:
        assert "is not known" in feed.failing(TargetError).fact
    else:
        feed.once()
    assert ids(feed) == left


BY_DAY = "CREATE TABLE `t` (`id` INT PRIMARY KEY,`d` DATE) PARTITION BY "
DAYS = (
    "RANGE COLUMNS (`d`) (PARTITION `p0` VALUES LESS THAN ('2024-01-01'),"
    "PARTITION `p1` VALUES LESS THAN ('2025-01-01'))"
)
MONTHS = "LIST (MONTH(`d`)) (PARTITION `p0` VALUES IN (0),PARTITION `p1` VALUES IN (1,2,3,NULL))"
HASHED = "HASH (YEAR(`d`)) PARTITIONS 2"
KEYED = "KEY (`d`) PARTITIONS 2"


@pytest.mark.parametrize("partitions", [DAYS, MONTHS, HASHED, KEYED])
@pytest.mark.parametrize("name", ["p0", "p1"])
@pytest.mark.parametrize("verb", ["TRUNCATE PARTITION {}", "DROP PARTITION {}", "EXCHANGE PARTITION {} WITH TABLE `u`"])
def test_a_date_that_became_null_is_in_no_known_partition(
    postgres_feed: Feed, partitions: str, name: str, verb: str
) -> None:
    """`TRUNCATE PARTITION p0` deleted a row of p1."""
    feed = postgres_feed.with_(target={"invalid-dates": "null"})
    change = ddl("d.t", 6, f"ALTER TABLE `t` {verb.format(f'`{name}`')}")
    feed.send([
        *begun(partitions=partitions, table=BY_DAY),
        ddl("d.u", 3, "CREATE TABLE `u` (`id` INT PRIMARY KEY,`d` DATE)"),
        typed(insert("d.t", 4, id=1, d="2024-00-10"), d="date"),
        typed(insert("d.t", 4, id=2, d="2024-03-10"), d="date"), change, *watermarks(9),
    ])  # fmt: skip
    assert "are NULL in column 'd'" in feed.failing(TargetError).fact
    assert ids(feed) == [1, 2]


def test_dates_that_are_all_there_tell_partitions(postgres_feed: Feed) -> None:
    feed = postgres_feed.with_(target={"invalid-dates": "null"})
    rows = [typed(insert("d.t", 4, id=one, d=f"202{one}-03-10"), d="date") for one in (3, 4)]
    feed.send([*begun(partitions=DAYS, table=BY_DAY), *rows, ddl("d.t", 6, TRUNCATE), *watermarks(9)])
    feed.once()
    assert ids(feed) == [4]


@pytest.mark.parametrize("clause", ["PARTITION BY HASH(id) PARTITIONS x", "EXCHANGE PARTITION", "ADD COLUMN ("])
def test_a_ddl_that_can_t_be_read_can_be_skipped(feed: Feed, clause: str) -> None:
    feed.send(begun(10, 150))
    feed.once()
    feed.send([ddl("d.t", 4, f"ALTER TABLE `t` {clause}"), *watermarks(5)])
    feed.failing(InputError)
    decide_ddl(feed.config, at(4), DdlState.SKIP, "")
    feed.once()
    feed.send([ddl("d.t", 6, TRUNCATE), *watermarks(7)])
    feed.failing(TargetError)  # which rows are in it is not known any more
    assert ids(feed) == [10, 150]


ROUTES = {"dispatchers": [{"matcher": ["d.*"], "target-schema": "dw", "target-table": "{schema}_{table}"}]}


@pytest.mark.parametrize("decision", [DdlState.SKIP, DdlState.TAKE])
@pytest.mark.parametrize("clause", ["REORGANIZE PARTITION `p0`,`p1` INTO (", "EXCHANGE PARTITION", "ADD COLUMN ("])
@pytest.mark.parametrize("is_reset", [False, True])
def test_a_table_of_another_name_is_forgotten_under_that_name(
    feed: Feed, clause: str, decision: DdlState, *, is_reset: bool
) -> None:
    """Upstream's name was looked for among the target's: 60 went with p0, which upstream had in p1."""
    feed.with_(sink=ROUTES)
    feed.send([*begun(10, 60, 150), *watermarks(4)])
    feed.once()
    if is_reset:  # which tables have come is not known any more
        feed.with_(source={"start-ts": at(4)})
        reset_progress(feed.config)
    feed.send([ddl("d.t", 5, f"ALTER TABLE `t` {clause}"), *watermarks(6)])
    feed.failing(InputError)
    decide_ddl(feed.config, at(5), decision, "")
    feed.once()
    feed.send([ddl("d.t", 7, TRUNCATE), *watermarks(8)])
    assert "is not known" in feed.failing(TargetError).fact
    assert len(feed.cells.tables(["dw"])["dw.d_t"][1]) == 3


def test_a_reset_of_what_was_reset_forgets_as_the_first_one(sqlite_feed: Feed) -> None:
    """Which tables have come is not known any more, but whose definitions are there is."""
    feed = sqlite_feed.with_(sink=ROUTES)
    feed.send([*begun(10, 60, 150), *watermarks(4)])
    feed.once()
    for start in (4, 20):
        feed.with_(source={"start-ts": at(start)})
        reset_progress(feed.config)
    feed.send([ddl("d.t", 21, TRUNCATE), *watermarks(29)])
    assert "is not known" in feed.failing(TargetError).fact


@pytest.mark.parametrize("is_taught", [False, True])
def test_partitions_that_another_changefeed_has_followed_are_not_known(
    feed: Feed, tmp_path: Path, *, is_taught: bool
) -> None:
    """What upstream did between the two nobody knows: 60 went with p0."""
    feed.send(begun(10, 60, 150))
    feed.once()
    other = type(feed).into(feed.uri, feed.cells, tmp_path).with_(source={"start-ts": at(5)})
    clause = f"PARTITION BY RANGE (`id`) {NARROW}" if is_taught else "ADD COLUMN `v` INT"
    other.send([ddl("d.t", 6, f"ALTER TABLE `t` {clause}"), ddl("d.t", 7, TRUNCATE), *watermarks(9)])
    if is_taught:
        other.once()
    else:
        assert "is not known" in other.failing(TargetError).fact
    assert ids(other) == ([60, 150] if is_taught else [10, 60, 150])


def test_a_database_that_routes_leave_out_defines_no_other_one_of_its_name(sqlite_feed: Feed) -> None:
    feed = sqlite_feed.with_(
        sink={"dispatchers": [{"matcher": [f"{one}.*"], "target-schema": to} for one, to in ("ab", "ca")]}
    )
    folding = "CREATE DATABASE `c` COLLATE utf8mb4_general_ci"
    feed.send([ddl("c.", 1, folding), ddl("a.", 2, "CREATE DATABASE `a`"), *watermarks(3)])
    feed.make_database("b", "CREATE TABLE other (id INTEGER PRIMARY KEY)")
    feed.once()
    with closing(target_of(feed.config)) as target:
        target.connect()
        ((_, _, known),) = target.definitions.of(lambda database, _: database == "a")
    assert "general_ci" in known


def test_a_table_that_is_left_out_has_no_say(feed: Feed) -> None:
    """Another changefeed may have a table of its name in this target."""
    feed.send(begun(10, 60, 150))
    feed.once()
    feed.with_(filter={"rules": ["*.*", "!d.t"]})
    feed.send([ddl("d.t", 4, REORGANIZE), *watermarks(5)])
    feed.once()
    with closing(target_of(feed.config)) as target:
        target.connect()
        ((_, _, known),) = target.definitions.of(lambda database, name: (database, name) == ("d", "t"))
    assert "100" in known
