"""A server that is none of ours, or stands in between, asks for the password: it does not get it."""

import random
import socket
import ssl
from collections.abc import Callable
from contextlib import suppress
from itertools import islice
from pathlib import Path

import pytest
from pymysql.cursors import SSCursor

from consumer.large_messages.handle_key_only import UpstreamRows
from ordering.errors import ConfigError, SourceError, TargetError, TargetUnreachableError
from sinks.mysql import wire
from sinks.mysql.connection import MysqlConnection
from sinks.mysql.login import shows_password
from sinks.mysql.wire import Line
from sinks.postgres.connection import PostgresConnection
from sinks.uri import parse_target_uri, parse_upstream_uri
from tests.certificates import Authority
from tests.sinks import hostile_servers
from tests.sinks.hostile_servers import (
    COLUMN,
    OK,
    PUBLIC_KEY,
    ROWS,
    Greedy,
    another_key,
    endless,
    greedy_postgres,
    greeting,
    packet,
    served,
)

SECRET = "s3cr3t-Pa55"
ASKING = ["mysql_clear_password", "dialog", "sha256_password", "caching_sha2_password"]


@pytest.fixture(scope="module")
def authority(tmp_path_factory: pytest.TempPathFactory) -> Authority:
    return Authority(tmp_path_factory.mktemp("login"))


@pytest.fixture(scope="module")
def tls(authority: Authority) -> ssl.SSLContext:
    """A certificate for `localhost`, of an authority that nobody trusts unless he is given it."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    paper = authority.issue("greedy", ["localhost"])
    context.load_cert_chain(paper.certificate, paper.key)
    return context


@pytest.fixture(params=[False, True], ids=["plain", "encrypted"])
def context(request: pytest.FixtureRequest, tls: ssl.SSLContext) -> ssl.SSLContext | None:
    return tls if request.param else None


def asked(server: Greedy, connect: Callable[[str], object], query: str = "") -> bool:
    """Whether it learned the password of who connects."""
    with served(server.serve) as port:
        connect(f"tidb://root:{SECRET}@localhost:{port}{query}")
    assert server.heard or "ca=" in query
    return server.learned(SECRET.encode())


def refused_as_target(uri: str) -> None:
    with pytest.raises(TargetError) as caught:
        MysqlConnection(parse_target_uri(uri))
    assert not isinstance(caught.value, TargetUnreachableError), caught.value
    assert caught.value.hint
    assert SECRET not in str(caught.value)


def refused_as_upstream(uri: str) -> None:
    with pytest.raises(SourceError) as caught:
        UpstreamRows(parse_upstream_uri(uri), "UTC").check()
    assert caught.value.hint
    assert SECRET not in str(caught.value)


def logged_in(uri: str) -> None:
    Line(parse_target_uri(uri)).close()


@pytest.mark.parametrize("plugin", ASKING)
@pytest.mark.parametrize("connect", [refused_as_target, refused_as_upstream])
def test_an_unverified_server_learns_no_password(
    plugin: str, connect: Callable[[str], object], context: ssl.SSLContext | None
) -> None:
    """Encrypted or not: without a certificate that is checked, nobody knows for whom it is encrypted."""
    assert not asked(Greedy(plugin, context=context), connect)


@pytest.mark.parametrize("plugin", ["sha256_password", "caching_sha2_password", "mysql_clear_password"])
def test_nor_does_it_by_the_first_answer(plugin: str, context: ssl.SSLContext | None) -> None:
    assert not asked(Greedy("sha256_password", first=plugin, context=context), refused_as_target)


@pytest.mark.parametrize("plugin", ASKING)
def test_the_last_check_holds_by_itself(plugin: str, tls: ssl.SSLContext, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever plugin PyMySQL runs, and whatever it takes for secure: no packet is the password."""
    monkeypatch.setattr(wire, "handler_of", lambda *_: None)
    assert not asked(Greedy(plugin, context=tls), refused_as_target)
    assert not asked(Greedy(plugin), refused_as_target)


def test_what_a_packet_may_not_be() -> None:
    head = b"\0" * 32 + b"root\0"
    for payload in (b"root", b"root\0", head + b"\x05root\0", head + b"root\0"):
        assert shows_password(payload, b"root", b"root")
    for payload in (head + b"\x14" + b"x" * 20, b"\1", b"", head):
        assert not shows_password(payload, b"root", b"root")
    assert not shows_password(b"", b"root", b"")


