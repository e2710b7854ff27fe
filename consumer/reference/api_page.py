"""`docs/api.md`: the API of `reconciler serve`, from its OpenAPI document."""

import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from consumer.reference.markdown import joined, made_by, table
from consumer.serve.api.errors import RequestError
from consumer.serve.api.models import NewChangefeed
from consumer.serve.app import api
from consumer.serve.fleet import Fleet

Schema = dict[str, Any]
_INTRODUCTION = """\
# API reference

Of `reconciler serve DIR`; `docs/serve.md` says how to start it, who may ask and what may be changed. `/openapi.json`
is the same for programs. Paths and words are those of TiCDC's Open API v2 where it has the same thing. TSOs are whole
numbers beyond 2^53: programs whose numbers are floating take the time beside them.

All but health, and on a loopback address metrics and document, need `Authorization: Bearer TOKEN`."""
_ERRORS = """\
## Errors

The body of each is a [FailureDetail](#failuredetail-type): `error_code` is the kind of the error (`docs/runbook.md`
lists those of changefeeds), `fact`, `where` and `hint` are what happened, where, and what to do."""
_OF_HTTP = {
    400: "the request, or the config in it, is wrong (`Request`, `Config`)",
    405: "the path is there, but not for this method",
    500: "a bug; the log holds its traceback",
    502: "Kafka or the target refuses what we ask, or does not answer (`Input`, `Source`, `Target`, ...)",
}
_PLAIN = "application/json"


def page() -> str:
    """The page."""
    document = openapi()
    schemas = document["components"]["schemas"] | {NewChangefeed.__name__: NewChangefeed.model_json_schema()}
    routes = [(path, verb, one) for path, verbs in document["paths"].items() for verb, one in verbs.items()]
    return joined(
        made_by("the types and routes in `consumer/serve`"),
        _INTRODUCTION,
        table(
            ("request", "does"),
            ((f"[`{verb.upper()} {path}`](#{one['operationId'].lower()})", _said(one)) for path, verb, one in routes),
        ),
        *(part for path, verb, one in routes for part in _route(path, verb, one)),
        _ERRORS,
        table(("status", "error_code", "means"), _errors()),
        "## Types\n\nFields of bodies and answers. A type with `or null` may be null; the field is there all the same.",
        *(part for name, schema in sorted(schemas.items()) for part in _type(name, schema)),
    )


def openapi() -> Schema:
    """The document, as `/openapi.json` gives it."""
    with tempfile.TemporaryDirectory() as folder:
        return api(Fleet(Path(folder), Path(folder))).openapi()


def _said(route: Schema) -> str:
    return str(route.get("description", route["summary"])).partition("\n\n")[0]


def _route(path: str, verb: str, route: Schema) -> Iterator[str | list[str]]:
    yield f"## {route['operationId']}\n\n`{verb.upper()} {path}`"
    yield " ".join(_said(route).split())
    asked = [
        (f"`{one['name']}`", one["in"], _kind(one["schema"]), _default(one), one.get("description", ""))
        for one in route.get("parameters", [])
    ]
    if asked:
        yield table(("parameter", "in", "type", "default", "meaning"), asked)
    for kind, body in route.get("requestBody", {}).get("content", {}).items():
        yield f"Body, `{kind}`: {_body(body['schema'])}"
    for status, answer in route["responses"].items():
        if status.startswith("2"):
            kinds = answer.get("content", {})
            yield f"Answer, {status}: {_kind(kinds[_PLAIN]['schema']) if _PLAIN in kinds else 'text'}"


def _body(schema: Schema) -> str:
    titled = schema.get("title")
    return f"[{titled}](#{titled.lower()}-type)" if titled else _kind(schema)


def _default(parameter: Schema) -> str:
    if parameter.get("required"):
        return "required"
    default = parameter["schema"].get("default")
    return f"`{default}`" if default not in (None, "") else ""


def _kind(schema: Schema) -> str:
    """A type in words, ours as links."""
    if "$ref" in schema:
        name = schema["$ref"].rpartition("/")[2]
        return f"[{name}](#{name.lower()}-type)"
    if "anyOf" in schema:
        return " or ".join(_kind(one) for one in schema["anyOf"])
    if "enum" in schema or "const" in schema:
        return " or ".join(f"`{one}`" for one in schema.get("enum", [schema.get("const")]))
    if schema.get("type") == "array":
        return f"list of {_kind(schema['items'])}"
    extra = schema.get("additionalProperties")
    if schema.get("type") == "object" and isinstance(extra, dict):
        return f"object of {_kind(extra)}"
    return f"{schema.get('type', 'any')}{_bounds(schema)}"


def _bounds(schema: Schema) -> str:
    words = {"minimum": "at least", "maximum": "at most", "exclusiveMaximum": "below"}
    return "".join(f", {word} {schema[name]:g}" for name, word in words.items() if name in schema)


def _errors() -> Iterator[tuple[str, str, str]]:
    every: list[type[RequestError]] = [RequestError, *RequestError.__subclasses__()]
    kinds = {one.status: one for one in every}
    for status in sorted({*kinds, *_OF_HTTP}):
        kind = kinds.get(status)
        code = f"`Reconciler:Err{kind.__name__.removesuffix('Error')}`" if kind else "the error's own"
        yield str(status), code, _OF_HTTP.get(status) or (kind.__doc__ or "" if kind else "")


def _type(name: str, schema: Schema) -> Iterator[str | list[str]]:
    yield f"### {name} (type)\n\n{' '.join(schema.get('description', '').split())}".rstrip()
    fields = schema.get("properties", {})
    rows = ((f"`{field}`", _kind(one), one.get("description", "")) for field, one in fields.items())
    if fields:
        yield table(("field", "type", "meaning"), rows)
