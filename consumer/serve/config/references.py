"""What a config that comes through the API may refer to, and what of a config may be shown.

Who has the token may point the server at any database and any Kafka, and so sends there whatever the config holds.
That must not let them read the machine, nor write to it: references to variables and files, files for TLS, places of
claim-check files and directories of targets are refused unless `[api]` in `_serve.toml` lists them. Each name is
resolved by the function that reads it later.
"""

import re
from collections.abc import Iterator, Mapping
from fnmatch import fnmatchcase
from pathlib import Path, PurePath
from typing import Any
from urllib.parse import SplitResult, parse_qsl, unquote, urlsplit

import orjson

from consumer.config.text import FILE_MARK, VARIABLE, means_a_place, path_of
from consumer.filters.tables import rule_file
from consumer.large_messages.locations import StorePlace, below, place_of, stays_below
from consumer.runtime.secrets import TOKEN_VARIABLE
from consumer.serve.api.errors import ConflictError, RequestError
from consumer.serve.settings import NAME, Api
from ordering.errors import ConfigError
from sinks.uri import PATHS, parse_target_uri

HIDDEN = "***"
"""Stands for what is not shown of a config."""
_TARGET = "target.uri"
URIS = frozenset({_TARGET, "redis.uri", "source.upstream.uri", "source.watermark-from", "source.schema-registry"})
_KAFKA = "source.kafka."
_REGISTRY_CA = "source.schema-registry-ca"
_OPTIONS = re.compile(r"(?:source\.(?:claim-check\.|storage-|archive-)|target\.warehouse-)options\.(.*)", re.DOTALL)
_STORAGE = ("source.storage", "source.archive", _TARGET)
_KAFKA_SECRETS = frozenset({
    "sasl.username", "sasl.password", "ssl.key.password", "ssl.key.pem", "ssl.certificate.pem", "ssl.ca.pem",
    "https.ca.pem", "sasl.oauthbearer.client.id", "sasl.oauthbearer.client.secret",
})  # fmt: skip
_STORE_SECRETS = frozenset({
    "access-key-id", "secret-access-key", "session-token", "access-key", "account-key", "account-name", "sas-key",
    "client-id", "client-secret", "bearer-token", "service-account-key",
})  # fmt: skip
_STORE_OPTIONS = frozenset({"region", "timeout", "connect-timeout", "read-timeout"})
"""Options that lead nowhere else and name no file. `bucket` and `container-name` win over what the place says."""
_OF_HOSTS = frozenset({"region", "account-name"})
"""Options that become a part of the store's host."""
_LABEL = re.compile(r"[A-Za-z0-9-]*")
_GOOGLE_KEY, _GOOGLE_ADDRESS = "service-account-key", "gcs_base_url"
"""An option, and what in it would be taken for the store's address."""
_FILES = frozenset({
    "ssl-ca", "ssl-cert", "ssl-key", "sslrootcert", "sslcert", "sslkey", "sslcrl", "ssl_ca_certs", "ssl_certfile",
    "ssl_keyfile", "server-public-key-path",
})  # fmt: skip
"""Options of URIs that name files."""
_AUTHORITIES = tuple(map(Path, ("/etc/ssl/certs", "/etc/pki/tls/certs", "/etc/pki/ca-trust")))
"""Everybody may name a machine's public certificates."""
_USER = re.compile(r"[a-z]+://[^/?#]*@", re.IGNORECASE)
_DEEPEST = 5
"""Levels of a config. tomlkit reads dotted keys in time that doubles with each of their parts."""
MOST_VALUES = 1_000
"""Names and values of a config. Writing TOML takes time that grows with their square: 1,000 take half a second,
the 100,000 that a body has room for would hold the server for hours."""
_BY_HAND = "break long lines, put long lists of rules into files (docs/filters.md), or write the file by hand"
_MOST_TEXT, _MOST_LINE = 64 << 10, 4 << 10
"""Characters of a config's text, and of a line of it. tomllib reads a dotted key, which is on one line, in time that
grows with the square of its parts: a line of 4 KiB takes 0.1 s, one of 1 MiB over an hour. tomlkit writes a name in
time that grows with the square of what is escaped in it: 400,000 quotes took 35 s."""


def leaves(value: Any, key: str = "", depth: int = 0) -> Iterator[tuple[str, Any]]:
    """Every value of a config with its key, dotted; elements of lists have their list's. Raises RequestError."""
    if depth > _DEEPEST:
        raise RequestError("the config is nested too deeply", where=key[:200], hint="see `reconciler help serve`")
    if isinstance(value, dict):
        for name, inner in value.items():
            yield from leaves(inner, f"{key}.{name}" if key else str(name), depth + 1)
    elif isinstance(value, list):
        for inner in value:
            yield from leaves(inner, key, depth + 1)
    else:
        yield key, value


