"""Indexes whose names upstream has chosen: another one here where the target left out the index that took the name.

What TiDB calls them is as its own code printed it for these statements.
"""

from pathlib import Path

import pytest

from ordering.errors import TargetError
from tests.service.lab import Feed
from tests.service.local import LocalFeed
from tests.service.messages import ddl, insert, keyed, watermarks
from tests.sinks.iceberg_cells import IcebergCells

pytestmark = pytest.mark.service
COLUMNS = "`a` INT NOT NULL,`b` INT NOT NULL,`c` INT NOT NULL,UNIQUE `u`(`a`,`b`)"
OVER_EXPRESSION = f"CREATE TABLE `t` ({COLUMNS},INDEX `c`((`c`+1)))"
ADDED, DROPPED = "ALTER TABLE `t` ADD UNIQUE(`c`)", "ALTER TABLE `t` DROP INDEX `c_2`"
SCRIPTS = {
    "added": [OVER_EXPRESSION, ADDED, DROPPED],
    "at once": [f"CREATE TABLE `t` ({COLUMNS},INDEX `c`((`c`+1)),UNIQUE(`c`))", DROPPED],
    "virtual": [
        f"CREATE TABLE `t` ({COLUMNS},`v` INT GENERATED ALWAYS AS(`c`+1) VIRTUAL,INDEX `c`(`v`))",
        ADDED,
        f"{DROPPED}, ADD COLUMN `q` INT",
    ],
    "alone": [OVER_EXPRESSION, ADDED, "DROP INDEX `C_2` ON `t`"],
    "renamed": [OVER_EXPRESSION, ADDED, "ALTER TABLE `t` RENAME INDEX `c_2` TO `z`", "ALTER TABLE `t` DROP INDEX `z`"],
    "renamed here": [OVER_EXPRESSION, ADDED, "ALTER TABLE `t` RENAME INDEX `c` TO `z`", DROPPED],
}
HERE_UNDER_ANOTHER_NAME = {
    **dict.fromkeys(("sqlite", "postgres"), {*SCRIPTS} - {"at once"}),
    "mariadb": {*SCRIPTS} - {"virtual"},
}


def feed_into(request: pytest.FixtureRequest, kind: str, tmp_path: Path) -> Feed:
    """A changefeed into a target of this kind."""
    if kind == "iceberg":
        catalog = tmp_path / "catalog.db"
        uri = f"iceberg+sqlite:///{catalog}?warehouse={tmp_path / 'warehouse'}"
        return LocalFeed.into(uri, IcebergCells(catalog), tmp_path)
    found: Feed = request.getfixturevalue(f"{kind}_feed")
    return found


@pytest.mark.parametrize("kind", ["sqlite", "iceberg", "mariadb", "postgres", "tidb"])
@pytest.mark.parametrize("script", SCRIPTS)
@pytest.mark.cells("kind", by_turns=("script",))
def test_a_unique_index_does_not_stay_that_upstream_drops(
    request: pytest.FixtureRequest, tmp_path: Path, kind: str, script: str
) -> None:
    """It was not found by upstream's name, which no target minds, and became the key: rows equal in it were one."""
    feed = feed_into(request, kind, tmp_path)
    more = {"q": None} if script == "virtual" else {}
    rows = [keyed(insert("x.t", n, a=1, b=n, c=1, **more)) for n in (15, 16, 17)]
    statements = [ddl("x.t", n, sql) for n, sql in enumerate(SCRIPTS[script], 2)]
    feed.send([ddl("x.", 1, "CREATE DATABASE `x`"), *statements, *rows, *watermarks(18)])
    if script in HERE_UNDER_ANOTHER_NAME.get(kind, ()):
        with pytest.raises(TargetError, match=r"index .[cC]_2. of x\.t, and the target's unique index over c may be"):
            feed.once()
        return
    feed.once()
    assert len(feed.cells.tables({"x"})["x.t"][1]) == len(rows)


def test_indexes_that_upstream_named_itself_are_dropped(sqlite_feed: Feed) -> None:
    """Also plain ones that the target never had, beside unique indexes over other columns."""
    table = f"CREATE TABLE `t` ({COLUMNS},UNIQUE(`a`,`c`),UNIQUE(`c`),INDEX `b`((`b`+1)))"
    names = ("a", "c", "b", "gone")
    statements = [ddl("x.t", n, f"ALTER TABLE `t` DROP INDEX `{name}`") for n, name in enumerate(names, 3)]
    rows = [keyed(insert("x.t", n, a=1, b=n, c=1)) for n in (15, 16)]
    sqlite_feed.send([ddl("x.", 1, "CREATE DATABASE `x`"), ddl("x.t", 2, table), *statements, *rows, *watermarks(18)])
    sqlite_feed.once()
    assert len(sqlite_feed.cells.tables({"x"})["x.t"][1]) == len(rows)


def test_of_two_that_are_alike_none_is_dropped_by_a_chosen_name(sqlite_feed: Feed) -> None:
    """Which one upstream means is not known where an operator has kept the first."""
    table = f"CREATE TABLE `t` ({COLUMNS},UNIQUE(`c`),UNIQUE `k`(`c`))"
    drop = "ALTER TABLE `t` DROP INDEX `c`"
    sqlite_feed.send([ddl("x.", 1, "CREATE DATABASE `x`"), ddl("x.t", 2, table), ddl("x.t", 3, ADDED), *watermarks(3)])
    sqlite_feed.once()
    sqlite_feed.send([ddl("x.t", 4, "ALTER TABLE `t` DROP INDEX `k`"), ddl("x.t", 5, drop), *watermarks(6)])
    with pytest.raises(TargetError, match=r"index 'c' of x\.t, and the target's unique index over c may be"):
        sqlite_feed.once()
