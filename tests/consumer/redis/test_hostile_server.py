"""A server in the place of Redis that answers what it likes: no call takes long, fills the memory or raises a bug."""

import resource
import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Any

import numpy as np
import pytest

from consumer.redis import ledger_connection
from consumer.redis.ledger import Ledger
from consumer.run.heartbeat import RedisLease

Answer = Callable[[socket.socket, threading.Event], None]


@contextmanager
def server(answer: Answer) -> Iterator[str]:
    """Each thing that is sent gets this answer."""
    ended, listening = threading.Event(), socket.create_server(("127.0.0.1", 0))

    def serve(line: socket.socket) -> None:
        with line, suppress(OSError):
            while line.recv(1 << 16):
                answer(line, ended)

    def accept() -> None:
        with suppress(OSError):
            while True:
                threading.Thread(target=serve, args=(listening.accept()[0],), daemon=True).start()

    threading.Thread(target=accept, daemon=True).start()
    try:
        yield f"redis://127.0.0.1:{listening.getsockname()[1]}/0"
    finally:
        ended.set()
        listening.shutdown(socket.SHUT_RDWR)
        listening.close()


def said(*texts: bytes) -> Answer:
    def answer(line: socket.socket, _: threading.Event) -> None:
        for text in texts:
            line.sendall(text)

    return answer


def for_ever(text: bytes, pause_s: float) -> Answer:
    def answer(line: socket.socket, ended: threading.Event) -> None:
        while not ended.wait(pause_s):
            line.sendall(text)

    return answer


ANSWERS: dict[str, Answer] = {
    "dripping": for_ever(b"x", 0.02),
    "dripping list": for_ever(b"*1\r\n", 0.02),
    "endless": for_ever(b"x" * 65536, 0),
    "endless value": for_ever(b"$9223372036854775807\r\n" + b"x" * 65536, 0),
    "endless list": for_ever(b"*4294967295\r\n:1\r\n", 0),
    "announced list": said(b"*2147483647\r\n", b":1\r\n"),
    "announced set": said(b"~2000000000\r\n", b":1\r\n"),
    "announced map": said(b"%2147483647\r\n", b":1\r\n"),
    "deep": said(b"*1\r\n" * 300_000),
    "number": said(b":" + b"9" * 100_000 + b"\r\n"),
    "negative": said(b"*-7\r\n", b"$-7\r\n"),
    "nothing": said(b"\r\n" * 1000),
    "other type": said(b"+OK\r\n" * 1000),
    "error": said(b"-ERR \x00\xff\r\n"),
}


def calls(ours: Ledger) -> list[Any]:
    """What a round asks and tells."""
    events = np.array([[1, 2, 5, 0]], dtype=np.uint64)
    ours.record(1, 2, np.arange(10, dtype=np.uint64))
    return [ours.judge(events).late, ours.live_status(), ours.publish({"a": 1})]


@pytest.mark.parametrize("name", ANSWERS)
def test_no_answer_holds_a_round(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ledger_connection, "_WHOLE_S", 0.2)
    monkeypatch.setattr(ledger_connection, "_TIMEOUT_S", 0.2)
    before_kb, began, used = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss, time.monotonic(), time.process_time()
    with server(ANSWERS[name]) as uri:
        ours = Ledger(uri, "f", "i", "k")
        assert calls(ours) == [(), None, None]
        ours.close()
        lease = RedisLease(uri, "f", 3)
        lease.renew("me")
        lease.is_held()
        lease.release("me")
        lease.close()
    assert time.monotonic() - began < 60
    assert time.process_time() - used < 20
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before_kb < 200 << 10
