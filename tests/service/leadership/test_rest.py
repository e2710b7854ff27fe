"""A leader that rests for hours: servers end what is idle, and leadership outlives it, or is lost for good.

Servers of their own, with the limits set low. That a limit has passed shows at a session that is left to it.
"""

from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import psycopg
import pymysql
import pytest

from ordering.errors import LeaderLivesError, LeadershipLostError, TargetUnreachableError
from ordering.events import DdlEvent, Position
from ordering.timestamps import CommitTs
from sinks.mysql.connection import MysqlConnection
from sinks.mysql.named_lock import lock_name
from sinks.steps import Step
from sinks.target import Target
from sinks.tidb import named_lock
from sinks.uri import parse_target_uri
from tests.embedded import MariaDbServer, PostgresServer, TidbServer
from tests.service.acting import FIRST, Actor, Stage
from tests.service.cells import MariaDbCells
from tests.service.lab import eventually
from tests.service.postgres_cells import PostgresCells

pytestmark = pytest.mark.service
LOW = "[performance]\nmax-txn-ttl = 5000\n"
ENDS_S = 120.0
IDLE = {"wait-timeout": "2", "interactive-timeout": "2"}
IDLE_IN_TRANSACTION = {f"idle-{kind}transaction-timeout": "2" for kind in ("", "readonly-", "write-")}


@pytest.fixture(scope="module")
def hasty_tidb(tmp_path_factory: pytest.TempPathFactory) -> Iterator[TidbServer]:
    """A TiDB that lets a transaction live for 5 s, and the 20 s for which its locks were granted."""
    with TidbServer(tmp_path_factory.mktemp("hasty-tidb"), config=LOW) as server:
        yield server


@pytest.fixture
def resting(hasty_tidb: TidbServer, database_prefix: str) -> Iterator[Stage]:
    with staged(hasty_tidb.uri, database_prefix) as stage:
        yield stage


@contextmanager
def staged(uri: str, name: str) -> Iterator[Stage]:
    stage = Stage(uri, f"{name}feed", concurrent_indexes=uri.startswith("postgresql"))
    yield stage
    for actor in stage.actors:
        actor.ends()
    with closing(PostgresCells(uri) if uri.startswith("postgresql") else MariaDbCells(uri)) as cells:
        cells.drop(cells.databases() & {stage.changefeed})


def leading(stage: Stage) -> Actor:
    leader = stage.enter()
    assert leader.waits() is None
    assert leader.leads() == 1
    return leader


def session(actor: Actor) -> Any:
    """The session that the instance leads by."""
    return actor.target.session.db


def stranger(uri: str) -> "pymysql.Connection[Any]":
    found = parse_target_uri(uri)
    return pymysql.connect(host=found.host, port=found.port, user=found.user, password=found.password, autocommit=True)


def asked(connection: "pymysql.Connection[Any]", sql: str) -> Any:
    with connection.cursor() as cursor:
        cursor.execute(sql)
        row = cursor.fetchone()
        return row[0] if row else None


def lock_ends(stage: Stage) -> None:
    """Wait until TiDB has ended the transaction that the leader's lock lies in."""
    with closing(stranger(stage.uri)) as other:
        take = f"SELECT GET_LOCK('{lock_name(stage.changefeed)}', 1)"
        eventually("the lock is free", lambda: asked(other, take) == 1, ENDS_S)


@pytest.mark.by_turns(9)
def test_a_leader_outlives_the_transaction_that_its_lock_lies_in(resting: Stage) -> None:
    leader = leading(resting)
    lock_ends(resting)
    other = resting.enter()
    assert other.target.is_led(resting.changefeed)
    with pytest.raises(LeaderLivesError):
        other.waits(give_up_s=0.1)
    assert leader.lease is not None
    leader.target.save(FIRST, leader.lease)
    leader.ends()
    eventually("it leads", lambda: other.target.try_lead(resting.changefeed))
    assert other.leads() == 2


@pytest.mark.by_turns(9)
def test_a_frozen_leader_is_ended_also_where_its_lock_is_free(resting: Stage) -> None:
    leader = leading(resting)
    eventually("it is on the list", lambda: resting.listed() == [1])
    leader.freezes()
    lock_ends(resting)
    other = resting.enter()
    assert other.waits() == leader.lease
    assert other.leads(leader.lease) == 2
    with pytest.raises(TargetUnreachableError):
        session(leader).value("SELECT 1")


