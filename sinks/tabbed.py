r"""Rows as lines of tab-separated fields: what MySQL's LOAD DATA and PostgreSQL's COPY read in their default formats.

Fields end with a tab, rows with a newline; backslash escapes both, itself, carriage return and NUL, and spells NULL as
`\N` (MySQL documentation, "LOAD DATA"; PostgreSQL manual, "COPY").
"""

from collections.abc import Iterable, Iterator, Sequence

NULL = "\\N"
_ESCAPES = str.maketrans({"\\": "\\\\", "\t": "\\t", "\n": "\\n", "\r": "\\r", "\0": "\\0"})
_UNESCAPES = {"t": "\t", "n": "\n", "r": "\r", "0": "\0", "\\": "\\"}


def escaped(text: str) -> str:
    """A text as a field."""
    # most texts hold nothing to escape, and asking so is ten times faster than translating
    return text if text.isprintable() and "\\" not in text else text.translate(_ESCAPES)


def payload_of(rows: Iterable[Iterable[str]]) -> bytes:
    """The lines of rows of fields."""
    lines = ["\t".join(fields) for fields in rows]
    return ("\n".join(lines) + "\n").encode() if lines else b""


class TabbedRows:
    """How an encoder's payload is taken apart and put together."""

    __slots__ = ()

    def split(self, payload: bytes) -> list[bytes]:
        """See `sinks.chunk.Encoder`."""
        return [line + b"\n" for line in payload.split(b"\n")[:-1]]

    def joined(self, rows: Sequence[bytes]) -> bytes:
        """See `sinks.chunk.Encoder`."""
        return b"".join(rows)


def decode_rows(payload: bytes) -> Iterator[list[str | None]]:
    """The rows of a payload, for statements with bound values."""
    # not splitlines(): that would also split at U+2028 and others
    for line in payload.decode().split("\n")[:-1]:
        yield [None if field == NULL else _unescaped(field) for field in line.split("\t")]


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
