"""A config that somebody edits as text: what is shown is sent back changed, so secrets in it stay hidden.

`***` that stays where it was means "as it is"; a text that holds it otherwise is refused by `references`.
"""

from collections.abc import Mapping
from typing import Any, NamedTuple

import orjson
import tomlkit

from consumer.serve.api.errors import RequestError
from consumer.serve.config.references import check_size


class EditedKey(NamedTuple):
    """A key whose value differs, as JSON; None: it is not there."""

    key: str
    before: str | None
    after: str | None


def as_text(shown: Mapping[str, Any]) -> str | None:
    """What is shown of a config, as TOML; None for one that is too long to be written as such in time."""
    try:
        check_size(shown)
    except RequestError:
        return None
    return tomlkit.dumps(shown)


def change_to(shown: Mapping[str, Any], edited: Mapping[str, Any]) -> dict[str, Any]:
    """The change that makes what is shown what was edited: null takes a key out, also a whole section."""
    change: dict[str, Any] = {name: None for name in shown if name not in edited}
    for name, value in edited.items():
        before = shown.get(name)
        if isinstance(before, Mapping) and isinstance(value, Mapping):
            if inner := change_to(before, value):
                change[name] = inner
        elif before != value or isinstance(before, bool) is not isinstance(value, bool):
            change[name] = value
    return change


def differences(before: Mapping[str, Any], after: Mapping[str, Any], keys: list[str]) -> list[EditedKey]:
    """The values of these keys in both, for people."""
    return [EditedKey(key, _at(before, key), _at(after, key)) for key in keys]


def _at(values: Any, key: str) -> str | None:
    """A value by its dotted key; names may hold dots themselves."""
    if isinstance(values, Mapping):
        for name, inner in values.items():
            if key == name:
                return orjson.dumps(inner, default=str).decode()
            if key.startswith(f"{name}.") and (found := _at(inner, key[len(name) + 1 :])) is not None:
                return found
    return None
