"""The target's URI: what kind of target, where, who we are there, and how the way there is protected.

Options of encryption are spelled as each family's own tools spell them: `ssl-ca`, `ssl-cert`, `ssl-key` and `ssl-mode`
for MySQL, MariaDB and TiDB (the first three also in TiCDC's sink URI), libpq's names for PostgreSQL. Who names a
certificate wants it checked: then the server's certificate and host name are verified unless a mode says otherwise.
`server-public-key-path` and `get-server-public-key` are options of MySQL's own clients.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple, Protocol
from urllib.parse import SplitResult, parse_qsl, unquote, urlsplit

from ordering.errors import ConfigError

_LAKE = "iceberg+"
_PORTS = {"mysql": 3306, "mariadb": 3306, "tidb": 4000, "postgresql": 5432, f"{_LAKE}postgresql": 5432}
PATHS = {"sqlite": "SQLite", f"{_LAKE}sqlite": "Iceberg"}
"""Kinds of target that are a directory or file of this machine, and what people call them."""
_NOT_IN_LOCATIONS = set("#?%;")
_BUCKET = re.compile(r"s3://[a-z0-9][a-z0-9.-]+((/[\w=+ -][\w=+. -]*)*)", re.ASCII)
"""A warehouse in an object store: no part of its path is empty or begins with a dot."""
_MOST_OF_A_WAREHOUSE = 700
"""A catalog on a server has 1,000 characters for a location: the warehouse, two names, and the name of a file."""
_PASSED_OVER = re.compile(r"[\t\r\n]")
"""What Python takes out of a URI before it reads it, as it does with spaces before it: others see another kind."""
_SYNONYMS = {"postgres": "postgresql", f"{_LAKE}postgres": f"{_LAKE}postgresql"}
MYSQL_MODES = ("disabled", "preferred", "required", "verify-ca", "verify-identity")
_LIBPQ_MODES = ("disable", "allow", "prefer", "require", "verify-ca", "verify-full")
PUBLIC_KEY_FILE, PUBLIC_KEY_ANY = "server-public-key-path", "get-server-public-key"
_MYSQL: Mapping[str, tuple[str, ...]] = {
    "ssl-mode": MYSQL_MODES,
    "ssl-ca": (),
    "ssl-cert": (),
    "ssl-key": (),
    PUBLIC_KEY_FILE: (),
    PUBLIC_KEY_ANY: ("true", "false"),
}
_OPTIONS: Mapping[str, Mapping[str, tuple[str, ...]]] = {
    "mysql": _MYSQL,
    "mariadb": _MYSQL,
    "tidb": _MYSQL,
    "postgresql": {
        "sslmode": _LIBPQ_MODES,
        "sslrootcert": (),
        "sslcert": (),
        "sslkey": (),
        "sslcrl": (),
        "channel_binding": ("disable", "prefer", "require"),
        "require_auth": (),
    },
}
"""Family -> option -> the values it may have; any if none are named."""
_MODE = {"postgresql": ("sslmode", "verify-full")}
_MYSQL_MODE = ("ssl-mode", "verify-identity")
"""The option that says what is checked, and what it is where only certificates are named."""


class WarehouseFile(NamedTuple):
    """A file as a warehouse lists it; `written_s`: seconds since 1970, by the warehouse's clock."""

    place: str
    size: int
    written_s: float


class ObjectStore(Protocol):
    """A warehouse that is no directory of this machine. Paths lie below it.

    Raises OSError, with no secret in its text: FileNotFoundError, PermissionError where it refuses us.
    """

    def read(self, path: str) -> bytes:
        """An object."""

    def write(self, path: str, content: bytes) -> None:
        """Write an object, whole or not at all; it is kept when this returns."""

    def delete(self, paths: Sequence[str]) -> None:
        """Delete objects, where they are there."""

    def listed(self, directory: str) -> Iterable[WarehouseFile]:
        """The objects below a directory."""

    def written_s(self, path: str) -> float:
        """When an object was written."""


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
    """Of the connection's encryption, by the family's names; the mode is among them if any is."""
    warehouse: str = ""
    """Where Iceberg's data files are: a directory of this machine, or `s3://`."""
    write_source: int = 0
    """Marks what is written as no change of the target's own, 1 to 15; 0: no mark. TiDB only; no part of the text."""
    concurrent_indexes: bool = False
    """Whether indexes are made by CREATE INDEX CONCURRENTLY. PostgreSQL only; no part of the text."""
    objects: ObjectStore | None = field(default=None, repr=False)
    """What opens the warehouse, if it is in an object store. Iceberg only; no part of the text."""

    @property
    def place(self) -> str:
        """Host and port, or the path: what errors and status name."""
        if self.kind in PATHS:
            return self.path
        return f"{self.host}:{self.port}" + (f"/{self.path}" if self.kind.endswith("postgresql") else "")


