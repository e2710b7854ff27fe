"""Connections to Redis: short waits, no retries of their own; whoever calls goes on without Redis (R9).

A server that is not what it should be may answer for ever, byte by byte, or announce a list of two billion elements. So
the whole answer to what was sent has a limit in time and in bytes, and it is read by redis-py's parser in Python: the
one of hiredis makes room for all elements that are announced, and frees it with the interpreter locked for minutes.
"""

import time
from typing import Any

import redis
from redis._parsers import _RESP2Parser  # the public `DefaultParser` is the one of hiredis where that is installed
from redis.backoff import NoBackoff
from redis.retry import Retry

from ordering.errors import ConfigError

UNUSABLE = (
    redis.RedisError, ValueError, TypeError, LookupError, AttributeError, ArithmeticError, RecursionError, MemoryError,
)  # fmt: skip
"""What a call may raise for Redis's sake: it is out of reach, or answers what no Redis does. redis-py converts answers
before it hands them over, and raises Python's own errors for those of another type."""
MOST_ANSWERED = 4 << 20
"""Bytes of the answer to a command, or to a pipeline."""


class AnswerTooLongError(redis.ConnectionError):
    """More than `MOST_ANSWERED`; the connection is closed."""


class _BoundedSocket:
    """A socket that ends an answer which is too long in time or in bytes. Each sending begins a new answer."""

    def __init__(self, line: Any, whole_s: float) -> None:
        self._line, self._whole_s = line, whole_s
        self._begin()

    def _begin(self) -> None:
        self._until, self._left = time.monotonic() + self._whole_s, MOST_ANSWERED

    def __getattr__(self, name: str) -> Any:
        return getattr(self._line, name)

    def sendall(self, *given: Any) -> None:
        """As the socket's own."""
        self._line.sendall(*given)
        self._begin()

    def recv(self, size: int, flags: int = 0) -> bytes:
        """As the socket's own. Raises AnswerTooLongError and TimeoutError for an answer that is too long."""
        found: bytes = self._line.recv(size, flags)
        self._took(0 if flags else len(found))
        return found

    def recv_into(self, *given: Any) -> int:
        """See `recv`."""
        return self._took(self._line.recv_into(*given))

    def _took(self, size: int) -> int:
        self._left -= size
        if self._left < 0:
            raise AnswerTooLongError(f"an answer is longer than {MOST_ANSWERED >> 20} MiB")
        if size and time.monotonic() > self._until:
            raise redis.TimeoutError(f"an answer is not whole after {self._whole_s:g} s")
        return size


def redis_client(uri: str, wait_s: float, whole_s: float) -> "redis.Redis":
    """A client of `redis.uri`, not connected yet. Raises ConfigError.

    It waits at most `wait_s` for the next bytes of an answer, and at most about `whole_s` for all of it.
    """
    try:
        pool = redis.ConnectionPool.from_url(
            uri,
            socket_timeout=wait_s,
            socket_connect_timeout=wait_s,
            retry=Retry(NoBackoff(), 0),
            protocol=2,
            parser_class=_RESP2Parser,
        )
    except (ValueError, TypeError) as error:  # their texts may hold the password
        raise ConfigError("redis.uri is wrong", hint="redis://[user:password@]host:port/db") from error
    kind = pool.connection_class

    class Bounded(kind):  # type: ignore[misc,valid-type]  # over TCP, TLS or a file
        def _connect(self) -> _BoundedSocket:
            return _BoundedSocket(super()._connect(), whole_s)

    pool.connection_class = Bounded
    return redis.Redis.from_pool(pool)
