"""Reads handle keys out of raw row images: only the key's columns are decoded."""

from collections.abc import Callable, Sequence
from typing import Any

import msgspec

from ordering.events import TableName
from ordering.identity import row_keys

Raw = bytes | msgspec.Raw
_Values = Callable[[Raw], tuple[Any, ...]]
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
        self._whole, self._partly = _values(self.names, whole=True), _values(self.names, whole=False)
        self._row_key = row_keys(name, len(names))

    def key(self, image: Raw) -> bytes:
        """The row key of an image. Raises msgspec.DecodeError if a key column is missing or NULL."""
        return self._row_key(self._whole(image))

    def keys(self, image: Raw, old: Raw) -> tuple[bytes, bytes | None]:
        """The row key of an UPDATE's image, and the one it left or None. `old` may hold changed columns only.

        Raises msgspec.DecodeError as `key`.
        """
        values, before = self._whole(image), self._partly(old)
        if before == values:
            return self._row_key(values), None
        if msgspec.UNSET in before:
            before = tuple(n if b is msgspec.UNSET else b for b, n in zip(before, values, strict=True))
        return self._row_key(values), None if before == values else self._row_key(before)


def _values(names: Sequence[str], *, whole: bool) -> _Values:
    """What reads these columns out of an image; where some may be missing, UNSET stands for them."""
    fields = [f"f{i}" for i in range(len(names))]
    typed = [(f, str) if whole else (f, str | msgspec.UnsetType, msgspec.UNSET) for f in fields]
    try:
        shape = msgspec.defstruct("Key", typed, rename=dict(zip(fields, names, strict=True)), gc=False)
    except ValueError:  # msgspec names no field with a quote, a backslash or a control character
        return _slow_values(names, whole=whole)
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
