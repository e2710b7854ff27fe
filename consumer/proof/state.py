"""What one proof leaves to the next: the sums that each table has to have at a checkpoint, and where to read on."""

from collections.abc import Mapping
from dataclasses import astuple, dataclass, field
from typing import Any

import orjson

from consumer.proof.ddls import Filled
from ordering.errors import TargetError
from ordering.events import Partition, TableName
from ordering.progress import Progress
from ordering.rows.content_sums import ContentSums, as_lists, from_lists

OwnColumns = Mapping[TableName, Mapping[str, bool]]
"""Columns that the target has, and upstream lacks, as whole rows of its have shown: no event tells of their values.

False: an event has shown since that upstream has it by now.
"""
FORMAT = 3
"""Another one is not read: the next proof takes a new base."""


@dataclass(frozen=True, slots=True)
class ExpectedTable:
    """A table's sums as they have to be. `signature`: of what they are made; `since`: C of the base, 0: from empty."""

    signature: tuple[str, ...]
    sums: ContentSums
    since: int
    differs: bool = False
    doubt: str = ""
    """Why its base may be wrong; "" if nothing is known."""


@dataclass(frozen=True, slots=True)
class TableJudgement:
    """What the last comparison of a table has found. `at`: when, ISO text in UTC; `reason`: why it is not proven."""

    verdict: str
    reason: str
    checkpoint_ts: int
    at: str
    rows: int
    rows_expected: int
    buckets: tuple[int, ...] = ()
    left_out: tuple[str, ...] = ()
    """Columns that are in no sum."""
    doubt: str = ""


@dataclass(frozen=True, slots=True)
class ProofState:
    """All tables at the checkpoint of the last proof."""

    checkpoint_ts: int
    lineage: str
    """Names the progress: one created again has another."""
    starts: Mapping[Partition, int]
    """From where the events above the checkpoint are read."""
    topics: Mapping[str, str]
    """Topic -> its identity."""
    settled: frozenset[int] = frozenset()
    """Lines of the DDL log at just this checkpoint that were done with."""
    tables: Mapping[TableName, ExpectedTable] = field(default_factory=dict)
    judged: Mapping[TableName, TableJudgement] = field(default_factory=dict)
    passed: Mapping[Partition, int] = field(default_factory=dict)
    """The last watermark before each start, where there is one."""
    filled: Filled | None = None
    """As in `Present`; None where that was not kept."""
    own: OwnColumns = field(default_factory=dict)

    @classmethod
    def at(
        cls,
        progress: Progress,
        settled: frozenset[int],
        tables: Mapping[TableName, ExpectedTable],
        judged: Mapping[TableName, TableJudgement],
        starts: Mapping[Partition, int],
        passed: Mapping[Partition, int],
        filled: Filled,
        own: OwnColumns,
    ) -> "ProofState":
        """The state at the target's progress."""
        return cls(
            int(progress.checkpoint_ts),
            lineage_of(progress),
            starts,
            {name: topic.id for name, topic in progress.topics.items()},
            settled,
            tables,
            judged,
            passed,
            filled,
            own,
        )

    def as_json(self) -> str:
        """To be kept."""
        tables = [
            [*name, list(one.signature), as_lists(one.sums), one.since, one.differs, one.doubt]
            for name, one in sorted(self.tables.items())
        ]
        starts, passed = ([[*place, at] for place, at in sorted(some.items())] for some in (self.starts, self.passed))
        told = {"format": FORMAT, "checkpoint_ts": self.checkpoint_ts, "lineage": self.lineage, "starts": starts}
        judged = [[*name, *astuple(one)] for name, one in sorted(self.judged.items())]
        more = {"topics": dict(self.topics), "settled": sorted(self.settled), "tables": tables, "judged": judged}
        more["passed"] = passed
        if self.filled is not None:
            more["filled"] = [[*name, sorted(columns)] for name, columns in sorted(self.filled.items())]
        if self.own:
            more["own"] = [[*name, dict(sorted(columns.items()))] for name, columns in sorted(self.own.items())]
        return orjson.dumps({**told, **more}).decode()


def lineage_of(progress: Progress) -> str:
    """What stays the same as long as a progress goes on from itself, and takes the same events of a table."""
    return f"{progress.ledger} {progress.start_ts} {_of_rows(progress.filter_digest)}"


def _of_rows(filter_digest: str) -> str:
    """What a filter leaves out of tables that it takes; which those are may only become fewer, else it is refused."""
    return ":".join(filter_digest.split(":")[-2:])


def first_state(progress: Progress) -> ProofState | None:
    """The state before the topics' first message, where nothing was; None where others filled the tables before."""
    return None if progress.began_ts else ProofState(0, lineage_of(progress), {}, {})


def state_of(text: str) -> ProofState | None:
    """What was kept; None where nothing was, or in another format. Raises TargetError for what nobody has kept."""
    try:
        found = orjson.loads(text) if text else {}
        return _read(found) if found.get("format") == FORMAT else None
    except (ValueError, TypeError, LookupError, AttributeError) as error:
        raise TargetError(
            f"what the last proof has left is not as it was written: {error!r}",
            where="ticdc_reconciler.proof",
            hint="somebody has changed it: DELETE the changefeed's lines there; the next proof takes a new base",
        ) from error


def _read(found: dict[str, Any]) -> ProofState:
    tables = {
        TableName(database, table): ExpectedTable(tuple(signature), from_lists(sums), since, differs, doubt)
        for database, table, signature, sums, since, differs, doubt in found["tables"]
    }
    starts = _by_partition(found["starts"])
    settled = frozenset(found["settled"])
    judged = {
        TableName(*one[:2]): TableJudgement(
            one[2], one[3], one[4], one[5], one[6], one[7], tuple(one[8]), tuple(one[9]), one[10]
        )
        for one in found["judged"]
    }
    passed = _by_partition(found.get("passed", []))  # an earlier version's has none
    kept = found.get("filled")
    filled = None if kept is None else {TableName(*name): frozenset(columns) for *name, columns in kept}
    ledger, start_ts, filters = found["lineage"].split(" ", 2)
    lineage = f"{ledger} {start_ts} {_of_rows(filters)}"  # an earlier version's has the rules for tables too
    own = {TableName(*name): columns for *name, columns in found.get("own", [])}
    checkpoint_ts, topics = found["checkpoint_ts"], found["topics"]
    return ProofState(checkpoint_ts, lineage, starts, topics, settled, tables, judged, passed, filled, own)


def _by_partition(kept: list[tuple[str, int, int]]) -> dict[Partition, int]:
    return {Partition(topic, number): at for topic, number, at in kept}
