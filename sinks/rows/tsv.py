r"""Rows as lines of tab-separated fields: what MySQL's LOAD DATA and PostgreSQL's COPY read in their default formats.

Fields end with a tab, rows with a newline; backslash escapes both, itself, carriage return and NUL, and spells NULL as
`\N` (MySQL documentation, "LOAD DATA"; PostgreSQL manual, "COPY").
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import TypeGuard

from sinks.rows.chunk import Texts
from sinks.rows.field_rules import FieldRule
from sinks.rows.schema import Column

NULL = "\\N"
_DIGITS = 20
_ESCAPES = str.maketrans({"\\": "\\\\", "\t": "\\t", "\n": "\\n", "\r": "\\r", "\0": "\\0"})
_UNESCAPES = {"t": "\t", "n": "\n", "r": "\r", "0": "\0", "\\": "\\"}


def escaped(text: str) -> str:
    """A text as a field."""
    # most texts hold nothing to escape, and asking so is ten times faster than translating
    return text if _is_plain(text) else text.translate(_ESCAPES)


def plain_texts(texts: Sequence[str]) -> bool:
    """Whether texts are their own fields."""
    return _is_plain("".join(texts))


def plain_numbers(texts: Sequence[str]) -> bool:
    """Whether texts are whole numbers of at most 20 digits, none of them negative: their own fields."""
    joined = "".join(texts)
    return joined.isascii() and joined.isdigit() and all(texts) and len(max(texts, key=len)) <= _DIGITS


def _is_plain(text: str) -> bool:
    return text.isprintable() and "\\" not in text


@dataclass(frozen=True, slots=True)
class FieldsOf:
    """How a column's values become fields: all as they are where `plain` says so, else one by one.

    To look at all of them at once takes a tenth of the time, and most columns are plain.
    """

    field: Callable[[str], str | None]
    """A text's field, None for NULL. Raises ValueError for one that the column can't hold."""
    plain: Callable[[Sequence[str]], bool] | None = None
    nullable: bool = True
    """False: NULL is refused, for the target would make something else of it."""

    def __call__(self, texts: Texts) -> Sequence[str]:
        """The fields of a column's values. Raises ValueError."""
        if self.plain is not None and _holds_no_null(texts) and self.plain(texts):
            return texts
        if not self.nullable and None in texts:
            message = "NULL, and it is NOT NULL"
            raise ValueError(message)
        return [NULL if text is None or (field := self.field(text)) is None else field for text in texts]


def _holds_no_null(texts: Texts) -> TypeGuard[Sequence[str]]:
    return None not in texts


def payload_of(columns: Sequence[FieldsOf], rows: Sequence[Texts]) -> bytes:
    """The lines of rows, converted column by column. Raises ValueError."""
    if not rows or not columns:
        return b"\n" * len(rows)
    fields = [convert(texts) for convert, texts in zip(columns, zip(*rows, strict=True), strict=True)]
    payload = ("\n".join(map("\t".join, zip(*fields, strict=True))) + "\n").encode()
    if not is_framed(payload, len(rows), len(columns)):
        message = "a value holds what ends a field or a row"
        raise ValueError(message)
    return payload


def is_framed(payload: bytes, rows: int, fields: int) -> bool:
    """Whether lines hold so many rows of so many fields, whatever let a value through that would be others."""
    return payload.count(b"\n") == rows and payload.count(b"\t") == rows * max(0, fields - 1)


class TabbedRows:
    """How an encoder's payload is taken apart and put together."""

    __slots__ = ()

    def rule(self, column: Column) -> FieldRule | None:  # noqa: ARG002 each dialect has its own
        """What the compiled core does to make fields of this column's values; None: `encode` has to."""
        return None

    def split(self, payload: bytes) -> list[bytes]:
        """See `sinks.rows.chunk.Encoder`."""
        return [line + b"\n" for line in payload.split(b"\n")[:-1]]

    def joined(self, rows: Sequence[bytes]) -> bytes:
        """See `sinks.rows.chunk.Encoder`."""
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
