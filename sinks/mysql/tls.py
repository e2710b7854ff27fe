"""How a MySQL-family connection is encrypted, and what of it a server may not talk us into.

Modes are MySQL's own (MySQL documentation, "Command Options for Encrypted Connections"). Without any option a
connection is encrypted where the server offers it, and nothing is verified: that keeps out who only listens.
"""

import ssl
from typing import Any

import pymysql

from ordering.errors import ConfigError
from sinks.uri import TargetUri

_SSL_ERROR = 2026
_NO_SUCH_PLUGIN = 2059
HINT = (
    "check ssl-ca, ssl-cert, ssl-key and ssl-mode of the URI, and that its host is a name in the server's certificate"
)


def encryption(uri: TargetUri) -> dict[str, Any]:
    """PyMySQL's arguments for what the URI asks for. Raises ConfigError for files that can't be used."""
    found = dict(uri.options)
    mode = found.get("ssl-mode", "preferred")
    if mode == "disabled":
        return {"ssl_disabled": True}
    if mode == "preferred":
        return {}
    try:
        context = ssl.create_default_context(cafile=found.get("ssl-ca"))
        if "ssl-cert" in found:
            # an empty password where a key asks for one: OpenSSL would ask on the terminal
            context.load_cert_chain(found["ssl-cert"], found["ssl-key"], password=lambda: b"")
    except (OSError, ValueError) as error:
        files = ", ".join(f"{name}={found[name]}" for name in ("ssl-ca", "ssl-cert", "ssl-key") if name in found)
        hint = "PEM files are wanted, readable for us, the key without a password"
        raise ConfigError(f"a file for TLS can't be used: {error}", where=f"{uri.place}, {files}", hint=hint) from error
    # newer Pythons refuse authorities without extensions that MySQL's own tools do not set
    context.verify_flags &= ~ssl.VERIFY_X509_STRICT
    context.check_hostname = mode == "verify-identity"
    context.verify_mode = ssl.CERT_NONE if mode == "required" else ssl.CERT_REQUIRED
    return {"ssl": context}


def is_tls_fault(error: pymysql.MySQLError) -> bool:
    """Whether there is no connection for the sake of certificates or of encryption itself: it will stay so."""
    cause = getattr(error, "original_exception", None)
    ended = isinstance(cause, ssl.SSLEOFError | ssl.SSLZeroReturnError)
    return (isinstance(cause, ssl.SSLError) and not ended) or error.args[:1] == (_SSL_ERROR,)


class _NoClearPassword:
    """Takes the place of PyMySQL's plugins that send the password as it is to whichever server asks for it."""

    def __init__(self, connection: Any) -> None:
        self._connection = connection

    def authenticate(self, _packet: Any) -> Any:
        """Refuse where the line can be listened to, or ends nobody knows where."""
        raise pymysql.err.OperationalError(
            _NO_SUCH_PLUGIN, "the server asks for the password in clear, which it only gets with ssl-mode=verify-..."
        )


def login_plugins(uri: TargetUri) -> dict[str, Any]:
    """What replaces PyMySQL's ways to log in: none gives the password to a server that was not verified."""
    if dict(uri.options).get("ssl-mode", "").startswith("verify"):
        return {}
    return {"mysql_clear_password": _NoClearPassword, "dialog": _NoClearPassword}
