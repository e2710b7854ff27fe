"""Bodies of requests that hold a config: JSON, or TOML as it would stand in the file."""

from typing import Any

import orjson
import tomlkit
from fastapi import Request
from tomlkit.exceptions import TOMLKitError

from consumer.serve.api.errors import MediaTypeError, RequestError
from consumer.serve.api.models import NewChangefeed
from consumer.serve.config.references import check_size, check_text, leaves

_TOML = frozenset({"application/toml", "text/toml", "text/plain"})
_JSON = "application/json"
CONFIG_BODY = {
    "requestBody": {
        "required": True,
        "content": {
            _JSON: {"schema": NewChangefeed.model_json_schema()},
            "application/toml": {"schema": {"type": "string", "description": "the text of the file"}},
        },
    }
}
"""What the OpenAPI document says of such a body."""
TOML_BODY = {
    "requestBody": {
        "required": True,
        "content": {"application/toml": {"schema": {"type": "string", "description": "`text` of the config, edited"}}},
    }
}
"""What it says of a config that was edited."""


async def config_text(request: Request) -> str:
    """The body as TOML. Raises RequestError."""
    body, kind = await request.body(), _kind_of(request)
    if kind in _TOML:
        return _text(body)
    if kind != _JSON:
        hint = "Content-Type: application/json, or application/toml"
        raise MediaTypeError("a config is JSON or TOML", where="header Content-Type", hint=hint)
    return _as_toml(_object(body))


async def toml_text(request: Request) -> str:
    """The body, which is TOML. Raises RequestError."""
    if _kind_of(request) not in _TOML:
        hint = "Content-Type: application/toml"
        raise MediaTypeError("an edited config is TOML", where="header Content-Type", hint=hint)
    return _text(await request.body())


def _kind_of(request: Request) -> str:
    return request.headers.get("content-type", _JSON).partition(";")[0].strip().lower()


def _text(body: bytes) -> str:
    try:
        text = body.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise RequestError("the body is no UTF-8 text", where="body", hint="TOML is UTF-8") from error
    check_text(text)
    return text


def _object(body: bytes) -> dict[str, Any]:
    try:
        values = orjson.loads(body)
    except orjson.JSONDecodeError as error:
        raise RequestError(
            f"the body is not valid JSON: {error}", where="body", hint="`reconciler help configuration` has a sample"
        ) from error
    if not isinstance(values, dict):
        raise RequestError(
            "the body is no JSON object", where="body", hint="`reconciler help configuration` has a sample"
        )
    return values


def _as_toml(values: dict[str, Any]) -> str:
    check_size(values)
    empty = next((key for key, value in leaves(values) if value is None), None)
    if empty is not None:
        raise RequestError("null is no value of a config", where=f"key {empty!r}", hint="leave the key out")
    try:
        return tomlkit.dumps(values)
    except (TOMLKitError, ValueError, TypeError, LookupError, RecursionError) as error:
        fact = f"the body can't be written as TOML: {str(error)[:200]}"
        raise RequestError(fact, where="body", hint="`reconciler help configuration` has a sample") from error
