"""Connections to PostgreSQL whose answers have an end.

libpq holds an answer whole before anybody can count its rows, and reads one message, which may be 2 GiB long, for as
long as its bytes come. So a thread looks at the connections that wait for an answer, at the bytes that each has
received, as the kernel counts them (Linux, `tcp_info` in `linux/tcp.h`), and ends the one whose answer is too long.
"""

import os
import socket
import struct
import threading
import time
from collections.abc import Generator
from contextlib import closing, suppress
from typing import Any, TypeVar

import psycopg

MOST_ANSWERED = 512 << 20
"""Bytes of the answer to a statement, or of one row where rows are not held, as with the MySQL family.

What comes between two looks comes on top.
"""
MOST_OF_A_LOGIN = 1 << 20
_BETWEEN_LOOKS_S = 0.02
_RECEIVED = struct.Struct("=Q")
_RECEIVED_AT = 128
"""Where `tcpi_bytes_received` stands, since Linux 4.1."""
T = TypeVar("T")


class CountedConnection(psycopg.Connection[tuple[Any, ...]]):
    """A connection that is closed by an answer which is too long: psycopg.OperationalError."""

    _answer: "_Answer | None" = None

    @classmethod
    def _connect_gen(cls, *given: Any, **options: Any) -> Generator[tuple[int, Any], Any, "CountedConnection"]:
        """As psycopg's own, whatever a release of it takes: what logs in, within psycopg's limit in time."""
        return (yield from _login_counted(super()._connect_gen(*given, **options)))

    def wait(self, gen: Generator[Any, Any, T], *more: Any, **options: Any) -> T:
        """As psycopg's own: each statement, each row that is streamed, and each piece of a COPY waits by it."""
        answer = self._answer
        if answer is None:
            answer = self._answer = _Answer(self.pgconn.socket, f"more than {MOST_ANSWERED >> 20} MiB to one statement")
        answer.turn += 1
        _looks.begin(answer)
        try:
            return super().wait(gen, *more, **options)
        finally:
            try:
                _looks.end(answer)
            except psycopg.OperationalError:
                self.pgconn.finish()
                raise


def _login_counted(gen: Generator[Any, Any, T]) -> Generator[Any, Any, T]:
    """The same generator, with each socket that it tries looked at."""
    answer: _Answer | None = None
    with closing(gen):
        asked = next(gen)
        while True:
            if answer is None or not answer.is_of(asked[0]):
                answer = _Answer(asked[0], f"more than {MOST_OF_A_LOGIN >> 20} MiB to a login", MOST_OF_A_LOGIN)
            _looks.begin(answer)
            try:
                ready = yield asked
                asked = gen.send(ready)
            except StopIteration as end:
                found: T = end.value
                return found
            finally:
                _looks.end(answer)


class _Answer:
    """What a connection waits for. `end`: bytes of the connection at which it is too long; else counted each turn."""

    def __init__(self, descriptor: int, too_long: str, end: int | None = None) -> None:
        self._descriptor, self._inode = descriptor, os.fstat(descriptor).st_ino
        self.too_long, self._end, self.turn, self._looked = too_long, end, 0, 0
        self.is_cut = False

    def is_of(self, descriptor: int) -> bool:
        """Whether it is this socket's."""
        return self._descriptor == descriptor and self._inode == os.fstat(descriptor).st_ino

    def look(self) -> None:
        """End the connection if the answer is too long."""
        try:
            own = os.dup(self._descriptor)
        except OSError:  # libpq has closed it
            return
        try:
            line = socket.socket(fileno=own)
        except OSError:  # and a file got its number
            os.close(own)
            return
        with line:
            if os.fstat(line.fileno()).st_ino == self._inode:  # else somebody else got its number
                self._judge(line)

    def _judge(self, line: socket.socket) -> None:
        received = _received(line)
        if self._end is None or self._looked != self.turn:
            self._looked, self._end = self.turn, received + MOST_ANSWERED
        elif received > self._end:
            self.is_cut = True
            with suppress(OSError):  # the server was faster
                line.shutdown(socket.SHUT_RDWR)


class _Looks:
    """The thread of this process that looks, while there is something to look at."""

    def __init__(self) -> None:
        self._waiting: set[_Answer] = set()
        self._some = threading.Event()
        self._starting = threading.Lock()
        self._is_started = False

    def begin(self, answer: _Answer) -> None:
        """Look at it from now on."""
        if not self._is_started:
            self._start()
        self._waiting.add(answer)
        if not self._some.is_set():
            self._some.set()

    def end(self, answer: _Answer) -> None:
        """Look at it no more. Raises psycopg.OperationalError for one that was too long."""
        self._waiting.discard(answer)
        if answer.is_cut:
            raise psycopg.OperationalError(f"an answer of {answer.too_long}")

    def _start(self) -> None:
        with self._starting:
            if not self._is_started:
                threading.Thread(target=self._look_for_ever, name="answers of PostgreSQL", daemon=True).start()
                self._is_started = True

    def _look_for_ever(self) -> None:
        while self._some.wait():
            for answer in self._waiting.copy():
                answer.look()
            time.sleep(_BETWEEN_LOOKS_S)  # a pace: most answers have come before they are looked at
            if not self._waiting:
                self._some.clear()
                if self._waiting:
                    self._some.set()


_looks = _Looks()


def _forked() -> None:
    """The thread is not forked with the process."""
    global _looks  # noqa: PLW0603 each process has its own
    _looks = _Looks()


os.register_at_fork(after_in_child=_forked)


def _received(line: socket.socket) -> int:
    """Bytes that came over a connection so far; 0 where the kernel does not tell."""
    if not hasattr(socket, "TCP_INFO"):
        return 0
    try:
        told = line.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, _RECEIVED_AT + _RECEIVED.size)
    except OSError:  # a socket of this machine
        return 0
    return _RECEIVED.unpack_from(told, _RECEIVED_AT)[0] if len(told) >= _RECEIVED_AT + _RECEIVED.size else 0
