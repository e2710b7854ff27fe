"""Statements of a grammar that is the server's own, and not TiDB's: tables beside the filter stay as they are.

Kafka and Spark are in this process; the server that knows these statements is a real MariaDB.
"""

from collections.abc import Iterator
from contextlib import closing
from urllib.parse import urlsplit

import pymysql
import pytest

from consumer.ddl.guard import refuse_what_is_not_theirs
from consumer.ddl.policy import why_ignored
from consumer.operate.decisions import decide_ddl
from ordering.errors import InputError
from ordering.events import DdlEvent
from sinks.bookkeeping.ddl_log import DdlState
from tests.consumer.ddl.test_policy import catalog, wanted
from tests.consumer.ddl.test_policy import ddl as event_of
from tests.service.local import LocalFeed
from tests.service.messages import at, begun, ddl, watermarks
from tests.service.security.test_hostile_names import mariadb, refusal

__all__ = ["mariadb"]
PARTS = "PARTITION BY RANGE (id) (PARTITION p0 VALUES LESS THAN (100), PARTITION p1 VALUES LESS THAN (1000))"
"""What MariaDB executes, each about `other`, as a message about a table that the filter takes in."""
READ_OTHERWISE = {
    "ALTER TABLE IF EXISTS other.t DROP COLUMN v": "d.IF",
    "ALTER IGNORE TABLE other.t DROP COLUMN v": "d.t",
    "ALTER ONLINE IGNORE TABLE other.t DROP COLUMN v": "d.t",
    "RENAME TABLE IF EXISTS other.t TO d.x": "d.EXISTS",
    "RENAME TABLE d.t WAIT 5 TO other.x": "d.t",
    "RENAME TABLE other.t NOWAIT TO d.x": "d.NOWAIT",
    "ALTER TABLE d.t WAIT 5 RENAME TO other.x": "d.t",
    "ALTER TABLE d.t WAIT 5 ADD COLUMN w INT, RENAME TO other.x": "d.t",
    "ALTER TABLE d.p WAIT 5 EXCHANGE PARTITION p1 WITH TABLE other.t": "d.p",
    "ALTER TABLE d.p CONVERT PARTITION p1 TO TABLE other.x": "d.p",
    "ALTER TABLE d.p CONVERT TABLE other.t TO PARTITION p2 VALUES LESS THAN (10000)": "d.p",
    "ALTER TABLE d.p ADD COLUMN w INT, CONVERT PARTITION p1 TO TABLE other.x": "d.p",
    "CREATE TABLE d.x (id INT PRIMARY KEY) AS SELECT * FROM other.t": "d.x",
    "CREATE TABLE d.x (id INT PRIMARY KEY) SELECT id FROM other.t": "d.x",
    "CREATE TABLE d.x (id INT PRIMARY KEY) COMMENT='x' REPLACE AS SELECT * FROM other.t": "d.x",
    "CREATE TABLE d.x (id INT PRIMARY KEY) WITH q AS (SELECT * FROM other.t) SELECT * FROM q": "d.x",
    "CREATE TABLE d.x (id INT PRIMARY KEY) (SELECT * FROM other.t)": "d.x",
    "CREATE TABLE d.x (id INT PRIMARY KEY) TABLE other.t": "d.x",
    "CREATE TABLE d.x (id INT PRIMARY KEY) VALUES (1), (2)": "d.x",
    "CREATE TABLE d.x SELECT * FROM other.t": "d.x",
    "DROP TABLE d.nothing WAIT 1, other.t": "d.nothing",
    "TRUNCATE TABLE other.t": "d.",
    "TRUNCATE TABLE other . t WAIT 5": "d.",
    "DROP TABLE IF EXISTS d.nothing, other.t": "d.",
    "CREATE INDEX IF NOT EXISTS i ON other.t (v)": "d.",
    'TRUNCATE TABLE "other"."t"': "d.t",
    "TRUNCATE TABLE 0x6f.t": "d.",
    "ALTER TABLE d.t ADD CONSTRAINT f FOREIGN KEY (id) REFERENCES other.t (id)": "d.t",
    "ALTER TABLE d.t ADD COLUMN w INT REFERENCES other.t (id) ON DELETE CASCADE": "d.t",
    "ALTER TABLE d.t ADD CONSTRAINT f FOREIGN KEY (id) REFERENCES t.x (id)": "d.t",
    "ALTER TABLE d.t ADD CONSTRAINT f FOREIGN KEY (id) REFERENCES other.1t (id)": "d.t",
    "CREATE TABLE d.x (id INT PRIMARY KEY, CONSTRAINT f FOREIGN KEY (id) REFERENCES `other`.`t` (id))": "d.x",
    "CREATE TABLE d.x (id INT PRIMARY KEY, w INT DEFAULT (NEXTVAL(other.s)))": "d.x",
    "CREATE TABLE d.other (id INT PRIMARY KEY, w INT DEFAULT (NEXTVAL(other.s)))": "d.other",
    "CREATE TABLE d.other (id INT PRIMARY KEY, w INT DEFAULT (NEXT VALUE FOR `other`.`s`))": "d.other",
    "CREATE TABLE d.other (id INT PRIMARY KEY, w INT DEFAULT (other.f()))": "d.other",
    "CREATE TABLE d.other (id INT PRIMARY KEY, w INT AS (`other`.`f` (id)))": "d.other",
    "CREATE TABLE d.other (id INT PRIMARY KEY, w INT AS (other . f /* x */ (id)))": "d.other",
    "CREATE TABLE d.other (LIKE other.t)": "d.other",
    "CREATE VIEW d.x AS SELECT other.f(1) AS a FROM d.t AS other": "d.x",
    "CREATE TABLE d.x LIKE other.t": "d.x",
    "CREATE VIEW d.x AS SELECT * FROM other.t": "d.x",
    "CREATE OR REPLACE VIEW d.x AS SELECT 1 AS a FROM d.t WHERE id IN (SELECT id FROM `other` . `t`)": "d.x",
    "CREATE VIEW d.x AS SELECT other.s FROM d.t AS other JOIN other.t AS o": "d.x",
    "CREATE VIEW d.x AS WITH t AS (SELECT * FROM other.t) SELECT * FROM t": "d.x",
    "CREATE VIEW d.x AS SELECT NEXTVAL(other.s) AS a": "d.x",
    "CREATE VIEW d.x AS SELECT 1 AS a UNION SELECT v FROM other.t": "d.x",
    "CREATE VIEW d.x AS SELECT * FROM sys.session": "d.x",
}


