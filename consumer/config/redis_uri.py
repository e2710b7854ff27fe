"""`redis.uri`: where the ledger is, who we are there, and how the way there is protected."""

from urllib.parse import parse_qsl

from ordering.errors import ConfigError
from sinks.uri import is_host, split_uri

_SCHEMES = ("redis", "rediss", "unix")
_TLS = ("ssl_ca_certs", "ssl_certfile", "ssl_keyfile", "ssl_check_hostname", "ssl_cert_reqs")
"""redis-py's names. Without any, the system's authorities count, and certificate and host name are verified."""
_VALUES = {"ssl_check_hostname": ("true", "false"), "ssl_cert_reqs": ("required", "none")}


def check_redis_uri(text: str) -> None:
    """Raise ConfigError for a URI that can't be meant; shows nothing of it, for a password may stand anywhere."""
    if not text:
        return
    hint = "write redis://USER:PASSWORD@HOST:6379/0, or rediss:// with TLS; percent-encode what URIs reserve"
    parts = split_uri(text, "redis.uri")
    try:
        port = parts.port
    except ValueError:
        raise ConfigError("redis.uri has a port that is no number from 1 to 65535", hint=hint) from None
    if parts.scheme not in _SCHEMES or (parts.scheme != "unix" and not is_host(parts.hostname or "..")) or port == 0:
        raise ConfigError("redis.uri names no server", hint=hint)
    if parts.path.strip("/") and parts.scheme != "unix" and not parts.path.strip("/").isdecimal():
        raise ConfigError("redis.uri names a database that is no number", hint=hint)
    for name, value in parse_qsl(parts.query, keep_blank_values=True):
        _check_option(name, value, parts.scheme)


def _check_option(name: str, value: str, scheme: str) -> None:
    if name not in _TLS:
        raise ConfigError(f"redis.uri has the unknown option {name!r}", hint=f"known are: {', '.join(_TLS)}")
    if scheme != "rediss":
        raise ConfigError(f"redis.uri has the option {name!r}, but no TLS", hint="write rediss://")
    allowed = _VALUES.get(name)
    if not value or (allowed and value.lower() not in allowed):
        raise ConfigError(f"redis.uri has no {name} {value!r}", hint=f"known are: {', '.join(allowed or ('a path',))}")
