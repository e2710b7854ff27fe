"""TLS between us and the targets: real servers, a throw-away authority, and everything that has to be refused."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import psycopg
import pymysql
import pytest
from pyspark import SparkContext

from consumer.embedded import KafkaBroker
from consumer.large_messages.handle_key_only import UpstreamRows
from ordering.errors import ConfigError, ReconcilerError, SourceError, TargetError, TargetUnreachableError
from sinks.mysql.connection import MysqlConnection
from sinks.postgres.connection import PostgresConnection
from sinks.registry import open_target
from sinks.rows.values import ValueRules
from sinks.tidb.connection import TidbConnection
from sinks.uri import parse_target_uri, parse_upstream_uri
from tests.certificates import Authority, Certificate, give_to_servers
from tests.embedded import MariaDbServer, PostgresServer, TidbServer
from tests.service.cells import MariaDbCells, differences, oracle
from tests.service.lab import Feed, recorded

pytestmark = pytest.mark.service
PASSWORD = "pä55-wörd-☃"
"""No character set but UTF-8 holds it."""
QUOTED = "p%C3%A455-w%C3%B6rd-%E2%98%83"


@dataclass(frozen=True, slots=True)
class Papers:
    """What servers and clients show each other. The servers' certificate is for `localhost` only."""

    ca: Path
    stranger: Path
    server: Certificate
    client: Certificate


@pytest.fixture(scope="module")
def papers(tmp_path_factory: pytest.TempPathFactory) -> Papers:
    place = tmp_path_factory.mktemp("papers")
    authority, stranger = Authority(place), Authority(place, "stranger")
    server = authority.issue("server", ["localhost"])
    give_to_servers(server)
    return Papers(authority.file, stranger.file, server, authority.issue("client"))


@pytest.fixture(scope="module")
def mariadb(papers: Papers, tmp_path_factory: pytest.TempPathFactory) -> Iterator[MariaDbServer]:
    """Takes the user `safe` over TLS only, and `known` only with a certificate of the authority."""
    options = {
        "ssl": "1",
        "ssl-ca": str(papers.ca),
        "ssl-cert": str(papers.server.certificate),
        "ssl-key": str(papers.server.key),
    }
    with MariaDbServer(tmp_path_factory.mktemp("tls-mariadb"), flush_at_commit=2, extra=options) as server:
        with pymysql.connect(host="127.0.0.1", port=server.port, user="root", password="root") as root:
            for user, kind in (("safe", "SSL"), ("known", "X509")):
                run(root, f"CREATE USER {user}@'%' IDENTIFIED BY '{PASSWORD}' REQUIRE {kind}")
                run(root, f"GRANT ALL ON *.* TO {user}@'%'")
        yield server


@pytest.fixture(scope="module")
def tidb(papers: Papers, tmp_path_factory: pytest.TempPathFactory) -> Iterator[TidbServer]:
    """The same of TiDB."""
    config = (
        f'[security]\nssl-ca = "{papers.ca}"\nssl-cert = "{papers.server.certificate}"\n'
        f'ssl-key = "{papers.server.key}"\n'
    )
    with TidbServer(tmp_path_factory.mktemp("tls-tidb"), config=config) as server:
        with pymysql.connect(host="127.0.0.1", port=server.port, user="root", ssl_disabled=True) as root:
            for user, kind in (("safe", "SSL"), ("known", "X509")):
                run(root, f"CREATE USER {user}@'%' IDENTIFIED BY '{PASSWORD}' REQUIRE {kind}")
                run(root, f"GRANT ALL ON *.* TO {user}@'%'")
        yield server


