"""TiDB's row checksum: CRC-32 over a row's columns in the order of their ids; NULL adds nothing.

The bytes of each type: TiDB, `pkg/util/rowcodec/common.go`, `appendDatumForChecksum`; TiCDC sends the checksum with
`integrity-check-level = "correctness"` in the Simple protocol.
"""

import struct
from collections.abc import Mapping, Sequence
from math import isfinite
from zlib import crc32

_LENGTH = struct.Struct("<I")
_NUMBER = struct.Struct("<Q")
_DOUBLE = struct.Struct("<d")
_FLOAT = struct.Struct("<f")
_WORD = 2**64 - 1
_NUMBERS = {"tinyint", "smallint", "mediumint", "int", "bigint", "year", "enum", "set", "bit"}


def row_checksum(columns: Sequence[tuple[str, str]], values: Mapping[str, bytes | None]) -> int:
    """The checksum of a row's values: numbers as text, TIMESTAMP in UTC. Columns without a value are not stored.

    Raises ValueError for a value that is not of its type.
    """
    found = 0
    for name, kind in columns:
        value = values.get(name)
        if value is not None:
            found = crc32(_bytes(kind.partition(" ")[0].partition("(")[0], value), found)
    return found


def _bytes(kind: str, value: bytes) -> bytes:
    if kind in _NUMBERS:
        return _NUMBER.pack(int(value) & _WORD)
    if kind == "vector":
        return _vector(value)
    if kind not in ("float", "double"):
        return _LENGTH.pack(len(value)) + value
    number = float(value)
    if kind == "float":
        (number,) = _FLOAT.unpack(_single(number))
    return _DOUBLE.pack(number if isfinite(number) else 0.0)


def _vector(value: bytes) -> bytes:
    """As TiDB stores it (`types.VectorFloat32`): how many numbers, then each as a FLOAT."""
    parts = value.decode().removeprefix("[").removesuffix("]").split(",")
    numbers = [float(part) for part in parts if part]
    return _LENGTH.pack(len(numbers)) + b"".join(map(_single, numbers))


def _single(number: float) -> bytes:
    """A number as a FLOAT. Raises ValueError for one beyond."""
    try:
        return _FLOAT.pack(number)
    except OverflowError:
        message = f"{number!r} is beyond a FLOAT"
        raise ValueError(message) from None
