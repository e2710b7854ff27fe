"""What a verification has done, in a file of lines: the first says of what, each other one is a chunk.

It holds for one C, one schema and one way to cut: with any other the comparison starts over. So it does where the last
line says that the comparison has ended: what it found is no answer about the target of today. A line that was cut off
is a chunk that was not done.
"""

from collections.abc import Iterable
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import orjson
import structlog
import xxhash

from consumer.verify.narrow import Difference, Found
from consumer.verify.plan import Plan
from ordering.errors import ConfigError
from ordering.events import TableName
from sinks.compare.digests import Span
from sinks.private_files import open_file

_VERSION = 1
log = structlog.get_logger()


@dataclass(frozen=True, slots=True)
class Subject:
    """What a verification is of; `schema` is a digest of what is compared as what."""

    changefeed: str
    checkpoint_ts: int
    sides: tuple[str, str]
    schema: str
    chunk_rows: int

    def as_json(self) -> dict[str, Any]:
        """The first line."""
        return {"version": _VERSION, **asdict(self), "sides": list(self.sides)}


def schema_digest(plan: Plan) -> str:
    """A text that differs when tables, columns, keys or types do."""
    told = [
        (c.name, [(p.left.name, p.left.type, p.right.name, p.right.type, p.form.value) for p in c.pairs], len(c.keys))
        for c in plan.tables
    ]
    return str(xxhash.xxh3_64_hexdigest(repr((told, plan.schema)).encode()))


class ResumeState:
    """The chunks that are done. Without a path nothing is kept."""

    def __init__(self, path: Path | None, subject: Subject) -> None:
        self._path, self._subject = path, subject
        self._done: dict[tuple[TableName, int | None, int | None], Found] = {}
        self.begun = _now()
        """When the first of the chunks was compared, as text; of a state by an earlier version it is not known."""
        if path is not None:
            lines = self._lines(path)
            self.begin_anew() if lines is None else self._take(lines)

    def _lines(self, path: Path) -> list[Any] | None:
        """The chunks of a file that is about the same; None if there is none."""
        try:
            found = [line for text in path.read_bytes().splitlines() if (line := _read(text)) is not None]
        except FileNotFoundError:
            return None
        except OSError as error:
            raise ConfigError(f"can't read the state {path}: {error.strerror}") from error
        wanted = self._subject.as_json()
        if not found or not isinstance(found[0], dict) or "version" not in found[0]:
            raise ConfigError(f"{path} is no state of `reconciler verify`", hint="name a new file, or remove it")
        differing = sorted(key for key in wanted if found[0].get(key) != wanted[key])
        if differing:
            log.warning("the state is of another comparison: starts over", state=str(path), differing=differing)
            return None
        if "ended" in found[-1]:
            log.warning("the state is of a comparison that has ended: starts over", state=str(path), **found[-1])
            return None
        self.begun = str(found[0].get("begun", "an unknown time"))
        return found[1:]

    def begin_anew(self) -> None:
        """Forget what is done."""
        self._done, self.begun = {}, _now()
        self._write([self._head()], "wb")

    def end(self) -> None:
        """Note that all chunks are done: nothing is gone on from here."""
        if self._path is not None:
            self._write([{"ended": _now()}], "ab")

    def _head(self) -> dict[str, Any]:
        return {**self._subject.as_json(), "begun": self.begun}

    def _take(self, lines: Iterable[Any]) -> None:
        for line in lines:
            table = TableName(*line["table"])
            differences = [_difference(table, one) for one in line["differences"]]
            self._done[(table, line["low"], line["high"])] = Found(line["rows"], differences)
        # what was cut off is cut away
        self._write([self._head(), *(_line(t, Span("", a, b), f) for (t, a, b), f in self._done.items())], "wb")

    def get(self, table: TableName, span: Span) -> Found | None:
        """What a chunk came to, if it is done."""
        return self._done.get((table, span.low, span.high))

    def done(self, table: TableName, span: Span, found: Found) -> None:
        """Keep what a chunk came to."""
        if self._path is not None:
            self._write([_line(table, span, found)], "ab")

    def _write(self, lines: list[Any], mode: str) -> None:
        if self._path is None:
            return
        try:
            with open_file(self._path, mode) as file:
                file.writelines(orjson.dumps(line) + b"\n" for line in lines)
        except OSError as error:
            raise ConfigError(f"can't write the state {self._path}: {error.strerror}") from error


def _now() -> str:
    return f"{datetime.now(UTC):%Y-%m-%d %H:%M:%S} UTC"


def _read(text: bytes) -> Any:
    try:
        return orjson.loads(text)
    except orjson.JSONDecodeError:
        return None


def _line(table: TableName, span: Span, found: Found) -> dict[str, Any]:
    differences = [[d.kind, d.left, d.right, d.note] for d in found.differences]
    return {"table": [*table], "low": span.low, "high": span.high, "rows": found.rows, "differences": differences}


def _difference(table: TableName, told: list[Any]) -> Difference:
    kind, left, right, note = told
    return Difference(table, kind, None if left is None else tuple(left), None if right is None else tuple(right), note)
