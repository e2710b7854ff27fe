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
    "string_too_short": "must not be empty",
}
"""Kind of pydantic's errors -> what to say; in braces what it was given besides."""
_VERBS = ("must ", "may ", "has ", "lacks ", "holds ", "names ", "is ")
"""A message that begins with one goes on from the key's name."""
_FOLLOWS = "default_factory_not_called"
"""Of a default that depends on another key, which has an error of its own."""


def said_of(error: ValidationError, model: type[BaseModel], secrets: Secrets = _NONE) -> str:
    """What is wrong, with the keys and without the values; `secrets`: by key, what references named."""
    found = [dict(one) for one in error.errors(include_url=False) if one["type"] != _FOLLOWS]
    return "; ".join(_fault(one, model, secrets) for one in found)


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
