"""Leadership by locks, connecting, rights: who may write into PostgreSQL, and what is said to those who may not."""

from contextlib import closing
from uuid import uuid4

import psycopg
import pytest

from ordering.errors import LeadershipLostError, TargetBusyError, TargetError, TargetUnreachableError
from ordering.progress import Progress
from sinks.postgres import connection
from sinks.registry import open_target
from sinks.rows.values import ValueRules
from tests.embedded import PostgresServer
from tests.service.landing import Landing
from tests.service.postgres_cells import PostgresCells

pytestmark = pytest.mark.service
Rows = list[list[str | None]]
TRIGGER = """CREATE FUNCTION d.f() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RETURN NEW; END';
CREATE TRIGGER tr AFTER INSERT ON d.p FOR EACH ROW EXECUTE FUNCTION d.f()"""


def rows(count: int, value: str = "x") -> Rows:
    return [[str(i), value] for i in range(count)]


def values(fresh: Landing, column: str = "v", table: str = "t") -> list[object]:
    return [row[column] for row in fresh.read(table)]


def plain_user(own_database: str, *grants: str) -> str:
    """The URI of a user without rights but these, on the test's database."""
    name = f"user_{uuid4().hex[:10]}"
    with psycopg.connect(own_database, autocommit=True) as connection:
        connection.execute(f"CREATE ROLE {name} LOGIN PASSWORD 'pass'".encode())
        for grant in grants:
            connection.execute(grant.format(user=name, database=connection.info.dbname).encode())
    return own_database.replace("postgres:postgres@", f"{name}:pass@")


