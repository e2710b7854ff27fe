"""Whatever others wrote into Redis covers nothing, raises nothing, and takes no time; live status and lease too."""

import gc
import socket
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from threading import Thread

import numpy as np
import pytest
from redis import Redis

from consumer.embedded import RedisServer
from consumer.redis.ledger import Judgement, Ledger
from consumer.redis.terms import LedgerTerm
from consumer.run.heartbeat import RedisLease

EVENTS = np.array([[99, 99, 4, 0, 0], [98, 98, 6, 0, 0]], dtype=np.uint64)
NOTHING = Judgement(0, 2, ())
KEY = "k" * 64
TERMS = (LedgerTerm(0, "first"),)
NAMES = [
    b"1-9",
    b"-1-9",
    b"1--9",
    b"9-1",
    b"1-9-9",
    b"x",
    b"\xff\xfe",
    b"1_0-2_0",
    "٣-٩".encode(),
    b"1-" + b"9" * 5000,
    b"",
]
VALUES = [
    b"", b"{}", b"[]", b"null", b"1", b'"x"', b"no json", b"\xff\xfe\x00", b"[" * 100_000, b'{"parts": 1}',
    b'{"parts": "1", "bytes": "8"}', b'{"parts": NaN, "bytes": 8}', b'{"parts": 1e400, "bytes": 8}',
    b'{"parts": -1, "bytes": -8}', b'{"parts": 1.5, "bytes": 8}', b'{"parts": true, "bytes": 8}',
    b'{"parts": 2000000, "bytes": 16}', b'{"parts": 2000000, "bytes": 2097152000000}', b'{"parts": 1, "bytes": 7}',
    b'{"parts": 0, "bytes": 8}', b'{"parts": 1, "bytes": ' + b"9" * 5000 + b"}",
    b'{"parts": {"parts": 1}, "bytes": [8]}', b'{"x": ' + b"[" * 100_000,
]  # fmt: skip


@pytest.fixture
def client(redis_server: RedisServer) -> Iterator[Redis]:
    with closing(Redis.from_url(redis_server.uri)) as found:
        found.flushdb()
        yield found


@pytest.fixture
def ledger(redis_server: RedisServer) -> Iterator[Ledger]:
    with closing(Ledger(redis_server.uri, "cf", "id", KEY, TERMS)) as found:
        yield found


INDEX, PART, STATUS = (f"ticdc-reconciler:cf:id:{name}" for name in ("windows", "window:1-9:0", "status"))


@pytest.fixture
def _no_collector() -> Iterator[None]:
    """Python's garbage collector walks all that earlier tests left: its time is none of what is measured."""
    gc.disable()
    yield
    gc.enable()


@pytest.mark.usefixtures("_no_collector")
@pytest.mark.parametrize("value", VALUES, ids=range(len(VALUES)))
@pytest.mark.parametrize("name", NAMES, ids=range(len(NAMES)))
def test_what_is_no_entry(client: Redis, ledger: Ledger, name: bytes, value: bytes) -> None:
    client.hset(INDEX, name, value)
    began = time.thread_time()
    assert ledger.judge(EVENTS) == NOTHING
    assert ledger.available
    assert time.thread_time() - began < 0.5
    ledger.record(20, 30, np.arange(9, dtype=np.uint64))
    assert client.hkeys(INDEX) == [b"20-30"]  # what is no entry is removed


@pytest.mark.parametrize("kind", ["string", "list", "set", "many", "huge"])
def test_an_index_of_another_kind(client: Redis, ledger: Ledger, kind: str) -> None:
    if kind == "string":
        client.set(INDEX, b"x")
    elif kind == "list":
        client.rpush(INDEX, *range(100))
    elif kind == "set":
        client.sadd(INDEX, *range(100))
    elif kind == "many":
        client.hset(INDEX, mapping={f"{i}-{i + 9}": '{"parts": 1, "bytes": 8}' for i in range(20_000)})
    else:
        client.hset(INDEX, "1-9", b"x" * (8 << 20))
    assert ledger.judge(EVENTS) == NOTHING
    for high in (30, 40):
        ledger.record(high - 10, high, np.arange(9, dtype=np.uint64) + np.uint64(high))
    late = ledger.judge(np.array([[5 + 40, 5, 35, 0, 0]], dtype=np.uint64))
    assert (late.proven, late.unproven) == (1, 0)  # it works again


