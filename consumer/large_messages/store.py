"""Reads objects of stores: places as obstore opens them, content up to a limit, errors without their secrets."""

import re
from collections.abc import Mapping
from functools import lru_cache
from pathlib import Path
from typing import Any, NamedTuple

import obstore
from obstore.exceptions import BaseError, PermissionDeniedError, UnauthenticatedError
from obstore.store import from_url

from consumer.large_messages.disk import content_of
from consumer.large_messages.locations import StorePlace, stays_below
from consumer.large_messages.store_proxy import NOT_FOLLOWED, allowed_for, has_proxy, proxy_for

REFUSED = (PermissionError, PermissionDeniedError, UnauthenticatedError)
"""What is raised where a store, or a disk, does not let us read."""
_RETRIES = {"max_retries": 1}
_CLIENT = {
    "allow_http", "allow_invalid_certificates", "connect_timeout", "http1_only", "http2_only", "proxy_ca_certificate",
    "proxy_excludes", "proxy_url", "read_timeout", "root_certificate", "timeout", "user_agent",
}  # fmt: skip
"""Options about the connection, which the library takes apart from those of the store."""
_QUERY = re.compile(r"\?\S*")

Store = Any
"""One of obstore's stores; their types exist for type checkers only."""

MOST_STORES = 128
"""So many are kept in a process: configs that are only checked open some, too."""


def opened(place: StorePlace, options: Mapping[str, str]) -> Store:
    """The store at a place, kept per process. Raises ValueError for a wrong scheme or option; connects to nothing."""
    return _made(place, tuple(sorted(options.items())))


def check_opens(place: StorePlace, options: Mapping[str, str]) -> None:
    """Open a store, which connects to nothing; a disk needs no opening. Raises ValueError as `opened` does."""
    if place.scheme != "file":
        opened(place, options)


@lru_cache(MOST_STORES)
def _made(place: StorePlace, options: tuple[tuple[str, str], ...]) -> Store:
    if not stays_below(place):
        message = f"{place} leads out of where it begins"
        raise ValueError(message)
    named = {name.replace("-", "_").lower(): value for name, value in options}
    client = {name: value for name, value in named.items() if name in _CLIENT}
    config = {name: value for name, value in named.items() if name not in _CLIENT}
    if not has_proxy(client):
        client["proxy_url"] = proxy_for(allowed_for(place, config))
    try:
        return from_url(str(place), config=config, client_options=client, retry_config=_RETRIES)  # type: ignore[call-overload]
    except BaseError as error:
        raise ValueError(f"{place}: {first_line(error)}") from error


def first_line(error: Exception) -> str:
    """What a store says, without the signature that a URL in it may carry."""
    text = str(error)
    return NOT_FOLLOWED if NOT_FOLLOWED in text else _QUERY.sub("", text.partition("\n")[0])[:300]


class StoredObject(NamedTuple):
    """An object's content, and when it was written, in ms since 1970. `is_whole`: whether no more than asked for."""

    content: bytes
    written_ms: int
    is_whole: bool


def read_object(place: StorePlace, path: str, options: Mapping[str, str], most: int) -> StoredObject:
    """Read an object below a place, of which little more than `most` bytes are held, whatever its server says.

    Links on a disk are refused. Raises InputError, OSError, ValueError, and obstore's errors.
    """
    if place.scheme == "file":
        content, written_ms = content_of(Path("/", *place.parts), path, most)
    else:
        found = obstore.get(opened(place, options), path)
        written_ms = int(found.meta["last_modified"].timestamp() * 1000)
        if found.meta["size"] > most:
            return StoredObject(b"", written_ms, is_whole=False)
        content = _bounded(found, most)
    return StoredObject(content, written_ms, len(content) <= most)


def _bounded(found: "obstore.GetResult", most: int) -> bytes:
    """What comes is counted: a server may send more than the length that it names."""
    content = bytearray()
    for part in found:
        content += part
        if len(content) > most:
            break
    return bytes(content)
