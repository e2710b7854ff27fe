"""The rows of a reading task: what is left of them in a window, spread over the shuffle's buckets."""

from collections import Counter
from collections.abc import Callable, Iterator
from zlib import crc32

from consumer.tasks.read_spec import ReadSpec
from consumer.tasks.shuffle_blocks import encode_block
from ordering.events import TableName
from ordering.rows.net_effect import KeyChange, NetEffect
from ordering.rows.transactions import sort_key

_FLUSH_BYTES = 32 << 20


def bucket_hash(key: bytes, run_digits: int) -> int:
    """What says in which bucket a row is, by its row key: the same of rows that differ in their last digits alone.

    Databases write neighbours faster than rows that lie between those of other buckets.
    """
    return crc32(key[:-run_digits] if key[-run_digits:].isdigit() and run_digits else key)


def is_full(spec: ReadSpec, rows: int, held: int) -> bool:
    """Whether it is time to let go of so many rows, of so many bytes."""
    return rows >= spec.tuning.flush_rows or held >= _FLUSH_BYTES


class Reduction:
    """The survivors of a task, spread over the shuffle's buckets whenever enough have gathered."""

    def __init__(self, spec: ReadSpec, task: int = 0) -> None:
        self.spec, self.task = spec, task
        self.sent: Counter[int] = Counter()
        """Blocks, by bucket."""
        self.net = NetEffect()
        self.all: list[KeyChange] = []
        self.all_bytes = 0
        self.names: dict[TableName, list[str]] = {}
        self.add: Callable[[bytes, int, bytes, int], None] = self._keep if spec.whole_transactions else self.net.add
        self.add_all: Callable[[list[bytes], list[int], list[bytes], list[int]], None]
        self.add_all = self._keep_all if spec.whole_transactions else self.net.add_all

    def _keep(self, key: bytes, order: int, image: bytes, back: int) -> None:
        self.all.append((key, order, image, back))
        self.all_bytes += len(key) + len(image)

    def _keep_all(self, keys: list[bytes], orders: list[int], images: list[bytes], backs: list[int]) -> None:
        self.all.extend(zip(keys, orders, images, backs, strict=True))
        self.all_bytes += sum(map(len, keys)) + sum(map(len, images))

    def held(self) -> tuple[int, int]:
        """Rows that are held, and their bytes."""
        return len(self.net.rows) + len(self.all), self.net.bytes_held + self.all_bytes

    def full(self) -> bool:
        """Whether it is time to let go of what is held."""
        return is_full(self.spec, *self.held())

    def blocks(self) -> Iterator[tuple[int, bytes]]:
        """(bucket, block) of all that is held; nothing is afterwards. Buckets count from 1: 0 is the reports'."""
        halves = self.all if self.spec.whole_transactions else self.net.drain()
        self.all, self.all_bytes = [], 0
        if self.spec.whole_transactions:
            halves.sort(key=sort_key)
        names = self.spelled_names()
        for bucket, part in self._spread(halves).items():
            self.sent[bucket] += 1
            yield bucket, encode_block(self.task, names, part)

    def spelled_names(self) -> dict[str, list[str]]:
        """The key columns of the tables, as blocks hold them."""
        return {f"{name.database}\0{name.table}": key for name, key in self.names.items()}

    def _spread(self, halves: list[KeyChange]) -> dict[int, list[KeyChange]]:
        spread: dict[int, list[KeyChange]] = {}
        count, by_commit, digits = self.spec.buckets, self.spec.spread, self.spec.run_digits
        for half in halves:
            hashed = bucket_hash(half[0], digits)
            at = hashed % count if by_commit is None else by_commit.bucket(half[1] >> 1, hashed)
            spread.setdefault(at + 1, []).append(half)
        return spread