def outcome(event: DdlEvent) -> str:
    """Why it is not executed; "" if it is."""
    there = catalog("d.t", "d.p")
    try:
        if because := why_ignored(event, [event], wanted("d.*"), there):
            return because
        refuse_what_is_not_theirs(event)
    except InputError as error:
        return error.fact if "partition=0 offset=7" in error.where else ""
    return ""


@pytest.mark.parametrize("sql", READ_OTHERWISE)
@pytest.mark.parametrize("about", ["", "d.t", "d.p", "d.x", "d."])
def test_what_a_server_may_read_otherwise_is_not_executed(sql: str, about: str) -> None:
    database, table = (about or READ_OTHERWISE[sql]).split(".")
    assert outcome(event_of(sql, database, table))


@pytest.mark.parametrize(
    "sql",
    [
        "ALTER TABLE `t` DROP PARTITION `p0`, p1",
        "ALTER TABLE t REORGANIZE PARTITION p0, p1 INTO (PARTITION p VALUES LESS THAN (9))",
        "ALTER TABLE t CONVERT TO CHARACTER SET utf8mb4",
        "ALTER TABLE t ADD COLUMN `if` INT, ADD COLUMN wait INT, COMMENT 'SELECT', ALGORITHM=INSTANT",
        "ALTER TABLE t EXCHANGE PARTITION p0 WITH TABLE p WITH VALIDATION",
        "ALTER TABLE t RENAME INDEX a TO b, RENAME COLUMN `a` TO `b`",
        "ALTER TABLE t AUTO_INCREMENT = 5 COMMENT = 'x'",
        "ALTER TABLE t RENAME = x",
        "DROP TABLE IF EXISTS t RESTRICT",
        "CREATE TABLE x (id INT PRIMARY KEY, g INT AS (`d`.`x`.`select`)) COMMENT='x' " + PARTS,
        "ALTER TABLE `d`.`t` ADD CONSTRAINT `f` FOREIGN KEY (`v`) REFERENCES `d`.`p`(`id`)",
        "ALTER TABLE t ADD COLUMN w DECIMAL(5,2) DEFAULT 1.5, ADD CONSTRAINT f FOREIGN KEY (v) REFERENCES p (id)",
        "ALTER TABLE t ADD COLUMN g INT AS (t.v + .5)",
        "CREATE TABLE x LIKE d.t",
        "CREATE DEFINER=`r`@`%` SQL SECURITY DEFINER VIEW d.` x ` (`a`) AS SELECT `o`.`id` AS `a` FROM (d.`t` AS `o`)",
        "CREATE VIEW `d`.` x ` AS SELECT `d`.`p`.`id` AS `a` FROM (`d`.`t`) JOIN `d`.`p` WHERE `p`.`id`>1.5",
        "CREATE VIEW d.` x ` AS WITH q AS (SELECT id FROM d.t) SELECT q.id FROM q",
        "CREATE VIEW d.` x ` AS SELECT s.id FROM (SELECT t.id FROM t) AS s JOIN information_schema.tables AS i",
    ],
)
def test_what_tidb_prints_is_executed(sql: str) -> None:
    about = " x " if "VIEW" in sql else "x" if " x " in sql else "t"
    assert outcome(event_of(sql, "d", about)) == ""


