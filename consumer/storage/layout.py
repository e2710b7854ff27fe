"""The names of the storage sink's files; pure.

    metadata                                                      the checkpoint
    SCHEMA/meta/schema_VERSION_HASH.json                          a DDL of a database
    SCHEMA/TABLE/meta/schema_VERSION_HASH.json                    a table's schema, and the DDL that made it
    SCHEMA/TABLE/VERSION[/PARTITION][/DATE]/CDC[_DISPATCHER_]NUMBER.csv|json
    TABLE-ID/meta/..., TABLE-ID/VERSION[/DATE]/CDC...             with use-table-id-as-path

Index files (`meta/CDC.index`) are not read: a data file may be there before or after the index that names it, and the
checkpoint vouches for the files themselves. Source: TiCDC's `pkg/cloudstorage/{path_key,generator}.go`.
"""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, NamedTuple

from ordering.errors import InputError

METADATA = "metadata"
_DATA = re.compile(r"(CDC(?:_[^/]+_)?)(\d{6,20})\.(csv|json)", re.ASCII)
_SCHEMA = re.compile(r"schema_(\d{1,20})_(\d{1,10})\.json", re.ASCII)
_VERSION = re.compile(r"\d{1,20}", re.ASCII)
_USUAL_DEPTH, _LEAST_DEPTH = 2, 2
"""Parts of a table's directory; and of the shortest directory of data: table id and version."""

_TWICE = (
    "a changefeed was created again in this directory with another protocol or file-index-digit: give each changefeed a"
    " directory of its own"
)


class RowFile(NamedTuple):
    """A file of rows; `series`: directory and prefix, within which numbers follow each other from 1 on."""

    series: str
    number: int
    path: str
    size: int
    modified_ms: int
    extension: str


class SchemaFileName(NamedTuple):
    """A schema file by its name. `directory`: of its table or database, above `meta`."""

    directory: str
    version: int
    path: str


@dataclass(slots=True)
class Listing:
    """The files below a changefeed's directory at a moment."""

    series: dict[str, dict[int, RowFile]] = field(default_factory=dict)
    schemas: list[SchemaFileName] = field(default_factory=list)

    def add(self, entry: Mapping[str, Any]) -> None:
        """Take an object as the store lists it, if its name is one of TiCDC's. Raises InputError for a number twice."""
        path, (directory, _, name) = entry["path"], entry["path"].rpartition("/")
        if (found := _SCHEMA.fullmatch(name)) and directory.endswith("/meta"):
            self.schemas.append(SchemaFileName(directory.removesuffix("/meta"), int(found[1]), path))
        elif (found := _DATA.fullmatch(name)) and directory.count("/") + 1 >= _LEAST_DEPTH:
            series, number = f"{directory}/{found[1]}", int(found[2])
            modified: datetime = entry["last_modified"]
            one = RowFile(series, number, path, entry["size"], int(modified.timestamp() * 1000), found[3])
            other = self.series.setdefault(series, {}).setdefault(number, one)
            if other.path != path:
                raise InputError(f"two files have the number {number}", where=f"{other.path} and {path}", hint=_TWICE)


def listing_of(entries: Iterable[Mapping[str, Any]]) -> Listing:
    """The listing of all objects of a store."""
    found = Listing()
    for entry in entries:
        found.add(entry)
    return found


def directory_of(series: str) -> str:
    """The directory of a series of files."""
    return series.rpartition("/")[0]


def table_places(directory: str) -> list[tuple[str, int]]:
    """Where the schema of a directory's rows may lie: the table's directory, and the version; the likeliest first.

    A name may look like a version and a version like a name, and a name may hold a slash, so what is really there
    decides.
    """
    parts = directory.split("/")
    depths = sorted(range(1, len(parts)), key=lambda depth: (depth != _USUAL_DEPTH, depth))
    return [("/".join(parts[:depth]), int(parts[depth])) for depth in depths if _VERSION.fullmatch(parts[depth])]
