"""Scans of a window in segments (`ordering.rows.segments`): each has its scan, its reduction and its report.

A run of messages is given to the scan of the segment in which its first and its last seem to lie. That is a guess, for
speed: a scan hands on what turns out to lie elsewhere, whatever it was guessed by.
"""

import re
from bisect import bisect_left
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from typing import Any

from consumer.codec import canal_json
from consumer.codec.joined_run import JoinedRun
from consumer.kafka.account import Reached, check_account, epochs_upto
from consumer.native.kafka_messages import CoreRun
from consumer.tasks.read_spec import ReadSpec
from consumer.tasks.reduction import Reduction, is_full
from consumer.tasks.report import Report, sealed
from consumer.tasks.scans.batch_scan import BatchScan
from consumer.tasks.scans.compiled_scan import CompiledReduction, CompiledScan
from consumer.tasks.scans.scan import Scan
from ordering.events import Kind, Position, TableName
from ordering.timestamps import CommitTs
from ordering.window import Range

_TAIL = 96
"""Bytes at the end of a message among which its commitTs mostly is."""
_COMMIT = re.compile(rb'"commitTs":\s*(\d{1,20})')
_FEW = 16
"""Messages that are not divided further by a guess."""


class SegmentReduction:
    """The reductions of all segments of a task."""

    def __init__(self, spec: ReadSpec, parts: Sequence[Reduction]) -> None:
        self.spec, self.parts = spec, parts

    @property
    def sent(self) -> Counter[int]:
        """Blocks, by bucket of the window."""
        sent: Counter[int] = Counter()
        for segment, part in zip(self.spec.segments, self.parts, strict=True):
            sent.update({segment.first + bucket: count for bucket, count in part.sent.items()})
        return sent

    def full(self) -> bool:
        """Whether all segments together hold enough to let go of."""
        held = [part.held() for part in self.parts]
        return is_full(self.spec, sum(rows for rows, _ in held), sum(size for _, size in held))

    def blocks(self) -> Iterator[tuple[int, bytes]]:
        """See `Reduction.blocks`."""
        for segment, part in zip(self.spec.segments, self.parts, strict=True):
            for bucket, block in part.blocks():
                yield segment.first + bucket, block


class _Elsewhere(Scan):
    """What the scan of a segment hands on: rows of other segments, and what concerns the whole range."""

    range_scan: "SegmentScan"

    def _above(self, offset: int, commit_ts: CommitTs, kind: Kind, message: canal_json.Envelope, value: bytes) -> None:
        self.range_scan.hand_on(offset, commit_ts, kind, message, value)

    def _row(self, offset: int, commit_ts: CommitTs, kind: Kind, event: canal_json.Envelope, value: bytes) -> None:
        if commit_ts <= self._low and not self.range_scan.is_first(self):
            self.range_scan.hand_on(offset, commit_ts, kind, event, value)
            return
        self.range_scan.met(self, offset, commit_ts, event)
        super()._row(offset, commit_ts, kind, event, value)

    def _watermark(self, message: canal_json.Envelope, position: Position) -> bool:
        return self.range_scan.whole._watermark(message, position)  # noqa: SLF001 of the same kind

    def _ddl(self, message: canal_json.Envelope, position: Position) -> None:
        self.range_scan.whole._ddl(message, position)  # noqa: SLF001 of the same kind


class _BatchOfSegment(_Elsewhere, BatchScan):
    """A segment's scan in Python."""


class _CompiledOfSegment(_Elsewhere, CompiledScan):
    """A segment's scan in the compiled core."""


