"""Free ports that stay free: a server that is stopped for a fault test must get its own port back.

A port from the kernel's ephemeral range can be taken by any outgoing connection while its server is down, and two
processes that both saw it free race for it. So ports come from below that range and are leased with a lock file.
"""

import secrets
import socket
from collections.abc import Iterator
from pathlib import Path
from typing import IO

from consumer.embedded.errors import EmbeddedError
from consumer.runtime.cache_dir import cache_directory
from consumer.runtime.file_locks import try_lock

FIRST_PORT = 20_000
LAST_PORT = 31_999
_TRIES = 500


class PortLease:
    """A port on 127.0.0.1 that no other lease of this user's processes has; given back by `release`."""

    def __init__(self, port: int, lock: IO[str] | None) -> None:
        self.port = port
        self._lock = lock

    def release(self) -> None:
        """Let others have the port."""
        if self._lock is not None:
            self._lock.close()
            self._lock = None


def lease_port(wanted: int | None = None) -> PortLease:
    """Lease `wanted`, or any free port; a wanted port is the caller's business and is not locked."""
    if wanted is not None:
        return PortLease(wanted, None)
    directory = cache_directory() / "ports"
    for port in _candidates():
        if lease := _try_lease(port, directory):
            return lease
    raise EmbeddedError(f"no free port between {FIRST_PORT} and {LAST_PORT} on 127.0.0.1", detail=f"tried {_TRIES}")


def is_free(port: int) -> bool:
    """Whether a server could listen on the port now."""
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("127.0.0.1", port))
        except OSError:
            return False
    return True


def answers(port: int) -> bool:
    """Whether something listens on the port now."""
    try:
        socket.create_connection(("127.0.0.1", port), timeout=1).close()
    except OSError:
        return False
    return True


def _candidates() -> Iterator[int]:
    # not `random`: test runners seed it, and every run would then try the same ports
    return iter(secrets.SystemRandom().sample(range(FIRST_PORT, LAST_PORT + 1), _TRIES))


def _try_lease(port: int, directory: Path) -> PortLease | None:
    lock = try_lock(directory / str(port))
    if lock is None:
        return None
    if is_free(port):
        return PortLease(port, lock)
    lock.close()
    return None
