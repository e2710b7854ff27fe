"""Servers that take the connection and never say a word, or fall silent within the login: nobody waits for ever."""

import socket
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager

import pytest

from consumer.kafka.admin import KafkaAdmin
from consumer.large_messages import handle_key_only
from consumer.redis.client import redis_client
from ordering.errors import ReconcilerError, TargetUnreachableError
from sinks.mysql import wire as mysql_line
from sinks.postgres import connection as postgres_connection
from sinks.registry import open_target
from sinks.rows.values import ValueRules
from sinks.uri import parse_target_uri
from tests.embedded import MariaDbServer

pytestmark = pytest.mark.service
LIMIT_S = 2
ENDS_S = 20.0


@contextmanager
def listening(greeting: bytes = b"") -> Iterator[int]:
    """The port of a server that takes connections, says at most this much, and falls silent."""
    held: list[socket.socket] = []
    server = socket.create_server(("127.0.0.1", 0))

    def accept() -> None:
        while True:
            try:
                held.append(server.accept()[0])
            except OSError:
                return  # closed
            held[-1].sendall(greeting)

    threading.Thread(target=accept, daemon=True).start()
    try:
        yield int(server.getsockname()[1])
    finally:
        server.close()
        for line in held:
            line.close()


@pytest.fixture(autouse=True)
def _impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    for module in (mysql_line, postgres_connection):
        monkeypatch.setattr(module, "_CONNECT_TIMEOUT_S", LIMIT_S)


def _asks_target(uri: str) -> Callable[[], object]:
    return lambda: open_target(uri, ValueRules()).stored("any")


def _error_of(ask: Callable[[], object]) -> tuple[BaseException | None, float]:
    """What an attempt ends with, and after how many seconds."""
    begun = time.monotonic()
    try:
        ask()
    except Exception as error:  # noqa: BLE001 whatever it is, it is looked at
        return error, time.monotonic() - begun
    return None, time.monotonic() - begun


def _ended(asks: dict[str, Callable[[], object]]) -> dict[str, BaseException | None]:
    """What each ends with; all at once, and none takes longer than the limit."""
    with ThreadPoolExecutor(len(asks)) as pool:
        running = {name: pool.submit(_error_of, ask) for name, ask in asks.items()}
        found = {name: future.result(120) for name, future in running.items()}
    assert {name: took for name, (_, took) in found.items() if took > ENDS_S} == {}
    return {name: error for name, (error, _) in found.items()}


def _with_tls(greeting: bytes) -> bytes:
    """A server's greeting that offers TLS (MySQL documentation, "Protocol::HandshakeV10": CLIENT_SSL is 0x800)."""
    capabilities = greeting.index(b"\0", 5) + 1 + 4 + 8 + 1
    return greeting[: capabilities + 1] + bytes([greeting[capabilities + 1] | 0x08]) + greeting[capabilities + 2 :]


def test_nobody_waits_for_ever_for_a_server_that_says_nothing(mariadb_server: MariaDbServer) -> None:
    with socket.create_connection(("127.0.0.1", mariadb_server.port)) as line:
        greeting = line.recv(1000)
    with listening() as silent, listening(_with_tls(greeting)) as polite:
        place = f"u:p@127.0.0.1:{silent}"
        found = _ended(
            {
                "postgresql": _asks_target(f"postgresql://{place}/d"),
                "mysql": _asks_target(f"mysql://{place}"),
                "tidb": _asks_target(f"tidb://{place}"),
                "mysql, after its greeting": _asks_target(f"mysql://u:p@127.0.0.1:{polite}"),
                "mysql, before its key": _asks_target(f"mysql://u:p@127.0.0.1:{polite}?ssl-mode=required"),
                "upstream": lambda: handle_key_only.UpstreamRows(parse_target_uri(f"tidb://{place}"), "UTC").check(),
                "kafka": lambda: KafkaAdmin(f"127.0.0.1:{silent}", {}, timeout_ms=1000).topics(["t"]),
                "redis": lambda: redis_client(f"redis://127.0.0.1:{silent}/0", 1.0).ping(),
            }
        )
    targets = {name: error for name, error in found.items() if name not in {"upstream", "kafka", "redis"}}
    assert {name: type(error) for name, error in targets.items()} == dict.fromkeys(targets, TargetUnreachableError)
    for name, error in targets.items():
        assert isinstance(error, ReconcilerError), name
        assert f"127.0.0.1:{polite if ',' in name else silent}" in error.where, name
        assert error.exit_code == 4
    assert all(found.values()), found