def check_size(values: Any) -> None:
    """Raise RequestError for more names and values, or more text, than are written."""
    count, text, waiting = 0, 0, [values]
    while waiting:
        one = waiting.pop()
        inner = list(one.values()) if isinstance(one, dict) else one if isinstance(one, list) else []
        count += len(inner)
        text += sum(map(len, one)) if isinstance(one, dict) else len(one) if isinstance(one, str) else 0
        waiting += inner
        if count > MOST_VALUES:
            raise RequestError(f"the config holds more than {MOST_VALUES} values", where="body", hint=_BY_HAND)
        if text > _MOST_TEXT:
            raise RequestError(f"the config holds more than {_MOST_TEXT} characters", where="body", hint=_BY_HAND)


def check_text(text: str) -> None:
    """Raise RequestError for a text that may take too long to read as TOML."""
    if len(text) > _MOST_TEXT or any(len(line) > _MOST_LINE for line in text.split("\n")):
        fact = f"the config holds more than {_MOST_TEXT} characters, or {_MOST_LINE} in a line"
        raise RequestError(fact, where="body", hint=_BY_HAND)


def check_references(values: dict[str, Any], folder: Path, allowed: Api) -> None:
    """Raise RequestError for whatever leads out of the text itself and is not allowed, and for a hidden value."""
    judge = _Judge(folder, allowed)
    for key, value in leaves(values):
        if isinstance(value, str):
            judge.check(key, value)


class _Judge:
    def __init__(self, folder: Path, allowed: Api) -> None:
        self._folder, self._allowed = folder, allowed

    def check(self, key: str, value: str) -> None:
        if HIDDEN in value:
            hint = "give the value, or a reference that _serve.toml allows"
            raise RequestError(f"{HIDDEN} stands for a secret that is not shown", where=_key(key), hint=hint)
        if (name := rule_file(value)) is not None and key.endswith(("rules", "matcher")):
            self._check_file(key, name)
        if means_a_place(key):
            self._check_place(key, value)
        elif value.startswith(FILE_MARK) or VARIABLE.search(value):
            self._check_reference(key, value)
        if option := _OPTIONS.fullmatch(key):
            _check_option(key, option[1], value)
        for name in _files_in(key, value):
            self._check_file(key, name)
        for path in _directories_in(key, value):
            if "://" in path:
                self._check_place(key, path)
            else:
                self._check_directory(key, Path(path))

    def _check_reference(self, key: str, value: str) -> None:
        if not _holds_a_secret(key):
            hint = "references are for secrets: in target.uri, redis.uri, sasl.password and the like"
            raise RequestError("a reference is not allowed here", where=_key(key), hint=hint)
        if value.startswith(FILE_MARK):
            self._check_file(key, value.removeprefix(FILE_MARK))
            return
        if key in URIS and VARIABLE.search(_USER.sub("", value, count=1)):
            fact = "in a URI a reference is only allowed as user or password"
            raise RequestError(fact, where=_key(key), hint="mysql://USER:${PASSWORD}@HOST:3306")
        for name in VARIABLE.findall(value):
            if name == TOKEN_VARIABLE or not any(fnmatchcase(name, one) for one in self._allowed.variables):
                hint = f"the operator lists it in {NAME}: [api] variables = [{name!r}]; or give the value"
                raise RequestError(f"the API may not refer to the variable {name}", where=_key(key), hint=hint)

    def _check_file(self, key: str, name: str) -> None:
        path = path_of(name, self._folder)
        public = any(path.is_relative_to(place) for place in _AUTHORITIES) and _holds_authorities(key)
        if "\0" in name or not (public or any(_matches(path, one) for one in self._allowed.files)):
            hint = f"the operator lists it in {NAME}: [api] files = [...]; or write the config file by hand"
            raise RequestError("through the API this file may not be read", where=_key(key), hint=hint)

    def _check_directory(self, key: str, path: Path) -> None:
        if not any(path.resolve().is_relative_to(Path(one).resolve()) for one in self._allowed.directories):
            hint = (
                f"the operator lists it in {NAME}: [api] directories = [{str(path)[:200]!r}]; or write the file by hand"
            )
            raise RequestError("through the API no target may be in this directory", where=_key(key), hint=hint)

    def _check_place(self, key: str, value: str) -> None:
        what, allowed = "claim-check", self._allowed.claim_check_locations
        if key in _STORAGE:
            what, allowed = "storage", self._allowed.storage_locations
        hint = f"the operator lists it in {NAME}: [api] {what}-locations = [...]"
        try:
            place = place_of(value)
            roots = [place_of(one) for one in allowed]
        except ValueError as error:
            raise RequestError(f"this is not a valid location of {what} files", where=_key(key), hint=hint) from error
        if VARIABLE.search(value) or not any(_holds(root, place) for root in roots):
            raise RequestError("the API may not name this place", where=_key(key), hint=hint)