@pytest.fixture(scope="module")
def postgres(papers: Papers, tmp_path_factory: pytest.TempPathFactory) -> Iterator[PostgresServer]:
    """Takes the user `safe` over TLS only, and `known` only with a certificate of the authority."""
    settings = {
        "ssl": "on",
        "ssl_ca_file": str(papers.ca),
        "ssl_cert_file": str(papers.server.certificate),
        "ssl_key_file": str(papers.server.key),
    }
    for path in (papers.ca, papers.server.certificate):
        path.chmod(0o644)
    server = PostgresServer(tmp_path_factory.mktemp("tls-postgres"), extra=settings)
    with server:
        with psycopg.connect(server.uri, autocommit=True) as root:
            for user in ("safe", "known"):
                root.execute(f"CREATE ROLE {user} LOGIN PASSWORD '{PASSWORD}'".encode())
                root.execute(f"GRANT CREATE, TEMPORARY ON DATABASE postgres TO {user}".encode())
        rules = (server.directory / "data" / "pg_hba.conf").read_text()
        ours = "hostssl all known all scram-sha-256 clientcert=verify-ca\nhostssl all safe all scram-sha-256\n"
        ours += "host all safe,known all reject\n"
        (server.directory / "data" / "pg_hba.conf").write_text(ours + rules)
        with psycopg.connect(server.uri, autocommit=True) as root:
            root.execute("SELECT pg_reload_conf()")
        yield server


def run(connection: "pymysql.Connection[pymysql.cursors.Cursor]", sql: str) -> None:
    with connection.cursor() as cursor:
        cursor.execute(sql)


Server = MariaDbServer | TidbServer | PostgresServer


@pytest.fixture(params=["mariadb", "tidb", "postgres"])
def server(request: pytest.FixtureRequest) -> Server:
    found: Server = request.getfixturevalue(request.param)
    return found


@dataclass(frozen=True, slots=True)
class Door:
    """URIs of one server, by its family's words."""

    server: Server
    papers: Papers

    def uri(self, user: str = "safe", host: str = "localhost", **options: object) -> str:
        """`ca`, `cert`, `key` and `mode` are spelled as the family does."""
        postgres = isinstance(self.server, PostgresServer)
        words = _LIBPQ if postgres else _MYSQL
        query = "&".join(f"{words[name]}={value}" for name, value in options.items())
        scheme = self.server.uri.partition(":")[0]
        return f"{scheme}://{user}:{QUOTED}@{host}:{self.server.port}{'/postgres' if postgres else ''}?{query}"

    def refusal(self, kind: type[ReconcilerError] = TargetError, **options: object) -> str:
        """What `check` says against such a URI, once it is sure that a new try is not worth it."""
        target = open_target(self.uri(**options), ValueRules())  # type: ignore[arg-type]
        with pytest.raises(kind) as caught:
            target.check()
        assert not isinstance(caught.value, TargetUnreachableError), caught.value
        assert PASSWORD not in str(caught.value)
        assert caught.value.hint
        return str(caught.value)


_MYSQL = {"ca": "ssl-ca", "cert": "ssl-cert", "key": "ssl-key", "mode": "ssl-mode"}
_LIBPQ = {"ca": "sslrootcert", "cert": "sslcert", "key": "sslkey", "mode": "sslmode"}


@pytest.fixture
def door(server: Server, papers: Papers) -> Door:
    return Door(server, papers)


def is_encrypted(uri: str) -> bool:
    """Whether the server says so of a session of ours."""
    parsed = parse_target_uri(uri)
    if parsed.kind == "postgresql":
        postgres = PostgresConnection(parsed)
        try:
            return bool(postgres.value("SELECT ssl FROM pg_stat_ssl WHERE pid = pg_backend_pid()"))
        finally:
            postgres.close()
    mysql = (TidbConnection if parsed.kind == "tidb" else MysqlConnection)(parsed)
    try:
        return bool(mysql.query("SHOW STATUS LIKE 'Ssl_cipher'")[0][1])
    finally:
        mysql.close()


def test_a_named_authority_is_enough(door: Door) -> None:
    uri = door.uri(ca=door.papers.ca)
    assert is_encrypted(uri)
    target = open_target(uri, ValueRules())
    assert target.check()
    target.close()


def test_another_authority_is_refused(door: Door) -> None:
    assert "certificate" in door.refusal(ca=door.papers.stranger).lower()


