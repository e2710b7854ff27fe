"""What is left of all events of a row in a window: the last one (R4, R5).

With full rows in messages the last half decides alone: a WRITE is the row's whole new image, a DELETE removes it. So
the reduction is a maximum by ordinal: associative, commutative and idempotent. It may run in parts, in any order and
over duplicates, first inside each reading task and once more after the shuffle. With the last half goes how far back
the first one lies, a minimum of the same kind, which tells whether the row was there before (`ordering.drift`).
"""

from collections.abc import Iterable

KeyChange = tuple[bytes, int, bytes, int]
"""(row key, ordinal, image or b"" for a DELETE, distance to the row's first event in ordinals)."""
_Last = tuple[int, bytes, int]
"""The same without the key."""


def _merged(last: _Last, other: _Last) -> _Last:
    """The later of two halves of one row, with the distance to the first event of both; `last` is mostly that one."""
    if other > last:
        last, other = other, last
    order, image, back = last
    before = order - other[0] + other[2]
    return last if before <= back else (order, image, before)


class NetEffect:
    """Keeps the last half per row and how many bytes that takes."""

    __slots__ = ("bytes_held", "rows")

    def __init__(self) -> None:
        self.rows: dict[bytes, _Last] = {}
        self.bytes_held = 0

    def add(self, key: bytes, order: int, image: bytes, back: int) -> None:
        """Take one half; of two with one ordinal, which mean the same, the larger image stays."""
        known, half = self.rows.get(key), (order, image, back)
        if known is None:
            self.rows[key] = half
            self.bytes_held += len(key) + len(image)
        elif half != known:
            self.rows[key] = last = _merged(half, known)
            self.bytes_held += len(last[1]) - len(known[1])

    def add_all(
        self, keys: Iterable[bytes], orders: Iterable[int], images: Iterable[bytes], backs: Iterable[int]
    ) -> None:
        """Take many halves, as `add` takes one."""
        rows, known_to, held = self.rows, self.rows.get, 0
        for key, half in zip(keys, zip(orders, images, backs, strict=True), strict=True):
            known = known_to(key)
            if known is None:
                rows[key] = half
                held += len(key) + len(half[1])
            elif half != known:
                rows[key] = last = _merged(half, known)
                held += len(last[1]) - len(known[1])
        self.bytes_held += held

    def drain(self) -> list[KeyChange]:
        """All that is held; nothing is afterwards."""
        halves = [(key, order, image, back) for key, (order, image, back) in self.rows.items()]
        self.rows.clear()
        self.bytes_held = 0
        return halves


def net_effect(halves: Iterable[KeyChange]) -> list[KeyChange]:
    """The last half of each row."""
    net = NetEffect()
    if columns := tuple(zip(*halves, strict=True)):
        net.add_all(*columns)
    return net.drain()
