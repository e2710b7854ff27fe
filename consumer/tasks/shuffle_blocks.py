"""What goes through the shuffle, and what comes out of it: the blocks of one bucket, complete or not at all.

Whoever takes rows of a bucket takes them from here: to order, to write, to give to the library's user.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, NamedTuple

import msgspec

from ordering.errors import ReconcilerError
from ordering.rows.manifest import Accounts, Manifest, check_delivery
from ordering.rows.net_effect import KeyChange

REPORTS = 0
"""The bucket of reports and errors; rows' buckets count from 1."""

Record = tuple[int, Any]
"""(bucket, block or Manifest), or (`REPORTS`, Report or ReconcilerError)."""


class Block(NamedTuple):
    """Rows on their way. `keys`: table as `database NUL table` -> handle key columns."""

    task: int
    keys: dict[str, list[str]]
    packed: msgspec.Raw
    """The rows' halves in MessagePack, which the compiled core reads itself."""

    def halves(self) -> list[KeyChange]:
        """The rows' halves."""
        return _decode_halves(self.packed)


_encode = msgspec.msgpack.Encoder().encode
_decode_halves = msgspec.msgpack.Decoder(list[KeyChange]).decode
decode_block = msgspec.msgpack.Decoder(Block).decode


def encode_block(task: int, keys: dict[str, list[str]], halves: list[KeyChange]) -> bytes:
    """A block of rows."""
    return _encode((task, keys, halves))


class Intake:
    """Takes the records of one bucket."""

    def __init__(self) -> None:
        self.bucket = REPORTS
        """Of the rows; `REPORTS` while none has come."""
        self._blocks: list[Block] = []
        self._counts: Counter[int] = Counter()
        self._manifests: list[Manifest] = []

    def take(self, record: Record) -> None:
        """Take a block or a manifest."""
        self.bucket, payload = record
        if isinstance(payload, Manifest):
            self._manifests.append(payload)
        else:
            block = decode_block(payload)
            self._counts[block.task] += 1
            self._blocks.append(block)

    def blocks(self, accounts: Accounts) -> list[Block]:
        """All blocks, which are forgotten here. Raises as `check_delivery`."""
        check_delivery(self._manifests, self._counts, accounts)
        blocks, self._blocks = self._blocks, []
        return blocks


def manifests(buckets: int, task: int, digest: bytes, sent: Mapping[int, int]) -> Iterator[Record]:
    """A reading task's last word to each bucket, also to those that got nothing. `sent`: blocks, by bucket."""
    return ((bucket, Manifest(task, digest, sent.get(bucket, 0))) for bucket in range(REPORTS + 1, buckets + 1))


def refusals(buckets: int, task: int, error: ReconcilerError) -> Iterator[Record]:
    """The same of a task that met an error."""
    return ((bucket, Manifest(task, b"", 0, error)) for bucket in range(REPORTS + 1, buckets + 1))


def taken(records: Iterable[Record]) -> Intake:
    """The intake of a bucket of rows; of the reports' bucket nothing is taken."""
    intake = Intake()
    for record in records:
        if record[0] != REPORTS:
            intake.take(record)
    return intake
