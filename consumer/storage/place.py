"""Reads objects of a changefeed's directory, in a store or on a disk. What a store says is told without its secrets."""

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

import obstore
from obstore.exceptions import BaseError

from consumer.large_messages.disk import listed
from consumer.large_messages.locations import StorePlace, place_of
from consumer.large_messages.store import REFUSED, first_line, opened, read_object
from consumer.storage.layout import METADATA, Listing, listing_of
from ordering.errors import InputError, SourceError, SourceUnreachableError
from ordering.timestamps import ResolvedTs

_HINT = "check source.storage and [source.storage-options]"
_CUT = "pages of ListObjectsV2 that are not the last have to come with a NextContinuationToken"
_PAGE = 1_000
"""Objects of a page of S3."""
_LAST_TSO = 2**63 - 1
_MOST_METADATA = 1 << 16
_MOST_SCHEMA = 64 << 20
MOST_DATA = 1 << 30
"""Bytes of a file: TiCDC's `file-size` is 64 MiB, and 512 MiB at most."""

MOST_OBJECTS = 5_000_000
"""Below a directory: so many names take about 2 GiB. A server may list others without an end."""


class GoneError(Exception):
    """An object is not there."""


class Vouched(NamedTuple):
    """`metadata`: each row at or below the checkpoint lies in a file; and when it was written, by the store's clock."""

    checkpoint: ResolvedTs
    written_ms: int


@dataclass(frozen=True, slots=True)
class StorageRoot:
    """The directory of a changefeed's sink URI, without its parameters; travels to the tasks."""

    uri: str
    options: Mapping[str, str] = field(default_factory=dict, repr=False)

    @property
    def _place(self) -> StorePlace:
        return place_of(self.uri)

    @property
    def _disk(self) -> Path | None:
        """The directory, if it is one of a disk."""
        place = self._place
        return Path("/", *place.parts) if place.scheme == "file" else None

    def where(self, path: str) -> str:
        """An object's address, for errors."""
        return f"{self.uri.rstrip('/')}/{path}"

    def read(self, path: str) -> bytes:
        """A file of rows. Raises GoneError, InputError, SourceError, SourceUnreachableError."""
        return self._content(path, MOST_DATA)[0]

    def read_schema(self, path: str) -> bytes:
        """A schema file. Raises as `read` does."""
        return self._content(path, _MOST_SCHEMA)[0]

    def _content(self, path: str, most: int) -> tuple[bytes, int]:
        """An object's content, and when it was written, in ms since 1970. Raises as `read` does."""
        try:
            content, written_ms, is_whole = read_object(self._place, path, self.options, most)
        except (FileNotFoundError, NotADirectoryError) as error:
            raise GoneError(path) from error
        except REFUSED as error:
            raise self._refused(path, error) from error
        except (BaseError, OSError) as error:
            raise self._unreachable(path, error) from error
        if not is_whole:
            raise InputError(f"a file holds more than {most} bytes", where=self.where(path), hint="not TiCDC's")
        return content, written_ms

    def paths(self, directory: str = "") -> Iterator[Mapping[str, Any]]:
        """The objects below a directory, with paths as `read` takes them. Raises as `read` does."""
        for number, found in enumerate(self._listed(directory)):
            if number >= MOST_OBJECTS:
                hint = "let the changefeed delete old files (file-expiration-days), or give it a directory of its own"
                fact = f"more than {MOST_OBJECTS} objects are listed"
                raise InputError(fact, where=self.where(directory), hint=hint)
            yield found

    def _listed(self, directory: str) -> Iterator[Mapping[str, Any]]:
        try:
            if self._disk is not None:
                yield from listed(self._disk, directory)
                return
            yield from self._pages(directory)
        except FileNotFoundError:
            return
        except REFUSED as error:
            raise self._refused(directory, error) from error
        except (BaseError, OSError) as error:
            raise self._unreachable(directory, error) from error

    def _pages(self, directory: str) -> Iterator[Mapping[str, Any]]:
        """The objects of all pages; an answer may say that there are more and lack the token that leads on to them.

        The library takes such a page for the last one, so what looks like the end of a page is asked about once more.
        """
        store, count, last = opened(self._place, self.options), 0, ""
        for chunk in obstore.list(store, prefix=directory or None):
            yield from chunk
            count, last = count + len(chunk), max(last, *(one["path"] for one in chunk)) if chunk else last
        if self._place.scheme == "s3" and count and count % _PAGE == 0:
            behind = obstore.list(store, prefix=directory or None, offset=last)
            if any(len(chunk) for chunk in behind):
                fact = f"the store's listing ended after {count} objects, and there are more"
                raise SourceUnreachableError(fact, where=self.where(directory), hint=_CUT)

    def listing(self) -> Listing:
        """All files that TiCDC wrote. Raises as `read` does."""
        return listing_of(self.paths())

    def vouched(self) -> Vouched | None:
        """What `metadata` says; None while there is no such file, or nothing in it.

        Raises InputError for one that can't be read, though SourceUnreachableError where it may be half written.
        """
        try:
            content, written_ms = self._content(METADATA, _MOST_METADATA)
        except GoneError:
            return None
        where = self.where(METADATA)
        try:
            found = json.loads(content)["checkpoint-ts"]
        except (ValueError, TypeError, KeyError, RecursionError):
            raise SourceUnreachableError(
                f"metadata holds no checkpoint-ts, in {len(content)} bytes",
                where=where,
                hint="half written, or not TiCDC's: source.storage is the path of the changefeed's sink URI",
            ) from None
        if type(found) is not int or not 0 <= found <= _LAST_TSO:
            raise InputError(f"metadata's checkpoint-ts is {str(found)[:80]}, no TSO", where=where)
        return Vouched(ResolvedTs(found), written_ms) if found else None

    def _refused(self, path: str, error: Exception) -> SourceError:
        return SourceError(f"the store refuses us: {first_line(error)}", where=self.where(path), hint=_HINT)

    def _unreachable(self, path: str, error: Exception) -> SourceError:
        fact = f"the store can't be read: {first_line(error)}"
        return SourceUnreachableError(fact, where=self.where(path), hint=_HINT)
