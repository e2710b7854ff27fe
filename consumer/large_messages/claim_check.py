"""Reads claim-check files (`large-message-handle-option = "claim-check"`), from files and object stores.

A file holds the message that was too large for Kafka: by itself, or as base64 in `{"key":null,"value":"..."}`; its
content tells which (TiCDC documentation, "Sync Data to Kafka", claim check).
"""

from binascii import Error as Base64Error
from collections.abc import Mapping
from dataclasses import dataclass, field

import msgspec
from obstore.exceptions import BaseError

from consumer.codec import canal_json
from consumer.codec.row_images import TableKeys
from consumer.formats.canal_json import CANAL_JSON
from consumer.formats.message_format import MessageFormat
from consumer.large_messages.locations import found_in
from consumer.large_messages.reference import BodyReference
from consumer.large_messages.store import REFUSED, first_line, read_object
from ordering.errors import BodyMissingError, InputError, SourceError
from ordering.events import Position

_WRAPPING = 1 << 10


class _Wrapped(msgspec.Struct, gc=False):
    type: str = ""
    key: bytes | None = None
    value: bytes | None = None


_decode = msgspec.json.Decoder(_Wrapped).decode


@dataclass(frozen=True, slots=True)
class Claims:
    """The configured places, and how to get there. `limit`: bytes of a whole message."""

    locations: tuple[str, ...]
    moved: Mapping[str, str]
    options: Mapping[str, str] = field(repr=False)
    limit: int
    format: MessageFormat = CANAL_JSON
    """Of the messages in the files."""

    def image(self, reference: BodyReference, keys: TableKeys, row: bytes, commit_ts: int) -> bytes:
        """The row's image out of its file. Raises InputError, BodyMissingError and SourceError."""
        position = reference.position
        content = self.format.content(*self._key_and_value(reference.location, position))
        message = canal_json.decode(self.format.canal(content, position, self.limit), position)
        canal_json.check_row(message, position)
        whole = message.tidb is not None and not (message.tidb.only_handle_key or message.tidb.claim_check_location)
        same = message.tidb is not None and message.tidb.commit_ts == commit_ts and message.type != "DELETE"
        # the target's spelling against upstream's, which does not tell case apart
        same = same and [n.lower() for n in (message.database, message.table)] == [n.lower() for n in keys.name]
        image = message.data[0] if message.data else msgspec.Raw()
        where = f"{position}, {reference.location[:300]!r}"
        try:
            same = same and whole and keys.key(image) == row
            canal_json.decode_image(image)
        except canal_json.UNREADABLE as error:
            raise InputError(f"row of {keys.name} can't be read: {error}", where=where) from error
        if not same:
            raise InputError("the claim-check file holds another message", where=where, hint="it was written over")
        return bytes(image)

    def _key_and_value(self, location: str, position: Position) -> tuple[bytes | None, bytes]:
        """The message in a file, unwrapped and decompressed."""
        content = canal_json.plain(self._content(location, position), position, self.limit) or b""
        try:
            wrapped = _decode(content)
        except (*canal_json.UNREADABLE, Base64Error):
            return None, content  # what is wrong with it is said by the one who decodes it
        key, inner = (None, content) if wrapped.type or wrapped.value is None else (wrapped.key, wrapped.value)
        value = canal_json.plain(inner, position, self.limit) or b""
        if len(value) > self.limit:
            raise self._too_large(location, position)
        return key, value

    def _content(self, location: str, position: Position) -> bytes:
        if not self.locations and not self.moved:
            hint = "set source.claim-check.locations to the changefeed's claim-check-storage-uri"
            raise InputError(f"the row is in a claim-check file, {location[:300]!r}", where=str(position), hint=hint)
        place, path = found_in(location, self.locations, self.moved, position)
        where = f"{position}, {location[:300]!r}"
        try:
            # base64 takes four bytes for three
            found = read_object(place, path, self.options, self.limit * 4 // 3 + _WRAPPING)
        except InputError as error:
            raise InputError(f"a claim-check file is none: {error.fact}", where=where, hint=error.hint) from error
        except FileNotFoundError as error:
            hint = "the store's lifecycle deleted it, or [source.claim-check] leads to another place"
            raise BodyMissingError("a claim-check file is missing", where=where, hint=hint) from error
        except REFUSED as error:
            raise SourceError(f"the claim-check store refuses us: {first_line(error)}", where=where) from error
        except (BaseError, OSError) as error:
            raise BodyMissingError(f"a claim-check file can't be read: {first_line(error)}", where=where) from error
        except ValueError as error:
            raise InputError(f"a claim-check location is wrong: {first_line(error)}", where=where) from error
        if not found.is_whole:
            raise self._too_large(location, position)
        return found.content

    def _too_large(self, location: str, position: Position) -> InputError:
        return InputError(
            f"a claim-check file holds more than limits.message-bytes ({self.limit})",
            where=f"{position}, {location[:300]!r}",
            hint="raise limits.message-bytes if the message is genuine",
        )