@pytest.mark.parametrize("kind", ["gone", "short", "long", "list", "hash", "empty"])
def test_a_part_that_is_not_the_one_that_was_written(client: Redis, ledger: Ledger, kind: str) -> None:
    ledger.record(1, 9, np.array([98, 99], dtype=np.uint64))
    ledger.flush_memory()
    assert ledger.judge(EVENTS).proven == 2
    ledger.flush_memory()
    client.delete(PART)
    if kind == "list":
        client.rpush(PART, 1)
    elif kind == "hash":
        client.hset(PART, "a", 1)
    elif kind != "gone":
        client.set(PART, b"x" * {"short": 15, "long": 17, "empty": 0}[kind])
    assert ledger.judge(EVENTS) == NOTHING


def test_many_false_entries_are_looked_up_in_bounded_time(client: Redis, ledger: Ledger) -> None:
    client.hset(INDEX, mapping={f"{i % 3}-{9 + i}": '{"parts": 512, "bytes": 536870912}' for i in range(8000)})
    asked = client.info("stats")["total_commands_processed"]
    assert ledger.judge(EVENTS) == NOTHING
    assert client.info("stats")["total_commands_processed"] - asked < 1000


@pytest.mark.parametrize("value", [b"", b"x", b"[1]", b"1", b"null", b"\xff", b"[" * 100_000, b'{"a": 1e999}'])
def test_a_live_status_that_is_none(client: Redis, ledger: Ledger, value: bytes) -> None:
    client.set(STATUS, value)
    assert ledger.live_status() is None or value.startswith(b"{")
    client.delete(STATUS)
    client.rpush(STATUS, 1)
    assert ledger.live_status() is None


def test_a_lease_of_another_kind(client: Redis, redis_server: RedisServer) -> None:
    client.rpush("ticdc-reconciler:cf:leader", 1)
    with closing(RedisLease(redis_server.uri, "cf", 30.0)) as lease:
        assert lease.is_held()
        lease.release("me")  # not ours
        lease.renew("me")
        assert client.get("ticdc-reconciler:cf:leader") == b"me"
        lease.release("me")
        assert not lease.is_held()


ANSWERS = [
    b":7\r\n",
    b"*0\r\n",
    b"*1\r\n:1\r\n",
    b"$-1\r\n",
    b"+OK\r\n",
    b"-ERR \xff\r\n",
    b"garbage\r\n",
    b"*3\r\n$1\r\na\r\n:1\r\n+x\r\n",
    b"",
]


@contextmanager
def strange_server(answer: bytes) -> Iterator[str]:
    """Answers the same to whatever it is asked."""
    with socket.create_server(("127.0.0.1", 0)) as listening:

        def serve() -> None:
            while True:
                try:
                    line, _ = listening.accept()
                except OSError:  # closed: the test has ended
                    return
                with line:
                    line.settimeout(5)
                    try:
                        while line.recv(1 << 16) and answer:
                            line.sendall(answer * 8)
                    except OSError:  # the client is gone
                        continue

        thread = Thread(target=serve, daemon=True)
        thread.start()
        yield f"redis://127.0.0.1:{listening.getsockname()[1]}/0"


@pytest.mark.parametrize("answer", ANSWERS, ids=range(len(ANSWERS)))
def test_a_server_that_answers_what_no_redis_does(answer: bytes) -> None:
    with strange_server(answer) as uri:
        with closing(Ledger(uri, "cf", "id", KEY, TERMS)) as ledger:
            ledger.record(1, 2, np.arange(9, dtype=np.uint64))
            ledger.record(3, 9, np.arange(9, dtype=np.uint64))
            assert ledger.judge(EVENTS) == NOTHING
            ledger.publish({"a": 1})
            assert ledger.live_status() is None
        with closing(RedisLease(uri, "cf", 30.0)) as lease:
            lease.renew("me")
            lease.is_held()
            lease.release("me")


def test_an_index_that_grows_huge_later(client: Redis, ledger: Ledger) -> None:
    ledger.record(1, 9, np.array([98, 99], dtype=np.uint64))
    client.hset(INDEX, "1-8", b"x" * (8 << 20))
    assert ledger.judge(EVENTS) == NOTHING
    ledger.record(20, 30, np.arange(9, dtype=np.uint64))
    assert client.hlen(INDEX) <= 1
    ledger.record(30, 40, np.arange(9, dtype=np.uint64) + np.uint64(40))
    assert ledger.judge(np.array([[5 + 40, 5, 35, 0, 0]], dtype=np.uint64)).proven == 1


def test_a_part_that_is_huge(client: Redis, ledger: Ledger) -> None:
    ledger.record(1, 9, np.array([98, 99], dtype=np.uint64))
    ledger.record(20, 30, np.array([5], dtype=np.uint64))
    client.set(PART, b"x" * (8 << 20))
    ledger.flush_memory()
    assert ledger.judge(EVENTS) == NOTHING
    assert ledger.available
    assert ledger.judge(np.array([[5, 5, 25, 0, 0]], dtype=np.uint64)).proven == 1
