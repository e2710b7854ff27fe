"""Statements that are about something else than they seem: refused with their place, never executed, to be skipped.

Kafka and Spark are in this process, the targets are real ones.
"""

import pytest

from consumer.operate.decisions import ddl_log, decide_ddl
from ordering.errors import InputError, TargetError
from sinks.bookkeeping.ddl_log import DdlState
from tests.service.local import LocalFeed
from tests.service.messages import at, begun, ddl, watermarks
from tests.service.security.test_hostile_names import feed, mariadb, postgres, refusal, sqlite, tidb

__all__ = ["feed", "mariadb", "postgres", "sqlite", "tidb"]
pytestmark = pytest.mark.service
OTHERS = {
    "drop-sys": ddl("d.", 5, "DROP DATABASE sys", kind="QUERY"),
    "drop-another": ddl("d.", 5, "DROP DATABASE other", kind="QUERY"),
    "alter-another": ddl("d.", 5, "ALTER DATABASE other CHARACTER SET latin1", kind="QUERY"),
    "truncate-another": ddl("d.t", 5, "TRUNCATE TABLE other.t"),
    "drop-another-too": ddl("d.t", 5, "DROP TABLE d.t, other.t"),
    "alter-another-table": ddl("d.t", 5, "ALTER TABLE other.t DROP COLUMN v"),
    "rename-by-a-later-clause": ddl("d.t", 5, "ALTER TABLE d.t ADD COLUMN w INT, RENAME TO other.x"),
    "digit-that-is-none": ddl("d.x", 5, "CREATE TABLE d.x (a INT(\u00b2) PRIMARY KEY)"),
    "many-digits": ddl("d.x", 5, f"CREATE TABLE d.x (a INT({'9' * 5000}) PRIMARY KEY)"),
    "no-view": ddl("d.v", 5, "CREATE VIEW v AS"),
    "no-name": ddl("d.v", 5, "CREATE VIEW"),
    "quotes": ddl("d.t", 5, "ALTER TABLE d.t ADD COLUMN w INT DEFAULT " + r"'\'" * 40_000),
}


@pytest.mark.cells("case", "feed")
@pytest.mark.parametrize("case", sorted(OTHERS))
def test_what_is_not_to_be_done_stops_with_its_position_and_can_be_skipped(feed: LocalFeed, case: str) -> None:
    """Whatever a statement holds, it is an error of the input, and an operator goes on behind it."""
    feed = feed.with_(filter={"rules": ["d.*"]})
    feed.send([*begun(), *watermarks(4)])
    feed.apply()
    before = feed.cells.tables(["d"])
    feed.send([OTHERS[case], *watermarks(6)])
    with pytest.raises((InputError, TargetError)) as caught:
        feed.apply()
    assert "partition=" in str(caught.value)
    assert feed.cells.tables(["d"]) == before
    decide_ddl(feed.config, at(5), DdlState.SKIP, "a test")
    feed.apply()
    assert feed.checkpoint() >= at(6)
    assert feed.cells.tables(["d"]) == before


DEEP = [
    f"CREATE TABLE d.x (a INT PRIMARY KEY, CHECK ({'(' * 5000}a{')' * 5000}))",
    f"CREATE TABLE d.x (a INT PRIMARY KEY, b INT DEFAULT ({'(' * 5000}1{')' * 5000}))",
    f"CREATE VIEW d.x AS SELECT {'(' * 5000}v{')' * 5000} FROM t",
]


@pytest.mark.cells("sql", "feed")
@pytest.mark.parametrize("sql", DEEP, ids=["check", "default", "view"])
def test_brackets_may_be_deep(feed: LocalFeed, sql: str) -> None:
    """A target takes them, or refuses them with the DDL's place."""
    feed.send([*begun(), *watermarks(4)])
    feed.apply()
    before = feed.cells.tables(["d"])["d.t"]
    feed.send([ddl("d.x", 5, sql), *watermarks(6)])
    if error := refusal(feed):
        assert "partition=" in str(error)
        decide_ddl(feed.config, at(5), DdlState.SKIP, "a test")
        feed.apply()
    assert feed.checkpoint() >= at(6)
    assert feed.cells.tables(["d"])["d.t"] == before


REFUSED_HEADS = [
    "CREATE OR REPLACE USER u IDENTIFIED BY 'x' /*!99999 view */",
    "CREATE TRIGGER g BEFORE INSERT ON d.t FOR EACH ROW SET @x = 1 /*!99999 index */",
    "CREATE EVENT e ON SCHEDULE EVERY 1 SECOND DO DELETE FROM d.t /*! VIEW v */",
    "CREATE FUNCTION f RETURNS STRING SONAME 'x.so' /*! VIEW */",
    "CREATE SERVER s FOREIGN DATA WRAPPER mysql OPTIONS (HOST 'h') /*! VIEW v */",
    "CREATE PROCEDURE p() DELETE FROM d.t /*! INDEX i ON d.t (v) */",
    "CREATE DEFINER = u VIEWER",
    "DROP USER u",
    "GRANT ALL ON *.* TO u",
]


@pytest.mark.cells("sql", "feed")
@pytest.mark.parametrize("sql", REFUSED_HEADS)
def test_what_ticdc_does_not_replicate_is_not_executed(feed: LocalFeed, sql: str) -> None:
    feed.send([*begun(), *watermarks(4)])
    feed.apply()
    before = feed.cells.tables(["d"])
    feed.send([ddl("d.t", 5, sql), *watermarks(6)])
    feed.apply()
    assert feed.cells.tables(["d"]) == before
    assert ddl_log(feed.config, 1)[0].state == "ignored"
