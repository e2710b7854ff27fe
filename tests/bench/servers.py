"""Target servers of the benchmarks, with memory enough for their loads."""

from collections.abc import Callable
from functools import partial
from pathlib import Path

from tests.embedded import MariaDbServer, PostgresServer, TidbServer

Server = MariaDbServer | PostgresServer | TidbServer


def _mariadb(place: Path, *, durable: bool) -> MariaDbServer:
    return MariaDbServer(place, flush_at_commit=1 if durable else 2, buffer_pool="1G")


def _postgres(place: Path, *, durable: bool) -> PostgresServer:
    return PostgresServer(place, durable=durable, extra={"shared_buffers": "1GB", "max_wal_size": "4GB"})


DURABLE: dict[str, Callable[[Path], MariaDbServer | PostgresServer]] = {
    "mysql": partial(_mariadb, durable=True),
    "postgresql": partial(_postgres, durable=True),
}
"""Each commit is on the disk, as by default."""
SERVERS: dict[str, Callable[[Path], Server]] = {
    "mysql": partial(_mariadb, durable=False),
    "postgresql": partial(_postgres, durable=False),
    "tidb": TidbServer,
}
"""A crash of the machine may cost what was committed last."""
