"""Which ways to log in a MySQL-family server is let to ask for: none that gives the password to just anybody.

What a server says before and during a login is anybody's word unless TLS verifies it: who stands in between offers no
encryption, shows a key of its own, and names the plugin that suits it. Plugins that answer a challenge show no password
(MySQL documentation, "Pluggable Authentication"); those of SHA-256 encrypt it with a key that the server shows, or send
it as it is through TLS; the others send it as it is.
"""

import struct
from dataclasses import dataclass
from enum import Enum
from typing import Any

import pymysql
from pymysql.constants import CR

from sinks.uri import PUBLIC_KEY_ANY, PUBLIC_KEY_FILE, TargetUri

_CHALLENGES = frozenset({"", "mysql_native_password", "client_ed25519"})
_KEYED = frozenset({"sha256_password", "caching_sha2_password"})
_CLEAR = frozenset({"mysql_clear_password", "dialog"})
_HEAD = 32
"""Bytes before the user's name in the first answer of a login (MySQL documentation, "HandshakeResponse41")."""
ANSWER_BYTES = 1 << 16
"""No packet of a login is longer."""
HINT = (
    "name the server's authority (ssl-ca=FILE; with ssl-mode=verify-ca if its certificate holds no host name, as those"
    f" that MySQL makes itself), or its RSA key ({PUBLIC_KEY_FILE}=FILE with ssl-mode=disabled); {PUBLIC_KEY_ANY}=true"
    " gives the password to whoever answers there"
)


class Trust(Enum):
    """Whom the password goes to, if a login can't do without."""

    NOBODY = "nobody"
    PINNED = "the owner of a key that we have"
    ANYBODY = "whoever answers, encrypted with what it shows: the URI says so"
    VERIFIED = "the server that its certificate names"


def trust_of(uri: TargetUri) -> Trust:
    """What the URI says about it."""
    found = dict(uri.options)
    if found.get("ssl-mode", "").startswith("verify"):
        return Trust.VERIFIED
    if PUBLIC_KEY_FILE in found:
        return Trust.PINNED
    return Trust.ANYBODY if found.get(PUBLIC_KEY_ANY) == "true" else Trust.NOBODY


class PasswordKeptError(pymysql.err.OperationalError):  # type: ignore[misc]  # untyped
    """The server asks for the password in a way that would give it to anybody: it stays so."""

    def __init__(self, asked: str) -> None:
        super().__init__(
            CR.CR_AUTH_PLUGIN_ERR, f"{asked}, and no TLS verifies the server: the password is not sent to it"
        )


@dataclass(frozen=True, slots=True)
class _Refusing:
    """Takes the place of a plugin of PyMySQL's."""

    plugin: str

    def authenticate(self, _packet: Any) -> Any:
        """Refuse at once, also where a server's cache spares the password today: it does not after a restart."""
        if self.plugin in _KEYED | _CLEAR:
            raise PasswordKeptError(f"the server asks for a login by {self.plugin}")
        fact = f"the server asks for a login by {self.plugin[:80]!r}, which is not known here"
        raise pymysql.err.OperationalError(CR.CR_AUTH_PLUGIN_CANNOT_LOAD, fact)


def handler_of(connection: Any, plugin: str, trust: Trust) -> _Refusing | None:
    """What takes the place of PyMySQL's plugin; None: its own may answer."""
    allowed = _CHALLENGES
    if trust is not Trust.NOBODY or not connection.password:
        allowed |= _KEYED
    if trust is Trust.VERIFIED:
        allowed |= _CLEAR
    return None if plugin in allowed else _Refusing(plugin)


def shows_password(payload: bytes, user: bytes, password: bytes) -> bool:
    """Whether a packet of a login is the password as it is, or holds it where the first answer has its proof."""
    if not password:
        return False
    if payload.rstrip(b"\0") == password.rstrip(b"\0"):
        return True
    proof = payload[_HEAD + len(user) + 1 :]
    return proof.startswith((password + b"\0", bytes([(len(password) + 1) % 256]) + password))


NOT_UNDERSTOOD = (ValueError, LookupError, ArithmeticError, AttributeError, TypeError, struct.error)
"""What PyMySQL raises over answers that are none of the protocol's, and keys that are none."""
