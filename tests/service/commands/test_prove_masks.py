"""What is in no sum: columns that a shard lacks, and masked ones of rows that were there before their ADD COLUMN.

Such rows hold the default, not its mask, until their next event.
"""

import pytest

from consumer.proof.report import Proof
from tests.service.commands.test_prove import every, prove, verdicts
from tests.service.commands.test_scrub import Clock, rounds, scrub_of
from tests.service.local import LocalFeed
from tests.service.messages import ddl, delete, insert, update, watermarks
from tests.service.rows.test_merging import begun, ran

__all__ = ["every"]
pytestmark = pytest.mark.service
KEY = "a key of thirty-two characters!!"
MASKS = [
    {"matcher": ["d.*"], "columns": ["h*"], "hash-key": KEY, "hash-length": 20},
    {"matcher": ["d.*"], "columns": ["c*"], "value": "9"},
]


def left_out(proof: Proof, table: str = "t") -> list[str]:
    return sorted(next(out for name, (out, _) in proof.tables.items() if name.table == table))


@pytest.fixture
def fed(every: LocalFeed) -> LocalFeed:
    every.with_(sink={"column-masks": MASKS}, filter={"rules": ["*.*", "!d.kept"]})
    columns = "id INT PRIMARY KEY, v INT, s VARCHAR(10), h VARCHAR(40) NOT NULL DEFAULT 'x', c INT"
    every.send([ddl("d.", 1, "CREATE DATABASE `d`", kind="QUERY"), ddl("d.t", 2, f"CREATE TABLE `t` ({columns})")])
    every.send([*(insert("d.t", 3, id=number, v=1, s="a", h="x", c=1) for number in range(4)), *watermarks(4)])
    every.apply()
    assert verdicts(prove(every)) == {"t": "equal"}
    return every


def altered(feed: LocalFeed, clause: str, number: int) -> None:
    feed.send([ddl("d.t", number, f"ALTER TABLE `t` {clause}", kind="ALTER"), *watermarks(number + 1)])
    feed.apply()


@pytest.mark.parametrize(
    ("clause", "column", "shown"),
    [
        ("ADD COLUMN `h2` VARCHAR(40) NOT NULL DEFAULT ''", "h2", ""),
        ("ADD COLUMN `h2` VARCHAR(40) NOT NULL", "h2", ""),
        ("ADD COLUMN `a` INT, ADD COLUMN `c2` INT DEFAULT 7", "c2", "7"),
    ],
)
def test_rows_that_hold_the_default_are_no_difference(fed: LocalFeed, clause: str, column: str, shown: str) -> None:
    altered(fed, clause, 5)
    more = {"a": None} if "`a`" in clause else {}
    scrub = scrub_of(fed, clock := Clock())
    rounds(scrub)
    proof = prove(fed)
    assert (verdicts(proof), left_out(proof)) == ({"t": "equal"}, [column])
    row = {"id": 1, "v": 1, "s": "a", "h": "x", "c": 1, column: shown, **more}
    fed.send([update("d.t", 7, {"v": 1}, **{**row, "v": 2}), delete("d.t", 7, **{**row, "id": 2}), *watermarks(8)])
    fed.apply()
    proof = prove(fed)
    assert (verdicts(proof), left_out(proof)) == ({"t": "equal"}, [column])
    clock.later()
    assert verdicts(rounds(scrub)) == {"t": "equal"}
    fed.cells.run("d", "UPDATE t SET h = 'y' WHERE id = 3")
    assert verdicts(prove(fed)) == {"t": "different"}, "other masks are still compared"


def test_what_is_added_without_a_default_is_compared(fed: LocalFeed) -> None:
    altered(fed, "ADD COLUMN `h2` VARCHAR(40)", 5)
    prove(fed)
    proof = prove(fed)
    assert (verdicts(proof), left_out(proof)) == ({"t": "equal"}, [])
    fed.cells.run("d", "UPDATE t SET h2 = 'y' WHERE id = 3")
    assert verdicts(prove(fed)) == {"t": "different"}


def test_it_is_so_under_other_names_until_no_such_row_can_be_there(fed: LocalFeed) -> None:
    altered(fed, "ADD COLUMN `h2` VARCHAR(40) NOT NULL DEFAULT ''", 5)
    prove(fed)
    altered(fed, "RENAME COLUMN `h2` TO `h3`", 7)
    fed.send([ddl("d.u", 9, "RENAME TABLE `d`.`t` TO `d`.`u`", kind="RENAME"), *watermarks(10)])
    fed.apply()
    assert left_out(prove(fed), "u") == ["h3"]
    row = {"id": 1, "v": 1, "s": "a", "h": "x", "c": 1, "h3": ""}
    fed.send([update("d.u", 11, {"v": 1}, **{**row, "v": 2}), *watermarks(12)])
    fed.apply()
    assert verdicts(prove(fed)) == {"u": "equal"}
    fed.send([ddl("d.u", 13, "TRUNCATE TABLE `d`.`u`", kind="TRUNCATE"), insert("d.u", 14, **row), *watermarks(15)])
    fed.apply()
    prove(fed)
    proof = prove(fed)
    assert (verdicts(proof), left_out(proof, "u")) == ({"u": "equal"}, [])


def test_the_output_says_why_it_leaves_out_what_a_shard_lacks(sqlite_feed: LocalFeed) -> None:
    merged = begun(sqlite_feed, "s1.t_a", "s1.t_b")
    ran(merged, 12, ddl("s1.t_a", 11, "ALTER TABLE `t_a` ADD COLUMN `a` INT DEFAULT 5", kind="ALTER"))
    out = {str(name): dict(out) for name, (out, _) in prove(sqlite_feed).tables.items()}
    assert out == {"s1.t_a": {}, "s1.t_b": {"a": "this shard lacks it upstream"}}
