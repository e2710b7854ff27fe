"""Where claim-check files may be: a location comes out of a message, so it is followed only below a configured place.

A location is `scheme://host/path` as TiCDC writes it, also with the one slash that Go's filepath.Join leaves of two
(`s3:/bucket/...`). Its path is taken as it is, not as percent-encoded; the store decodes that of a configured place.
"""

import re
from collections.abc import Mapping, Sequence
from typing import NamedTuple
from urllib.parse import unquote

from ordering.errors import InputError
from ordering.events import Position

_LOCATION = re.compile(r"([a-z][a-z0-9+.-]*):(/+)([^/]?.*)", re.DOTALL)
_SAME = {"gcs": "gs", "azblob": "azure", "local": "file", "s3a": "s3"}
_SHOWN = 300


class StorePlace(NamedTuple):
    """A directory or a file of a store: its host is the bucket; "" for files."""

    scheme: str
    host: str
    parts: tuple[str, ...]

    def __str__(self) -> str:
        """The URI that opens it."""
        return f"{self.scheme}://{self.host}/{'/'.join(self.parts)}"


def place_of(location: str) -> StorePlace:
    """Read a location. Raises ValueError for one that is none, or that could lead out of where it begins."""
    match = _LOCATION.fullmatch(location)
    if match is None:
        raise ValueError("not of the form scheme://host/path")
    scheme, slashes, rest = _SAME.get(match[1], match[1]), match[2], match[3]
    if any(ord(c) < ord(" ") or c in "\\?#" for c in rest):
        raise ValueError("holds a control character, a backslash, a question mark or a hash")
    parts = tuple(part for part in rest.split("/") if part or scheme != "file")
    if scheme == "file":
        if len(slashes) == len("//"):
            raise ValueError("names a host: write file:///PATH")
        host = ""
    else:
        host, parts = parts[0], parts[1:-1] if parts[-1] == "" else parts[1:]
    if any(part in {"", ".", ".."} for part in parts) or (scheme != "file" and not host):
        raise ValueError("holds an empty part, `.` or `..`")
    return StorePlace(scheme, host, parts)


def stays_below(place: StorePlace) -> bool:
    """Whether a place is still where it seems to be once its store has percent-decoded its path."""
    decoded = [unquote(part) for part in place.parts]
    return not any(part in {".", ".."} or "/" in part for part in decoded)


def shown(location: str) -> str:
    """A location for errors: what stands behind `?` or `#`, or before `@` in the host, may be a secret."""
    path = re.split(r"[?#]", location, maxsplit=1)[0][:_SHOWN]
    return repr(re.sub(r"(:/+)[^/]*@", r"\1***@", path)) + ("..." if len(path) < len(location) else "")


def below(inner: StorePlace, outer: StorePlace) -> bool:
    """Whether a place lies below another, whole parts compared."""
    depth = len(outer.parts)
    same = inner[:2] == outer[:2] and inner.parts[:depth] == outer.parts
    return same and len(inner.parts) > depth


def found_in(
    location: str, allowed: Sequence[str], moved: Mapping[str, str], position: Position
) -> tuple[StorePlace, str]:
    """The configured place that holds a location, as it is to be opened, and the path in it.

    `moved`: prefixes that are reached elsewhere, the longest counts. Raises InputError with the position.
    """
    try:
        place = place_of(location)
    except ValueError as error:
        raise InputError(f"claim-check location {shown(location)} is wrong: it {error}", where=str(position)) from error
    roots = {place_of(one): place_of(one) for one in allowed}
    roots.update({place_of(one): place_of(other) for one, other in moved.items()})
    holding = [root for root in roots if below(place, root)]
    if not holding:
        hint = "if the changefeed writes there, add its claim-check-storage-uri to source.claim-check.locations"
        raise InputError(
            f"claim-check location {shown(location)} is not allowed by the config", where=str(position), hint=hint
        )
    root = max(holding, key=lambda one: len(one.parts))
    return roots[root], "/".join(place.parts[len(root.parts) :])