@pytest.mark.parametrize("plugin", ["sha256_password", "caching_sha2_password"])
def test_who_says_so_gives_it_to_anybody(plugin: str, context: ssl.SSLContext | None) -> None:
    server = Greedy(plugin, context=context, content=True)
    assert asked(server, logged_in, "?get-server-public-key=true")
    if context is None:
        assert SECRET.encode() not in b"".join(server.heard), "who only listens learns nothing"


@pytest.mark.parametrize("plugin", ["mysql_clear_password", "dialog"])
def test_but_not_as_it_is(plugin: str, context: ssl.SSLContext | None) -> None:
    assert not asked(Greedy(plugin, context=context), refused_as_target, "?get-server-public-key=true")


@pytest.mark.parametrize("plugin", ["sha256_password", "caching_sha2_password"])
def test_a_key_that_we_have_is_the_servers_proof(plugin: str, tmp_path: Path) -> None:
    right, other = tmp_path / "right.pem", tmp_path / "other.pem"
    right.write_bytes(PUBLIC_KEY)
    other.write_bytes(another_key())
    query = "?ssl-mode=disabled&server-public-key-path="
    assert asked(Greedy(plugin, content=True), logged_in, query + str(right))
    assert not asked(Greedy(plugin, content=True), logged_in, query + str(other))


def test_a_file_that_holds_no_such_key(tmp_path: Path, authority: Authority) -> None:
    (tmp_path / "text").write_text("root:x:0:0")
    for file in (tmp_path / "none", tmp_path / "text", authority.file):
        with pytest.raises(ConfigError, match="the server's key") as caught:
            MysqlConnection(parse_target_uri(f"mysql://u:p@h?ssl-mode=disabled&server-public-key-path={file}"))
        assert "root:x" not in str(caught.value)


@pytest.mark.parametrize("plugin", ASKING)
def test_a_verified_server_is_given_it(plugin: str, tls: ssl.SSLContext, authority: Authority, tmp_path: Path) -> None:
    query = f"?ssl-ca={authority.file}"
    assert asked(Greedy(plugin, context=tls, content=True), logged_in, query)
    stranger = Authority(tmp_path)
    assert not asked(Greedy(plugin, context=tls), refused_as_target, f"?ssl-ca={stranger.file}")


def test_a_challenge_needs_no_more(context: ssl.SSLContext | None) -> None:
    assert not asked(Greedy("mysql_native_password", context=context, content=True), logged_in)


def test_without_a_password_there_is_nothing_to_keep(context: ssl.SSLContext | None) -> None:
    for plugin in ("sha256_password", "caching_sha2_password"):
        server = Greedy(plugin, context=context, content=True)
        with served(server.serve) as port:
            logged_in(f"mysql://root@localhost:{port}")


def _says(*packets: bytes) -> Callable[[socket.socket], None]:
    def serve(listening: socket.socket) -> None:
        line, _ = listening.accept()
        with line, suppress(OSError):
            line.settimeout(10)
            for some in packets:
                line.sendall(some)
                if not line.recv(1 << 16):
                    return

    return serve


def _switch(plugin: bytes, data: bytes = b"x" * 20) -> tuple[bytes, bytes]:
    return packet(0, greeting()), packet(2, b"\xfe" + plugin + b"\0" + data)


GARBAGE = {
    "nothing of a greeting": (packet(0, b"\x0a"),),
    "a version without number": (packet(0, greeting(version=b"\xff")),),
    "a greeting of 16 MiB": (b"\xfe\xff\xff\0" + b"x" * 100,),
    "a plugin that PyMySQL lost": _switch(b"mysql_old_password"),
    "a plugin that needs another package": _switch(b"client_ed25519"),
    "a plugin of bytes": _switch(b"\xff\xfe"),
    "no challenge": _switch(b"mysql_native_password", b""),
    "an answer of nothing": (packet(0, greeting()), packet(2, b"")),
    "an answer in between": (packet(0, greeting()), packet(2, b"\x01")),
}


@pytest.mark.parametrize("name", GARBAGE)
def test_an_answer_that_is_none_is_an_error_of_the_target(name: str) -> None:
    with served(_says(*GARBAGE[name])) as port, pytest.raises(TargetError):
        MysqlConnection(parse_target_uri(f"mysql://root:{SECRET}@127.0.0.1:{port}"))


