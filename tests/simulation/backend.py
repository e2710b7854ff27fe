"""Redis in memory, as far as the ledger uses it; it can be out of reach, be flushed, and lose single values."""

import random
from collections.abc import Callable
from typing import Any

import redis


def _octets(name: str | bytes) -> bytes:
    return name if isinstance(name, bytes) else name.encode()


class FakeRedis:
    """A server and its client in one."""

    def __init__(self) -> None:
        self.values: dict[str, Any] = {}
        self.down = False

    def _reach(self) -> None:
        if self.down:
            raise redis.ConnectionError("simulated: connection refused")

    def flush(self) -> None:
        """Forget everything."""
        self.values.clear()

    def evict(self, chance: random.Random) -> None:
        """Lose one value."""
        parts = [name for name in sorted(self.values) if ":window:" in name]
        if parts:
            del self.values[chance.choice(parts)]

    def pipeline(self, *, transaction: bool) -> "FakePipeline":
        """As redis-py's."""
        assert not transaction
        return FakePipeline(self)

    def set(self, name: str, value: bytes, ex: int) -> None:
        """SET."""
        assert ex > 0
        self._reach()
        self.values[name] = value

    def get(self, name: str) -> bytes | None:
        """GET."""
        self._reach()
        return self.values.get(name)

    def hset(self, name: str, field: str | bytes, value: bytes) -> None:
        """HSET; as with redis-py, a text's bytes are the name."""
        self._reach()
        self.values.setdefault(name, {})[_octets(field)] = value

    def hgetall(self, name: str) -> dict[bytes, bytes]:
        """HGETALL."""
        self._reach()
        return dict(self.values.get(name, {}))

    def hlen(self, name: str) -> int:
        """HLEN."""
        self._reach()
        return len(self.values.get(name, {}))

    def hdel(self, name: str, field: str | bytes) -> None:
        """HDEL."""
        self._reach()
        self.values.get(name, {}).pop(_octets(field), None)

    def delete(self, *names: str) -> None:
        """DEL."""
        self._reach()
        for name in names:
            self.values.pop(name, None)

    def expire(self, name: str, seconds: int) -> None:
        """EXPIRE: no time passes here."""
        assert name
        assert seconds > 0
        self._reach()

    def close(self) -> None:
        """Close nothing."""


class FakePipeline:
    """Commands that are sent together."""

    def __init__(self, server: FakeRedis) -> None:
        self._server = server
        self._queued: list[Callable[[], Any]] = []

    def __getattr__(self, command: str) -> Callable[..., None]:
        def queue(*args: Any, **more: Any) -> None:
            self._queued.append(lambda: getattr(self._server, command)(*args, **more))

        return queue

    def execute(self) -> list[Any]:
        """Send them."""
        return [command() for command in self._queued]
