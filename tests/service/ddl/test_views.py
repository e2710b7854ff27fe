"""Views on targets that are not of the MySQL family: made where they mean what they mean upstream, else left out."""

import sqlite3
from contextlib import closing

import pytest

from tests.service.cells import SqliteCells
from tests.service.ddl.test_ddl import made
from tests.service.local import LocalFeed
from tests.service.messages import ddl, insert, watermarks

__all__ = ["made"]
pytestmark = pytest.mark.service
TABLE = (
    "CREATE TABLE `t` (`id` INT PRIMARY KEY, `v` INT, `g` INT GENERATED ALWAYS AS (`v` + 1) VIRTUAL, `p` DECIMAL(10,2),"
    " `s` VARCHAR(10), `e` ENUM('b','a'), `u` BIGINT UNSIGNED, `d` DATETIME, `b` VARBINARY(9), `y` YEAR, `f` FLOAT,"
    " `day` DATE)"
)
ALIKE = {
    "shown": "SELECT `id`, `p`, `e`, `s`, `u`, `d` FROM `t`",
    "compared": "SELECT `id` FROM `t` WHERE `v` > 1 AND `s` IS NOT NULL ORDER BY `v` LIMIT 1",
    "named": "SELECT `x`.`v` AS `w`, COUNT(`x`.`p`) AS `n` FROM `d`.`t` AS `x` GROUP BY `w` ORDER BY `n`",
    "joined": "SELECT `a`.`id` FROM `t` AS `a` JOIN `k` AS `b` ON `a`.`id` = `b`.`id2` WHERE `n` = 3",
    "outer": "SELECT `id` FROM `t` WHERE EXISTS (SELECT 1 FROM `k` WHERE `k`.`id2` = `t`.`id` AND `v` = `n`)",
    "member": "SELECT `id` FROM `t` WHERE `e` = 'a' OR `e` IN ('b')",
    "two": "SELECT `id` FROM `t` UNION SELECT `id2` FROM `k` ORDER BY `id`",
    "last": "SELECT -`id` AS `v` FROM `t` ORDER BY `v` LIMIT 1",
    "highest": "SELECT `v`, MAX(`id`) AS `id` FROM `t` GROUP BY `v` HAVING MAX(`id`) > 1 ORDER BY `id` LIMIT 1",
    "since": "SELECT `id` FROM `t` WHERE `d` >= '2024-01-31 00:00:00' AND `v` = `id` AND `s` = 'a'",
    "many": "SELECT `v`, COUNT(`id`) AS `n` FROM `t` GROUP BY `v` HAVING COUNT(`id`) > 1 ORDER BY `n`",
    "over": "SELECT `w` FROM `named` WHERE `n` = 2",
    "within it": "SELECT `x`.`w` FROM (SELECT `v` AS `w`, `s` AS `z` FROM `t`) AS `x` WHERE `w` > 1 AND `z` = 'a'",
    "year": "SELECT `id` FROM `t` WHERE `y` = 2024",
    "spelled": "SELECT `id` FROM `t` WHERE `v` = '1'",
    "using": "SELECT `t`.`v` FROM `t` JOIN `t` AS `o` USING (`id`)",
    "chosen": "SELECT `id` FROM `t` WHERE COALESCE(`s`, 'none') = 'a' AND CASE `v` WHEN 1 THEN 2 ELSE `id` END > 1",
    "asked": "SELECT `id` FROM `t` WHERE `v` IN (SELECT `n` FROM `k`)",
    "three": "SELECT `id` FROM `t` UNION ALL SELECT `id2` FROM `k` ORDER BY `id` LIMIT 3",
    "fives": "SELECT DISTINCT `s`, 5 FROM `t`",
    "in brackets": "SELECT `o`.`v` FROM (`t` LEFT JOIN `t` AS `o` ON `o`.`v`=`t`.`id`) JOIN `k` ON `k`.`id2`=`t`.`id`",
    "true": "SELECT `id` FROM `t` WHERE `v` = TRUE OR `id` != FALSE",
    "truth": "SELECT `id`, CASE WHEN `v` THEN 1 ELSE 2 END AS `x` FROM `t` WHERE `v` AND NOT (`id`) OR `v` > 1",
    "true join": "SELECT `t`.`id` FROM `t` JOIN `k` ON `t`.`id` = `k`.`id2` AND `k`.`n`",
    "listed": "SELECT `t`.`v` FROM ((`t`) JOIN `k`) JOIN `t` AS `o` WHERE `t`.`id`=`k`.`id2` AND `o`.`v`=`k`.`n`",
    "in a row": "SELECT `t`.`v` FROM (`t` JOIN `t` AS `o` USING (`id`)) LEFT JOIN `t` AS `p` USING (`id`)",
    "using it": "SELECT `t`.`v` FROM `t` JOIN (SELECT `n` AS `id` FROM `k` GROUP BY `n`) AS `x` USING (`id`)",
    "fraction compared": "SELECT `id` FROM `t` WHERE `v` > -0.5 AND `v` BETWEEN 0.5 AND 2",
    "brackets": "SELECT `id`, (`v` = `id`) IS NULL AS `x` FROM `t` WHERE (`v` > 1) = (`id` > 2)",
    "year or number": "SELECT COALESCE(`y`, 0) AS `x` FROM `t` UNION ALL SELECT `v` FROM `t`",
    "star": "SELECT * FROM `k` UNION ALL SELECT `o`.* FROM `k` AS `o` WHERE EXISTS (SELECT * FROM `t`)",
    "star of a view": "SELECT `o`.`n` AS `m`, `o`.* FROM (SELECT * FROM `star`) AS `o` WHERE `o`.`n` > 1",
    "upper case": "SELECT ID, `X`.`S`, `V` AS `w` FROM (SELECT `id`, `s`, `v` FROM `t`) AS `x` ORDER BY `W`, `iD`",
    "grouped": "SELECT `V` + 1 AS `w`, COUNT(`ID`) AS `N` FROM `t` GROUP BY `W` HAVING COUNT(`Id`) > 1 ORDER BY `n`",
    "upper": "SELECT `T`.`ID`, `T`.`V` FROM `T` JOIN `K` AS `o` ON `O`.`ID2` = `T`.`Id` GROUP BY `T`.`Id`, `V`",
    "set of a text": "SELECT `id` FROM `t` WHERE `s` = _UTF8MB4'a' OR `s` IN ('_utf8mb4', 'x')",
    "truths added": "SELECT SUM(`v` > 1) AS `x`, MAX((`v` > 1) + (`id` > 2)) AS `y` FROM `t` WHERE (`v` > 2) = 1",
    "no brackets not null": "SELECT `id` FROM `t` WHERE `v` = `id` IS NOT NULL",
    "not null compared": "SELECT `id`, `v` IS NOT NULL = 2 AS `x` FROM `t`",
    "from nothing": "SELECT 1 AS `x` FROM DUAL WHERE 1 = 0",
    "using a view": "SELECT `o`.`w` FROM `named` JOIN `named` AS `o` USING (`n`)",
}
OTHERWISE = {
    "text": "SELECT `id` FROM `t` WHERE `s` = 0",
    "true text": "SELECT `id` FROM `t` WHERE `s` = TRUE",
    "text alone": "SELECT `id` FROM `t` WHERE `s` OR `v` > 1",
    "moment alone": "SELECT `id` FROM `t` WHERE NOT `d`",
    "is true": "SELECT `id` FROM `t` WHERE `v` IS TRUE",
    "moment": "SELECT `id` FROM `t` WHERE `d` > 20250101",
    "summed": "SELECT SUM(`s`) AS `x` FROM `t`",
    "number": "SELECT `id` FROM `t` WHERE `e` = 2",
    "mixed": "SELECT `id` FROM `t` WHERE `s` = `v`",
    "dated": "SELECT `id` FROM `t` JOIN `k` ON `d` = `n`",
    "negative": "SELECT `id` FROM `t` WHERE `s` >= -5",
    "bracketed": "SELECT `id` FROM `t` WHERE (`d`) > 20250101",
    "counted": "SELECT `s`, COUNT(`id`) AS `v` FROM `t` GROUP BY `s` HAVING `v` > 1",
    "placed": "SELECT `e` FROM `t` ORDER BY 1 LIMIT 1",
    "all": "SELECT `e` FROM `t` UNION ALL SELECT `e` FROM `t` UNION SELECT `s` FROM `t`",
    "greatest": "SELECT MAX(`e`) AS `x` FROM `t`",
    "ordered": "SELECT `e` AS `x` FROM `t` ORDER BY `x` LIMIT 1",
    "virtual": "SELECT `id`, `g` FROM `t` WHERE `g` > 10",
    "once": "SELECT DISTINCT `e` FROM `t`",
    "no number": "SELECT `id` FROM `t` WHERE `v` <> 'abc'",
    "of numbers": "SELECT `id` FROM `t` WHERE `v` + `id` = '11'",
    "short year": "SELECT `id` FROM `t` WHERE `y` > 99",
    "mixed choice": "SELECT `id` FROM `t` WHERE COALESCE(`s`, `v`) > 5",
    "text choice": "SELECT `id` FROM `t` WHERE COALESCE(`d`, '2024-1-1') = '2024-01-01'",
    "united": "SELECT `v` FROM `t` UNION SELECT `s` FROM `t`",
    "first of both": "SELECT `e` FROM `t` UNION ALL SELECT `e` FROM `t` ORDER BY `e` LIMIT 1",
    "one of both": "SELECT `e` FROM `t` UNION ALL SELECT `e` FROM `t` ORDER BY 1 LIMIT 1",
    "itself": "SELECT `g` AS `g` FROM `t`",
    "or itself": "SELECT COALESCE(`g`, 1) AS `g` FROM `t`",
    "each other": "SELECT `g` AS `h`, `h` AS `g` FROM `t`",
    "natural": "SELECT `n` FROM `t` NATURAL JOIN `k`",
    "in mixed": "SELECT `id` FROM `t` WHERE `s` IN (SELECT `n` FROM `k`)",
    "case": "SELECT `id` FROM `t` WHERE CASE `s` WHEN 1 THEN 2 END > 1",
    "derived": "SELECT `id` FROM (SELECT `id`, `e` AS `x` FROM `t`) AS `q` WHERE `x` > 1",
    "over shown": "SELECT `id` FROM `shown` WHERE `e` > 'a'",
    "over text": "SELECT `id` FROM `shown` WHERE `s` > 1",
    "using text": "SELECT `t`.`v` FROM `t` JOIN (SELECT `s` AS `id` FROM `t`) AS `x` USING (`id`)",
    "using members": "SELECT `t`.`v` FROM `t` JOIN `shown` USING (`e`)",
    "time of a day": "SELECT `id` FROM `t` WHERE `day` >= '2024-01-01 12:00:00'",
    "day or time": "SELECT `id` FROM `t` WHERE `day` BETWEEN '2024-01-01' AND '2024-01-31 12:00:00'",
    "float product": "SELECT `id`, `f` * 2 AS `x` FROM `t`",
    "float sum": "SELECT SUM(`f`) AS `x` FROM `t`",
    "float in list": "SELECT `id` FROM `t` WHERE `f` IN (0.1, 2)",
    "float or number": "SELECT COALESCE(`f`, `v`) AS `x` FROM `t`",
    "floats and numbers": "SELECT `f` FROM `t` UNION ALL SELECT `v` FROM `t`",
    "text or number": "SELECT IF(`v` > 1, `v`, 'none') AS `x` FROM `t`",
    "texts and numbers": "SELECT NULL AS `x` FROM `t` UNION ALL SELECT `v` FROM `t` UNION ALL SELECT `s` FROM `t`",
    "text for a day": "SELECT COALESCE(`day`, '2024-01-01 12:00:00') AS `x` FROM `t`",
    "no brackets": "SELECT `id` FROM `t` WHERE `v` = `id` > 0",
    "no brackets in": "SELECT `id` FROM `t` WHERE `v` = `id` IN (0, 1)",
    "no day": "SELECT `id` FROM `t` WHERE `day` <> '2024-02-30'",
    "not in compared": "SELECT `id`, `v` NOT IN (1, 2) = 2 AS `x` FROM `t`",
    "sign for not": "SELECT `id`, !`v` = 0 AS `x` FROM `t`",
    "after the last text": "SELECT MAX(`s`) + 1 AS `x` FROM `t`",
    "days between": "SELECT MAX(`day`) - MIN(`day`) AS `x` FROM `t`",
    "sum of moments": "SELECT SUM(DISTINCT `d`) AS `x` FROM `t`",
    "sum of floats once": "SELECT SUM(DISTINCT `f`) AS `x` FROM `t`",
    "chosen text": "SELECT IF(`v` > 1, `s`, `s`) * 2 AS `x` FROM `t`",
    "text of digits": "SELECT '5' + `v` AS `x` FROM `t`",
    "no moment": "SELECT `id` FROM `t` WHERE `d` > '2024-01-31 24:00:00'",
    "alias within": "SELECT `id` FROM `t` WHERE `id` IN (SELECT MAX(`n`) AS `v` FROM `k` GROUP BY `v` + 1)",
    "double": "SELECT `id` FROM `t` WHERE `v` * 1e-1 = 0.3",
    "double compared": "SELECT `id` FROM `t` WHERE `v` > 1E0",
    "star with virtual": "SELECT * FROM `t`",
    "star using": "SELECT * FROM `k` JOIN (SELECT `id2`, `n` AS `m` FROM `k`) AS `o` USING (`id2`)",
}
IN_SQLITE = {
    "dear": "SELECT `id` FROM `t` GROUP BY `id` HAVING MIN(`p`) > 5",
    "upto": "SELECT `id` FROM `t` WHERE `d` <= '2024-01-31'",
    "within": "SELECT `id` FROM `t` WHERE `d` BETWEEN '2024-01-01 00:00:00' AND '2024-1-31 00:00:00'",
    "price": "SELECT `id` FROM `t` WHERE `p` > 5",
    "dearest": "SELECT MAX(`p`) AS `x` FROM `t`",
    "large": "SELECT `id` FROM `t` ORDER BY `u` LIMIT 1",
    "prices": "SELECT `p` FROM `t` UNION SELECT `n` FROM `k`",
    "counted together": "SELECT COUNT(DISTINCT `v`, `id`) AS `n` FROM `t`",
    "having": "SELECT COUNT(`id`) AS `x` FROM `t` HAVING COUNT(`id`) > 1",
    "cheapest": "SELECT `p` FROM `t` UNION ALL SELECT `p` FROM `t` ORDER BY `p` LIMIT 1",
    "bytes": "SELECT `id` FROM `t` WHERE `b` = 'ab'",
    "float": "SELECT `id` FROM `t` WHERE `f` = 0.1",
    "first": "SELECT `v`, MIN(`d`) AS `x` FROM `t` GROUP BY `v` HAVING MIN(`d`) <= '2024-01-31'",
    "either": "SELECT `id` FROM `t` WHERE CASE WHEN `id` > 2 THEN `d` ELSE `day` END = '2024-01-01'",
    "price in": "SELECT `id` FROM `t` WHERE `v` IN (SELECT `p` FROM `t`)",
    "price used": "SELECT `o`.`id` FROM `t` JOIN `t` AS `o` USING (`p`)",
    "price within": "SELECT `id` FROM (SELECT `id`, `p` AS `x` FROM `t`) AS `q` WHERE `x` > 5",
    "text among numbers": "SELECT `id` FROM `t` WHERE '1' IN (`v`, `id`)",
    "long product": "SELECT SUM(`v`) * SUM(`v`) AS `x` FROM `t`",
    "days": "SELECT `d` FROM `t` UNION SELECT `day` FROM `t`",
    "upto in view": "SELECT `id` FROM `shown` WHERE `d` <= '2024-01-31'",
    "fraction": "SELECT `id` FROM `t` WHERE `v` * 0.1 = 0.3",
    "fraction shown": "SELECT SUM(`x`) AS `y` FROM (SELECT 0.1 AS `x` FROM `t`) AS `q`",
    "many digits": "SELECT `id` FROM `t` WHERE `v` = 9007199254740993.0",
    "text of a sum": "SELECT `id` FROM (SELECT `id`, `v` + 1 AS `x` FROM `t`) AS `q` WHERE `x` = '3'",
    "day or moment": "SELECT COALESCE(`d`, `day`) AS `x` FROM `t`",
    "days and moments": "SELECT `d` FROM `t` UNION ALL SELECT `day` FROM `t`",
    "each ordered": "(SELECT `id` FROM `t` ORDER BY `id` LIMIT 1) UNION ALL (SELECT `n` FROM `k` ORDER BY `n` LIMIT 1)",
}


