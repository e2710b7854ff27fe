"""MariaDB's tables with history: they are there, so no error may say that they are missing, and they take no rows."""

import pytest

from ordering.errors import TableMismatchError
from tests.service.lab import Feed
from tests.service.messages import insert, watermarks

pytestmark = pytest.mark.service


def test_a_table_with_history_takes_no_rows_and_the_error_says_why(mariadb_feed: Feed) -> None:
    feed = mariadb_feed
    feed.make_database("d", "CREATE TABLE t (id INT PRIMARY KEY, v INT) WITH SYSTEM VERSIONING")
    feed.send([insert("d.t", 1, id=1, v=1), *watermarks(1)])
    error = feed.failing(TableMismatchError)
    assert "SYSTEM VERSIONING" in error.fact
    assert error.hint.startswith("ALTER TABLE `d`.`t` DROP SYSTEM VERSIONING")
    feed.cells.run("d", "ALTER TABLE t DROP SYSTEM VERSIONING")
    feed.once()
    assert feed.cells.tables(["d"])["d.t"][1] == [{"id": 1, "v": 1}]
