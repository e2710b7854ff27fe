"""A place in an object store that tables are written to. What the store says is told without its secrets."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field

import obstore
from obstore.exceptions import BaseError

from consumer.large_messages.locations import place_of
from consumer.large_messages.store import REFUSED, Store, first_line, opened
from sinks.uri import WarehouseFile


@dataclass(frozen=True, slots=True)
class WarehouseStore:
    """See `sinks.uri.ObjectStore`."""

    uri: str
    options: Mapping[str, str] = field(repr=False)

    @property
    def _store(self) -> Store:
        return opened(place_of(self.uri), self.options)

    def read(self, path: str) -> bytes:
        """See `ObjectStore.read`."""
        with _told(path):
            found = obstore.get(self._store, path)
            content = bytes(found.bytes())
        if len(content) != found.meta["size"]:
            raise OSError(f"{path}: {len(content)} bytes came of {found.meta['size']}")
        return content

    def write(self, path: str, content: bytes) -> None:
        """In one request: parts of an upload that a crash ends would stay, and be paid for, unseen."""
        with _told(path):
            obstore.put(self._store, path, content, use_multipart=False)

    def delete(self, paths: Sequence[str]) -> None:
        """See `ObjectStore.delete`."""
        with _told(paths[0] if paths else ""):
            obstore.delete(self._store, paths)

    def listed(self, directory: str) -> Iterator[WarehouseFile]:
        """See `ObjectStore.listed`."""
        with _told(directory):
            for chunk in obstore.list(self._store, prefix=directory or None):
                for one in chunk:
                    yield WarehouseFile(one["path"], one["size"], one["last_modified"].timestamp())

    def written_s(self, path: str) -> float:
        """See `ObjectStore.written_s`."""
        with _told(path):
            return float(obstore.head(self._store, path)["last_modified"].timestamp())


@contextmanager
def _told(path: str) -> Iterator[None]:
    """The library's errors as OSError, without the signatures that they may quote."""
    try:
        yield
    except FileNotFoundError:
        raise FileNotFoundError(f"{path}: there is no such object") from None
    except REFUSED as error:
        raise PermissionError(f"{path}: {first_line(error)}") from None
    except BaseError as error:
        raise OSError(f"{path}: {first_line(error)}") from None
