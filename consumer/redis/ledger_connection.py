"""The connection to Redis that a changefeed's ledger uses, and what a run shows of itself there.

Apart from the ledger, so that `status` and `check` need not load what judges fingerprints.
"""

from collections.abc import Mapping
from typing import Any

import orjson
import structlog

from consumer.redis.client import UNUSABLE, redis_client

_TIMEOUT_S = 2.0
_WHOLE_S = 10.0
_SHOWN = 200
log = structlog.get_logger()


def _object(value: object) -> dict[str, Any] | None:
    try:
        found = orjson.loads(value) if isinstance(value, bytes) else None
    except orjson.JSONDecodeError:
        return None
    return found if isinstance(found, dict) else None


class LedgerConnection:
    """Of one changefeed; `identity`: that of its progress. Only `ping` raises for Redis's sake."""

    def __init__(self, uri: str, changefeed: str, identity: str) -> None:
        self._redis = redis_client(uri, _TIMEOUT_S, _WHOLE_S) if uri else None
        self._prefix = f"ticdc-reconciler:{changefeed}:{identity}"
        self.available: bool | None = None
        """Whether the last call reached Redis; None before the first, and without Redis."""

    def _with_redis(self, call: Any, otherwise: Any) -> Any:
        if self._redis is None:
            return otherwise
        try:
            answer = call(self._redis)
        except UNUSABLE as error:
            if self.available is not False:
                text = f"{type(error).__name__}: {error}"[:_SHOWN]
                log.warning("redis can't be used; duplicates are dropped unproven meanwhile", error=text)
            self.available = False
            return otherwise
        if self.available is False:
            log.info("redis answers again")
        self.available = True
        return answer

    def publish(self, status: Mapping[str, Any]) -> None:
        """Publish live status for `status` and the page; it expires when nobody renews it."""
        name = f"{self._prefix}:status"
        self._with_redis(lambda client: client.set(name, orjson.dumps(status), ex=60), None)

    def live_status(self) -> dict[str, Any] | None:
        """What the running instance last published; None for nothing, and for what others wrote in its place."""
        found: dict[str, Any] | None
        found = self._with_redis(lambda client: _object(client.get(f"{self._prefix}:status")), None)
        return found

    def ping(self) -> None:
        """Raise redis.RedisError if Redis can't be used; for `check`: tries every command that changes nothing."""
        if self._redis is None:
            return
        self._redis.ping()
        name = f"{self._prefix}:nothing"  # a key that nobody ever makes
        pipe = self._redis.pipeline(transaction=False)
        pipe.hgetall(name)
        pipe.hlen(name)
        pipe.hdel(name, "x")
        pipe.get(name)
        pipe.exists(name)
        pipe.expire(name, 1)
        pipe.delete(name)
        pipe.set(name, b"", xx=True)
        pipe.execute()

    def close(self) -> None:
        """Close the connection."""
        if self._redis is not None:
            self._redis.close()
