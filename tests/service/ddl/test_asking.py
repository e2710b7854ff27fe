"""What no message holds, and a real TiDB upstream is asked for: values of defaults, the table that a name means."""

from collections.abc import Iterator
from contextlib import closing
from datetime import datetime, timedelta, timezone

import pytest

from consumer.demo.fake_ticdc.changefeed import Message
from consumer.wiring import target_of
from ordering.errors import BodyMissingError, InputError
from ordering.timestamps import CommitTs, physical_ms
from sinks.bookkeeping.ddl_log import DdlRecord
from tests.embedded import TidbServer
from tests.service.ddl.test_ddl import TARGETS, made
from tests.service.local import LocalFeed
from tests.service.messages import TOPIC, encoded, row_value, value_of
from tests.service.pipeline.test_upstream import Origin

__all__ = ["made"]
pytestmark = [pytest.mark.service, pytest.mark.tidb]
EVERY = (*TARGETS, "tidb")


class Feeding(Origin):
    """An upstream whose statements go as messages to a feed; at the end its databases are gone, but not their past."""

    feed: LocalFeed
    messages: list[Message]
    databases: list[str]
    last = 0

    def does(self, sql: str, table: str, *then: str) -> None:
        """Execute a DDL, and something more, and tell of it as of the moment when all was done."""
        self.run(sql)
        for other in then:
            self.run(other)
        self.last = self.clock()
        value = value_of("ALTER", self.place(table), self.last, isDdl=True, sql=sql)
        self.messages.append(Message(TOPIC, 0, encoded(value)))

    def inserts(self, table: str, **row: object) -> None:
        ts = self.run(f"INSERT INTO {self.place(table)} (id) VALUES ({row['id']})")
        self.messages.append(Message(TOPIC, 0, encoded(row_value("INSERT", self.place(table), ts, row))))

    def place(self, table: str) -> str:
        return table if "." in table else f"{self.database}.{table}"

    def tells(self) -> None:
        """Let the target apply all of it, while upstream the tables are gone already."""
        ticks = self.watermarks()
        self.forgets()
        self.feed.send([*self.messages, *ticks])
        self.feed.apply()

    def forgets(self) -> None:
        for database in self.databases:
            self.run(f"DROP DATABASE IF EXISTS {database}")

    def rows(self, table: str = "t") -> list[dict[str, object]]:
        return self.feed.cells.tables([self.database])[f"{self.database}.{table}"][1]

    def logged(self, what: str) -> DdlRecord:
        with closing(target_of(self.feed.config)) as target:
            target.connect()
            (line,) = [line for line in target.ddl_log.latest(self.feed.config.changefeed, 10) if what in line.sql]
        return line


@pytest.fixture
def asked(made: LocalFeed, tidb_server: TidbServer, database_prefix: str) -> Iterator[Feeding]:
    origin = Feeding(tidb_server, database_prefix)
    origin.feed, origin.messages, origin.databases = made, [], [database_prefix]
    made.with_(source={"upstream": {"uri": tidb_server.uri}, "time-zone": "+08:00"})
    first = value_of(
        "CREATE", f"{origin.database}.", origin.clock(), isDdl=True, sql=f"CREATE DATABASE {database_prefix}"
    )
    origin.messages.append(Message(TOPIC, 0, encoded(first)))
    yield origin
    origin.forgets()
    origin.run(f"CREATE DATABASE {origin.database}")
    origin.close()


def begun(asked: Feeding) -> None:
    asked.run(f"USE {asked.database}")
    asked.does("CREATE TABLE `t` (`id` INT PRIMARY KEY)", "t")
    asked.inserts("t", id=1)
    asked.inserts("t", id=2)


MOMENT = 1_700_000_001.123457
"""When upstream's statements began, seconds since 1970: years before the commitTs that messages tell."""
THERE = "2023-11-14 22:13:21.123457"
ADD = (
    "ALTER TABLE `t` ADD COLUMN `c` TIMESTAMP(6) DEFAULT CURRENT_TIMESTAMP(6), ADD COLUMN `d` DATETIME(3) DEFAULT"
    " CURRENT_TIMESTAMP(3), ADD COLUMN `e` DATETIME NOT NULL DEFAULT CURRENT_TIMESTAMP"
)
COMMIT_TIME = "rows that were there show the commit time"


def adds(asked: Feeding, sql: str = ADD, zone: str = "+00:00", *then: str) -> None:
    """Upstream adds columns, at a moment that is long ago, in a session of this zone."""
    asked.run(f"SET time_zone = '{zone}', timestamp = {MOMENT}")
    asked.does(sql, "t", *then)
    asked.run("SET time_zone = '+00:00', timestamp = DEFAULT")


def expected(asked: Feeding, **columns: tuple[str, str]) -> list[dict[str, object]]:
    cells = asked.feed.cells
    return [{"id": key, **{name: cells.expected(*told) for name, told in columns.items()}} for key in (1, 2)]