def views(feed: LocalFeed) -> set[str]:
    if not isinstance(feed.cells, SqliteCells):
        look = "SELECT table_name AS name FROM information_schema.views WHERE table_schema = 'd'"
        return {row["name"] for row in feed.cells.query(look)}  # type: ignore[attr-defined]
    with closing(sqlite3.connect(feed.cells.files()["d"])) as connection:
        found = {name for (name,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'view'")}
        for name in found:
            connection.execute(f'SELECT * FROM "{name}"')
        return found


@pytest.mark.parametrize("made", ["sqlite", "postgres"], indirect=True)
def test_a_view_is_made_if_it_means_the_same(made: LocalFeed) -> None:
    first = [ddl("d.t", 2, TABLE), ddl("d.k", 2, "CREATE TABLE `k` (`id2` INT PRIMARY KEY, `n` INT)")]
    called = "SELECT `v`, COUNT(`id`) AS `n` FROM `t` GROUP BY `v` HAVING `n` > 1"  # PostgreSQL refuses it
    every = {"called": called, **ALIKE, **OTHERWISE, **IN_SQLITE}
    told = [
        ddl(f"d.{name}", 3 + at, f"CREATE VIEW `{name}` AS {query}") for at, (name, query) in enumerate(every.items())
    ]
    made.send([ddl("d.", 1, "CREATE DATABASE `d`", kind="QUERY"), *first, *told, *watermarks(3 + len(told))])
    made.apply()
    only = {"called"} if isinstance(made.cells, SqliteCells) else set()
    assert views(made) == {*ALIKE, *only, *(() if isinstance(made.cells, SqliteCells) else IN_SQLITE)}


@pytest.mark.parametrize("made", ["sqlite", "postgres"], indirect=True)
def test_a_name_in_order_by_is_the_alias_of_that_name(made: LocalFeed) -> None:
    """The column of that name was meant here: the view showed another row than upstream's."""
    view = "CREATE VIEW `x` AS SELECT -`id` AS `id` FROM `t` ORDER BY `id` LIMIT 1"
    table = ddl("d.t", 2, "CREATE TABLE `t` (`id` INT PRIMARY KEY)")
    rows = [insert("d.t", 3, id=number) for number in (1, 2, 3)]
    made.send([ddl("d.", 1, "CREATE DATABASE `d`", kind="QUERY"), table, *rows, ddl("d.x", 4, view), *watermarks(5)])
    made.apply()
    if isinstance(made.cells, SqliteCells):
        with closing(sqlite3.connect(made.cells.files()["d"])) as connection:
            assert connection.execute("SELECT * FROM x").fetchall() == [(-3,)]
    else:
        assert made.cells.query("SELECT * FROM d.x") == [{"id": -3}]  # type: ignore[attr-defined]


@pytest.mark.parametrize("made", ["sqlite", "postgres"], indirect=True)
def test_a_view_that_joins_several_shows_their_rows(made: LocalFeed) -> None:
    """TiDB spells the first joins of several in brackets, and a list of tables as joins without a condition."""
    tables = [ddl(f"d.{name}", 2, f"CREATE TABLE `{name}` (`id` INT PRIMARY KEY, `v` INT)") for name in "abc"]
    rows = [
        insert(f"d.{name}", 3, id=number, v=number + 1)
        for name, most in (("a", 3), ("b", 2), ("c", 3))
        for number in range(most)
    ]
    views = {
        "x": "SELECT `a`.`id`,`b`.`v` FROM (`a` LEFT JOIN `b` ON `b`.`id`=`a`.`v`) JOIN `c` ON `c`.`id`=`a`.`id`",
        "y": "SELECT `a`.`id`,`c`.`v` FROM ((`a`) JOIN `b`) JOIN `c` WHERE `a`.`id`=`b`.`id` AND `b`.`v`=`c`.`id`",
    }
    told = [ddl(f"d.{name}", 4, f"CREATE VIEW `{name}` AS {query}") for name, query in views.items()]
    made.send([ddl("d.", 1, "CREATE DATABASE `d`", kind="QUERY"), *tables, *rows, *told, *watermarks(5)])
    made.apply()
    found = {name: _rows(made, name) for name in views}
    assert found == {"x": [(0, 2), (1, None), (2, None)], "y": [(0, 2), (1, 3)]}


@pytest.mark.parametrize("made", ["sqlite", "postgres"], indirect=True)
def test_what_holds_is_shown_as_a_number(made: LocalFeed) -> None:
    """As upstream; PostgreSQL has a type of its own for it."""
    shown = [
        "`v` > 1", "NOT `v`", "(`v` AND `id`)", "`v` IN (1,3)", "`v` = TRUE", "`v` IS NULL", "`w` > 1",
        "COALESCE(`w` > 1, `v` > 1)", "IF(`v`, `v` > 5, NULL)", "CASE WHEN `w` THEN `v` > 1 ELSE (`v` < 5) END",
    ]  # fmt: skip
    columns = ", ".join(f"{one} AS `c{number}`" for number, one in enumerate(shown))
    view = f"SELECT `id`, {columns} FROM `t` UNION ALL SELECT `id`, {columns} FROM `t` WHERE `v` > 5"
    table = ddl("d.t", 2, "CREATE TABLE `t` (`id` INT PRIMARY KEY, `v` INT, `w` INT)")
    row = insert("d.t", 3, id=1, v=2, w=None)
    made.send([ddl("d.", 1, "CREATE DATABASE `d`", kind="QUERY"), table, row])
    made.send([ddl("d.x", 4, f"CREATE VIEW `x` AS {view}"), *watermarks(5)])
    made.apply()
    expected = [1, 1, 0, 1, 0, 0, 0, None, 1, 0, 1]
    assert [list(map(repr, one)) for one in _rows(made, "x")] == [list(map(repr, expected))]


def _rows(feed: LocalFeed, view: str) -> list[tuple[object, ...]]:
    look = f"SELECT * FROM {view} ORDER BY id"
    if isinstance(feed.cells, SqliteCells):
        with closing(sqlite3.connect(feed.cells.files()["d"])) as connection:
            return connection.execute(look).fetchall()
    found = feed.cells.query(look.replace("FROM ", "FROM d."))  # type: ignore[attr-defined]
    return [tuple(row.values()) for row in found]


@pytest.mark.parametrize("made", ["sqlite", "postgres"], indirect=True)
def test_a_text_that_reads_like_a_character_set_is_a_text(made: LocalFeed) -> None:
    """It was cut off; and truths are numbers wherever they are computed with."""
    table = ddl("d.t", 2, "CREATE TABLE `t` (`id` INT PRIMARY KEY, `s` VARCHAR(9))")
    rows = [insert("d.t", 3, id=at, s=text) for at, text in enumerate(["_utf8mb4", "", "a"])]
    made.send([ddl("d.", 1, "CREATE DATABASE `d`", kind="QUERY"), table, *rows])
    made.send([ddl("d.x", 4, "CREATE VIEW `x` AS SELECT `id` FROM `t` WHERE `s` IN ('_utf8mb4', _UTF8MB4'a')")])
    truth = "SELECT SUM(`id` > 0) + (MAX(`id`) > 1) AS `id` FROM `t` WHERE (`id` > 1) = 0 OR NOT (`id` > 1) < 1"
    made.send([ddl("d.y", 5, f"CREATE VIEW `y` AS {truth}"), *watermarks(6)])
    made.apply()
    assert (_rows(made, "x"), _rows(made, "y")) == ([(0,), (2,)], [(3,)])


@pytest.mark.parametrize("made", ["sqlite", "postgres"], indirect=True)
def test_a_view_may_spell_names_in_another_case(made: LocalFeed) -> None:
    """As upstream, where it shows the name that it says; the view goes and comes with the table's DDLs."""
    made.send([ddl("d.", 1, "CREATE DATABASE `d`", kind="QUERY")])
    made.send([ddl("d.t", 2, "CREATE TABLE `t` (`id` INT PRIMARY KEY, `v` INT)"), insert("d.t", 3, id=1, v=2)])
    view = "CREATE VIEW `x` AS SELECT `T`.ID, `V` AS `w` FROM `T` WHERE `T`.`V` > 1"
    made.send([ddl("d.x", 4, view), ddl("d.t", 5, "ALTER TABLE `t` MODIFY COLUMN `v` BIGINT"), *watermarks(6)])
    made.apply()
    if isinstance(made.cells, SqliteCells):
        assert _rows(made, "x") == [(1, 2)]
    else:
        assert made.cells.query("SELECT * FROM d.x") == [{"ID": 1, "w": 2}]  # type: ignore[attr-defined]


@pytest.mark.parametrize("made", ["sqlite", "postgres"], indirect=True)
def test_a_star_stands_for_the_columns_of_its_time(made: LocalFeed) -> None:
    """As upstream; a column that came later was shown, too. The order of columns matters to a UNION."""
    table = ddl("d.t", 2, "CREATE TABLE `t` (`id` INT PRIMARY KEY, `v` INT)")
    made.send([ddl("d.", 1, "CREATE DATABASE `d`", kind="QUERY"), table])
    made.send([ddl("d.x", 3, "CREATE VIEW `x` AS SELECT * FROM `t`")])
    made.send([ddl("d.y", 4, "CREATE VIEW `y` AS SELECT `o`.* FROM (SELECT * FROM `x`) AS `o`")])
    made.send([ddl("d.t", 5, "ALTER TABLE `t` ADD COLUMN `z` INT FIRST"), insert("d.t", 6, id=1, v=2, z=3)])
    made.send([ddl("d.w", 7, "CREATE VIEW `w` AS SELECT * FROM `t` UNION ALL SELECT 1, 2, 3"), *watermarks(8)])
    made.apply()
    assert (views(made), _rows(made, "x"), _rows(made, "y")) == ({"x", "y"}, [(1, 2)], [(1, 2)])


@pytest.mark.parametrize("made", ["sqlite", "postgres"], indirect=True)
@pytest.mark.parametrize(
    "ddls",
    [
        ["ALTER TABLE `t` MODIFY COLUMN `w` ENUM('b','a')"],
        ["ALTER TABLE `t` DROP COLUMN `w`", "ALTER TABLE `t` ADD COLUMN `w` ENUM('b','a')"],
        ["DROP TABLE `t`", "CREATE TABLE `t` (`id` INT PRIMARY KEY, `v` INT, `w` ENUM('b','a'))"],
        [
            "RENAME TABLE `t` TO `o`",
            "CREATE TABLE `n` (`id` INT PRIMARY KEY, `v` INT, `w` ENUM('b','a'))",
            "RENAME TABLE `n` TO `t`",
        ],
    ],
)
def test_a_view_is_judged_again_when_its_columns_change(made: LocalFeed, ddls: list[str]) -> None:
    """It showed what comes first as texts do; and views over columns that stay as they are stay."""
    made.send([ddl("d.", 1, "CREATE DATABASE `d`", kind="QUERY")])
    made.send([ddl("d.t", 2, "CREATE TABLE `t` (`id` INT PRIMARY KEY, `v` INT, `w` VARCHAR(9))")])
    queries = {"x": "SELECT `id` FROM `t` ORDER BY `w` LIMIT 1", "y": "SELECT `w` FROM `t` WHERE `v` > 1"}
    made.send([ddl(f"d.{name}", 3, f"CREATE VIEW `{name}` AS {query}") for name, query in queries.items()])
    named = ((f"d.{'n' if '`n` (' in sql else 't'}", sql) for sql in ddls)
    made.send([*(ddl(name, 4 + at, sql) for at, (name, sql) in enumerate(named)), *watermarks(9)])
    made.apply()
    assert views(made) == {"y"}


@pytest.mark.parametrize("made", ["sqlite"], indirect=True)
def test_a_view_that_somebody_made_in_the_target_stays(made: LocalFeed) -> None:
    """It was dropped at the next DDL about its table, where it does what this program's views may not."""
    made.send([ddl("d.", 1, "CREATE DATABASE `d`", kind="QUERY"), ddl("d.t", 2, TABLE), *watermarks(3)])
    made.apply()
    with closing(sqlite3.connect(made.cells.files()["d"])) as connection:
        connection.execute("CREATE VIEW own AS SELECT id, p * 1.5 AS x FROM t WHERE p > 1")
        connection.commit()
    made.send([ddl("d.t", 4, "ALTER TABLE `t` ADD COLUMN `z` INT"), *watermarks(5)])
    made.apply()
    assert views(made) == {"own"}


@pytest.mark.parametrize("made", ["sqlite"], indirect=True)
def test_a_view_over_a_column_that_is_gone_shows_nothing(made: LocalFeed) -> None:
    """As upstream: it ends with an error, and does not show the column's name as a text."""
    made.send([ddl("d.", 1, "CREATE DATABASE `d`", kind="QUERY"), ddl("d.t", 2, TABLE)])
    made.send([ddl("d.x", 3, "CREATE VIEW `x` AS SELECT `v` FROM `t`"), *watermarks(3)])
    made.apply()
    made.send([ddl("d.t", 4, "ALTER TABLE `t` RENAME COLUMN `s` TO `z`"), *watermarks(4)])
    made.apply()
    assert views(made) == {"x"}
    made.cells.run("d", "DROP VIEW x; ALTER TABLE t RENAME COLUMN v TO w")
    made.send([ddl("d.y", 5, "CREATE VIEW `y` AS SELECT `v` FROM `t`"), *watermarks(5)])
    made.apply()
    assert views(made) == set()
