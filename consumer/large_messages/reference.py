"""What stands in for the image of a row that is not in its message, from the reading task to the ordering one.

A reference begins with a byte that no JSON begins with, and the lowest one: of two images of one identity the reduction
keeps the larger, so a row that also came whole is never fetched.
"""

import msgspec

from ordering.events import Position

_MARK = b"\0"


class BodyReference(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """Where a row's image is: in the claim-check file at `location`, or upstream (""). The rest names the message."""

    location: str
    topic: str
    partition: int
    offset: int

    @property
    def position(self) -> Position:
        """Where the message lies."""
        return Position(self.topic, self.partition, self.offset)


_encode = msgspec.msgpack.Encoder().encode
_decode = msgspec.msgpack.Decoder(BodyReference).decode


def reference(location: str, position: Position) -> bytes:
    """The stand-in for an image."""
    return _MARK + _encode(BodyReference(location, *position))


def is_reference(image: bytes) -> bool:
    """Whether an image is a stand-in."""
    return image.startswith(_MARK)


def read_reference(image: bytes) -> BodyReference:
    """What a stand-in refers to."""
    return _decode(image[len(_MARK) :])
