"""What is wrong with a config, in a person's words: which key, what it has to be, and never its value.

Pydantic's own texts speak of models and inputs. Each kind of its errors that a config can meet has a sentence here.
"""

import re
from collections.abc import Mapping
from types import MappingProxyType, UnionType
from typing import Any, get_args

from pydantic import BaseModel, ValidationError

from sinks.wording import nearest, plural

Secrets = Mapping[str, tuple[str, ...]]
_NONE: Secrets = MappingProxyType({})
_SENTENCES = {
    "string_type": "must be a text in quotes",
    "int_type": "must be a whole number, without quotes",
    "float_type": "must be a number, without quotes",
    "float_parsing": "must be a number, without quotes",
    "bool_type": "must be true or false, without quotes",
    "list_type": 'must be a list, as in ["..."]',
    "model_type": "must be a section of its own, with keys below it",
    "dict_type": "must be a section of its own, with keys below it",
    "string_pattern_mismatch": "may hold letters, digits, '.', '_' and '-', and begins with a letter or a digit",
    "literal_error": "must be {expected}",
    "greater_than_equal": "must be at least {ge:g}",
    "greater_than": "must be more than {gt:g}",
    "less_than_equal": "must be at most {le:g}",
    "less_than": "must be less than {lt:g}",
    "setting_type": "must be a text in quotes, a whole number, true or false",
}
"""Kind of pydantic's errors -> what to say; in braces what it was given besides."""
_VERBS = ("must ", "may ", "has ", "lacks ", "holds ", "names ", "is ")
"""A message that begins with one goes on from the key's name."""
_SCALARS = ("str", "int", "bool")
"""How pydantic ends the place of an error about a value that may be any of them; it gives one error for each."""
_FOLLOWS = "default_factory_not_called"
"""Of a default that depends on another key, which has an error of its own."""


def said_of(error: ValidationError, model: type[BaseModel], secrets: Secrets = _NONE) -> str:
    """What is wrong, with the keys and without the values; `secrets`: by key, what references named."""
    found = [dict(one) for one in error.errors(include_url=False) if one["type"] != _FOLLOWS]
    return "; ".join(_fault(one, model, secrets) for one in _once(found))


def in_quotes(name: str, value: object) -> str:
    """What to say of a setting whose name has dots and was written without quotes: TOML reads it as sections."""
    while isinstance(value, Mapping) and value:
        last, value = next(iter(value.items()))
        name = f"{name}.{last}"
    return f'is a section of its own, because a name with dots has to be in quotes, as in "{name}" = ...'


def _once(found: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The same errors, with one instead of three about a setting of Kafka's client."""
    kept: dict[tuple[Any, ...], dict[str, Any]] = {}
    for one in found:
        place = tuple(one["loc"])
        if len(place) > 1 and place[-1] in _SCALARS:
            place = place[:-1]
            one = {**one, "loc": place, "type": "setting_type"}  # noqa: PLW2901 what it becomes
        kept.setdefault((*place, one["type"], one["msg"] if one["type"] != "setting_type" else ""), one)
    return list(kept.values())


def _fault(fault: dict[str, Any], model: type[BaseModel], secrets: Secrets) -> str:
    key = ".".join(str(part) for part in fault["loc"])
    if fault["type"] == "extra_forbidden":
        return f"unknown key {key!r}{_meant(key, model)}"
    if fault["type"] == "missing":
        return f"key {key.replace('_', '-')!r} is missing"
    message = _sentence(key, fault)
    if _may_show_a_secret(key, message, secrets):
        message = "what its reference names is no valid value here (it is not shown)"
    return f"key {key!r} {message}" if message.startswith(_VERBS) else f"key {key!r}: {message}"


def _sentence(key: str, fault: dict[str, Any]) -> str:
    kind, told = fault["type"], fault.get("ctx", {})
    if kind == "setting_type" and isinstance(fault["input"], Mapping):
        return in_quotes(key.rpartition(".")[2], fault["input"])
    if kind == "string_too_short":
        least = told["min_length"]
        return "must not be empty" if least == 1 else f"must have at least {plural(least, 'character')}"
    if kind in ("too_short", "too_long"):
        least = told.get("min_length")
        many = plural(least or told["max_length"], "entry", "entries")
        return f"must have at {'least' if least else 'most'} {many}"
    if kind == "string_too_long":
        return f"may have at most {plural(told['max_length'], 'character')}"
    if kind in _SENTENCES:
        return _SENTENCES[kind].format(**told)
    text = str(fault["msg"]).removeprefix("Value error, ").removesuffix("; ")
    return re.sub(rf"^({re.escape(key)}|{re.escape(key.rpartition('.')[2])}|expression):? ", "", text)


def _meant(key: str, model: type[BaseModel]) -> str:
    """Which key somebody may have meant."""
    keys = sorted(one for one in _keys(model) if not key.startswith(f"{one}."))
    name, spelled = key.rpartition(".")[2].replace("_", "-"), key.replace("_", "-")
    near = spelled if spelled in keys else nearest(spelled, keys)
    near = near or next((one for one in keys if one.rpartition(".")[2] == name), "")
    return f" (did you mean {near!r}?)" if near else ""


def _keys(model: type[BaseModel], before: str = "") -> set[str]:
    found = set()
    for name, field in model.model_fields.items():
        key = f"{before}{field.alias or name}"
        found.add(key)
        inner = field.annotation
        if isinstance(inner, type) and not isinstance(inner, UnionType) and not get_args(inner):
            found |= _keys(inner, f"{key}.") if issubclass(inner, BaseModel) else set()
    return found


def _may_show_a_secret(key: str, message: str, secrets: Secrets) -> bool:
    """Whether a message is about a value that a reference named, or holds such a value by chance.

    What is wrong with a value often quotes a part of it, so the text of the message can't be judged by itself. The
    validators of whole sections quote none.
    """
    if any(key == one or key.startswith(f"{one}.") for one in secrets):
        return True
    return any(secret and secret in message for named in secrets.values() for secret in named)
