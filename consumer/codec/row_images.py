"""Reads handle keys out of raw row images: only the key's columns are decoded."""

from collections.abc import Callable, Iterable, Sequence
from typing import Any

import msgspec

from consumer.codec.canal_json import UNREADABLE, decode_image
from ordering.errors import InputError, UnfitRowError
from ordering.events import TableName
from ordering.rows.identity import row_keys, row_keys_of_one

Raw = bytes | msgspec.Raw
_Values = Callable[[Raw], tuple[Any, ...]]
_Readers = tuple[Callable[[Raw], bytes], Callable[[Raw, Raw], tuple[bytes, bytes | None]]]
_decode_members = msgspec.json.Decoder(dict[str, msgspec.Raw]).decode
_decode_text = msgspec.json.Decoder(str).decode


_MOST_COLUMNS = 64
"""Of a key: TiDB's own limit is 16, MariaDB's 32."""


class TableKeys:
    """The handle key of one table. Raises ValueError for names that no database has."""

    def __init__(self, name: TableName, names: Sequence[str]) -> None:
        if len(names) > _MOST_COLUMNS or len(set(names)) < len(names):
            message = f"{len(names)} key columns, {len(set(names))} of them different"
            raise ValueError(message)
        if any("\0" in one for one in (*name, *names)):
            message = "a name with U+0000 in it"
            raise ValueError(message)
        self.name, self.names = name, tuple(names)
        readers = _simple(name, self.names) or _general(name, self.names)
        self.key: Callable[[Raw], bytes] = readers[0]
        """The row key of an image. Raises msgspec.DecodeError if a key column is missing or NULL."""
        self.keys: Callable[[Raw, Raw], tuple[bytes, bytes | None]] = readers[1]
        """The row key of an UPDATE's image, and the one it left or None. Raises msgspec.DecodeError as `key`.

        The second argument may hold changed columns only.
        """


def unfit_images(keys: TableKeys, images: Iterable[msgspec.Raw], error: Exception, where: str) -> InputError:
    """What to raise for images that lack their key's columns, or are broken whatever the key is."""
    fact = f"row of {keys.name} lacks its handle key {keys.names}: {error}"
    try:
        for image in images:
            decode_image(image)
    except UNREADABLE:
        return InputError(fact, where=where)
    return UnfitRowError(fact, where=where)


def _simple(table: TableName, names: Sequence[str]) -> _Readers | None:
    """For a key of one column, as most are: the same in half the time. None for others."""
    shapes = _shapes(names) if len(names) == 1 else None
    if shapes is None:
        return None
    whole, partly = (msgspec.json.Decoder(shape).decode for shape in shapes)
    row_key, unset = row_keys_of_one(table), msgspec.UNSET

    def key(image: Raw) -> bytes:
        return row_key(whole(image).f0)

    def keys(image: Raw, old: Raw) -> tuple[bytes, bytes | None]:
        value, before = whole(image).f0, partly(old).f0
        return row_key(value), None if before == value or before is unset else row_key(before)

    return key, keys


def _general(table: TableName, names: Sequence[str]) -> _Readers:
    whole, partly = _values(names)
    row_key = row_keys(table, len(names))

    def key(image: Raw) -> bytes:
        return row_key(whole(image))

    def keys(image: Raw, old: Raw) -> tuple[bytes, bytes | None]:
        values, before = whole(image), partly(old)
        if msgspec.UNSET in before:
            before = tuple(n if b is msgspec.UNSET else b for b, n in zip(before, values, strict=True))
        return row_key(values), None if before == values else row_key(before)

    return key, keys


def _shapes(names: Sequence[str]) -> tuple[Any, Any] | None:
    """These columns of an image, and of one where some may be missing. None: msgspec names no field so."""
    fields = [f"f{i}" for i in range(len(names))]
    rename = dict(zip(fields, names, strict=True))
    partly = [(f, str | msgspec.UnsetType, msgspec.UNSET) for f in fields]
    try:  # not with a quote, a backslash or a control character
        whole = msgspec.defstruct("Key", [(f, str) for f in fields], rename=rename, gc=False)
        return whole, msgspec.defstruct("Partly", partly, rename=rename, gc=False)
    except ValueError:
        return None


def _values(names: Sequence[str]) -> tuple[_Values, _Values]:
    """What reads these columns out of an image, and out of one where some may be missing: UNSET stands for them."""
    shapes = _shapes(names)
    if shapes is None:
        return _slow_values(names, whole=True), _slow_values(names, whole=False)
    return _tuples(shapes[0]), _tuples(shapes[1])


def _tuples(shape: Any) -> _Values:
    decode, astuple = msgspec.json.Decoder(shape).decode, msgspec.structs.astuple
    return lambda image: astuple(decode(image))


def _slow_values(names: Sequence[str], *, whole: bool) -> _Values:
    def values(image: Raw) -> tuple[Any, ...]:
        members = _decode_members(image)
        missing = [name for name in names if name not in members]
        if missing and whole:
            raise msgspec.DecodeError(f"Object missing required field {missing[0]!r}")
        return tuple(_decode_text(members[name]) if name in members else msgspec.UNSET for name in names)

    return values
