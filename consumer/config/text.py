"""A config file's text as values: TOML, with `${ENV_VAR}`, `file:PATH` and `@FILE` replaced by what they name.

Relative paths are relative to the directory of the config file, whoever reads it and wherever the process runs. Which
keys hold what a reference names is kept, so that no error shows it. Files of Windows editors may begin with a byte
order mark; it is no part of the text.
"""

import os
import re
import tomllib
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from consumer.filters.tables import with_files
from consumer.runtime.secrets import TOKEN_VARIABLE, take_variable
from ordering.errors import ConfigError

FILE_MARK = "file:"
_TWICE = ("Cannot overwrite a value", "Cannot declare")
"""How the parser's errors begin for a key, or a section, that is there twice."""
_PLACES = re.compile(r"source\.(storage|archive|claim-check\.(locations|map\..+))|api\.(claim-check|storage)-locations")
VARIABLE = re.compile(r"\$\{([A-Za-z_][A-Za-z0-9_]*)\}")


def means_a_place(key: str) -> bool:
    """Whether a key's values may begin with `file:` and mean a place, not a secret."""
    return _PLACES.fullmatch(key) is not None


@dataclass(frozen=True, slots=True)
class Values:
    """The values of a config, references replaced."""

    values: dict[str, Any]
    secrets: dict[str, tuple[str, ...]] = field(default_factory=dict, repr=False)
    """Dotted key -> what its references named."""


def read_text(path: Path) -> str:
    """A config file's text. Raises ConfigError."""
    try:
        return path.read_text(encoding="utf-8-sig")
    except FileNotFoundError as error:
        raise ConfigError(f"there is no config file {path}", hint=f"`reconciler init {path}` writes one") from error
    except OSError as error:
        raise ConfigError(f"can't read the config file {path}: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise ConfigError(f"can't read the config file {path}: it is no UTF-8 text") from error


def values_of(text: str, path: Path) -> Values:
    """The values of a TOML text that lies at `path`, references replaced by what they name. Raises ConfigError."""
    try:
        values = tomllib.loads(text)
    except (tomllib.TOMLDecodeError, RecursionError) as error:
        hint = "texts stand in quotes, and a [section] closes its bracket: see https://toml.io"
        if str(error).startswith(_TWICE):
            hint = "this key or [section] is in the file twice: remove one of them"
        raise ConfigError(f"{path} is not valid TOML: {error}", hint=hint) from error
    expansion = _Expansion(path.parent)
    return Values(expansion.of(values, ""), {key: tuple(found) for key, found in expansion.secrets.items()})


def with_rule_files(values: dict[str, Any], folder: Path) -> dict[str, Any]:
    """The values with the rules of `@file` in their place. Raises ConfigError."""
    section = values.get("filter")
    if not isinstance(section, dict):
        return values
    event_filters = section.get("event-filters")
    for one in event_filters if isinstance(event_filters, list) else []:
        if isinstance(one, dict) and isinstance(one.get("matcher"), list):
            one["matcher"] = with_files(one["matcher"], folder, "filter.event-filters.matcher")
    if isinstance(section.get("rules"), list):
        section["rules"] = with_files(section["rules"], folder, "filter.rules")
    return values


class _Expansion:
    """Replaces references, and notes what they named."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self.secrets: dict[str, list[str]] = {}

    def of(self, value: Any, key: str) -> Any:
        if isinstance(value, dict):
            return {name: self.of(inner, f"{key}.{name}" if key else name) for name, inner in value.items()}
        if isinstance(value, list):
            return [self.of(inner, key) for inner in value]
        if not isinstance(value, str):
            return value
        if value.startswith(FILE_MARK) and not means_a_place(key):
            return self._noted(key, secret_file(path_of(value.removeprefix(FILE_MARK), self._folder), key))
        return VARIABLE.sub(lambda match: self._noted(key, _variable(match[1], key)), value)

    def _noted(self, key: str, secret: str) -> str:
        self.secrets.setdefault(key, []).append(secret)
        return secret


def _variable(name: str, key: str) -> str:
    if name == TOKEN_VARIABLE:
        raise ConfigError("no config may hold the token of the API", where=f"key {key!r}", hint="name another variable")
    value = take_variable(name, key)
    if value is None:
        raise ConfigError(
            f"the environment variable {name} is not set", where=f"key {key!r}", hint=f"export {name}=..."
        )
    return value


def path_of(name: str, folder: Path) -> Path:
    """The file that a name in a config of that directory means; the one place where this is decided."""
    return Path(os.path.normpath(folder / name))


def secret_file(path: Path, key: str) -> str:
    """The secret that a file holds, without its last line end. Raises ConfigError."""
    try:
        return path.read_text(encoding="utf-8-sig").rstrip("\n")
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is no UTF-8 text, or its name is no file's"
        hint = "name a file that this user may read; a relative name begins at the config's directory"
        raise ConfigError(f"can't read the secret file {path}: {reason}", where=f"key {key!r}", hint=hint) from None
