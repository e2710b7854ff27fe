"""Avro's binary encoding, read without a general Avro reader: by the Simple protocol and by TiCDC's Avro protocol.

Bytes are checked before anything is made of them, so what a message takes is bounded by its length. Source: Apache Avro
specification, "Binary Encoding".
"""

from collections.abc import Callable, Iterator
from struct import Struct
from typing import TypeVar

FLOAT, DOUBLE = Struct("<f"), Struct("<d")
"""The layouts of Avro's `float` and `double`."""
MOST_COLUMNS = 4096
"""TiDB takes no more in a table."""
_LONGEST_VARINT, _WORD = 10, 2**64
_SHORT = 0x80
T = TypeVar("T")


class AvroBytes:
    """Reads one message from its beginning. All methods raise ValueError."""

    def __init__(self, content: bytes) -> None:
        self._content, self.at = content, 0

    def long(self) -> int:
        """The next `int` or `long`."""
        content, at = self._content, self.at
        found = shift = 0
        for byte in content[at : at + _LONGEST_VARINT]:
            found |= (byte & 0x7F) << shift
            shift += 7
            if byte < _SHORT:
                self.at = at + shift // 7
                if found >= _WORD:
                    break
                return (found >> 1) ^ -(found & 1)
        raise wrong(f"byte {at} begins no number of up to 64 bits")

    def raw(self) -> bytes:
        """The next `bytes`."""
        size = self.long()
        begin = self.at
        if not 0 <= size <= len(self._content) - begin:
            raise wrong(f"a value of {size} bytes begins at byte {begin} of {len(self._content)}")
        self.at = begin + size
        return self.since(begin)

    def text(self) -> str:
        """The next `string`."""
        at = self.at
        try:
            return self.raw().decode()
        except UnicodeDecodeError:
            raise wrong(f"the text at byte {at} is no UTF-8") from None

    def fixed(self, of: Struct) -> float:
        """The next `float` or `double`, by its layout."""
        if len(self._content) - self.at < of.size:
            raise wrong(f"it ends within the number at byte {self.at}")
        (found,) = of.unpack_from(self._content, self.at)
        self.at += of.size
        return float(found)

    def boolean(self) -> bool:
        """The next `boolean`."""
        at, self.at = self.at, self.at + 1
        found = self._content[at : self.at]
        if found not in (b"\0", b"\1"):
            raise wrong(f"byte {at} is no boolean")
        return found == b"\1"

    def one_of(self, choices: tuple[T, ...], what: str) -> T:
        """What the next number stands for."""
        at, number = self.at, self.long()
        if not 0 <= number < len(choices):
            raise wrong(f"{what} {number} at byte {at} is none that the schema has")
        return choices[number]

    def perhaps(self, read: Callable[[], T]) -> T | None:
        """The value of a union of null and another, in this order."""
        return read() if self.one_of((False, True), "branch") else None

    def blocks(self, most: int) -> Iterator[None]:
        """Once for each item of an array or a map. TiCDC writes no blocks that tell their size (a negative count)."""
        met = 0
        while count := self.long():
            met += count
            if count < 0 or met > most:
                raise wrong(f"a block of {count} items begins before byte {self.at}; at most {most} are taken in all")
            for _ in range(count):
                yield

    def items(self, read: Callable[[], T], most: int) -> list[T]:
        """The next array."""
        return [read() for _ in self.blocks(most)]

    def since(self, begin: int) -> bytes:
        """All that was read since then."""
        return self._content[begin : self.at]

    def ended(self) -> None:
        """Check that nothing follows."""
        if self.at != len(self._content):
            raise wrong(f"{len(self._content) - self.at} bytes follow its end")


def wrong(fact: str) -> ValueError:
    """The error about bytes that are no such Avro."""
    return ValueError(f"Avro: {fact}")