def test_a_key_that_is_none(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(hostile_servers, "PUBLIC_KEY", b"-----BEGIN PUBLIC KEY-----\nx")
    server = Greedy("caching_sha2_password")
    with served(server.serve) as port, pytest.raises(TargetError, match="none of MySQL's protocol"):
        MysqlConnection(parse_target_uri(f"mysql://root:{SECRET}@127.0.0.1:{port}?get-server-public-key=true"))


def test_damaged_logins_raise_what_is_foreseen() -> None:
    """300 greetings and answers with random bytes in them."""
    draw = random.Random(15)
    for _ in range(300):
        parts = [bytearray(some) for some in (packet(0, greeting()), packet(2, OK), packet(1, OK), packet(1, OK))]
        some = draw.choice(parts[:3])
        for _ in range(draw.randint(1, 6)):
            some[draw.randrange(4, len(some))] = draw.randrange(256)
        with served(_says(*map(bytes, parts))) as port, suppress(TargetError):
            MysqlConnection(parse_target_uri(f"mysql://root:{SECRET}@127.0.0.1:{port}"))


def test_an_unverified_postgres_learns_no_password(tls: ssl.SSLContext) -> None:
    for context in (None, tls):
        heard: list[bytes] = []
        with served(lambda listening, c=context, h=heard: greedy_postgres(listening, h, c)) as port:
            with pytest.raises(TargetError, match=r"(?s)cleartext.*require_auth=password") as caught:
                PostgresConnection(parse_target_uri(f"postgresql://root:{SECRET}@127.0.0.1:{port}/d"))
            assert not isinstance(caught.value, TargetUnreachableError), caught.value
        assert SECRET.encode() not in b"".join(heard)


def test_a_postgres_is_given_it_by_who_says_so() -> None:
    heard: list[bytes] = []
    with served(lambda listening: greedy_postgres(listening, heard)) as port, pytest.raises(TargetError):
        PostgresConnection(parse_target_uri(f"postgresql://root:{SECRET}@127.0.0.1:{port}/d?require_auth=password"))
    assert SECRET.encode() in b"".join(heard)


def test_a_postgres_that_is_given_none_gets_none_of_this_machine(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The library would look for one in a file and in the environment, for a server that anybody has named."""
    file = tmp_path / "passwords"
    file.write_text(f"*:*:*:*:{SECRET}\n")
    file.chmod(0o600)
    monkeypatch.setenv("PGPASSFILE", str(file))
    for variable in ("", SECRET):
        monkeypatch.setenv("PGPASSWORD", variable)
        heard: list[bytes] = []
        with served(lambda listening, h=heard: greedy_postgres(listening, h)) as port, pytest.raises(TargetError):
            PostgresConnection(parse_target_uri(f"postgresql://root@127.0.0.1:{port}/d?require_auth=password"))
        assert SECRET.encode() not in b"".join(heard)


ENDLESS = {
    "rows": (ROWS, b"\x01x"),
    "empty rows": (ROWS, b"\0"),
    "columns": (packet(1, b"\xfd\xff\xff\xff"), COLUMN),
    "a packet": (ROWS, b"x" * 0xFFFFFF),
}


@pytest.mark.parametrize("name", ENDLESS)
def test_an_answer_without_an_end_is_cut(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever may name a target may name a server that fills the memory of all changefeeds."""
    monkeypatch.setattr(wire, "MOST_ANSWERED", 2 << 20)
    with served(endless(*ENDLESS[name])) as port, pytest.raises(TargetError) as caught:
        MysqlConnection(parse_target_uri(f"mysql://u:{SECRET}@127.0.0.1:{port}"))
    assert "an answer of more than 2 MiB" in caught.value.fact


def test_rows_that_are_not_held_may_be_many(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(wire, "MOST_ANSWERED", 1 << 12)
    many = 1_000
    with served(endless(ROWS, b"\x01x")) as port:
        line = Line(parse_target_uri(f"mysql://u:{SECRET}@127.0.0.1:{port}"))
        cursor = line.cursor(SSCursor)
        cursor.execute("SELECT c")
        assert len(list(islice(cursor.fetchall_unbuffered(), many))) == many
        cursor._result.unbuffered_active = False  # or it would be read to its end
        line._force_close()


def test_a_cache_of_the_servers_changes_nothing() -> None:
    """Today it may not need the password; after a restart it would."""
    with served(Greedy("caching_sha2_password", content=True).serve) as port, pytest.raises(TargetError) as caught:
        MysqlConnection(parse_target_uri(f"mysql://u:{SECRET}@127.0.0.1:{port}"))
    assert "asks for a login by caching_sha2_password" in caught.value.fact
