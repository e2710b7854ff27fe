"""Redis's record of what was applied: proves duplicates, finds late events; losing it loses nothing (R9).

Per window and part one value: sorted 64-bit fingerprints of every event's halves, also of those that the net effect
swallowed. A window is listed once its commit is known; it counts as covered while all its values are there. Keys carry
the changefeed and the identity of its progress: a progress made anew, as for a topic made anew, has its own ledger.
"""

from collections import OrderedDict
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import orjson
import redis
import structlog
from redis.backoff import NoBackoff
from redis.retry import Retry

from ordering.errors import ConfigError

Fingerprints = npt.NDArray[np.uint64]

_PART = 1 << 17
_KEPT_WINDOWS = 512
_KEPT_BYTES = 256 << 20
_EXPIRE_S = 7 * 24 * 3600
_TIMEOUT_S = 2.0
_LOADED = 8
log = structlog.get_logger()


@dataclass(frozen=True, slots=True)
class Judgement:
    """What the ledger knows of events at or below the checkpoint; `late` indexes those that it never saw applied."""

    proven: int
    unproven: int
    late: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class _Entry:
    low: int
    high: int
    parts: int
    size: int


def _connect(uri: str) -> "redis.Redis":
    try:
        return redis.Redis.from_url(
            uri, socket_timeout=_TIMEOUT_S, socket_connect_timeout=_TIMEOUT_S, retry=Retry(NoBackoff(), 0)
        )
    except ValueError as error:
        raise ConfigError(f"redis.uri is wrong: {error}", hint="redis://[user:password@]host:port/db") from error


class Ledger:
    """The ledger of one changefeed. No method raises for Redis's sake: it answers "not covered" instead."""

    def __init__(self, uri: str, changefeed: str, identity: str) -> None:
        self._redis = _connect(uri) if uri else None
        self._prefix = f"ticdc-reconciler:{changefeed}:{identity}"
        self._loaded: OrderedDict[tuple[int, int], Fingerprints] = OrderedDict()
        self.available = self._redis is not None
        """Whether the last call reached Redis."""

    def record(self, low: int, high: int, prints: Fingerprints) -> None:
        """List the window (low, high] as covered, with the fingerprints of all its halves; after its commit."""
        ordered = np.unique(prints)
        parts = [ordered[i : i + _PART] for i in range(0, len(ordered), _PART)]
        entry = {"parts": len(parts), "bytes": int(ordered.nbytes)}

        def write(client: "redis.Redis") -> None:
            pipe = client.pipeline(transaction=False)
            for i, part in enumerate(parts):
                pipe.set(self._part(low, high, i), part.tobytes(), ex=_EXPIRE_S)
            pipe.hset(self._index, f"{low}-{high}", orjson.dumps(entry))
            pipe.expire(self._index, _EXPIRE_S)
            pipe.execute()
            self._trim(client)

        self._loaded.pop((low, high), None)
        self._with_redis(write, None)

    def judge(self, events: Fingerprints) -> Judgement:
        """Judge events at or below the checkpoint: rows of (fingerprint, another that proves it, commitTs, offset)."""
        if not len(events):
            return Judgement(0, 0, ())
        covered = np.zeros(len(events), dtype=bool)
        found = np.zeros(len(events), dtype=bool)
        for entry in self._with_redis(self._entries, []):
            inside = (events[:, 2] > entry.low) & (events[:, 2] <= entry.high)
            if not inside.any():
                continue
            prints = self._fingerprints(entry)
            if prints is None:
                continue
            covered |= inside
            found |= inside & (np.isin(events[:, 0], prints) | np.isin(events[:, 1], prints))
        late = np.flatnonzero(covered & ~found)
        return Judgement(int(found.sum()), int((~covered).sum()), tuple(int(i) for i in late))

    def flush_memory(self) -> None:
        """Forget what was loaded; for tests and after a changed leader."""
        self._loaded.clear()

    @property
    def _index(self) -> str:
        return f"{self._prefix}:windows"

    def _part(self, low: int, high: int, i: int) -> str:
        return f"{self._prefix}:window:{low}-{high}:{i}"

    def _with_redis(self, call: Any, otherwise: Any) -> Any:
        if self._redis is None:
            return otherwise
        try:
            answer = call(self._redis)
        except redis.RedisError as error:
            if self.available:
                log.warning("redis is out of reach; duplicates are dropped unproven meanwhile", error=str(error))
            self.available = False
            return otherwise
        if not self.available:
            log.info("redis answers again")
        self.available = True
        return answer

    def _entries(self, client: "redis.Redis") -> list[_Entry]:
        index: Mapping[bytes, bytes] = client.hgetall(self._index)  # type: ignore[assignment]
        found = []
        for name, value in index.items():
            low, high = name.decode().split("-")
            entry = orjson.loads(value)
            found.append(_Entry(int(low), int(high), entry["parts"], entry["bytes"]))
        return sorted(found, key=lambda e: (e.high, e.low))

    def _fingerprints(self, entry: _Entry) -> Fingerprints | None:
        """A window's fingerprints, or None if one of its values is gone: then nothing is covered."""
        key = (entry.low, entry.high)
        if key not in self._loaded:
            names = [self._part(entry.low, entry.high, i) for i in range(entry.parts)]
            values = self._with_redis(lambda client: client.mget(names) if names else [], [None])
            if any(value is None for value in values) or sum(map(len, values)) != entry.size:
                return None
            self._loaded[key] = np.frombuffer(b"".join(values), dtype=np.uint64)
            while len(self._loaded) > _LOADED:
                self._loaded.popitem(last=False)
        self._loaded.move_to_end(key)
        return self._loaded[key]

    def _trim(self, client: "redis.Redis") -> None:
        """Drop the oldest windows above the cap; nothing above a checkpoint is ever listed, so none is needed."""
        entries = self._entries(client)
        size, kept = 0, 0
        for entry in reversed(entries):
            size, kept = size + entry.size, kept + 1
            if kept > _KEPT_WINDOWS or size > _KEPT_BYTES:
                client.hdel(self._index, f"{entry.low}-{entry.high}")
                client.delete(*(self._part(entry.low, entry.high, i) for i in range(max(1, entry.parts))))

    def publish(self, status: Mapping[str, Any]) -> None:
        """Publish live status for `status` and the page; it expires when nobody renews it."""
        name = f"{self._prefix}:status"
        self._with_redis(lambda client: client.set(name, orjson.dumps(status), ex=60), None)

    def live_status(self) -> dict[str, Any] | None:
        """What the running instance last published."""
        value = self._with_redis(lambda client: client.get(f"{self._prefix}:status"), None)
        return None if value is None else orjson.loads(value)

    def ping(self) -> None:
        """Raise redis.RedisError if Redis can't be used; for `check`."""
        if self._redis is not None:
            self._redis.ping()

    def close(self) -> None:
        """Close the connection."""
        if self._redis is not None:
            self._redis.close()