def parse_target_uri(text: str) -> TargetUri:
    """Read `sqlite:///DIR`, `mysql://USER:PASSWORD@HOST:PORT`, `mariadb://`, `tidb://` or `postgresql://.../DB`.

    Of Iceberg: `iceberg+sqlite:////FILE?warehouse=DIR` or `iceberg+postgresql://.../DB?warehouse=s3://BUCKET/PREFIX`.
    Raises ConfigError.
    """
    parts = split_uri(text, "target.uri")
    if parts.scheme in PATHS:
        return _path(parts)
    kind = _SYNONYMS.get(parts.scheme, parts.scheme)
    if kind in _PORTS:
        return _server(kind, text, "target.uri", _PORTS[kind])
    known = ", ".join([*PATHS, *_PORTS])
    raise ConfigError(f"target.uri has the unknown scheme {parts.scheme!r}", hint=f"known are: {known}")


def _path(parts: SplitResult) -> TargetUri:
    kind, path = parts.scheme, unquote(parts.path)[1:]
    if kind.startswith(_LAKE):
        return TargetUri(kind, path=path, warehouse=_beside_file(parts, path))
    if parts.query:
        hint = "write %3F for a ? of the directory's name"
        raise ConfigError(f"target.uri of {PATHS[kind]} has no options", hint=hint)
    if not path or parts.netloc:
        raise ConfigError(
            "target.uri names no directory",
            hint=f'write {kind}:///DIR or {kind}:////ABSOLUTE/DIR, e.g. "{kind}:////tmp/out"',
        )
    return TargetUri(kind, path=path)


def _beside_file(parts: SplitResult, path: str) -> str:
    """The warehouse of a catalog that is a file: its only option."""
    hint = f"write {parts.scheme}:////ABSOLUTE/catalog.db?warehouse=/ABSOLUTE/DIR, or ?warehouse=s3://BUCKET/PREFIX"
    options = parse_qsl(parts.query, keep_blank_values=True)
    if parts.netloc or not path or [name for name, _ in options] != ["warehouse"]:
        raise ConfigError("target.uri names no catalog's file with one warehouse, and nothing else", hint=hint)
    if not path.startswith("/"):
        raise ConfigError("catalog and warehouse of target.uri have to be absolute paths", hint=hint)
    return _warehouse(options[0][1], hint)


def _warehouse(place: str, hint: str) -> str:
    """Where the data files are, a directory or `s3://`."""
    if _BUCKET.fullmatch(place):
        return place
    if "://" in place:  # it may hold a login, so it is not shown
        raise ConfigError("the warehouse of target.uri is no directory, and no s3://BUCKET/PREFIX", hint=hint)
    if not place.startswith("/"):
        raise ConfigError("catalog and warehouse of target.uri have to be absolute paths", hint=hint)
    if found := set(place) & _NOT_IN_LOCATIONS:
        fact = f"the warehouse's name holds {' '.join(sorted(found))}"
        raise ConfigError(fact, hint="Iceberg's files name each other by URI, where these mean something else")
    return place


def warehouse_of(text: str) -> str:
    """The place in an object store that a target's URI names as its warehouse; "" for none. Raises ConfigError."""
    if not text.startswith(_LAKE):
        return ""
    found = parse_target_uri(text).warehouse
    return found if "://" in found else ""


def parse_upstream_uri(text: str) -> TargetUri:
    """Read `tidb://USER:PASSWORD@HOST:PORT`: where rows are read that messages leave out. Raises ConfigError."""
    if split_uri(text, "source.upstream.uri").scheme != "tidb":
        raise ConfigError("source.upstream.uri is no URI of a TiDB", hint="write tidb://USER:PASSWORD@HOST:4000")
    return _server("tidb", text, "source.upstream.uri", _PORTS["tidb"])


def is_host(name: str) -> bool:
    """Whether a resolver takes it: one that holds an empty or a too long label raises what nobody foresees."""
    try:
        name.encode("idna")
    except UnicodeError:
        return False
    return True


def split_uri(text: str, key: str) -> SplitResult:
    """The parts of a URI. Raises ConfigError, which shows nothing of it, for what can't be one and for what no part is.

    Nothing of a URI is passed over: behind a # could stand the option that was to protect the connection.
    """
    try:
        parts = urlsplit(text)
    except ValueError:
        hint = "percent-encode what URIs reserve, as in a password: [ is %5B"
        raise ConfigError(f"{key} is no URI", hint=hint) from None
    if "" < text[:1] <= " " or _PASSED_OVER.search(text.rstrip("\r\n")):  # a file may end with a line break
        hint = "write the scheme at its beginning, and percent-encode what is to be a part of it: %20, %0A"
        raise ConfigError(f"{key} begins with a space, or holds a line break or tab", hint=hint)
    if "#" in text:
        raise ConfigError(f"{key} holds a #", hint="percent-encode it: %23")
    if "\0" in unquote(text):
        raise ConfigError(f"{key} holds a NUL, which no server can be sent")
    return parts