def _key(key: str) -> str:
    return f"key {key[:200]!r}"


def _holds_a_secret(key: str) -> bool:
    kafka, option = key.removeprefix(_KAFKA), _OPTIONS.fullmatch(key)
    of_store = option is not None and option[1].replace("_", "-") in _STORE_SECRETS
    return key in URIS or (key != kafka and kafka in _KAFKA_SECRETS) or of_store


def _holds_authorities(key: str) -> bool:
    return key in URIS or key == _REGISTRY_CA or key.startswith(_KAFKA)


def _holds(root: StorePlace, place: StorePlace) -> bool:
    """Whether a place is another one or lies below it, also once links of this machine are followed."""
    found = place == root or (below(place, root) and stays_below(place))
    return found and (place.scheme != "file" or _real(place).is_relative_to(_real(root)))


def _real(place: StorePlace) -> Path:
    return Path("/", *place.parts).resolve()


def _check_option(key: str, option: str, value: str) -> None:
    name = option.replace("_", "-").lower()
    if name not in _STORE_SECRETS | _STORE_OPTIONS:
        known = ", ".join(sorted(_STORE_SECRETS | _STORE_OPTIONS))
        hint = f"through the API there are: {known}; write the config file by hand for others"
        raise RequestError("the API may not set this option of the store", where=_key(key), hint=hint)
    if value.startswith(FILE_MARK) or VARIABLE.fullmatch(value):
        return
    if (name in _OF_HOSTS and not _LABEL.fullmatch(value)) or (name == _GOOGLE_KEY and _leads_elsewhere(value)):
        hint = "through the API it names no host and no address; write the config file by hand for others"
        raise RequestError("the API may not set this option of the store to this value", where=_key(key), hint=hint)


def _leads_elsewhere(google_key: str) -> bool:
    """Whether a key of Google's names another store, or can't be read."""
    try:
        found = orjson.loads(google_key)
    except orjson.JSONDecodeError:
        return True
    return not isinstance(found, dict) or _GOOGLE_ADDRESS in found


def _files_in(key: str, value: str) -> Iterator[str]:
    """The names of files that a value leads to, references apart."""
    if key in URIS:
        yield from (given for name, given in parse_qsl(_query(value)) if name.lower() in _FILES)
        yield from _sockets(value)
    elif (key == _REGISTRY_CA and value) or (key.startswith(_KAFKA) and key.endswith(".location") and value != "probe"):
        yield value


def _sockets(uri: str) -> Iterator[str]:
    """The socket of this machine that a URI of Redis names: behind one may be any server."""
    if uri.lower().startswith("unix:"):
        yield unquote(_split(uri).path)


def _directories_in(key: str, value: str) -> list[str]:
    """Where a target of this machine writes, or what store; none for no URI, which is refused where it is read."""
    if key != _TARGET:
        return []
    try:
        uri = parse_target_uri(value)
    except ConfigError:
        return []
    return [*([uri.path] if uri.kind in PATHS else []), *filter(None, [uri.warehouse])]


def _query(uri: str) -> str:
    return _split(uri).query


def _split(uri: str) -> SplitResult:
    try:
        return urlsplit(uri)
    except ValueError:  # it is refused where it is read
        return urlsplit("")


def _matches(path: PurePath, pattern: str) -> bool:
    """Whether a path matches a pattern part by part, so that `*` leads into no other directory."""
    parts = PurePath(pattern).parts
    return len(parts) == len(path.parts) and all(map(fnmatchcase, path.parts, parts))


def check_destination(old: Mapping[str, Any], change: Mapping[str, Any]) -> None:
    """Raise ConflictError for a change that would send Kafka a login which its sender may not know.

    Where the brokers are, and how they are spoken to, is changed together with every secret of `[source.kafka]`.
    """
    source, given = _section(old, "source"), _section(change, "source")
    kept, new = _section(source, "kafka"), _section(given, "kafka")
    if "bootstrap-servers" not in given and not new.keys() - _KAFKA_SECRETS:
        return
    missing = sorted((kept.keys() & _KAFKA_SECRETS) - new.keys())
    if missing:
        hint = "give the login again in the same change"
        raise ConflictError(
            f"brokers change, and the login stays: {', '.join(missing)}", where="source.kafka", hint=hint
        )


def _section(values: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    found = values.get(name)
    return found if isinstance(found, Mapping) else {}
