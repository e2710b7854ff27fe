"""Reads handle keys out of raw row images: only the key's columns are decoded."""

from collections.abc import Sequence

import msgspec

from ordering.events import TableName
from ordering.identity import row_key


class TableKeys:
    """The handle key of one table."""

    def __init__(self, name: TableName, names: Sequence[str]) -> None:
        self.name, self.names = name, tuple(names)
        fields = [f"f{i}" for i in range(len(names))]
        renames = dict(zip(fields, names, strict=True))
        whole = msgspec.defstruct("Key", [(f, str) for f in fields], rename=renames, gc=False)
        partly = msgspec.defstruct(
            "OldKey", [(f, str | msgspec.UnsetType, msgspec.UNSET) for f in fields], rename=renames, gc=False
        )
        self._whole = msgspec.json.Decoder(whole).decode
        self._partly = msgspec.json.Decoder(partly).decode
        self._tuple = msgspec.structs.astuple

    def key(self, image: msgspec.Raw) -> bytes:
        """The row key of an image. Raises msgspec.DecodeError if a key column is missing or NULL."""
        return row_key(self.name, self._tuple(self._whole(image)))

    def left(self, image: msgspec.Raw, old: msgspec.Raw, key: bytes) -> bytes | None:
        """The row key that an UPDATE left, or None if it kept its key. `old` may hold changed columns only."""
        before = self._tuple(self._partly(old))
        if msgspec.UNSET in before:
            now = self._tuple(self._whole(image))
            before = tuple(n if b is msgspec.UNSET else b for b, n in zip(before, now, strict=True))
        old_key = row_key(self.name, before)
        return None if old_key == key else old_key
