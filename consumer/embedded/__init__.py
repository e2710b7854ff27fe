"""Real servers on one machine, as child processes: Kafka and Redis; no root, no containers.

The demo, the tests and the benchmark share them; tests have servers of databases too (`tests.embedded`). Each server
is a context manager over a data directory:

    with KafkaBroker(tmp / "kafka") as kafka, RedisServer(tmp / "redis") as redis:
        run(kafka.bootstrap, redis.uri)

What the machine has is used; what it lacks comes from Python wheels and pinned, checked jars in the cache.
No server outlives the process that started it, however that process ends (`die_with_parent`).

Each is imported when it is first named: asking where Java lies loads no server.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from consumer.embedded.errors import EmbeddedError
    from consumer.embedded.java import java_home
    from consumer.embedded.kafka import KafkaBroker
    from consumer.embedded.redis import RedisServer

__all__ = [
    "EmbeddedError",
    "KafkaBroker",
    "RedisServer",
    "java_home",
]
_MODULES = {
    "EmbeddedError": "errors",
    "KafkaBroker": "kafka",
    "RedisServer": "redis",
    "java_home": "java",
}


def __getattr__(name: str) -> Any:
    if name not in _MODULES:
        message = f"module {__name__!r} has no attribute {name!r}"
        raise AttributeError(message)
    return getattr(import_module(f"{__name__}.{_MODULES[name]}"), name)
