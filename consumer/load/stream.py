"""Steps along a stream by regular expressions, with no more of it in memory than what comes next."""

import re
from typing import IO, NamedTuple

from consumer.load.decompress import UNREADABLE
from ordering.errors import InputError

CHUNK = 1 << 20
_AT_ONCE = 256 << 10
LONGEST = 512 << 20
"""A row in bytes: TiDB's own limit is 120 MiB, and hexadecimal digits double it (`txn-entry-size-limit`)."""
_SHOWN = 80


class RowPattern(NamedTuple):
    """What a row looks like: alone, and with one more group for all that is none (`Pieces.rows`)."""

    one: "re.Pattern[bytes]"
    many: "re.Pattern[bytes]"

    @classmethod
    def of(cls, row: bytes, flags: re.RegexFlag = re.DOTALL) -> "RowPattern":
        """From a row's expression, in which each value is a group."""
        return cls(re.compile(row, flags), re.compile(row + rb"|(.+)", flags))


class Pieces:
    """A stream and a position in it. `data[at:]` is what was read and not stepped over yet."""

    def __init__(self, stream: IO[bytes], name: str) -> None:
        self.name, self._stream = name, stream
        self._passed = 0
        self.data, self.at, self.ended = b"", 0, False

    def more(self) -> bool:
        """Read on: as much again as there is, so that one long row costs no more than many short ones."""
        if self.ended:
            return False
        rest = self.data[self.at :]
        try:
            found = self._stream.read(max(CHUNK, len(rest)))
        except UNREADABLE as error:
            raise self.wrong(f"it can't be read: {error}") from error
        if not found:
            self.ended = True
        self._passed += self.at
        self.data, self.at = rest + found, 0
        return bool(found)

    def match(self, pattern: "re.Pattern[bytes]", longest: int = LONGEST) -> "re.Match[bytes] | None":
        """Step over what the pattern matches here; None if it does not, however much of `longest` bytes is read."""
        while (found := pattern.match(self.data, self.at)) is None:
            if len(self.data) - self.at > longest or not self.more():
                return None
        self.at = found.end()
        return found

    def rows(self, pattern: "re.Pattern[bytes]") -> list[tuple[bytes, ...]]:
        """Step over what follows here of whole rows, as far as it is read; the groups of each.

        `pattern` is a `RowPattern.many`. One call for many rows takes a third of the time of one call each.
        """
        stop = min(len(self.data), self.at + _AT_ONCE)
        found: list[tuple[bytes, ...]] = pattern.findall(self.data, self.at, stop)
        rest = found.pop()[-1] if found and found[-1][-1] else b""
        self.at = stop - len(rest)
        return found

    @property
    def exhausted(self) -> bool:
        """Whether nothing is left."""
        return self.at >= len(self.data) and not self.more()

    @property
    def position(self) -> int:
        """How many bytes were stepped over."""
        return self._passed + self.at

    def wrong(self, what: str) -> InputError:
        """The error of this place."""
        here = self.data[self.at : self.at + _SHOWN].decode("utf-8", "replace")
        shown = f"; there: {here!r}" if here else ""
        return InputError(
            f"a dump's file is not as Dumpling writes it: {what}{shown}",
            where=f"file={self.name} byte={self.position}",
            hint="compare the file with its origin; a dump that was cut off has to be created again",
        )