def _server(kind: str, text: str, key: str, usual: int) -> TargetUri:
    parts = split_uri(text, key)
    try:
        port = parts.port or usual
    except ValueError:  # it may show a part of the password
        raise ConfigError(f"{key} has a port that is no number from 1 to 65535") from None
    if not parts.hostname or not parts.username:
        raise ConfigError(f"{key} lacks host or user", hint=f"write {kind}://USER:PASSWORD@HOST:{usual}")
    if not is_host(parts.hostname):
        raise ConfigError(f"{key} has a host that is no name and no address")
    path, family = unquote(parts.path.strip("/")), kind.removeprefix(_LAKE)
    if family == "postgresql" and not path:
        hint = f"write {kind}://USER:PASSWORD@HOST:{usual}/DATABASE"
        raise ConfigError(f"{key} lacks the name of a database", hint=hint)
    pairs = parse_qsl(parts.query, keep_blank_values=True)
    warehouse = _beside_server(kind, pairs) if kind != family else ""
    options = _options(family, [pair for pair in pairs if not (warehouse and pair[0] == "warehouse")], key)
    user, password = unquote(parts.username), unquote(parts.password or "")
    return TargetUri(kind, parts.hostname, port, user, password, path, options, warehouse)


def _beside_server(kind: str, pairs: Sequence[tuple[str, str]]) -> str:
    """The warehouse of a catalog in a server's database: one of the options."""
    hint = f"write {kind}://USER:PASSWORD@HOST:5432/DATABASE?warehouse=s3://BUCKET/PREFIX, or ?warehouse=/ABSOLUTE/DIR"
    found = [value for name, value in pairs if name == "warehouse"]
    if len(found) != 1:
        raise ConfigError("target.uri names no warehouse, or more than one", hint=hint)
    if len(found[0]) > _MOST_OF_A_WAREHOUSE:
        raise ConfigError(f"the warehouse's name is longer than {_MOST_OF_A_WAREHOUSE} characters", hint=hint)
    return _warehouse(found[0], hint)


def _options(kind: str, pairs: Sequence[tuple[str, str]], key: str) -> tuple[tuple[str, str], ...]:
    """The options behind the question mark, checked, with the mode that they mean."""
    found: dict[str, str] = {}
    for name, value in pairs:
        allowed = _OPTIONS[kind]
        if name not in allowed:
            hint = f"known are: {', '.join(allowed)}"
            raise ConfigError(f"{key} has the unknown option {name!r}", hint=hint)
        if name in found or not value:
            raise ConfigError(f"{key} has the option {name!r} {'twice' if name in found else 'without a value'}")
        found[name] = value.lower().replace("_", "-") if name == "ssl-mode" else value
        if allowed[name] and found[name] not in allowed[name]:
            hint = f"known are: {', '.join(allowed[name])}"
            raise ConfigError(f"{key} has no {name} {value!r}", hint=hint)
    mode, checked = _MODE.get(kind, _MYSQL_MODE)
    if found.keys() & {"ssl-cert", "ssl-key"} and not {"ssl-cert", "ssl-key"} <= found.keys():
        raise ConfigError(f"{key} needs ssl-cert and ssl-key together: a certificate and its key")
    if any(name.startswith("ssl") for name in found):
        found.setdefault(mode, checked)
    if kind != "postgresql":
        _check_proof(found, key)
    return tuple(found.items())


def _check_proof(found: Mapping[str, str], key: str) -> None:
    """Refuse a proof of who the server is that proves nothing, or is never looked at."""
    mode = found.get("ssl-mode", "preferred")
    if mode == "verify-ca" and "ssl-ca" not in found:
        hint = "name the server's own authority, or let the host name be verified: ssl-mode=verify-identity"
        raise ConfigError(f"{key} has ssl-mode=verify-ca without ssl-ca: any public certificate would do", hint=hint)
    if PUBLIC_KEY_FILE in found and mode != "disabled":
        hint = "through TLS no other key than the certificate's is used: write ssl-mode=disabled too, or name ssl-ca"
        raise ConfigError(f"{key} has {PUBLIC_KEY_FILE}, but not ssl-mode=disabled", hint=hint)
    if found.get(PUBLIC_KEY_ANY) == "true" and (PUBLIC_KEY_FILE in found or mode.startswith("verify")):
        hint = "leave it out: the server is known by its certificate or key"
        raise ConfigError(f"{key} has {PUBLIC_KEY_ANY}=true and says besides how the server is known", hint=hint)
