r"""Rows for the MySQL family: the text that LOAD DATA reads, in its default format.

Fields end with a tab, rows with a newline; backslash escapes both, itself, NUL, and spells NULL as `\N` (MySQL
documentation, "LOAD DATA", field and line handling). Binary columns travel as hexadecimal digits.
"""

from collections.abc import Iterator, Sequence

from sinks.chunk import Texts
from sinks.schema import Column, Shape

_ESCAPES = str.maketrans({"\\": "\\\\", "\t": "\\t", "\n": "\\n", "\r": "\\r", "\0": "\\0"})
_UNESCAPES = {"t": "\t", "n": "\n", "r": "\r", "0": "\0", "\\": "\\"}


def _hex(text: str) -> str:
    return text.encode("latin-1").hex()


def _escaped(text: str) -> str:
    # most texts hold nothing to escape, and asking so is ten times faster than translating
    return text if text.isprintable() and "\\" not in text else text.translate(_ESCAPES)


_CONVERTERS = {Shape.BYTES: _hex}


class MysqlEncoder:
    """Texts to LOAD DATA's format."""

    def encode(self, columns: Sequence[Column], rows: Sequence[Texts]) -> bytes:
        """See `sinks.chunk.Encoder`."""
        converters = [_CONVERTERS.get(column.shape, _escaped) for column in columns]
        lines = ["\t".join("\\N" if t is None else f(t) for f, t in zip(converters, row, strict=True)) for row in rows]
        return ("\n".join(lines) + "\n").encode() if lines else b""


def decode_rows(payload: bytes) -> Iterator[list[str | None]]:
    """The rows of a payload, for multi-row statements with bound values."""
    # not splitlines(): that would also split at U+2028 and others
    for line in payload.decode().split("\n")[:-1]:
        yield [None if field == "\\N" else _unescaped(field) for field in line.split("\t")]


def _unescaped(field: str) -> str:
    if "\\" not in field:
        return field
    parts = field.split("\\")
    text = [parts[0]]
    rest = iter(parts[1:])
    for part in rest:
        if part:
            text.append(_UNESCAPES[part[0]] + part[1:])
        else:  # an escaped backslash: the next part follows it as it is
            text.append("\\" + next(rest, ""))
    return "".join(text)