class SegmentScan:
    """One range of a window in segments."""

    def __init__(self, spec: ReadSpec, part: Range, reduction: SegmentReduction) -> None:
        self.spec, self.part, self._reduction = spec, part, reduction
        self.whole = Scan(spec, part, reduction.parts[0])
        """Takes what concerns the whole range: watermarks, DDLs, rows above it."""
        self._ends = [int(segment.high) for segment in spec.segments]
        self._scans: dict[int, _Elsewhere] = {}
        self._first: dict[int, int] = {}
        """Offsets of the first rows in segments that were looked at one by one."""
        self._tables: dict[int, dict[TableName, CommitTs]] = {}
        self._at = 0
        self._messages = 0
        """Taken so far, where a message may hold events of several segments."""

    @property
    def report(self) -> Report:
        """What concerns the whole range."""
        return self.whole.report

    def take(self, messages: Iterable[Any]) -> bool:
        """See `Scan.take`."""
        some = messages if isinstance(messages, list | CoreRun | JoinedRun) else list(messages)
        if self.spec.format.sends_batches:
            self._messages += self.whole.messages_in(some)
        return self._take(some)

    def _take(self, some: list[Any] | CoreRun | JoinedRun) -> bool:
        if len(some) > _FEW and self._guessed(some[0]) != self._guessed(some[-1]):
            half = len(some) // 2
            return self._take(some[:half]) and self._take(some[half:])
        if not some:
            return True
        self._at = self._guessed(some[0])
        scan = self._scan(self._at)
        goes_on = scan.take(some)
        self.whole.report.stop = max(self.whole.report.stop, scan.report.stop)
        return goes_on

    def _guessed(self, message: Any) -> int:
        """The segment in which a message seems to lie; the last one's where nothing tells."""
        found = _COMMIT.search((message.value() or b"")[-_TAIL:])
        return self._at if found is None else self._segment(int(found[1]))

    def _segment(self, commit_ts: int) -> int:
        return min(bisect_left(self._ends, commit_ts), len(self._ends) - 1)

    def _scan(self, at: int) -> _Elsewhere:
        """The scan of a segment."""
        if at not in self._scans:
            self._scans[at] = self._made(at)
        return self._scans[at]

    def _made(self, at: int) -> _Elsewhere:
        spec, reduction = self.spec.of(self.spec.segments[at]), self._reduction.parts[at]
        made: _Elsewhere
        if isinstance(reduction, CompiledReduction):
            made = _CompiledOfSegment(spec, self.part, reduction)
        else:
            made = _BatchOfSegment(spec, self.part, reduction)
        made.range_scan = self
        return made

    def is_first(self, scan: _Elsewhere) -> bool:
        """Whether a scan is the first segment's, which takes what lies at or below the window's beginning."""
        return self._scans.get(0) is scan

    def hand_on(self, offset: int, commit_ts: CommitTs, kind: Kind, message: canal_json.Envelope, value: bytes) -> None:
        """Take a row event that lies in another segment than the one whose scan was given it."""
        if commit_ts > self._ends[-1]:
            self.whole._above(offset, commit_ts, kind, message, value)  # noqa: SLF001 of the same kind
            return
        scan = self._scan(self._segment(commit_ts))
        scan._row(offset, commit_ts, kind, message, value)  # noqa: SLF001 of the same kind

    def met(self, scan: _Elsewhere, offset: int, commit_ts: CommitTs, message: canal_json.Envelope) -> None:
        """Note the table of a row event in a segment, whether or not the row can be read."""
        if self.spec.accepts(message.database, message.table):
            at = self._segment(commit_ts)
            self._first.setdefault(at, offset)
            name = scan._spelled(message)  # noqa: SLF001 of the same kind
            known = self._tables.setdefault(at, {})
            known[name] = max(commit_ts, known.get(name, commit_ts))

    def account(self, reached: Reached) -> None:
        """See `Scan.account`."""
        report = self.whole.report
        report.epochs, report.content = epochs_upto(reached.epochs, report.stop), reached.content
        if not self.whole.report.ended_early and self.part.messages:
            check_account(self.part, reached, self._read())

    def _read(self) -> int:
        if self.spec.format.sends_batches:
            return self._messages
        return sum(scan.report.read for scan in self._scans.values())

    def reports(self) -> list[Report]:
        """A report of each segment, as if it were a window of its own: what lies in later ones lies above it."""
        whole = self.whole.unsealed()
        met = (whole, *(scan.report for scan in self._scans.values()))
        marks = [(one.watermark, -(one.marked_at or 0)) for one in met if one.watermark is not None]
        if marks:  # of equal ones the first: which scan met it is a matter of runs
            whole.watermark, at = max(marks)
            whole.marked_at = -at
        found = []
        for at in reversed(range(len(self._ends))):
            report = self._report(at, whole)
            found.append(sealed(report, self._reduction.parts[at].task))
            whole = self._with(at, report, whole)
        return found[::-1]

    def _report(self, at: int, whole: Report) -> Report:
        """The report of a segment. `whole`: what concerns the whole range, with what lies above the segment.

        By which scan a message was counted is a matter of runs: a task that is done again may get others. So what
        counts messages is told once, for all.
        """
        scan, low = self._scans.get(at), self.spec.segments[at].low
        own = Report(self.part, whole.stop) if scan is None else scan.unsealed()
        return replace(
            own,
            stop=whole.stop,
            read=self._read() if at == 0 else whole.stop - self.part.start,  # what is missing is told of once
            counted_to=whole.counted_to,
            ended_early=whole.ended_early,
            watermark=whole.watermark,
            marked_at=whole.marked_at,
            first_above=whole.first_above,
            next_row_ts=whole.next_row_ts,
            above=dict(whole.above),
            ddls=whole.ddls if at == 0 else [ddl for ddl in whole.ddls if ddl.commit_ts > low],
            earlier_ddl=whole.earlier_ddl and at == 0,
            events=self._sum("events") if at == 0 else 0,
            messages=self._sum("messages") if at == 0 else 0,
            size=self._sum("size") if at == 0 else 0,
            epochs=whole.epochs if at == 0 else (),
            content=whole.content if at == 0 else 0,
            segment=at,
        )

    def _with(self, at: int, report: Report, whole: Report) -> Report:
        """The same for the segment before: what this one holds lies above that."""
        firsts = [position.offset for position in report.tables.values()]
        firsts += [self._first[at]] if at in self._first else []
        if not firsts:
            return whole
        firsts += [] if whole.first_above is None else [whole.first_above]
        last = [CommitTs(ts) for ts, _ in report.histogram[-1:]]
        above = {**self._tables.get(at, {}), **{name: ts for name in report.tables for ts in last}, **whole.above}
        above = dict(sorted(above.items()))  # which rows were looked at one by one is a matter of runs, too
        lows = [int(self.spec.segments[at].low) + 1, *([] if whole.next_row_ts is None else [int(whole.next_row_ts)])]
        return replace(whole, above=above, next_row_ts=CommitTs(min(lows)), first_above=min(firsts))

    def _sum(self, name: str) -> int:
        return sum(getattr(scan.report, name) for scan in self._scans.values())
