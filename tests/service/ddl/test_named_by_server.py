"""Foreign keys and checks without a name: servers call them after their table, and a killed run has to know them."""

from pathlib import Path

import pytest

from sinks.steps import Step
from tests.service.cells import MariaDbCells, emptied
from tests.service.local import Killed, LocalFeed
from tests.service.messages import ddl, insert, watermarks

pytestmark = pytest.mark.service
PARENT = "CREATE TABLE `p` (`id` INT PRIMARY KEY)"
CHILD = "CREATE TABLE `t` (`id` INT PRIMARY KEY,`b` INT,CONSTRAINT FOREIGN KEY (`b`) REFERENCES `p`(`id`))"
SCRIPTS = {
    "made": [PARENT, CHILD],
    "of itself": ["CREATE TABLE `t` (`id` INT PRIMARY KEY,`b` INT,CONSTRAINT FOREIGN KEY (`b`) REFERENCES `t`(`id`))"],
    "with the database": [PARENT, CHILD.replace("`p`", "`x`.`p`")],
    "a check": ["CREATE TABLE `t` (`id` INT PRIMARY KEY,`b` INT CHECK (`b` < 9),CHECK (`id` > 0))"],
    "added": [PARENT, CHILD, "ALTER TABLE `t` ADD COLUMN `c` INT, ADD FOREIGN KEY (`b`) REFERENCES `p`(`id`)"],
    "dropped": [PARENT, CHILD, "ALTER TABLE `t` DROP FOREIGN KEY `t_ibfk_1`"],
    "changed beside one": [PARENT, CHILD, "ALTER TABLE `t` ADD COLUMN `c` INT"],
    "renamed": [PARENT, CHILD.replace("`t`", "`s`"), "RENAME TABLE `s` TO `t`"],
    "renamed, of itself": [
        CHILD.replace("`t`", "`s`").replace("`p`", "`s`").replace("`b` INT", "`b` INT CHECK (`b` < 9)"),
        "RENAME TABLE `s` TO `t`",
    ],
}


def named(sql: str) -> str:
    """The table that a message names: of a RENAME the new one."""
    return sql.split("`")[3 if sql.startswith("RENAME") else 1]


@pytest.mark.cells("script")
@pytest.mark.parametrize("script", SCRIPTS)
@pytest.mark.parametrize("server", ["mariadb", pytest.param("mysql", marks=pytest.mark.mysql)])
def test_what_was_made_is_known_after_a_kill(
    request: pytest.FixtureRequest, tmp_path: Path, server: str, script: str
) -> None:
    uri = request.getfixturevalue(f"{server}_server").uri
    with emptied(MariaDbCells(uri)) as cells:
        feed = LocalFeed.into(uri, cells, tmp_path)
        feed.send([ddl("x.", 1, "CREATE DATABASE `x`", kind="QUERY")])
        feed.send(ddl(f"x.{named(sql)}", number, sql) for number, sql in enumerate(SCRIPTS[script], 2))
        feed.send([insert("x.t", 9, id=1, b=2), *watermarks(9)])
        kills = Kills()
        while not feed.lives(kills):
            assert len(kills.at) < 99
        assert len(kills.at) == 1 + len(SCRIPTS[script])
        assert [int(row["id"]) for row in feed.cells.tables({"x"})["x.t"][1]] == [1]


class Kills:
    """Kills once behind each DDL, before it is noted as done."""

    def __init__(self) -> None:
        self.at: set[int] = set()
        self.done = 0

    def __call__(self, step: Step) -> None:
        self.done += step is Step.DDL_DONE
        if step is Step.DDL_EXECUTED and self.done not in self.at:
            self.at.add(self.done)
            raise Killed
