"""The line to a MySQL-family server: one that never answers a login, or is no longer there, is noticed."""

import socket
from typing import Any

from pymysql.connections import Connection

_SILENCE = {"TCP_KEEPIDLE": 30, "TCP_KEEPINTVL": 10, "TCP_KEEPCNT": 3, "TCP_USER_TIMEOUT": 60_000}
"""A machine that acknowledges nothing for a minute is given up, as with PostgreSQL. Seconds, but for the last."""


class Line(Connection):  # type: ignore[misc]  # untyped
    """Each answer of a login has to come within `connect_timeout`; statements may take as long as they need.

    PyMySQL would wait for ever for a greeting that never comes: its limit is for the TCP connection alone.
    """

    def connect(self, sock: Any = None) -> None:
        """Connect and log in; see `pymysql.connections.Connection.connect`."""
        self._read_timeout = self._write_timeout = self.connect_timeout  # TLS is negotiated under the latter
        super().connect(sock)
        self._read_timeout = self._write_timeout = None
        for name, value in _SILENCE.items():
            if hasattr(socket, name):  # not everywhere
                self._sock.setsockopt(socket.IPPROTO_TCP, getattr(socket, name), value)
