"""What values look like in a file, and what they are: a column at a time, for most columns hold nothing special."""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass

Value = bytes | None
Row = tuple[bytes, ...]
"""A row's values as they are written."""
Convert = Callable[[bytes], str]
"""From a value to the text that messages hold. Raises ValueError."""
_NUMBERS = re.compile(rb"(?:-?(?:0|[1-9][0-9]*+)(?:\.[0-9]++)?,)*+")


@dataclass(frozen=True, slots=True)
class Notation:
    """How values are written: strings in quotes (b"": in none), maybe with backslashes, and NULL in one usual way."""

    quote: bytes
    escapes: bool
    null: bytes
    value: Callable[[bytes], Value]
    """What a token says."""
    delimited: bool = False
    """Whether each text is in quotes: one that is not is an error (CSV)."""

    def texts(self, tokens: Sequence[bytes], convert: Convert, plain: "Plain | None") -> list[str | None]:
        """What messages would hold of a column. Raises ValueError."""
        if self.null in tokens:
            told = iter(self.texts([token for token in tokens if token != self.null], convert, plain))
            return [None if token == self.null else next(told) for token in tokens]
        found = plain(tokens, self) if plain is not None and tokens else None
        if found is not None:
            return [*found]
        return [None if (value := self.value(token)) is None else convert(value) for token in tokens]


Plain = Callable[[Sequence[bytes], Notation], list[str] | None]
"""The texts of tokens that are what they look like, all at once; None where one of them is not."""


def strings(tokens: Sequence[bytes], notation: Notation) -> list[str] | None:
    """See `Plain`: quoted strings of UTF-8 without anything escaped."""
    quote, joined = notation.quote, b",".join(tokens)
    ends = quote and joined[:1] == joined[-1:] == quote
    # so every quote begins or ends one of them, and none is inside
    if not ends or joined.count(quote) != 2 * len(tokens) or (notation.escapes and b"\\" in joined):
        return None
    found = joined[1:-1].decode("utf-8").split(f"{quote.decode()},{quote.decode()}")
    return found if len(found) == len(tokens) else None


def numbers(tokens: Sequence[bytes], _: Notation) -> list[str] | None:
    """See `Plain`: numbers without exponent, sign `+` or zeros before them."""
    joined = b",".join((b"", *tokens, b""))
    zeros = joined.count(b",0") - joined.count(b",0,") - joined.count(b",0.")
    is_plain = not zeros and not joined.translate(None, b"0123456789.,")
    if not is_plain and not _NUMBERS.fullmatch(joined, 1):
        return None
    found = joined[1:-1].decode("ascii").split(",")  # a bare value may hold commas, where they separate nothing
    return found if len(found) == len(tokens) else None
