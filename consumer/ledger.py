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
import orjson
import redis
import structlog

from consumer.fingerprints import Fingerprints, distinct
from consumer.redis_client import redis_client

_PART = 1 << 17
_MERGED = 1 << 14
_KEPT_WINDOWS = 2048
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
class _Window:
    low: int
    high: int
    prints: Fingerprints


@dataclass(frozen=True, slots=True)
class _Entry:
    low: int
    high: int
    parts: int
    size: int

    @property
    def is_possible(self) -> bool:
        """Whether a window can be listed so."""
        whole, rest = divmod(self.size, 8)
        return rest == 0 and whole >= 0 and self.parts == -(-whole // _PART)


class Ledger:
    """The ledger of one changefeed. No method raises for Redis's sake: it answers "not covered" instead."""

    def __init__(self, uri: str, changefeed: str, identity: str) -> None:
        self._redis = redis_client(uri, _TIMEOUT_S) if uri else None
        self._prefix = f"ticdc-reconciler:{changefeed}:{identity}"
        self._loaded: OrderedDict[tuple[int, int], Fingerprints] = OrderedDict()
        self._last: _Window | None = None
        self._bytes: int | None = None
        """What Redis holds of this ledger; None: whatever earlier processes left is not summed up yet."""
        self.available = self._redis is not None
        """Whether the last call reached Redis."""

    def record(self, low: int, high: int, prints: Fingerprints) -> None:
        """List the window (low, high] as covered, with the fingerprints of all its halves; after its commit.

        Small neighbours are kept as one entry, so that hours of live windows stay covered.
        """
        new, replaced = _Window(low, high, distinct(prints)), self._last
        if replaced is not None and replaced.high == low and len(replaced.prints) + len(new.prints) <= _MERGED:
            new = _Window(replaced.low, high, distinct(np.concatenate([replaced.prints, new.prints])))
        else:
            replaced = None
        self._last = new
        self._loaded.pop((new.low, new.high), None)
        self._with_redis(lambda client: self._write(client, new, replaced), None)

    def _write(self, client: "redis.Redis", new: "_Window", replaced: "_Window | None") -> None:
        parts = [new.prints[i : i + _PART] for i in range(0, len(new.prints), _PART)]
        pipe = client.pipeline(transaction=False)
        entry = {"parts": len(parts), "bytes": int(new.prints.nbytes)}
        # listed first: a value that no list names would be outside of the cap, an entry without values covers nothing
        pipe.hset(self._index, f"{new.low}-{new.high}", orjson.dumps(entry))
        for i, part in enumerate(parts):
            pipe.set(self._part(new.low, new.high, i), part.tobytes(), ex=_EXPIRE_S)
        if replaced is not None:
            pipe.hdel(self._index, f"{replaced.low}-{replaced.high}")
            pipe.delete(self._part(replaced.low, replaced.high, 0))
        pipe.expire(self._index, _EXPIRE_S)
        pipe.hlen(self._index)
        listed = pipe.execute()[-1]
        if self._bytes is not None:
            self._bytes += entry["bytes"]
        if self._bytes is None or listed > _KEPT_WINDOWS or self._bytes > _KEPT_BYTES:
            self._trim(client)

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
            try:
                low, high = map(int, name.decode().split("-"))
                entry = orjson.loads(value)
                told = _Entry(low, high, int(entry["parts"]), int(entry["bytes"]))
            except (ValueError, TypeError, KeyError):
                continue  # Redis is others' to write to: what is no entry covers nothing
            if told.is_possible:
                found.append(told)
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
        """Drop the oldest windows above the cap; the last one always stays."""
        size, kept = 0, 0
        pipe = client.pipeline(transaction=False)
        for entry in reversed(self._entries(client)):
            if kept and (kept >= _KEPT_WINDOWS or size + entry.size > _KEPT_BYTES):
                pipe.delete(*(self._part(entry.low, entry.high, i) for i in range(max(1, entry.parts))))
                pipe.hdel(self._index, f"{entry.low}-{entry.high}")
            else:
                size, kept = size + entry.size, kept + 1
        pipe.execute()
        self._bytes = size

    def publish(self, status: Mapping[str, Any]) -> None:
        """Publish live status for `status` and the page; it expires when nobody renews it."""
        name = f"{self._prefix}:status"
        self._with_redis(lambda client: client.set(name, orjson.dumps(status), ex=60), None)

    def live_status(self) -> dict[str, Any] | None:
        """What the running instance last published."""
        value = self._with_redis(lambda client: client.get(f"{self._prefix}:status"), None)
        return None if value is None else orjson.loads(value)

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
        pipe.mget([name])
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