def test_another_host_is_refused(door: Door) -> None:
    """The certificate is for localhost: our way to its address could end anywhere."""
    assert "127.0.0.1" in door.refusal(host="127.0.0.1", ca=door.papers.ca)
    mode = "verify-ca"
    assert is_encrypted(door.uri(host="127.0.0.1", ca=door.papers.ca, mode=mode))


def test_a_missing_authority_is_named(door: Door) -> None:
    said = door.refusal(ReconcilerError, ca=door.papers.ca.with_name("none.pem"))
    assert "none.pem" in said


def test_without_encryption_the_server_refuses(door: Door) -> None:
    """So that all that passes here is encrypted."""
    mode = "disable" if isinstance(door.server, PostgresServer) else "disabled"
    door_without_hint = open_target(door.uri(mode=mode), ValueRules())
    with pytest.raises(TargetError) as caught:
        door_without_hint.check()
    assert not isinstance(caught.value, TargetUnreachableError)
    assert PASSWORD not in str(caught.value)


def test_a_client_shows_its_certificate(door: Door) -> None:
    ours = {"ca": door.papers.ca, "cert": door.papers.client.certificate, "key": door.papers.client.key}
    assert is_encrypted(door.uri("known", **ours))
    target = open_target(door.uri("known", ca=door.papers.ca), ValueRules())
    with pytest.raises(TargetError) as caught:
        target.check()
    assert not isinstance(caught.value, TargetUnreachableError)


@pytest.mark.parametrize("kind", ["mariadb", "tidb", "postgres"])
@pytest.mark.parametrize("mode", ["required", "verified"])
def test_a_server_without_encryption_is_refused(
    kind: str, mode: str, papers: Papers, request: pytest.FixtureRequest
) -> None:
    """A line that is cut into could pretend to be one: the password is not given away."""
    plain = request.getfixturevalue(f"{kind}_server")
    door = Door(plain, papers)
    option = {"mode": "require" if kind == "postgres" else "required"} if mode == "required" else {"ca": papers.ca}
    assert "SSL" in door.refusal(**option)


def test_a_key_under_a_password_is_no_question_on_the_terminal(mariadb: MariaDbServer, tmp_path: Path) -> None:
    locked = Authority(tmp_path).issue("locked", password=b"s3cr3t")
    query = f"ssl-cert={locked.certificate}&ssl-key={locked.key}"
    with pytest.raises(ConfigError, match="key without a password"):
        open_target(f"mysql://safe:x@localhost:{mariadb.port}?{query}", ValueRules()).check()


def test_rows_of_large_messages_come_encrypted(tidb: TidbServer, papers: Papers) -> None:
    door = Door(tidb, papers)
    assert "version" in UpstreamRows(parse_upstream_uri(door.uri(ca=papers.ca)), "UTC").check()
    for wrong in ({"ca": papers.stranger}, {"ca": papers.ca, "host": "127.0.0.1"}):
        with pytest.raises(SourceError, match="no encrypted connection"):
            UpstreamRows(parse_upstream_uri(door.uri(**wrong)), "UTC").check()  # type: ignore[arg-type]


@pytest.mark.by_turns
@pytest.mark.spark
def test_tasks_write_encrypted(
    spark: SparkContext,
    kafka_broker: KafkaBroker,
    mariadb: MariaDbServer,
    papers: Papers,
    topic_name: str,
    tmp_path: Path,
) -> None:
    """Every connection has to be: the server takes no other from this user."""
    uri = Door(mariadb, papers).uri(ca=papers.ca)
    cells = MariaDbCells(mariadb.uri)
    feed = Feed(spark, kafka_broker.bootstrap, topic_name, uri, cells, tmp_path)
    feed.with_(target={"consistency": "row"}, limits={"window-rows": 20})
    feed.send(recorded("unique-swaps.index-value.raw"))
    feed.once()
    assert differences(oracle("unique-swaps"), cells) == []
    cells.close()