def test_a_connection_that_came_to_the_number_of_a_holder_is_left_alone(
    resting: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(named_lock, "LOCK_S", 1)
    leading(resting).ends()
    name, other = lock_name(resting.changefeed), resting.enter()
    with closing(stranger(resting.uri)) as bystander, closing(stranger(resting.uri)) as holder:
        asked(holder, f"SELECT GET_LOCK('{name}', 1)")
        number = asked(bystander, "SELECT CONNECTION_ID()")
        asked(holder, f"UPDATE ticdc_reconciler.holder SET connection = {number} WHERE name = '{name}'")
        with pytest.raises(TargetUnreachableError):
            other.leads()
        assert asked(bystander, "SELECT 1") == 1
        asked(holder, f"SELECT RELEASE_LOCK('{name}')")
        assert other.leads() == 2
        assert asked(bystander, "SELECT 1") == 1


def test_a_holder_that_an_earlier_version_wrote_down_is_ended_while_it_holds_the_lock(resting: Stage) -> None:
    leader = leading(resting)
    with closing(stranger(resting.uri)) as administrator:
        asked(administrator, "DELETE FROM ticdc_reconciler.holder WHERE name LIKE '% mark'")
    assert resting.enter().leads(leader.lease) == 2
    with pytest.raises(TargetUnreachableError):
        session(leader).value("SELECT 1")


@pytest.fixture(params=["mariadb", "tidb", "postgres"])
def stage(request: pytest.FixtureRequest, database_prefix: str) -> Iterator[Stage]:
    with staged(request.getfixturevalue(f"{request.param}_server").uri, database_prefix) as stage:
        yield stage


def kill(actor: Actor, by: Actor) -> None:
    """End an instance's session, as an administrator does."""
    if isinstance(session(actor), MysqlConnection):
        session(by).end_connection(session(actor).value("SELECT CONNECTION_ID()"))
    else:
        session(by).value("SELECT pg_terminate_backend(%s)", (session(actor).value("SELECT pg_backend_pid()"),))


def test_a_leader_whose_session_was_killed_leads_on_if_nobody_else_does(stage: Stage) -> None:
    leader, other = leading(stage), stage.enter()
    kill(leader, other)
    assert leader.lease is not None
    with pytest.raises(TargetUnreachableError):
        leader.target.save(FIRST, leader.lease)
    leader.target.close()
    assert leader.leads(leader.lease) == 2
    leader.target.save(FIRST, leader.lease)


def test_a_leader_whose_session_was_killed_is_replaced_and_changes_nothing_more(stage: Stage) -> None:
    leader, other = leading(stage), stage.enter()
    kill(leader, other)
    eventually("it may lead", lambda: other.target.try_lead(stage.changefeed))
    assert other.leads() == 2
    create = ddl(stage, 1, f"CREATE DATABASE `{stage.changefeed}`")
    assert leader.lease is not None
    with pytest.raises(TargetUnreachableError):
        leader.target.execute_ddl(create, FIRST, leader.lease, lambda _: None)
    leader.target.close()
    with pytest.raises(LeadershipLostError) as caught:
        leader.target.execute_ddl(create, FIRST, leader.lease, lambda _: None)
    assert caught.value.exit_code == 5
    with pytest.raises(LeadershipLostError):
        leader.leads(leader.lease)
    look = "SELECT COUNT(*) FROM information_schema.schemata WHERE schema_name = %s"
    assert session(other).value(look, (stage.changefeed,)) == 0


def ddl(stage: Stage, number: int, sql: str) -> DdlEvent:
    """A DDL. The drop of an index of `with_table` is left out of it, as TiCDC leaves out that of a last valid one."""
    event = DdlEvent(Position("t", 0, number), CommitTs(number), "QUERY", stage.changefeed, "t", sql)
    return replace(event, replicated=sql.replace("DROP INDEX `left`, ", ""))


def with_table(stage: Stage, leader: Actor) -> None:
    """A table with an index that upstream drops without a word."""
    assert leader.lease is not None
    for number, sql in enumerate(
        [
            f"CREATE DATABASE `{stage.changefeed}`",
            "CREATE TABLE `t` (`id` INT PRIMARY KEY, `v` INT, `w` VARCHAR(9), KEY `left` (`v`))",
        ],
        start=1,
    ):
        leader.target.execute_ddl(ddl(stage, number, sql), FIRST, leader.lease, lambda _: None)


def shape(target: Target) -> object:
    target.forget_catalog()
    return target.catalog()


def supersede(actor: Actor) -> None:
    """Raise the epoch as a successor does who could not end this session."""
    raised = "UPDATE ticdc_reconciler.checkpoint SET epoch = epoch + 1 WHERE changefeed = %s"
    session(actor).run(raised, (actor.changefeed,))


@pytest.mark.parametrize(
    "sql",
    [
        "ALTER TABLE `t` ADD COLUMN `x` INT",
        "ALTER TABLE `t` MODIFY COLUMN `w` INT",
        "ALTER TABLE `t` ADD INDEX `i` (`w`)",
        "ALTER TABLE `t` DROP INDEX `left`, ADD UNIQUE INDEX `left` (`w`)",
    ],
)
def test_who_was_superseded_after_the_intent_executes_nothing(stage: Stage, sql: str) -> None:
    leader, other = leading(stage), stage.enter()
    with_table(stage, leader)
    before = shape(other.target)

    def observe(step: Step) -> None:
        if step is Step.DDL_RECORDED:
            supersede(other)

    assert leader.lease is not None
    with pytest.raises(LeadershipLostError):
        leader.target.execute_ddl(ddl(stage, 3, sql), FIRST, leader.lease, observe)
    assert shape(other.target) == before


def test_who_was_superseded_before_the_intent_drops_nothing_that_is_left_over(stage: Stage) -> None:
    leader, other = leading(stage), stage.enter()
    with_table(stage, leader)
    before = shape(other.target)
    supersede(other)
    assert leader.lease is not None
    again = ddl(stage, 3, "ALTER TABLE `t` DROP INDEX `left`, ADD INDEX `left` (`w`)")
    with pytest.raises(LeadershipLostError):
        leader.target.execute_ddl(again, FIRST, leader.lease, lambda _: None)
    assert shape(other.target) == before


@dataclass
class Rest:
    """A leader that rests on a server of its own, beside a session that is left to the server's limits."""

    stage: Stage
    begin: Callable[[], object]
    """Begin a transaction in the other session."""
    is_left: Callable[[], bool]
    """Whether the other session lives still."""

    def outlives(self, *, inside: bool) -> None:
        """Whether the leader, perhaps inside a transaction, outlives what ends the other session."""
        leader = leading(self.stage)
        assert leader.lease is not None
        if inside:
            leader.target.session.db.begin()
            leader.target.session.check_epoch(leader.lease)
            self.begin()
        eventually("the server ends what rests", lambda: not self.is_left())
        if inside:
            leader.target.session.db.commit()
        leader.target.save(FIRST, leader.lease)
        assert self.stage.enter().target.is_led(self.stage.changefeed)


@pytest.mark.by_turns
@pytest.mark.parametrize("inside", [False, True])
def test_mariadb_ends_no_leader_that_rests(inside: bool, tmp_path: Path, database_prefix: str) -> None:
    with (
        MariaDbServer(tmp_path, extra=IDLE_IN_TRANSACTION if inside else IDLE) as server,
        staged(server.uri, database_prefix) as stage,
        closing(MysqlConnection(parse_target_uri(server.uri))) as looking,
        closing(stranger(server.uri)) as left,
    ):
        alive = f"SELECT COUNT(*) FROM information_schema.PROCESSLIST WHERE ID = {left.thread_id()}"

        def begin() -> None:
            asked(left, "START TRANSACTION")
            asked(left, "SELECT COUNT(*) FROM ticdc_reconciler.instance")

        Rest(stage, begin, lambda: looking.value(alive) == 1).outlives(inside=inside)


@pytest.mark.by_turns
@pytest.mark.parametrize(
    "setting", ["idle_session_timeout", "idle_in_transaction_session_timeout", "transaction_timeout"]
)
def test_postgresql_ends_no_leader_that_rests(setting: str, tmp_path: Path, database_prefix: str) -> None:
    with PostgresServer(tmp_path) as server, closing(psycopg.connect(server.uri, autocommit=True)) as looking:
        if not looking.execute("SELECT 1 FROM pg_settings WHERE name = %s", (setting,)).fetchone():
            setting = "idle_in_transaction_session_timeout"  # before 17 nothing else ends a transaction
        looking.execute(f"ALTER ROLE postgres SET {setting} = 1000".encode())
        with (
            staged(server.uri, database_prefix) as stage,
            closing(psycopg.connect(server.uri, autocommit=True)) as left,
        ):
            alive = f"SELECT 1 FROM pg_stat_activity WHERE pid = {left.info.backend_pid}".encode()
            rest = Rest(stage, lambda: left.execute("BEGIN"), lambda: looking.execute(alive).fetchone() is not None)
            rest.outlives(inside=setting != "idle_session_timeout")
