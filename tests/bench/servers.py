"""Target servers of the benchmarks, with memory enough for their loads."""

from collections.abc import Callable
from pathlib import Path

from consumer.embedded import MariaDbServer, PostgresServer, TidbServer

Server = MariaDbServer | PostgresServer | TidbServer
SERVERS: dict[str, Callable[[Path], Server]] = {
    "mysql": lambda place: MariaDbServer(place, flush_at_commit=2, buffer_pool="1G"),
    "postgresql": lambda place: PostgresServer(place, extra={"shared_buffers": "1GB", "max_wal_size": "4GB"}),
    "tidb": TidbServer,
}
