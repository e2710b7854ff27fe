"""Which row an event is about, and which event it is: row keys, ordinals and fingerprints.

A row key is canonical bytes of (database, table, handle key values); an ordinal packs commitTs and half into one
integer whose order is R4's; a fingerprint is 64 bits of both, for the ledger and for counting duplicates. Fingerprints
are of halves, so that raw and split forms of one UPDATE agree.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence

import msgspec
import xxhash

from ordering.events import RowOp, TableName
from ordering.timestamps import CommitTs

_encode = msgspec.msgpack.Encoder().encode
_decode = msgspec.msgpack.Decoder(list[str | None]).decode
_hash: Callable[..., int] = xxhash.xxh3_64_intdigest
_MASK = 2**64 - 1


def row_key(table: TableName, values: Iterable[str | None]) -> bytes:
    """Canonical bytes of a row: equal exactly if table and handle key values are equal."""
    return _encode([*table, *values])


def row_key_prefix(table: TableName, columns: int) -> bytes:
    """What the row keys of one table begin with; the values follow."""
    return _encode([*table, *[None] * columns])[:-columns]  # a nil is one byte


def row_keys(table: TableName, columns: int) -> Callable[[Sequence[str | None]], bytes]:
    """`row_key` of one table, whose part of the bytes is made once."""
    prefix = row_key_prefix(table, columns)
    return lambda values: prefix + b"".join(map(_encode, values))


def row_keys_of_one(table: TableName) -> Callable[[str | None], bytes]:
    """`row_key` of one table whose handle key is one column, from that column's value."""
    prefix = _encode([*table, None])[:-1]
    return lambda value: prefix + _encode(value)


def table_of(key: bytes) -> TableName:
    """The table of a row key."""
    database, table, *_ = _decode(key)
    return TableName(str(database), str(table))


def key_values(key: bytes) -> list[str | None]:
    """The handle key values of a row key."""
    return _decode(key)[2:]


def ordinal(commit_ts: CommitTs, half: RowOp) -> int:
    """One integer that sorts by commitTs, then DELETE before WRITE (R4)."""
    return commit_ts << 1 | half


def commit_ts_of(order: int) -> CommitTs:
    """The commitTs of an ordinal."""
    return CommitTs(order >> 1)


def fingerprint(key: bytes, order: int) -> int:
    """64 bits of (row key, commitTs, half); stable between processes and versions."""
    return _hash(key, order & _MASK)


def fingerprints(keys: Iterable[bytes], orders: Iterable[int]) -> Iterator[int]:
    """`fingerprint` of each of many."""
    return map(_hash, keys, orders)  # an ordinal of a commitTs has no more than 64 bits


def content_hashes(images: Iterable[bytes]) -> Iterator[int]:
    """`content_hash` of each of many."""
    return map(_hash, images)


def content_hash(image: bytes) -> int:
    """64 bits of an image's bytes; unequal hashes of one identity call for a comparison of meaning, no more."""
    return _hash(image)
