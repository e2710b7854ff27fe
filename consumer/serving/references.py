"""References to secrets in configs that come through the API, and what of a config may be shown.

Who has the token may point the server at any database; that should not let them read the machine's files. So a
`file:` reference may only name a file below `/run/secrets` or the directory of the changefeeds, rules may only be read
from there, and a reference may only stand where a secret belongs: not in a key whose value is shown.
"""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from consumer.secrecy import is_secret
from consumer.serving.faults import RequestError

HIDDEN = "***"
"""Stands for a secret that a file holds itself, wherever a config is shown."""
_SECRETS = Path("/run/secrets")
_PLACES = re.compile(
    r"target\.uri|redis\.uri|source\.upstream\.uri|source\.bootstrap-servers|source\.kafka\..*"
    r"|source\.claim-check\.options\..*"
)
_REFERENCE = re.compile(r"\$\{[A-Za-z_][A-Za-z0-9_]*\}|^file:.*", re.DOTALL)
_MEANS_A_PLACE = ("source.claim-check.locations", "source.claim-check.map.")
_PASSWORD = re.compile(r"(?<=://)([^/@:]*):(?!\$\{)([^/@]*)@")
_DEEPEST = 12


def leaves(value: Any, key: str = "", depth: int = 0) -> Iterator[tuple[str, Any]]:
    """Every value of a config with its key, dotted; elements of lists have their list's. Raises RequestError."""
    if depth > _DEEPEST:
        raise RequestError("the config is nested too deeply", where=key[:200], hint="see docs/serve.md")
    if isinstance(value, dict):
        for name, inner in value.items():
            yield from leaves(inner, f"{key}.{name}" if key else str(name), depth + 1)
    elif isinstance(value, list):
        for inner in value:
            yield from leaves(inner, key, depth + 1)
    else:
        yield key, value


def check_references(values: dict[str, Any], folder: Path) -> None:
    """Raise RequestError for a reference that the API may not make, and for a hidden value."""
    for key, value in leaves(values):
        if not isinstance(value, str):
            continue
        if HIDDEN in value:
            hint = "give the value, or a reference, ${NAME} or file:/run/secrets/NAME"
            raise RequestError(f"{HIDDEN} stands for a secret that is not shown", where=f"key {key!r}", hint=hint)
        if key.endswith(("rules", "matcher")) and value.lstrip("!").startswith("@"):
            _check_file(value.lstrip("!").removeprefix("@"), key, folder)
        if _REFERENCE.search(value) and not key.startswith(_MEANS_A_PLACE):
            _check_reference(key, value, folder)


def _check_reference(key: str, value: str, folder: Path) -> None:
    if not _PLACES.fullmatch(key):
        hint = "references are for secrets: in target.uri, redis.uri, source.kafka and the like"
        raise RequestError("a reference may not stand here", where=f"key {key!r}", hint=hint)
    if value.startswith("file:"):
        _check_file(value.removeprefix("file:"), key, folder)


def _check_file(name: str, key: str, folder: Path) -> None:
    try:
        path = (folder / name).resolve()
    except (OSError, ValueError) as error:
        raise RequestError("this is no file's name", where=f"key {key!r}", hint="file:/run/secrets/NAME") from error
    if not any(path.is_relative_to(place.resolve()) for place in (_SECRETS, folder)):
        hint = f"put the file below {_SECRETS} or {folder}, or write the config file by hand"
        raise RequestError("through the API this file may not be read", where=f"key {key!r}", hint=hint)


def shown(values: Any, key: str = "") -> Any:
    """The config as it may be shown: references as they are, secrets that the file holds itself hidden."""
    if isinstance(values, dict):
        return {str(name): shown(inner, f"{key}.{name}" if key else str(name)) for name, inner in values.items()}
    if isinstance(values, list):
        return [shown(inner, key) for inner in values]
    if not isinstance(values, str) or _REFERENCE.fullmatch(values):
        return values
    if key == "changefeed" or not (is_secret(key) or "://" in values):
        return values
    return HIDDEN if is_secret(key) else _PASSWORD.sub(rf"\1:{HIDDEN}@", values)