class TestLeadership:
    def test_a_successor_ends_the_leader(self, fresh: Landing, own_database: str) -> None:
        fresh.ddl("CREATE TABLE `t` (`id` INT PRIMARY KEY,`v` TEXT)")
        fresh.target.session.db.begin()
        fresh.target.session.check_epoch(fresh.lease)  # in the middle of a transaction, its locks held
        with closing(open_target(own_database, ValueRules())) as successor:
            successor.connect()
            assert successor.claim("d", Progress()).epoch == fresh.lease.epoch + 1
            with pytest.raises(TargetUnreachableError):
                fresh.write("t", ["id", "v"], rows(1))
            fresh.target.close()
            fresh.target.connect()
            with pytest.raises(LeadershipLostError):
                fresh.write("t", ["id", "v"], rows(1))
            with pytest.raises(LeadershipLostError):
                fresh.target.claim("d", fresh.progress, fresh.lease)
        assert values(fresh) == []

    def test_it_stays_the_leader_over_a_lost_connection(self, fresh: Landing) -> None:
        fresh.ddl("CREATE TABLE `t` (`id` INT PRIMARY KEY,`v` TEXT)")
        fresh.cells.query(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'ticdc-reconciler'"
            " AND datname = current_database()"
        )
        with pytest.raises(TargetUnreachableError):
            fresh.write("t", ["id", "v"], rows(1))
        fresh.target.close()
        fresh.target.connect()
        fresh.lease = type(fresh.lease)("d", fresh.target.claim("d", fresh.progress, fresh.lease).epoch)
        fresh.write("t", ["id", "v"], rows(1))
        assert values(fresh) == ["x"]

    def test_two_changefeeds_leave_each_other_alone(self, fresh: Landing, own_database: str) -> None:
        fresh.ddl("CREATE TABLE `t` (`id` INT PRIMARY KEY,`v` TEXT)")
        with closing(open_target(own_database, ValueRules())) as other:
            other.connect()
            other.claim("other", Progress())
            fresh.write("t", ["id", "v"], rows(1))

    def test_a_row_that_someone_else_locks(
        self, fresh: Landing, own_database: str, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setitem(connection._SESSION, "lock_timeout", "50")
        fresh.target.close()
        fresh.target.connect()  # the session before has another one
        fresh.lease = type(fresh.lease)("d", fresh.target.claim("d", fresh.progress, fresh.lease).epoch)
        fresh.ddl("CREATE TABLE `t` (`id` INT PRIMARY KEY,`v` TEXT)")
        fresh.write("t", ["id", "v"], rows(1))
        with psycopg.connect(own_database) as holder:
            holder.execute("SELECT * FROM d.t FOR UPDATE")
            with pytest.raises(TargetBusyError, match="lock timeout"):
                fresh.write("t", ["id", "v"], rows(1))
        fresh.write("t", ["id", "v"], rows(1))


class TestConnecting:
    def failing(self, uri: str, kind: type[TargetError]) -> TargetError:
        with closing(open_target(uri, ValueRules())) as target, pytest.raises(kind) as caught:
            target.connect()
        return caught.value

    def test_what_will_not_mend(self, postgres_server: PostgresServer) -> None:
        place = f"127.0.0.1:{postgres_server.port}"
        for uri in (postgres_server.uri_of("postgres", password="se-cret"), postgres_server.uri_of("nowhere")):
            error = self.failing(uri, TargetError)
            assert not isinstance(error, TargetUnreachableError)
            assert place in error.where
            assert "se-cret" not in f"{error} {error!r}"

    def test_nobody_there(self) -> None:
        error = self.failing("postgresql://u:se-cret@127.0.0.1:1/d", TargetUnreachableError)
        assert "127.0.0.1:1" in str(error)
        assert "se-cret" not in f"{error} {error!r}"


class TestChecking:
    def check(self, uri: str) -> list[str]:
        with closing(open_target(uri, ValueRules())) as target:
            return target.check()

    def test_an_owner_is_fine_and_nothing_is_made(self, own_database: str) -> None:
        assert "PostgreSQL" in self.check(own_database)[0] or "postgresql" in self.check(own_database)[0]
        with closing(PostgresCells(own_database)) as cells:
            assert cells.query("SELECT to_regnamespace('ticdc_reconciler') IS NULL AS gone") == [{"gone": True}]

    def test_rights_are_missed_by_name(self, own_database: str) -> None:
        with pytest.raises(TargetError, match="may not create schemas"):
            self.check(plain_user(own_database))
        enough = "GRANT CREATE ON DATABASE {database} TO {user}"
        self.check(plain_user(own_database, enough))
        with psycopg.connect(own_database) as connection:
            connection.execute("CREATE SCHEMA d; CREATE TABLE d.t (id INT)")
        with pytest.raises(TargetError, match=r"may not read and write table d\.t"):
            self.check(
                plain_user(own_database, enough, "GRANT USAGE ON SCHEMA d TO {user}", "GRANT SELECT ON d.t TO {user}")
            )

    @pytest.mark.parametrize(
        ("made", "told"),
        [
            ("CREATE TABLE d.c (id INT REFERENCES d.p ON DELETE CASCADE)", "foreign key"),
            (TRIGGER, "trigger 'tr'"),
        ],
    )
    def test_what_would_act_on_rows(self, own_database: str, made: str, told: str) -> None:
        uri = plain_user(own_database, "GRANT CREATE ON DATABASE {database} TO {user}")
        with psycopg.connect(uri) as connection:
            connection.execute(f"CREATE SCHEMA d; CREATE TABLE d.p (id INT PRIMARY KEY); {made}".encode())
        assert "off in our sessions" in self.check(own_database)[0]
        with pytest.raises(TargetError, match=told):
            self.check(uri)
        with closing(open_target(uri, ValueRules())) as target, pytest.raises(TargetError, match=told):
            target.connect()

    def test_an_encoding_that_holds_not_all(self, postgres_server: PostgresServer) -> None:
        name = f"latin_{uuid4().hex[:10]}"
        with psycopg.connect(postgres_server.uri, autocommit=True) as connection:
            connection.execute(f"CREATE DATABASE {name} ENCODING 'LATIN1' LOCALE 'C' TEMPLATE template0".encode())
        with pytest.raises(TargetError, match="LATIN1"):
            self.check(postgres_server.uri_of(name))
