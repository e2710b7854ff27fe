"""The line to a MySQL-family server: it learns no password that is not for it, and is noticed when it is gone."""

import socket
import ssl
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pymysql
from pymysql.connections import Connection
from pymysql.constants import CR
from pymysql.protocol import MysqlPacket

from sinks.mysql.login import (
    ANSWER_BYTES,
    NOT_UNDERSTOOD,
    PasswordKeptError,
    Trust,
    handler_of,
    shows_password,
    trust_of,
)
from sinks.mysql.tls import encryption, pinned_key, unverified
from sinks.uri import TargetUri

_SILENCE = {"TCP_KEEPIDLE": 30, "TCP_KEEPINTVL": 10, "TCP_KEEPCNT": 3, "TCP_USER_TIMEOUT": 60_000}
"""A machine that acknowledges nothing for a minute is given up, as with PostgreSQL. Seconds, but for the last."""
_CONNECT_TIMEOUT_S = 10
_FIRST_PROOF = "mysql_native_password"
MOST_ANSWERED = 512 << 20
"""Bytes of the answer to a query whose rows are held, or of one row where they are not: no server of ours says more."""
_PER_READ = 32
"""What each part of an answer costs besides its bytes: rows of nothing would be without end too."""


class Line(Connection):  # type: ignore[misc]  # untyped
    """Each answer of a login has to come within `connect_timeout`; statements may take as long as they need.

    PyMySQL would wait for ever for a greeting that never comes: its limit is for the TCP connection alone. It would
    also take any TLS for a secure line, and any key for the server's: here both count only as far as the URI trusts
    them (see `sinks.mysql.login`). Raises ConfigError for files of the URI that can't be used.
    """

    _auth_plugin_name: str

    def __init__(self, uri: TargetUri, **settings: Any) -> None:
        self._trust, self._encrypted, self._in_login = trust_of(uri), False, False
        self._public_key: bytes | None = None
        self._answered, self._unbuffered = 0, False
        super().__init__(
            host=uri.host,
            port=uri.port,
            user=uri.user,
            password=uri.password.encode(),  # of a text PyMySQL takes Latin-1 only
            charset="utf8mb4",
            autocommit=True,
            connect_timeout=_CONNECT_TIMEOUT_S,
            program_name="ticdc-reconciler",
            max_allowed_packet=1 << 30,
            server_public_key=pinned_key(uri),
            **encryption(uri),
            **settings,
        )

    def connect(self, sock: Any = None) -> None:
        """Connect and log in; see `pymysql.connections.Connection.connect`."""
        self._read_timeout = self._write_timeout = self.connect_timeout  # TLS is negotiated under the latter
        self._encrypted, self._in_login = False, True
        with self._understood():
            super().connect(sock)
        self._read_timeout = self._write_timeout = None
        for name, value in _SILENCE.items():
            if hasattr(socket, name):  # not everywhere
                self._sock.setsockopt(socket.IPPROTO_TCP, getattr(socket, name), value)

    @property
    def _secure(self) -> bool:
        """What PyMySQL asks before it sends the password as it is: nothing but TLS, to whom the URI trusts."""
        if self._trust is Trust.VERIFIED:
            return self._encrypted and self.ctx.verify_mode is ssl.CERT_REQUIRED
        return self._encrypted and self._trust is Trust.ANYBODY

    @_secure.setter
    def _secure(self, encrypted: bool) -> None:
        self._encrypted = encrypted

    @property
    def server_public_key(self) -> bytes | None:
        """The RSA key that the password is encrypted with where there is no TLS."""
        return self._public_key

    @server_public_key.setter
    def server_public_key(self, key: bytes | None) -> None:
        """Take a key: ours, or during a login the server's own."""
        if self._in_login and self._trust is not Trust.ANYBODY:
            raise PasswordKeptError("the server shows a key of its own")
        self._public_key = key

    def _create_ssl_ctx(self, sslp: Any) -> Any:
        return super()._create_ssl_ctx(sslp) if sslp else unverified()

    def _request_authentication(self) -> None:
        if self._auth_plugin_name == "sha256_password":
            # its first answer would be the password; so the server asks again, and is judged
            self._auth_plugin_name = _FIRST_PROOF
        super()._request_authentication()
        self._in_login = False

    def _get_auth_plugin_handler(self, plugin_name: Any) -> Any:
        name = plugin_name.decode("ascii", "replace") if isinstance(plugin_name, bytes) else str(plugin_name)
        return handler_of(self, name, self._trust)

    def write_packet(self, payload: bytes) -> None:
        """Send a packet; the net under all of the above: during a login, never the password as it is to a stranger."""
        user = self.user if isinstance(self.user, bytes) else str(self.user).encode()
        if self._in_login and not self._secure and shows_password(bytes(payload), user, self.password):
            self._force_close()
            raise PasswordKeptError("this login would send the password as it is")
        super().write_packet(payload)

    def _read_bytes(self, num_bytes: int) -> bytes:
        if self._in_login and num_bytes > ANSWER_BYTES:
            self._force_close()
            raise pymysql.err.OperationalError(CR.CR_MALFORMED_PACKET, f"an answer of {num_bytes} bytes to a login")
        self._answered += num_bytes + _PER_READ
        if self._answered > MOST_ANSWERED:
            self._force_close()
            fact = f"an answer of more than {MOST_ANSWERED >> 20} MiB to one query"
            raise pymysql.err.OperationalError(CR.CR_MALFORMED_PACKET, fact)
        return bytes(super()._read_bytes(num_bytes))

    def _read_packet(self, packet_type: Any = MysqlPacket) -> Any:
        if self._unbuffered:
            self._answered = 0
        return super()._read_packet(packet_type)

    def _read_query_result(self, unbuffered: bool = False) -> int:
        self._answered, self._unbuffered = 0, unbuffered
        with self._understood():
            return int(super()._read_query_result(unbuffered))

    @contextmanager
    def _understood(self) -> Iterator[None]:
        """Turn what PyMySQL raises over answers that are none into an error of the connection's."""
        try:
            yield
        except RuntimeError as error:  # a plugin that needs a package which is not installed
            self._force_close()
            raise pymysql.err.OperationalError(CR.CR_AUTH_PLUGIN_CANNOT_LOAD, str(error)) from error
        except NOT_UNDERSTOOD as error:
            self._force_close()
            fact = f"the server's answer is none of MySQL's protocol: {type(error).__name__}"
            raise pymysql.err.OperationalError(CR.CR_MALFORMED_PACKET, fact) from error
