"""The target's URI: what kind of target, where, and who we are there."""

from dataclasses import dataclass, field
from urllib.parse import parse_qsl, unquote, urlsplit

from ordering.errors import ConfigError

_PORTS = {"mysql": 3306, "mariadb": 3306, "tidb": 4000, "postgresql": 5432}
_SYNONYMS = {"postgres": "postgresql"}
_OPTIONS = {"postgresql": {"sslmode", "sslrootcert", "sslcert", "sslkey", "channel_binding"}}


@dataclass(frozen=True, slots=True)
class TargetUri:
    """A parsed URI. The password stays out of `repr`."""

    kind: str
    host: str = ""
    port: int = 0
    user: str = ""
    password: str = field(default="", repr=False)
    path: str = ""
    options: tuple[tuple[str, str], ...] = ()
    """Of the connection's encryption, by libpq's names; PostgreSQL only."""

    @property
    def place(self) -> str:
        """Host and port, or the path: what errors and status name."""
        if self.kind == "sqlite":
            return self.path
        return f"{self.host}:{self.port}" + (f"/{self.path}" if self.kind == "postgresql" else "")


def parse_target_uri(text: str) -> TargetUri:
    """Read `sqlite:///DIR`, `mysql://USER:PASSWORD@HOST:PORT`, `mariadb://`, `tidb://` or `postgresql://.../DB`.

    Raises ConfigError.
    """
    parts = urlsplit(text)
    if parts.scheme == "sqlite":
        path = unquote(parts.path)[1:]
        if not path or parts.netloc:
            raise ConfigError(
                "target.uri names no directory",
                hint='write sqlite:///DIR or sqlite:////ABSOLUTE/DIR, e.g. "sqlite:////tmp/out"',
            )
        return TargetUri("sqlite", path=path)
    kind = _SYNONYMS.get(parts.scheme, parts.scheme)
    if kind in _PORTS:
        return _server(kind, text, "target.uri", _PORTS[kind])
    known = "sqlite, mysql, mariadb, tidb, postgresql"
    raise ConfigError(f"target.uri has the unknown scheme {parts.scheme!r}", hint=f"known are: {known}")


def parse_upstream_uri(text: str) -> TargetUri:
    """Read `tidb://USER:PASSWORD@HOST:PORT`: where rows are read that messages leave out. Raises ConfigError."""
    if urlsplit(text).scheme != "tidb":
        raise ConfigError("source.upstream.uri is no URI of a TiDB", hint="write tidb://USER:PASSWORD@HOST:4000")
    return _server("tidb", text, "source.upstream.uri", _PORTS["tidb"])


def _server(kind: str, text: str, key: str, usual: int) -> TargetUri:
    parts = urlsplit(text)
    try:
        port = parts.port or usual
    except ValueError as error:
        raise ConfigError(f"{key} has a port that is no number from 1 to 65535") from error
    if not parts.hostname or not parts.username:
        raise ConfigError(f"{key} lacks host or user", hint=f"write {kind}://USER:PASSWORD@HOST:{usual}")
    path = unquote(parts.path.strip("/"))
    if kind == "postgresql" and not path:
        hint = f"write {kind}://USER:PASSWORD@HOST:{usual}/DATABASE"
        raise ConfigError(f"{key} lacks the name of a database", hint=hint)
    options = tuple(parse_qsl(parts.query, keep_blank_values=True))
    allowed = _OPTIONS.get(kind, set())
    if unknown := sorted({name for name, _ in options} - allowed):
        hint = f"known are: {', '.join(sorted(allowed)) or 'none'}"
        raise ConfigError(f"{key} has the unknown option {unknown[0]!r}", hint=hint)
    return TargetUri(kind, parts.hostname, port, unquote(parts.username), unquote(parts.password or ""), path, options)
