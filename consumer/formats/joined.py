"""Key and value of a message as one, for formats in which both say what it is about."""

from struct import Struct

_NUMBER = Struct(">Q")


def joined(key: bytes | None, value: bytes | None) -> bytes | None:
    """Key and value as one; None of a message that has neither."""
    if key is None and value is None:
        return None
    return _NUMBER.pack(len(key or b"")) + (key or b"") + (value or b"")


def apart(content: bytes) -> tuple[bytes, bytes]:
    """Key and value again."""
    (length,) = _NUMBER.unpack_from(content)
    return content[_NUMBER.size : _NUMBER.size + length], content[_NUMBER.size + length :]
