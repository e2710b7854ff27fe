"""Reads claim-check files (`large-message-handle-option = "claim-check"`), from files and object stores.

A file holds the message that was too large for Kafka: by itself, or as base64 in `{"key":null,"value":"..."}`; its
content tells which (TiCDC documentation, "Sync Data to Kafka", claim check).
"""

import re
from binascii import Error as Base64Error
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

import msgspec
import obstore
from obstore.exceptions import BaseError
from obstore.store import LocalStore, from_url

from consumer import canal
from consumer.bodies.locations import Place, found_in
from consumer.bodies.reference import Reference
from consumer.images import TableKeys
from ordering.errors import BodyMissingError, InputError, SourceError
from ordering.events import Position

_RETRIES = {"max_retries": 1}
_REFUSED = (PermissionError, obstore.exceptions.PermissionDeniedError, obstore.exceptions.UnauthenticatedError)
_CLIENT = {
    "allow_http", "allow_invalid_certificates", "connect_timeout", "http1_only", "http2_only", "proxy_ca_certificate",
    "proxy_excludes", "proxy_url", "read_timeout", "root_certificate", "timeout", "user_agent",
}  # fmt: skip
"""Options about the connection, which the library takes apart from those of the store."""
_WRAPPING = 1 << 10
_QUERY = re.compile(r"\?\S*")


Store = Any
"""One of obstore's stores; their types exist for type checkers only."""


class _Wrapped(msgspec.Struct, gc=False):
    type: str = ""
    value: bytes | None = None


_decode = msgspec.json.Decoder(_Wrapped).decode
_stores: dict[tuple[Place, tuple[tuple[str, str], ...]], Store] = {}


def opened(place: Place, options: Mapping[str, str]) -> Store:
    """The store at a place, kept per process. Raises ValueError for a wrong scheme or option; connects to nothing."""
    key = (place, tuple(sorted(options.items())))
    if key not in _stores:
        _stores[key] = _made(place, options)
    return _stores[key]


def _made(place: Place, options: Mapping[str, str]) -> Store:
    if place.scheme == "file":
        return LocalStore()
    named = {name.replace("-", "_"): value for name, value in options.items()}
    client = {name: value for name, value in named.items() if name in _CLIENT}
    config = {name: value for name, value in named.items() if name not in _CLIENT}
    try:
        return from_url(str(place), config=config, client_options=client, retry_config=_RETRIES)  # type: ignore[call-overload]
    except BaseError as error:
        raise ValueError(f"{place}: {first_line(error)}") from error


def first_line(error: Exception) -> str:
    """What a store says, without the signature that a URL in it may carry."""
    return _QUERY.sub("", str(error).partition("\n")[0])[:300]


@dataclass(frozen=True, slots=True)
class Claims:
    """The configured places, and how to get there. `limit`: bytes of a whole message."""

    locations: tuple[str, ...]
    moved: Mapping[str, str]
    options: Mapping[str, str] = field(repr=False)
    limit: int

    def image(self, reference: Reference, keys: TableKeys, row: bytes, commit_ts: int) -> bytes:
        """The row's image out of its file. Raises InputError, BodyMissingError and SourceError."""
        position = reference.position
        value = self._value(reference.location, position)
        message = canal.decode(value, position)
        canal.check_row(message, position)
        whole = message.tidb is not None and not (message.tidb.only_handle_key or message.tidb.claim_check_location)
        same = message.tidb is not None and message.tidb.commit_ts == commit_ts and message.type != "DELETE"
        # the target's spelling against upstream's, which does not tell case apart
        same = same and [n.lower() for n in (message.database, message.table)] == [n.lower() for n in keys.name]
        image = message.data[0] if message.data else msgspec.Raw()
        where = f"{position}, {reference.location[:300]!r}"
        try:
            same = same and whole and keys.key(image) == row
            canal.decode_image(image)
        except canal.UNREADABLE as error:
            raise InputError(f"row of {keys.name} can't be read: {error}", where=where) from error
        if not same:
            raise InputError("the claim-check file holds another message", where=where, hint="it was written over")
        return bytes(image)

    def _value(self, location: str, position: Position) -> bytes:
        """The message in a file, unwrapped and decompressed."""
        content = canal.plain(self._content(location, position), position, self.limit) or b""
        try:
            wrapped = _decode(content)
        except (*canal.UNREADABLE, Base64Error):
            return content  # what is wrong with it is said by the one who decodes it
        inner = content if wrapped.type or wrapped.value is None else wrapped.value
        value = canal.plain(inner, position, self.limit) or b""
        if len(value) > self.limit:
            raise self._too_large(location, position)
        return value

    def _content(self, location: str, position: Position) -> bytes:
        if not self.locations and not self.moved:
            hint = "set source.claim-check.locations to the changefeed's claim-check-storage-uri"
            raise InputError(f"the row lies in a claim-check file, {location[:300]!r}", where=str(position), hint=hint)
        place, path = found_in(location, self.locations, self.moved, position)
        where = f"{position}, {location[:300]!r}"
        try:
            return self._bounded(obstore.get(*self._there(place, path)), location, position)
        except FileNotFoundError as error:
            hint = "the store's lifecycle deleted it, or [source.claim-check] leads to another place"
            raise BodyMissingError("a claim-check file is missing", where=where, hint=hint) from error
        except _REFUSED as error:
            raise SourceError(f"the claim-check store refuses us: {first_line(error)}", where=where) from error
        except (BaseError, OSError) as error:
            raise BodyMissingError(f"a claim-check file can't be read: {first_line(error)}", where=where) from error
        except ValueError as error:
            raise InputError(f"a claim-check location is wrong: {first_line(error)}", where=where) from error

    def _there(self, place: Place, path: str) -> tuple[Store, str]:
        """Store and path. Files' paths are whole ones: a directory may be missing until its first file comes."""
        whole = place.scheme == "file"
        return opened(place, self.options), "/".join([*place.parts, path]) if whole else path

    def _bounded(self, found: Iterable[bytes], location: str, position: Position) -> bytes:
        content = bytearray()
        for part in found:
            content += part
            # base64 takes four bytes for three
            if len(content) > self.limit * 4 // 3 + _WRAPPING:
                raise self._too_large(location, position)
        return bytes(content)

    def _too_large(self, location: str, position: Position) -> InputError:
        return InputError(
            f"a claim-check file holds more than limits.message-bytes ({self.limit})",
            where=f"{position}, {location[:300]!r}",
            hint="raise limits.message-bytes if the message is genuine",
        )
