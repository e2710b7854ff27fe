"""Row events of the Simple protocol in the compiled core: as Canal-JSON, one behind the other.

`consumer.formats.simple` tells what is right: the core takes rows of schemas that it was told, as nearly all are, and
stops at any other message.
"""

import ctypes
from array import array
from collections.abc import Sequence
from enum import IntEnum
from typing import NamedTuple

from consumer.native import CRASHED, NO_MEMORY, USUAL, Batch, Core, CoreSource, crashed, seed, there

_LAST_OFFSET = 2**63 - 1


class Conversion(IntEnum):
    """What becomes of a column's values."""

    AS_SENT = 0
    FROM_BASE64 = 1
    FROM_MOMENT = 2


class RowLayout(NamedTuple):
    """How rows of one version of a table are brought into Canal-JSON.

    `heads`: what the events of INSERT, UPDATE, DELETE begin with; `zone`: the one in which moments stay as they are.
    """

    database: str
    table: str
    version: int
    heads: Sequence[bytes]
    zone: str
    columns: Sequence[tuple[str, Conversion]]


class SimpleEvents(NamedTuple):
    """What a call took of messages: events one behind the other, and of each its length and offset."""

    joined: bytes
    lens: "array[int]"
    offsets: "array[int] | None"
    """None: those of the messages."""
    is_usual: bool
    """Whether nothing was met that Python has to take."""


class _Translated(ctypes.Structure):
    _fields_ = (
        ("lens", ctypes.c_void_p),
        ("offsets", ctypes.c_void_p),
        ("count", ctypes.c_uint64),
        ("bytes", ctypes.c_void_p),
        ("size", ctypes.c_uint64),
    )


class SimpleRows:
    """Reads rows with the schemas that it was told. Not for several threads."""

    def __init__(self, core: Core) -> None:
        self._library = core.library
        self._pointer = there(self._library.core_schemas(seed()))

    def __del__(self) -> None:
        if pointer := getattr(self, "_pointer", None):
            self._library.core_schemas_free(pointer)

    def learn(self, layout: RowLayout) -> bool:
        """Read rows of this schema from now on; False: there is no room for it. Raises MemoryError."""
        columns = sorted((name.encode(), kind) for name, kind in layout.columns)
        names = [name for name, _ in columns]
        texts = [layout.database.encode(), layout.table.encode(), *layout.heads, layout.zone.encode(), *names]
        lens, kinds = array("I", map(len, texts)), bytes(kind for _, kind in columns)
        learned = self._library.core_schemas_learn(
            self._pointer, b"".join(texts), lens.buffer_info()[0], kinds, len(names), layout.version
        )  # fmt: skip
        if learned == NO_MEMORY:
            raise MemoryError
        return bool(learned)

    def take(self, source: CoreSource, begin: int, largest: int) -> SimpleEvents:
        """Take messages from number `begin` on, up to the first that is not usual, or as many as fit.

        `largest`: bytes of a message. Raises CoreCrash, MemoryError.
        """
        count = len(source) - begin
        batch = Batch(count=count, largest=largest, count_from=0, count_to=_LAST_OFFSET)
        source.fill(batch, begin)
        lens, offsets = array("I", bytes(4 * count)), array("q", bytes(8 * count))
        out = _Translated(lens.buffer_info()[0], offsets.buffer_info()[0])
        status = self._library.core_simple(self._pointer, ctypes.byref(batch), ctypes.byref(out))
        if status == CRASHED:
            self._pointer = 0  # what it points to may be broken
            raise crashed(begin + out.count)
        if status == NO_MEMORY:
            raise MemoryError
        joined = ctypes.string_at(out.bytes, out.size) if out.size else b""
        told = offsets[: out.count] if batch.messages else None
        return SimpleEvents(joined, lens[: out.count], told, status == USUAL)
