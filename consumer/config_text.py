"""A config file's text as values: TOML, with `${ENV_VAR}`, `file:/PATH` and `@FILE` replaced by what they name."""

import re
import tomllib
from pathlib import Path
from typing import Any

from consumer.filters.tables import with_files
from consumer.secrecy import take_variable
from ordering.errors import ConfigError

_NO_FILES = ("source.claim-check.locations", "source.claim-check.map.")
"""Keys whose values may begin with `file:` and mean a place, not a secret."""
_VARIABLE = re.compile(r"\$\{([A-Za-z_][A-Za-z0-9_]*)\}")


def read_text(path: Path) -> str:
    """A config file's text. Raises ConfigError."""
    try:
        return path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(
            f"can't read the config file {path}: {error}", hint="`reconciler init FILE` writes one"
        ) from error


def values_of(text: str, place: str) -> dict[str, Any]:
    """The values of a TOML text, references replaced by what they name. Raises ConfigError."""
    try:
        values = tomllib.loads(text)
    except (tomllib.TOMLDecodeError, RecursionError) as error:
        raise ConfigError(f"{place} is not valid TOML: {error}") from error
    found: dict[str, Any] = _expanded(values, "")
    return found


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


def _expanded(value: Any, key: str) -> Any:
    if isinstance(value, dict):
        return {name: _expanded(inner, f"{key}.{name}" if key else name) for name, inner in value.items()}
    if isinstance(value, list):
        return [_expanded(inner, key) for inner in value]
    if not isinstance(value, str):
        return value
    if value.startswith("file:") and not key.startswith(_NO_FILES):
        return secret_file(Path(value.removeprefix("file:")), key)
    return _VARIABLE.sub(lambda match: _variable(match[1], key), value)


def _variable(name: str, key: str) -> str:
    value = take_variable(name, key)
    if value is None:
        raise ConfigError(
            f"the environment variable {name} is not set", where=f"key {key!r}", hint=f"export {name}=..."
        )
    return value


def secret_file(path: Path, key: str) -> str:
    """The secret that a file holds, without its last line end. Raises ConfigError."""
    try:
        return path.read_text(encoding="utf-8").rstrip("\n")
    except OSError as error:
        raise ConfigError(f"can't read the secret file {path}: {error.strerror}", where=f"key {key!r}") from error
