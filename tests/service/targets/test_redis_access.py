"""Redis with a user of few rights, and over TLS; whatever it refuses, the run goes on without it."""

import re
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
import redis
from redis.exceptions import NoPermissionError

from consumer.config.model import config_from
from consumer.embedded import RedisServer
from consumer.operate.check import _redis
from consumer.redis.ledger import Ledger
from consumer.redis.terms import LedgerTerm
from consumer.run.heartbeat import RedisLease
from ordering.errors import ConfigError
from tests.certificates import Authority, Certificate
from tests.service.tls_front import tls_front

pytestmark = pytest.mark.service
SECRET, WRONG = "r3dis-Pa55", "wr0ng-Pa55"
_DOCS = (Path(__file__).parents[3] / "docs" / "security.md").read_text()
RIGHTS = re.search(r"^ACL SETUSER reconciler (.*)$", _DOCS, re.MULTILINE)[1]  # type: ignore[index]
"""What the documentation says, with its password."""


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RedisServer]:
    """A server of our own: users are made in it."""
    with RedisServer(tmp_path_factory.mktemp("redis-acl")) as server:
        with redis.Redis(port=server.port) as client:
            client.execute_command("ACL", "SETUSER", "reconciler", *RIGHTS.replace("PASSWORD", SECRET).split())
        yield server


@pytest.fixture(scope="module")
def papers(tmp_path_factory: pytest.TempPathFactory) -> tuple[Authority, Authority, Certificate]:
    place = tmp_path_factory.mktemp("redis-papers")
    authority = Authority(place)
    return authority, Authority(place, "stranger"), authority.issue("server", ["localhost"])


def uri(port: int, password: str = SECRET, scheme: str = "redis", host: str = "localhost", **options: object) -> str:
    query = "&".join(f"{name}={value}" for name, value in options.items())
    return f"{scheme}://reconciler:{password}@{host}:{port}/0" + (f"?{query}" if query else "")


def told(text: str) -> str:
    """What `check` says of a URI."""
    values = {
        "changefeed": "x",
        "source": {"bootstrap-servers": "x", "topics": ["x"]},
        "target": {"uri": "sqlite:///x"},
        "redis": {"uri": text},
    }
    found = _redis(config_from(values, "x")).text
    assert SECRET not in found
    assert WRONG not in found
    return found


def use(place: str) -> None:
    """Everything that a ledger ever does; fails if any of it is refused."""
    ledger = Ledger(place, "orders", "identity", "key", (LedgerTerm(0, "first"),))
    prints = np.arange(1, 300_000, dtype=np.uint64)
    for low in range(0, 30, 10):
        ledger.record(low, low + 10, prints)
        assert ledger.available
    for low in range(30, 50, 10):  # small ones are made one
        ledger.record(low, low + 10, prints[:10])
        assert ledger.available
    ledger.flush_memory()
    events = np.array([[5, 5, 15, 0], [10**9, 10**9, 15, 1]], dtype=np.uint64)
    verdict = ledger.judge(events)
    assert (verdict.proven, verdict.unproven, verdict.late) == (1, 0, (1,))
    ledger._trim(ledger._redis)  # type: ignore[arg-type]
    ledger.publish({"a": 1})
    assert ledger.live_status() == {"a": 1}
    ledger.ping()
    assert ledger.available
    ledger.close()
    lease = RedisLease(place, "orders", 60)
    lease.renew("us")
    assert lease.is_held()
    lease.release("us")
    assert lease.is_held() is False
    lease.close()


def test_the_documented_rights_are_enough(server: RedisServer) -> None:
    assert told(uri(server.port)) == "connected"
    use(uri(server.port))


@pytest.mark.parametrize("command", [word for word in RIGHTS.split() if word.startswith("+")])
def test_each_of_them_is_needed(server: RedisServer, command: str) -> None:
    with redis.Redis(port=server.port) as client:
        client.execute_command("ACL", "SETUSER", "reconciler", f"-{command[1:]}")
        try:
            with pytest.raises((AssertionError, NoPermissionError)):
                use(uri(server.port))
            if command != "+hset":  # there is no such call that changes nothing
                assert "refuses us" in told(uri(server.port))
                assert command[1:] in told(uri(server.port)).lower()
        finally:
            client.execute_command("ACL", "SETUSER", "reconciler", command)


def test_other_keys_are_closed(server: RedisServer) -> None:
    with redis.Redis.from_url(uri(server.port)) as client:
        for key in ("other", "ticdc-reconcile"):
            with pytest.raises(NoPermissionError):
                client.get(key)
        for command in ("FLUSHALL", "KEYS *", "CONFIG GET *", "ACL LIST"):
            with pytest.raises(NoPermissionError):
                client.execute_command(*command.split())


def test_a_wrong_password(server: RedisServer) -> None:
    assert "refuses us" in told(uri(server.port, WRONG))


def test_tls(server: RedisServer, papers: tuple[Authority, Authority, Certificate]) -> None:
    authority, stranger, shown = papers
    with tls_front(server.port, shown) as port:
        trusted = {"ssl_ca_certs": authority.file}
        assert told(uri(port, scheme="rediss", **trusted)) == "connected"
        use(uri(port, scheme="rediss", **trusted))
        assert "CERTIFICATE_VERIFY_FAILED" in told(uri(port, scheme="rediss", ssl_ca_certs=stranger.file))
        assert "CERTIFICATE_VERIFY_FAILED" in told(uri(port, scheme="rediss"))
        assert "mismatch" in told(uri(port, scheme="rediss", host="127.0.0.1", **trusted))
        unchecked = {**trusted, "ssl_check_hostname": "false"}
        assert told(uri(port, scheme="rediss", host="127.0.0.1", **unchecked)) == "connected"
        assert "out of reach" in told(uri(server.port, scheme="rediss", **trusted))
        assert "out of reach" in told(uri(port))


def test_tls_with_our_certificate(server: RedisServer, papers: tuple[Authority, Authority, Certificate]) -> None:
    authority, stranger, shown = papers
    with tls_front(server.port, shown, clients_of=str(authority.file)) as port:
        ours, theirs = authority.issue("client"), stranger.issue("client")
        trusted = {"ssl_ca_certs": authority.file}
        for client, right in ((ours, True), (theirs, False)):
            named = {**trusted, "ssl_certfile": client.certificate, "ssl_keyfile": client.key}
            assert (told(uri(port, scheme="rediss", **named)) == "connected") is right
        assert told(uri(port, scheme="rediss", **trusted)) != "connected"


@pytest.mark.parametrize(
    ("text", "named"),
    [
        (f"redis://u:{SECRET}@host:port/0", "port"),
        (f"redis://u:{SECRET}/x@host", "redis.uri"),
        (f"http://u:{SECRET}@host", "no server"),
        (f"redis://u:{SECRET}@host/orders", "no number"),
        (f"redis://u:{SECRET}@host?ssl_ca_certs=/ca.pem", "rediss://"),
        (f"rediss://u:{SECRET}@host?ssl-ca=/ca.pem", "'ssl-ca'"),
        (f"rediss://u:{SECRET}@host?ssl_check_hostname=maybe", "ssl_check_hostname"),
        (f"rediss://u:{SECRET}@host?connection_pool=x", "connection_pool"),
    ],
)
def test_uris_that_are_refused(text: str, named: str) -> None:
    with pytest.raises(ConfigError) as caught:
        told(text)
    assert named in str(caught.value)
    assert SECRET not in str(caught.value)
