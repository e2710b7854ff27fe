"""What a verification found, for people and programs."""

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from consumer.verify.narrow import Difference
from consumer.verify.plan import Comparison, Plan
from ordering.timestamps import utc_text
from sinks.wording import plural

_LONGEST = 120
"""Characters of a value that a line shows."""
KINDS = ("missing", "extra", "different", "unnamed")


@dataclass(slots=True)
class TableOutcome:
    """A table that was compared."""

    comparison: Comparison
    rows: int = 0
    chunks: int = 0
    differences: list[Difference] = field(default_factory=list)

    def counts(self) -> dict[str, int]:
        """Differences by kind."""
        counted = Counter(one.kind for one in self.differences)
        return {kind: counted[kind] for kind in KINDS}


@dataclass(slots=True)
class VerifyOutcome:
    """All of it. `limit`: differences of a table that are told in full."""

    changefeed: str
    checkpoint_ts: int
    sides: tuple[str, str]
    plan: Plan
    limit: int
    tables: list[TableOutcome] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    seconds: float = 0.0

    @property
    def is_equal(self) -> bool:
        """Whether all that was to be compared was compared, and nothing differs."""
        return bool(self.tables) and not self.differs and not self.plan.unjudged

    @property
    def differs(self) -> bool:
        """Whether anything differs of what was compared."""
        return bool(self.plan.schema) or any(table.differences for table in self.tables)

    @property
    def _verdict(self) -> str:
        return "DIFFERENT" if self.differs else "equal" if self.is_equal else "UNJUDGED"

    @property
    def fact(self) -> str:
        """What differs, in one line."""
        rows = sum(len(table.differences) for table in self.tables)
        tables = sum(bool(table.differences) for table in self.tables)
        return (
            f"target and {self.sides[0]} differ: {plural(rows, 'row')} in {plural(tables, 'table')},"
            f" {len(self.plan.schema)} in the schema"
        )

    def as_json(self) -> dict[str, Any]:
        """The object of `--json`."""
        return {
            "changefeed": self.changefeed,
            "checkpoint_ts": self.checkpoint_ts,
            "checkpoint_time": utc_text(self.checkpoint_ts),
            "upstream": self.sides[0],
            "target": self.sides[1],
            "equal": self.is_equal,
            "rows": sum(table.rows for table in self.tables),
            "seconds": round(self.seconds, 3),
            "tables": [self._table(table) for table in self.tables],
            "schema": [{"table": str(name), "kind": kind, "text": text} for name, kind, text in self.plan.schema],
            "left_out": [{"table": str(name), "text": text} for name, text in self.plan.left_out],
            "unjudged": self.plan.unjudged,
            "notes": self.notes,
        }

    def _table(self, table: TableOutcome) -> dict[str, Any]:
        told = [_told(table.comparison, one) for one in table.differences[: self.limit]]
        name = str(table.comparison.name)
        return {"table": name, "rows": table.rows, "chunks": table.chunks, **table.counts(), "differences": told}

    def lines(self) -> Iterator[str]:
        """For people: what differs first, then what was compared."""
        yield from (f"SCHEMA    {name}: {text}" for name, _, text in self.plan.schema)
        for table in self.tables:
            for one in table.differences[: self.limit]:
                yield from _lines(table.comparison, one)
            more = len(table.differences) - self.limit
            if more > 0:
                yield f"...       {table.comparison.name}: {more} more (--limit)"
        yield from (f"UNJUDGED  {text}" for text in self.plan.unjudged)
        yield from (f"left out  {name}: {text}" for name, text in self.plan.left_out)
        yield from (f"note      {note}" for note in self.notes)
        rows, at = (
            sum(table.rows for table in self.tables),
            f"{self.checkpoint_ts} ({utc_text(self.checkpoint_ts)} UTC)",
        )
        compared = f"compared {plural(len(self.tables), 'table')}, {plural(rows, 'row')}"
        differing = [len(table.differences) for table in self.tables if table.differences]
        wrong = f"{plural(sum(differing), 'row')} in {plural(len(differing), 'table')}; " if differing else ""
        yield f"{self._verdict}: {wrong}{compared} at checkpoint {at}, in {self.seconds:.1f} s"


def _told(comparison: Comparison, one: Difference) -> dict[str, Any]:
    told: dict[str, Any] = {"kind": one.kind, "key": one.key(comparison) if one.kind != "unnamed" else {}}
    if one.note:
        told["note"] = one.note
    changed = one.changed(comparison)
    if changed:
        told["columns"] = {pair.left.name: {"upstream": a, "target": b} for pair, a, b in changed}
    return told


def _lines(comparison: Comparison, one: Difference) -> Iterator[str]:
    if one.kind == "unnamed":
        yield f"UNNAMED   {comparison.name}: {one.note}"
        return
    key = ", ".join(f"{name}={_shown(text)}" for name, text in one.key(comparison).items())
    changed = one.changed(comparison)
    if not changed:
        yield f"{one.kind.upper():<9} {comparison.name} {key}"
    for pair, left, right in changed:
        values = f"upstream {_shown(left)}, target {_shown(right)}"
        yield f"DIFFERENT {comparison.name} {key} column {pair.left.name}: {values}"


def _shown(text: str | None) -> str:
    if text is None:
        return "NULL"
    told = repr(text[:_LONGEST])
    return f"{told}... ({len(text)} characters)" if len(text) > _LONGEST else told
