"""Deletes on a connection that has executed no DDL: nothing has chosen a current database there."""

from collections.abc import Callable

import pytest

from consumer.demo.fake_ticdc.changefeed import Message
from tests.service.lab import Feed
from tests.service.messages import delete, insert, keyed, watermarks

pytestmark = pytest.mark.service


TABLES = ("del.one", "del.two`s")


def rows_of(build: Callable[..., Message], numbers: range, transaction: int) -> list[Message]:
    made = [build(TABLES[0], transaction, i % 3, id=i, v=i, s="x") for i in numbers]
    return made + [keyed(build(TABLES[1], transaction, i % 3, id=i, v=i, s="x"), "id", "v") for i in numbers]


@pytest.mark.parametrize("count", [3, 450])
def test_simple_and_composite_keys(every_feed: Feed, count: int) -> None:
    feed = every_feed
    feed.make_database(
        "del",
        "CREATE TABLE one (id INT PRIMARY KEY, v INT, s VARCHAR(10));"
        "CREATE TABLE `two``s` (id INT, v INT, s VARCHAR(10), PRIMARY KEY (id, v))",
    )
    feed.send([*rows_of(insert, range(count), 1), *watermarks(1)])
    feed.once()
    feed.send([*rows_of(delete, range(1, count), 2), *watermarks(2)])
    feed.once()
    left = {name: [str(row["id"]) for row in found] for name, (_, found) in feed.cells.tables(["del"]).items()}
    assert left == {name: ["0"] for name in TABLES}
