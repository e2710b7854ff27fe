"""`docs/configuration.md`: every key of the config with type, default and meaning, from the model."""

import types
from collections.abc import Iterator
from typing import Any, Literal, Union, get_args, get_origin

import annotated_types
import orjson
from pydantic import BaseModel
from pydantic.fields import FieldInfo
from pydantic_core import PydanticUndefined

from consumer.config.model import Config
from consumer.config.table_sections import (
    ColumnMaskSection,
    ColumnSelectorSection,
    DispatcherSection,
    EventFilterSection,
)
from consumer.reference.markdown import joined, made_by, table

_HEADS = ("key", "type", "default", "meaning")
_INTRODUCTION = """\
# Configuration reference

Each changefeed has one TOML file. Keys are written as in TiCDC. An unknown key or an invalid value is an error (exit
code 2); the message names the key and never the value. `reconciler init FILE` writes a commented file, and
`reconciler check CONFIG` checks a file."""
_VALUES = """\
In any text, `${NAME}` is replaced by the environment variable NAME, which has to be set. A value that begins with
`file:` is replaced by the content of that file, without the newlines at its end. So the config file does not have to
contain secrets. Numbers of bytes may be texts with a unit: `B`, `KiB`, `MiB`, `GiB`, `kB`, `MB`, `GB`."""
_LAST = """\
A run reads its config once, when it starts. `docs/serve.md` lists the keys that may change while a changefeed runs, and
describes how the API changes them. As long as `changefeed` stays the same:

- a new topic that contains rows below the checkpoint is refused;
- a `filter` that includes more than before is refused;
- other `sink.dispatchers` are refused (`docs/routes.md`);
- other `sink.column-selectors` and `sink.column-masks` are refused (`docs/columns.md`);
- another `source.time-zone` is refused once something is applied (`docs/recovery.md`: another time zone);
- `source.start-ts` counts at the first start only; another one is refused while nothing was applied;
- `target.uri` has to lead to the database that contains the progress; with another database everything starts over."""
_WORDS = {str: "text", bool: "`true` or `false`", int: "whole number", float: "number"}


def keys_of(model: type[BaseModel], prefix: str = "") -> Iterator[tuple[str, FieldInfo]]:
    """Dotted key and field of every key of a model, sections opened."""
    for name, field in model.model_fields.items():
        key = f"{prefix}{field.alias or name}"
        if isinstance(field.annotation, type) and issubclass(field.annotation, BaseModel):
            yield from keys_of(field.annotation, f"{key}.")
        else:
            yield key, field


def page() -> str:
    """The page."""
    return joined(
        made_by("`consumer/config/model.py`"),
        _INTRODUCTION,
        _VALUES,
        *_sections(),
        f"## An event filter\n\nKeys of each `[[filter.event-filters]]`. {EventFilterSection.__doc__}",
        table(_HEADS, (_row(key, field) for key, field in keys_of(EventFilterSection))),
        f"## A dispatcher\n\nKeys of each `[[sink.dispatchers]]`. {DispatcherSection.__doc__}",
        table(_HEADS, (_row(key, field) for key, field in keys_of(DispatcherSection))),
        f"## A column selector\n\nKeys of each `[[sink.column-selectors]]`. {ColumnSelectorSection.__doc__}",
        table(_HEADS, (_row(key, field) for key, field in keys_of(ColumnSelectorSection))),
        f"## A column mask\n\nKeys of each `[[sink.column-masks]]`. {ColumnMaskSection.__doc__}",
        table(_HEADS, (_row(key, field) for key, field in keys_of(ColumnMaskSection))),
        "## What may change",
        _LAST,
    )


def _sections() -> Iterator[str | list[str]]:
    """A heading and a table for each section of the file, those inside of others too."""
    yield from _section("Top level", "", Config)
    for prefix, model in _models(Config, ""):
        yield from _section(f"`[{prefix}]`", f"{prefix}.", model)


def _models(model: type[BaseModel], prefix: str) -> Iterator[tuple[str, type[BaseModel]]]:
    for name, field in model.model_fields.items():
        if isinstance(field.annotation, type) and issubclass(field.annotation, BaseModel):
            inner = f"{prefix}{field.alias or name}"
            yield inner, field.annotation
            yield from _models(field.annotation, f"{inner}.")


def _section(title: str, prefix: str, model: type[BaseModel]) -> Iterator[str | list[str]]:
    own = [(f"{prefix}{field.alias or name}", field) for name, field in model.model_fields.items()]
    leaves = [(key, field) for key, field in own if not _is_section(field)]
    said = "" if model is Config else f"\n\n{' '.join((model.__doc__ or '').split())}"
    yield f"## {title}{said}"
    yield table(_HEADS, (_row(key, field) for key, field in leaves))


def _is_section(field: FieldInfo) -> bool:
    return isinstance(field.annotation, type) and issubclass(field.annotation, BaseModel)


def _row(key: str, field: FieldInfo) -> tuple[str, str, str, str]:
    return f"`{key}`", _type(key, field), _default(field), field.description or ""


def _type(key: str, field: FieldInfo) -> str:
    """The type in words, with unit and bounds."""
    unit = " of seconds" if key.endswith("-seconds") else " of bytes" if key.endswith("-bytes") else ""
    return _name(field.annotation) + unit + _bounds(field.metadata)


def _name(kind: Any) -> str:
    origin, inner = get_origin(kind), get_args(kind)
    if origin is Literal:
        return " or ".join(f"`{_toml(value)}`" for value in inner)
    if origin is list:
        model = isinstance(inner[0], type) and issubclass(inner[0], BaseModel)
        return "list of tables" if model else f"list of {_name(inner[0])}s"
    if origin is dict:
        return f"table of {_name(inner[1])}s"
    if origin in (Union, types.UnionType):
        return "text, number or boolean"
    return _name(inner[0]) if inner else _WORDS[kind]


def _bounds(metadata: list[Any]) -> str:
    said = [f"at least {one.ge:g}" for one in metadata if isinstance(one, annotated_types.Ge)]
    said += [f"above {one.gt:g}" for one in metadata if isinstance(one, annotated_types.Gt)]
    said += [f"at most {one.le:,g}" for one in metadata if isinstance(one, annotated_types.Le)]
    said += [f"below {_power(one.lt)}" for one in metadata if isinstance(one, annotated_types.Lt)]
    return "".join(f", {one}" for one in said)


def _power(bound: Any) -> str:
    return f"2^{int(bound).bit_length() - 1}"


def _default(field: FieldInfo) -> str:
    if field.default_factory is not None:
        value = field.get_default(call_default_factory=True, validated_data={})
    elif field.default is PydanticUndefined:
        return "required"
    else:
        value = field.default
    return f"`{_size(value) if _is_bytes(field) else _toml(value)}`"


def _is_bytes(field: FieldInfo) -> bool:
    return str(field.alias).endswith("-bytes")


def _size(value: int) -> str:
    """`"64MiB"`: the largest unit that divides it."""
    for shift, unit in ((30, "GiB"), (20, "MiB"), (10, "KiB")):
        if value % (1 << shift) == 0:
            return f'"{value >> shift}{unit}"'
    return str(value)


def _toml(value: Any) -> str:
    """A value as TOML has it: JSON's spelling is one of TOML's."""
    if isinstance(value, float) and value.is_integer():
        return str(int(value))
    return orjson.dumps(value).decode()
