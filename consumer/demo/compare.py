"""Compares what the target holds at the end with what the upstream held, table by table, value by value."""

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import orjson

from consumer.demo.fake_ticdc.database import Key, Row
from consumer.demo.invariant_reader import reading
from sinks.sqlite.ddl.schema_text import quoted


@dataclass(frozen=True, slots=True)
class ComparedSide:
    """One table on one side: its rows as text, sorted, and a checksum over them."""

    rows: tuple[bytes, ...]

    @property
    def checksum(self) -> str:
        """Depends on every value and every column's name, on nothing else."""
        return hashlib.sha256(b"\n".join(self.rows)).hexdigest()[:12]


@dataclass(frozen=True, slots=True)
class Compared:
    """One table on both sides; None where it does not exist."""

    table: str
    upstream: ComparedSide | None
    target: ComparedSide | None

    @property
    def equal(self) -> bool:
        """Whether both sides hold the same."""
        return self.upstream == self.target

    def difference(self) -> str:
        """The first row that only one side has."""
        if self.upstream is None or self.target is None:
            return f"{self.table}: only in the {'upstream' if self.target is None else 'target'}"
        odd = sorted(set(self.upstream.rows) ^ set(self.target.rows))
        where = "upstream" if odd and odd[0] in self.upstream.rows else "target"
        return f"{self.table}: only in the {where}: {odd[0].decode() if odd else 'a repeated row'}"


def compared(upstream: Mapping[str, Mapping[Key, Row]], file: Path, database: str) -> list[Compared]:
    """All tables of either side, by name."""
    ours = {name: side_of(list(rows.values())) for name, rows in upstream.items()}
    theirs = {f"{database}.{name}": side for name, side in _sides_in(file).items()}
    return [Compared(name, ours.get(name), theirs.get(name)) for name in sorted({*ours, *theirs})]


def side_of(rows: list[Row]) -> ComparedSide:
    """Rows in any order, columns in any order."""
    return ComparedSide(tuple(sorted(orjson.dumps(row, option=orjson.OPT_SORT_KEYS) for row in rows)))


def _sides_in(file: Path) -> dict[str, ComparedSide]:
    with reading(file) as connection:
        names = connection.execute("SELECT name FROM sqlite_master WHERE type = 'table' ORDER BY name").fetchall()
        sides = {}
        for (name,) in names:
            cursor = connection.execute(f"SELECT * FROM {quoted(name)}")  # noqa: S608 quoted
            columns = [column[0] for column in cursor.description]
            sides[name] = side_of([dict(zip(columns, map(_text, row), strict=True)) for row in cursor])
    return sides


def _text(value: str | int | None) -> str | None:
    return None if value is None else str(value)
