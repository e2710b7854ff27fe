"""Compares the target with the upstream after every commit, and explains the first difference."""

import json
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any

from consumer.demo.fake_ticdc.changefeed import Message
from consumer.demo.fake_ticdc.database import Commit, DatabaseState, Entry
from consumer.demo.fake_ticdc.oracle import Oracle
from ordering.events import any_ddl_at, commit_ts_of, ddl_identity
from ordering.progress import Progress
from tests.simulation.memory import Disk

Tables = dict[str, dict[Any, Any]]


class Wrong(AssertionError):  # noqa: N818 what a checker says, short in every report
    """The target is not what it has to be."""


class Checker:
    """Knows the upstream's log and all messages that were made of it."""

    def __init__(self, log: Sequence[Entry], messages: Sequence[Message], changefeed: str, start_ts: int) -> None:
        self.log, self.messages, self.changefeed = log, messages, changefeed
        self.seen: list[int] = []
        self.last: Progress | None = None
        self._oracle, self._at, self._start = Oracle(), 0, start_ts

    def restored(self) -> None:
        """The target was restored from a backup: it goes on from an earlier checkpoint."""
        self.last, self._oracle, self._at = None, Oracle(), 0

    def committed(self, disk: Disk) -> None:
        """Check a commit: never back, and equal to the upstream at exactly its checkpoint, but while tasks write."""
        progress = disk.restored(self.changefeed)
        if self.last is not None:
            self._never_back(self.last, progress)
        self.last = progress
        if progress.drift:
            raise Wrong(f"drift at {progress.checkpoint_ts}, though nobody else writes: {progress.drift}")
        if progress.window is not None:  # tasks are writing it
            return
        self.seen.append(progress.checkpoint_ts)
        self._compare(disk, progress.checkpoint_ts, self._advance(progress).snapshot())

    def _never_back(self, before: Progress, now: Progress) -> None:
        if now.checkpoint_ts < before.checkpoint_ts:
            raise Wrong(f"checkpoint fell from {before.checkpoint_ts} to {now.checkpoint_ts}")
        same = before.joined_ts == now.joined_ts and before.archived == now.archived
        topics = {p: at for p, at in before.partitions.items() if same and not now.archived}
        for partition, known in topics.items():
            at = now.partitions[partition]
            if at.start < known.start or at.read_to < known.read_to or (at.watermark or 0) < (known.watermark or 0):
                raise Wrong(f"{partition} went back from {known} to {at}")

    def _advance(self, progress: Progress) -> Oracle:
        """The upstream at the checkpoint. A DDL right at it counts once the target says that it ran."""
        while self._at < len(self.log) and self.log[self._at].commit_ts < progress.checkpoint_ts:
            self._oracle.apply(self.log[self._at])
            self._at += 1
        oracle = Oracle()
        oracle._state = DatabaseState(dict(self._oracle._state.tables), self._oracle.snapshot())  # type: ignore[arg-type]
        for entry in self.log[self._at :]:
            if entry.commit_ts == progress.checkpoint_ts and self._ran(entry, progress):
                oracle.apply(entry)
        return oracle

    def _ran(self, entry: Entry, progress: Progress) -> bool:
        if isinstance(entry, Commit) or entry.commit_ts <= self._start:
            return True
        if progress.archived:  # the parts of a statement come as one
            return any(commit_ts_of(identity) == entry.commit_ts for identity in progress.executed)
        own = ddl_identity(entry.commit_ts, *entry.ddl.subject, entry.ddl.sql)
        return not progress.executed.isdisjoint((own, any_ddl_at(entry.commit_ts)))

    def _compare(self, disk: Disk, ts: int, expected: Tables) -> None:
        found: Tables = {f"{n.database}.{n.table}": dict(t.rows) for n, t in disk.tables.items()}
        if found == expected:
            return
        if found.keys() != expected.keys():
            raise Wrong(f"at {ts}: tables {sorted(found)} instead of {sorted(expected)}")
        for table in sorted(expected):
            for key in sorted({*expected[table], *found[table]}, key=repr):
                have, want = found[table].get(key), expected[table].get(key)
                if have != want:
                    raise Wrong(self._explained(table, key, ts, have, want))

    def _explained(self, table: str, key: Any, ts: int, have: Any, want: Any) -> str:
        lines = [f"at checkpoint {ts}: {table} {key}", f"  target:   {have}", f"  upstream: {want}", "  its events:"]
        values = set(key)
        for where, value in positions(self.messages):
            row = value["_tidb"].get("commitTs", 0)
            full = f"{value['database']}.{value['table']}"
            images = [*(value["data"] or []), *(value["old"] or [])]
            if full == table and (value["isDdl"] or any(values <= set(i.values()) for i in images)):
                what = value["sql"] or f"{value['data']} was {value['old']}"
                lines.append(f"    {where} commitTs={row} {value['type']} {what}")
        return "\n".join(lines)

    def passed_through(self, upto: int) -> None:
        """Check that the target stood at every commitTs of the upstream (`transaction`)."""
        stood = set(self.seen)
        missed = [e.commit_ts for e in self.log if self._start < e.commit_ts <= upto and e.commit_ts not in stood]
        if missed:
            raise Wrong(f"the target never stood at {missed[:5]} ({len(missed)} such)")

    def totals(self, arrived: Iterable[Message], progress: Progress) -> None:
        """Check the counted messages and repetitions."""
        rows = [v for _, v in positions(arrived) if not v["isDdl"] and v["type"] != "TIDB_WATERMARK"]
        counts = progress.counts
        ahead = any(v["_tidb"]["commitTs"] > progress.checkpoint_ts for v in rows)
        if counts.events != len(rows) and (not ahead or counts.events > len(rows)):
            raise Wrong(f"{counts.events} events counted of {len(rows)}")
        applied = Counter(_identity(v) for v in rows if self._start < v["_tidb"]["commitTs"] <= progress.checkpoint_ts)
        before = sum(v["_tidb"]["commitTs"] <= self._start for v in rows)
        expected = sum(applied.values()) - len(applied) + before
        if counts.duplicates != expected and (not ahead or counts.duplicates > expected):
            raise Wrong(f"{counts.duplicates} duplicates counted instead of {expected}")


def _identity(value: dict[str, Any]) -> tuple[Any, ...]:
    images = json.dumps([value["data"], value["old"]])
    return value["_tidb"]["commitTs"], value["database"], value["table"], value["type"], images


def positions(messages: Iterable[Message]) -> Iterable[tuple[str, dict[str, Any]]]:
    """Messages decoded, with the place where each comes to lie."""
    ends: Counter[tuple[str, int]] = Counter()
    for topic, partition, value, _ in messages:
        yield f"topic={topic} partition={partition} offset={ends[topic, partition]}", json.loads(value)
        ends[topic, partition] += 1
