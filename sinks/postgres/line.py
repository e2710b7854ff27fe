"""The line to a PostgreSQL server: an answer has an end, and so does what the server says beside answers.

libpq holds an answer whole before anybody can count its rows. So what counts are the bytes that came over the
connection, as the kernel counts them (Linux, `tcp_info` in `linux/tcp.h`), looked at whenever libpq waits for more.
"""

import socket
import struct
from collections.abc import Callable, Generator
from typing import Any, TypeVar

import psycopg

MOST_ANSWERED = 512 << 20
"""Bytes of the answer to a statement, or of one row where rows are not held, as with the MySQL family."""
MOST_OF_A_LOGIN = 1 << 20
_RECEIVED = struct.Struct("=Q")
_RECEIVED_AT = 128
"""Where `tcpi_bytes_received` stands, since Linux 4.1."""
T = TypeVar("T")


class Line(psycopg.Connection[tuple[Any, ...]]):
    """A connection that is closed by an answer which is too long: psycopg.OperationalError."""

    @classmethod
    def _connect_gen(cls, conninfo: str = "") -> Generator[tuple[int, Any], Any, "Line"]:
        """As psycopg's own: what logs in, within psycopg's limit in time."""

        def look(asked: tuple[int, Any]) -> None:
            if _received(asked[0]) > MOST_OF_A_LOGIN:
                fact = f"an answer of more than {MOST_OF_A_LOGIN >> 20} MiB to a login"
                raise psycopg.OperationalError(fact)

        return (yield from _watched(super()._connect_gen(conninfo), look))

    def wait(self, gen: Generator[Any, Any, T], *more: Any, **options: Any) -> T:
        """As psycopg's own: each statement, each row that is streamed, and each piece of a COPY waits by it."""
        most: int | None = None

        def look(_: Any) -> None:
            nonlocal most
            received = _received(self.pgconn.socket)
            if most is None:
                most = received + MOST_ANSWERED
            elif received > most:
                self.pgconn.finish()
                fact = f"an answer of more than {MOST_ANSWERED >> 20} MiB to one statement"
                raise psycopg.OperationalError(fact)

        return super().wait(_watched(gen, look), *more, **options)


def _watched(gen: Generator[Any, Any, T], look: Callable[[Any], None]) -> Generator[Any, Any, T]:
    """The same generator, with a look each time that it asks to wait."""
    ready: Any = None
    try:
        while True:
            asked = gen.send(ready)
            look(asked)
            ready = yield asked
    except StopIteration as end:
        found: T = end.value
        return found
    finally:
        gen.close()


def _received(descriptor: int) -> int:
    """Bytes that came over a connection so far; 0 where the kernel does not tell."""
    if not hasattr(socket, "TCP_INFO"):
        return 0
    with socket.socket(fileno=descriptor) as line:
        try:
            told = line.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, _RECEIVED_AT + _RECEIVED.size)
        except OSError:  # a socket of this machine
            return 0
        finally:
            line.detach()  # it is libpq's
    return _RECEIVED.unpack_from(told, _RECEIVED_AT)[0] if len(told) >= _RECEIVED_AT + _RECEIVED.size else 0
