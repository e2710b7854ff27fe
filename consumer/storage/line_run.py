"""Lines of a file in the form that tasks read."""

from array import array
from collections.abc import Sequence
from typing import Any, NamedTuple

from consumer.codec import canal_json
from consumer.codec.joined_run import JoinedRun
from ordering.errors import InputError
from ordering.events import Position


class FileLines(NamedTuple):
    """Events one behind the other, and of each its length, and the number of the line in its file."""

    joined: bytes
    lens: "array[int]"
    numbers: Sequence[int]


def lines_joined(events: Sequence[bytes], numbers: Sequence[int]) -> FileLines:
    """Lines of events that are apart."""
    return FileLines(b"".join(events), array("I", map(len, events)), numbers)


class LineRun(JoinedRun):
    """Lines of one file, whose number is the offset of all of them."""

    def __init__(self, lines: FileLines, at: int, where: str) -> None:
        super().__init__(lines.joined, lines.lens, at)
        self.at, self._where, self._numbers = at, where, lines.numbers

    def located(self, error: InputError, limit: int) -> InputError:
        """The error with file and line, where a line by itself can't be read; else with the file."""
        for number, line in zip(self._within, self, strict=True):
            position = Position("", 0, line.at)
            try:
                message = canal_json.decode(canal_json.plain(line.content, position, limit), position)
                if not message.is_ddl:
                    canal_json.check_row(message, position)
                    canal_json.decode_image((message.data or [])[0])
            except (InputError, *canal_json.UNREADABLE):
                where = f"{self._where}, line {self._numbers[number]}"
                return InputError(error.fact, where=where, hint=error.hint)
        return InputError(error.fact, where=self._where, hint=error.hint)


def located(error: InputError, run: Sequence[Any], limit: int) -> InputError:
    """The error of a run, with file and line where it is one of a file."""
    return run.located(error, limit) if isinstance(run, LineRun) else error
