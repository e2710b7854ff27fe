"""Real servers on one machine, as child processes: Kafka, Redis, MariaDB, PostgreSQL, TiDB; no root, no containers.

The demo, the tests and the benchmark share them. Each server is a context manager over a data directory:

    with KafkaBroker(tmp / "kafka") as kafka, MariaDbServer(tmp / "mariadb") as mariadb:
        run(kafka.bootstrap, mariadb.uri)

What the machine has is used; what it lacks comes from Python wheels and pinned, checked jars in the cache (`paths`).
No server outlives the process that started it, however that process ends (`guard`).

Each is imported when it is first named: who asks only where Java lies doesn't load drivers of databases.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from consumer.embedded.errors import EmbeddedError
    from consumer.embedded.java import java_home
    from consumer.embedded.kafka import KafkaBroker
    from consumer.embedded.mariadb import MariaDbServer
    from consumer.embedded.postgres import PostgresServer
    from consumer.embedded.redis import RedisServer
    from consumer.embedded.tidb import TidbServer

__all__ = [
    "EmbeddedError",
    "KafkaBroker",
    "MariaDbServer",
    "PostgresServer",
    "RedisServer",
    "TidbServer",
    "java_home",
]
_MODULES = {
    "EmbeddedError": "errors",
    "KafkaBroker": "kafka",
    "MariaDbServer": "mariadb",
    "PostgresServer": "postgres",
    "RedisServer": "redis",
    "TidbServer": "tidb",
    "java_home": "java",
}


def __getattr__(name: str) -> Any:
    if name not in _MODULES:
        message = f"module {__name__!r} has no attribute {name!r}"
        raise AttributeError(message)
    return getattr(import_module(f"{__name__}.{_MODULES[name]}"), name)