@pytest.mark.cells("made", "zone")
@pytest.mark.parametrize("made", EVERY, indirect=True)
@pytest.mark.parametrize(
    ("zone", "there"), [("+00:00", "2023-11-14 22:13:21.123"), ("-03:00", "2023-11-14 19:13:21.123")]
)
def test_a_default_of_the_moment_is_upstream_s(asked: Feeding, zone: str, there: str) -> None:
    """DATETIMEs are in the zone of upstream's session, which no message holds."""
    begun(asked)
    adds(asked, zone=zone)
    asked.tells()
    assert asked.rows() == expected(
        asked, c=("timestamp(6)", THERE), d=("datetime(3)", there), e=("datetime", there[: -len(".123")])
    )
    assert COMMIT_TIME not in asked.logged("ADD COLUMN").executed


@pytest.mark.parametrize("made", EVERY, indirect=True)
def test_it_is_upstream_s_also_where_the_commit_time_is_an_error(asked: Feeding) -> None:
    begun(asked)
    asked.feed.with_(target={"volatile-defaults": "error"})
    adds(asked, "ALTER TABLE `t` ADD COLUMN `d` DATETIME DEFAULT CURRENT_TIMESTAMP", "+05:30")
    asked.tells()
    assert asked.rows() == expected(asked, d=("datetime", "2023-11-15 03:43:21"))


@pytest.mark.cells("made", "case")
@pytest.mark.parametrize("made", EVERY, indirect=True)
@pytest.mark.parametrize("case", ["collected", "empty", "several", "refused"])
def test_what_upstream_does_not_tell_is_the_commit_time_and_the_log_says_why(asked: Feeding, case: str) -> None:
    begun(asked)
    if case == "empty":
        asked.run("DELETE FROM t")
    if case == "refused":
        asked.run(f"CREATE USER '{asked.database}'")
        uri = asked.feed.settings["source"]["upstream"]["uri"].replace("root", asked.database)
        asked.feed.with_(source={"upstream": {"uri": uri}})
    then = ["UPDATE t SET d = '2020-01-01' WHERE id = 1"] if case == "several" else []
    adds(asked, "ALTER TABLE `t` ADD COLUMN `d` DATETIME DEFAULT CURRENT_TIMESTAMP", "+00:00", *then)
    if case == "collected":
        asked.collect(2100)
    asked.tells()
    here = timezone(timedelta(hours=8))  # the source's
    moment = datetime.fromtimestamp(physical_ms(CommitTs(asked.last)) // 1000, here).strftime("%Y-%m-%d %H:%M:%S")
    assert asked.rows() == expected(asked, d=("datetime", moment))
    reasons = {"collected": "garbage-collected", "empty": "no rows", "several": "several", "refused": "refuses us"}
    executed = asked.logged("ADD COLUMN").executed
    assert COMMIT_TIME in executed
    assert reasons[case] in executed


@pytest.mark.parametrize("made", ["sqlite", "mariadb"], indirect=True)
def test_an_upstream_that_is_out_of_reach_is_waited_for(asked: Feeding) -> None:
    begun(asked)
    adds(asked)
    asked.feed.with_(source={"upstream": {"uri": "tidb://root@127.0.0.1:1"}})
    with pytest.raises(BodyMissingError, match="out of reach"):
        asked.tells()
    assert asked.rows() == [{"id": 1}, {"id": 2}]


def beside(asked: Feeding, columns: str) -> str:
    """Another database, in which is a table `t` too, and which is the session's now."""
    other = f"{asked.database}2"
    asked.databases.append(other)
    asked.does(f"CREATE DATABASE `{other}`", f"{other}.")
    asked.run(f"USE {other}")
    asked.does(f"CREATE TABLE `t` ({columns})", f"{other}.t")
    asked.inserts(f"{other}.t", id=3)
    return other


@pytest.mark.cells("made", "sql")
@pytest.mark.parametrize("made", EVERY, indirect=True)
@pytest.mark.parametrize("sql", ["RENAME TABLE `t` TO `{}`.`w`", "ALTER TABLE `t` RENAME AS `{}`.`w`"])
def test_upstream_tells_which_table_was_renamed(asked: Feeding, sql: str) -> None:
    begun(asked)
    other = beside(asked, "`id` INT PRIMARY KEY")
    asked.does(sql.format(asked.database), "w")
    asked.tells()
    assert [asked.rows(), asked.rows("w")] == [[{"id": 1}, {"id": 2}], [{"id": 3}]]
    assert f"{other}.t" not in asked.feed.cells.tables([other])


@pytest.mark.parametrize("made", EVERY, indirect=True)
def test_upstream_tells_which_table_was_the_model(asked: Feeding) -> None:
    begun(asked)
    other = beside(asked, "`id` INT PRIMARY KEY, `v` INT")
    asked.does(f"CREATE TABLE `{asked.database}`.`u` LIKE `t`", "u")
    asked.run(f"DROP DATABASE {other}")
    asked.tells()
    assert asked.feed.cells.tables([asked.database])[f"{asked.database}.u"] == (["id", "v"], [])


@pytest.mark.parametrize("made", ["sqlite", "mariadb"], indirect=True)
def test_what_upstream_does_not_tell_has_two_readings(asked: Feeding) -> None:
    begun(asked)
    beside(asked, "`id` INT PRIMARY KEY")
    asked.does(f"RENAME TABLE `t` TO `{asked.database}`.`w`", "w")
    asked.collect(2100)
    with pytest.raises(InputError, match=r"each have one"):
        asked.tells()
