"""What a proof has found, for people and programs."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from enum import Enum
from typing import Any

import orjson

from consumer.proof.state import ExpectedTable, TableJudgement
from ordering.events import TableName
from ordering.rows.content_sums import ContentSums, rows_in
from ordering.timestamps import utc_text


def repair_hint(table: TableName | str) -> str:
    """What to do about a table that differs."""
    return f"`reconciler verify CONFIG --tables '{table}' --fix-sql FILE` names the rows and writes the repair"


class ProofVerdict(Enum):
    """What is known of a table."""

    EQUAL = "equal"
    """It holds what it held at the last proof and what the events since then say."""
    DIFFERENT = "different"
    BASE = "base"
    """What it holds now is what later proofs begin with: nothing was compared."""
    UNPROVEN = "unproven"


@dataclass(frozen=True, slots=True)
class ProofOf:
    """A table's verdict. `expected`: what later proofs go on from, None where they can't."""

    verdict: ProofVerdict
    reason: str
    found: ContentSums | None
    expected: ExpectedTable | None
    buckets: list[int] = field(default_factory=list)
    rows_expected: int = 0
    doubt: str = ""
    """Why a base may be wrong: what was known to be wrong before it; until it is taken as right."""
    upstream: str = ""
    """Whether the upstream held the same: "equal", "different", "" if it was not asked."""

    @property
    def rows_found(self) -> int:
        """How many rows the target has."""
        return rows_in(self.found or {})


@dataclass(slots=True)
class Proof:
    """All tables at a checkpoint. `since`: the checkpoint of the proof before, 0 for the first."""

    changefeed: str
    checkpoint_ts: int
    since: int = 0
    messages: int = 0
    seconds: float = 0.0
    fault: str = ""
    """Why the upstream was not asked, or not about all, though it was to be."""
    nothing: str = ""
    """Why it is not known whether a target without any table should have some."""
    tables: dict[TableName, tuple[Mapping[str, str], ProofOf]] = field(default_factory=dict)
    """With the columns that are in no sum, and why."""

    def add(self, name: TableName, left_out: Mapping[str, str], found: ProofOf) -> None:
        """Add a table."""
        self.tables[name] = left_out, found

    @property
    def expected(self) -> dict[TableName, ExpectedTable]:
        """What later proofs go on from."""
        return {name: one.expected for name, (_, one) in self.tables.items() if one.expected is not None}

    def judgements(self) -> dict[TableName, TableJudgement]:
        """What was found of each table, as it is shown until the next comparison."""
        now = datetime.now(UTC).isoformat(timespec="seconds")
        return {
            name: _judgement(left_out, one, self.checkpoint_ts, now) for name, (left_out, one) in self.tables.items()
        }

    def having(self, verdict: ProofVerdict) -> list[TableName]:
        """The tables with this verdict."""
        return [name for name, (_, one) in self.tables.items() if one.verdict is verdict]

    def as_json(self) -> dict[str, Any]:
        """For programs."""
        return {
            "changefeed": self.changefeed,
            "checkpoint_ts": self.checkpoint_ts,
            "since": self.since,
            "messages": self.messages,
            "seconds": self.seconds,
            "upstream_fault": self.fault or None,
            "fault": self.nothing or None,
            "tables": [_table(name, left_out, one) for name, (left_out, one) in sorted(self.tables.items())],
        }

    def certificate(self) -> str:
        """As it is kept."""
        return orjson.dumps(self.as_json()).decode()

    def lines(self) -> Iterator[str]:
        """For people."""
        for name, (left_out, one) in sorted(self.tables.items()):
            yield f"{one.verdict.value:<10}{name}: {_said(one)}" + _without(left_out)
        yield from filter(None, (self.fault, self.nothing))
        since = "since the last proof" if self.since else "in the topics"
        yield (
            f"{len(self.having(ProofVerdict.EQUAL))} of {len(self.tables)} tables hold at {self.checkpoint_ts}"
            f" ({utc_text(self.checkpoint_ts)} UTC) what {self.messages:,} messages {since} say"
        )


def _said(one: ProofOf) -> str:
    rows = rows_in(one.found or {})
    if one.verdict is ProofVerdict.DIFFERENT and not one.reason:
        buckets = ", ".join(map(str, one.buckets))
        return f"{rows:,} rows, {one.rows_expected:,} expected; buckets {buckets} differ"
    also = " here and upstream" if one.upstream == "equal" else ""
    return f"{rows:,} rows{also}" + (f"; {one.reason}" if one.reason else "")


def _judgement(left_out: Mapping[str, str], one: ProofOf, checkpoint_ts: int, at: str) -> TableJudgement:
    found = rows_in(one.found or {})
    expected = one.rows_expected if one.verdict is ProofVerdict.DIFFERENT else found
    names = tuple(sorted(left_out))
    buckets = tuple(one.buckets)
    return TableJudgement(one.verdict.value, one.reason, checkpoint_ts, at, found, expected, buckets, names, one.doubt)


def _without(left_out: Mapping[str, str]) -> str:
    return f"; without {', '.join(sorted(left_out))}" if left_out else ""


def _table(name: TableName, left_out: Mapping[str, str], one: ProofOf) -> dict[str, Any]:
    return {
        "database": name.database,
        "table": name.table,
        "verdict": one.verdict.value,
        "reason": one.reason,
        "rows": rows_in(one.found or {}),
        "rows_expected": one.rows_expected if one.verdict is ProofVerdict.DIFFERENT else rows_in(one.found or {}),
        "buckets": one.buckets,
        "sums": {str(b): f"{s.rows} {s.high:016x}{s.low:016x}" for b, s in sorted((one.found or {}).items())},
        "proven_since": one.expected.since if one.expected is not None and one.verdict is ProofVerdict.EQUAL else None,
        "upstream": one.upstream or None,
        "columns_left_out": dict(sorted(left_out.items())),
    }
