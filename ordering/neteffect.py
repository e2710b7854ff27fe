"""What is left of all events of a row in a window: the last one (R4, R5).

With full rows in messages the last half decides alone: a WRITE is the row's whole new image, a DELETE removes it. So
the reduction is a maximum by ordinal: associative, commutative and idempotent. It may run in parts, in any order and
over duplicates, first inside each reading task and once more after the shuffle.
"""

from collections.abc import Iterable

Half = tuple[bytes, int, bytes]
"""(row key, ordinal, image or b"" for a DELETE)."""


class NetEffect:
    """Keeps the last half per row and how many bytes that takes."""

    __slots__ = ("bytes_held", "rows")

    def __init__(self) -> None:
        self.rows: dict[bytes, tuple[int, bytes]] = {}
        self.bytes_held = 0

    def add(self, key: bytes, order: int, image: bytes) -> None:
        """Take one half; of two with one ordinal, which mean the same, the larger image stays."""
        known = self.rows.get(key)
        if known is None:
            self.rows[key] = (order, image)
            self.bytes_held += len(key) + len(image)
        elif order > known[0] or (order == known[0] and image > known[1]):
            self.rows[key] = (order, image)
            self.bytes_held += len(image) - len(known[1])

    def add_all(self, keys: Iterable[bytes], orders: Iterable[int], images: Iterable[bytes]) -> None:
        """Take many halves, as `add` takes one."""
        rows, known_to, held = self.rows, self.rows.get, 0
        for key, half in zip(keys, zip(orders, images, strict=True), strict=True):
            known = known_to(key)
            if known is None:
                rows[key] = half
                held += len(key) + len(half[1])
            elif half > known:
                rows[key] = half
                held += len(half[1]) - len(known[1])
        self.bytes_held += held

    def drain(self) -> list[Half]:
        """All that is held; nothing is afterwards."""
        halves = [(key, order, image) for key, (order, image) in self.rows.items()]
        self.rows.clear()
        self.bytes_held = 0
        return halves


def net_effect(halves: Iterable[Half]) -> list[Half]:
    """The last half of each row."""
    net = NetEffect()
    if columns := tuple(zip(*halves, strict=True)):
        net.add_all(*columns)
    return net.drain()
