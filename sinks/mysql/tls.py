"""How a MySQL-family connection is encrypted, and what of it a server may not talk us into.

Modes are MySQL's own (MySQL documentation, "Command Options for Encrypted Connections"). Without any option a
connection is encrypted where the server offers it, and nothing is verified: that keeps out who only listens.
"""

import ssl
from functools import cache
from pathlib import Path
from typing import Any

import pymysql
from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives.asymmetric.rsa import RSAPublicKey
from cryptography.hazmat.primitives.serialization import load_pem_public_key

from ordering.errors import ConfigError
from sinks.uri import PUBLIC_KEY_FILE, TargetUri

_SSL_ERROR = 2026
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


@cache
def unverified() -> ssl.SSLContext:
    """TLS without a look at certificates: what PyMySQL does where nothing is said and the server offers it.

    PyMySQL makes one again for each connection and loads the system's authorities into it: 50 ms for nothing.
    """
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    return context


def pinned_key(uri: TargetUri) -> bytes | None:
    """The server's RSA key in PEM, if the URI names a file of it. Raises ConfigError for a file that holds none."""
    name = dict(uri.options).get(PUBLIC_KEY_FILE)
    if name is None:
        return None
    hint = "it is what the server shows as Caching_sha2_password_rsa_public_key (SHOW STATUS), in PEM"
    try:
        text = Path(name).read_bytes()
        if isinstance(load_pem_public_key(text), RSAPublicKey):
            return text
    except (OSError, ValueError, UnsupportedAlgorithm) as error:
        reason = error.strerror if isinstance(error, OSError) else "no public key in PEM"
        raise ConfigError(f"the server's key can't be used: {reason}", where=name, hint=hint) from error
    raise ConfigError("the server's key can't be used: no key of RSA", where=name, hint=hint)


def is_tls_fault(error: pymysql.MySQLError) -> bool:
    """Whether there is no connection for the sake of certificates or of encryption itself: it will stay so."""
    cause = getattr(error, "original_exception", None)
    ended = isinstance(cause, ssl.SSLEOFError | ssl.SSLZeroReturnError)
    return (isinstance(cause, ssl.SSLError) and not ended) or error.args[:1] == (_SSL_ERROR,)
