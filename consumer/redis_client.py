"""Connections to Redis: short waits, no retries of their own; whoever calls goes on without Redis (R9)."""

import redis
from redis.backoff import NoBackoff
from redis.retry import Retry

from ordering.errors import ConfigError

UNUSABLE = (redis.RedisError, ValueError, TypeError, LookupError, AttributeError, ArithmeticError)
"""What a call may raise for Redis's sake: it is out of reach, or answers what no Redis does. redis-py converts answers
before it hands them over, and raises Python's own errors for those of another type."""


def redis_client(uri: str, wait_s: float) -> "redis.Redis":
    """A client of `redis.uri` that waits at most so long for an answer; not connected yet. Raises ConfigError."""
    try:
        return redis.Redis.from_url(
            uri, socket_timeout=wait_s, socket_connect_timeout=wait_s, retry=Retry(NoBackoff(), 0)
        )
    except (ValueError, TypeError) as error:  # their texts may hold the password
        raise ConfigError("redis.uri is wrong", hint="redis://[user:password@]host:port/db") from error