@pytest.fixture
def beside(mariadb: LocalFeed) -> Iterator[pymysql.cursors.Cursor]:
    """A client of the server, which holds a database beside the filter."""
    uri = urlsplit(mariadb.uri)
    login = {"host": uri.hostname, "port": uri.port, "user": uri.username, "password": uri.password or ""}
    with closing(pymysql.connect(**login, autocommit=True)) as connection, connection.cursor() as cursor:  # type: ignore[arg-type]
        cursor.execute("CREATE DATABASE other")
        cursor.execute("CREATE TABLE other.t (id INT PRIMARY KEY, v INT, s VARCHAR(10))")
        cursor.execute("INSERT INTO other.t VALUES (500, 1, 'one')")
        yield cursor
        cursor.execute("DROP DATABASE other")


def held(cursor: pymysql.cursors.Cursor) -> list[object]:
    found: list[object] = []
    for sql in ("SHOW TABLES FROM other", "SHOW CREATE TABLE other.t", "SELECT * FROM other.t", "SHOW TABLES FROM d"):
        cursor.execute(sql)
        found.append(cursor.fetchall())
    return found


@pytest.mark.service
def test_tables_beside_the_filter_stay_as_they_are(mariadb: LocalFeed, beside: pymysql.cursors.Cursor) -> None:
    feed = mariadb.with_(target={"consistency": "transaction"}, filter={"rules": ["d.*"]})
    table = f"CREATE TABLE `p` (id INT PRIMARY KEY, v INT, s VARCHAR(10)) {PARTS}"
    feed.send([*begun(), ddl("d.p", 4, table), *watermarks(4)])
    feed.apply()
    before = held(beside)
    told: list[str] = []
    for number, (sql, about) in enumerate(READ_OTHERWISE.items()):
        feed.send([ddl(about, 5 + number, sql, kind="QUERY"), *watermarks(5 + number)])
        if (error := refusal(feed)) is not None:
            told.append(str(error))
            decide_ddl(feed.config, at(5 + number), DdlState.SKIP, "a test")
            feed.apply()
        assert held(beside) == before, sql
    assert all("partition=" in text for text in told)
    assert feed.checkpoint() >= at(4 + len(READ_OTHERWISE))
