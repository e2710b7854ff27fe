"""What a DDL of a message may be about: comments of TiDB that would make it about something else."""

import pytest

from consumer.ddl.guard import refuse_what_is_not_theirs
from ordering.errors import InputError
from ordering.events import DdlEvent, Position
from ordering.timestamps import CommitTs


def event(sql: str) -> DdlEvent:
    return DdlEvent(Position("t", 0, 1), CommitTs(5), "QUERY", "d", "t", sql)


@pytest.mark.parametrize(
    "sql",
    [
        "TRUNCATE TABLE /*T![ttl] other. */ t",
        "DROP TABLE t /*T![ttl] , other.t */",
        "RENAME TABLE t TO u /*T![auto_rand] , other.t TO x */",
        "CREATE TABLE t /*T![placement] LIKE other.t */",
    ],
)
def test_a_comment_of_tidb_changes_no_table(sql: str) -> None:
    with pytest.raises(InputError, match="a comment changes"):
        refuse_what_is_not_theirs(event(sql))


@pytest.mark.parametrize(
    "clauses",
    [
        "ADD UNIQUE INDEX /*T! IF NOT EXISTS  */`i`(`c`), ADD COLUMN `x` INT",
        "ADD COLUMN `x` INT, ADD CONSTRAINT UNIQUE IF NOT EXISTS `i`(`c`)",
        "ADD COLUMN (`x` INT, UNIQUE KEY/*T!  IF NOT EXISTS */ `i`(`c`))",
        "ADD FULLTEXT INDEX IF NOT EXISTS `i`(`c`)",
    ],
)
def test_tidb_has_no_key_on_condition(clauses: str) -> None:
    """A target that left out upstream's index of that name would make it."""
    with pytest.raises(InputError, match=r"TiDB has no such DDL statement: '(UNIQUE|FULLTEXT)"):
        refuse_what_is_not_theirs(event(f"ALTER TABLE `t` {clauses}"))


@pytest.mark.parametrize(
    "sql",
    [
        "ALTER TABLE `t` ADD INDEX/*T!  IF NOT EXISTS */ `k`(`c`), ADD COLUMN `unique` INT",
        "ALTER TABLE `t` ADD CONSTRAINT `f` FOREIGN KEY /*T! IF NOT EXISTS  */(`b`) REFERENCES `t`(`a`)",
        "ALTER TABLE `t` ADD COLUMN /*T! IF NOT EXISTS  */(`b` INT, UNIQUE `k`(`a`,`b`))",
        "CREATE UNIQUE INDEX /*T! IF NOT EXISTS  */`k` ON `t` (`a`)",
    ],
)
def test_conditions_that_tidb_has_are_read(sql: str) -> None:
    refuse_what_is_not_theirs(event(sql))


def test_a_comment_of_tidb_says_how_a_table_is_stored() -> None:
    refuse_what_is_not_theirs(event("CREATE TABLE t (id INT PRIMARY KEY /*T![clustered_index] CLUSTERED */)"))
