"""Plans batches: probe, plan, read, judge, as a round does (`consumer.pipeline.round`), but the target is an offset.

The planner's process reads the ranges of a batch once, with the tasks' own scan, and keeps nothing but the reports:
they say where the next batch begins, which DDLs lie between, and which row changes came twice. Spark's tasks then read
the same ranges for their rows. Nothing is written here: a new planner goes on from the offset that Spark keeps.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from consumer.config.changefeed_filter import ChangefeedFilter, read_filter
from consumer.ddl.policy import is_left_out, understood
from consumer.kafka.account import Epochs
from consumer.kafka.reader import Readers
from consumer.pipeline.advance import (
    advanced,
    carried_after,
    counted,
    kept_reports,
    read_on,
    refused_new_topics,
)
from consumer.pipeline.duplicates import check_contents, repeated_in, suspicious
from consumer.pipeline.read import seen_in
from consumer.redis.fingerprints import Fingerprints, joined
from consumer.redis.ledger import Ledger
from consumer.source.clock import check_kept_marks, ignored_marks, latest_believed
from consumer.source.continuity import LOST, check_same_log, check_topics, check_uncompacted
from consumer.source.listed_marks import check_listed
from consumer.source.offer import Probe, added
from consumer.source.probe import Source
from consumer.spark_source.offset import FeedOffset
from consumer.spark_source.options import SourceOptions
from consumer.tasks.order import ReadTask
from consumer.tasks.read_spec import ReadSpec
from consumer.tasks.report import RawDdl, Report, refused_rows
from consumer.tasks.second_look import ContentTask
from consumer.tasks.shuffle_blocks import REPORTS
from ordering.errors import InputError, ReconcilerError
from ordering.events import DdlEvent, Partition
from ordering.planner import Planner
from ordering.progress import Progress
from ordering.timestamps import CheckpointTs, ResolvedTs, physical_ms, utc_text
from ordering.window import Range, Window, check_whole
from sinks.rows.schema import Catalog

_QUIET_MS = 60_000
"""So far the commitTs of a feed without changes may run ahead of the query's offset: an empty batch costs Spark a
second, but what the offset still asks for may not be deleted by retention."""
_KEPT_MARK = (
    "it was believed before, and what came late since then was dropped: list its position in source.ignored-watermarks,"
    " and begin a new query with a source.start-ts from before it was written"
)
_NO_TABLES = Catalog({})


@dataclass(frozen=True, slots=True)
class Slice:
    """What one of Spark's tasks reads: a range, and which of its row changes are none of its own."""

    range: Range
    low: int
    high: int
    elsewhere: frozenset[int] = frozenset()
    """Fingerprints of changes that an earlier slice has, too, and gives."""
    twice: frozenset[int] = frozenset()
    """Fingerprints of changes that lie in it more than once: the first counts."""
    epochs: Epochs = ()
    """The leaders that wrote it, as it was planned (`epochs_upto`)."""


class FeedPlanner:
    """Plans the batches of one query. Raises ReconcilerError."""

    latest: ResolvedTs | None = None
    """Up to where the topics were resolved when they were last looked at."""

    def __init__(self, options: SourceOptions, source: Source, readers: Readers, max_rows: int) -> None:
        self._options, self._source, self._readers = options, source, readers
        self._filter: ChangefeedFilter = read_filter(options.config.filter)
        self._planner = Planner(max_rows)
        self._ledger = Ledger("", options.config.changefeed, "", "")
        self._quiet: tuple[int, Progress] | None = None
        self._planned_last: tuple[FeedOffset, list[Report]] | None = None

    def first(self) -> FeedOffset:
        """Where a new query begins."""
        start = self._options.config.source.start_ts
        return FeedOffset(Progress.first(CheckpointTs(start), self._filter.digest, ""), start)

    def ends(self) -> dict[Partition, int]:
        """Where the topics end now."""
        return dict(self._source.control.ends([p for topic in self._source.listed() for p in topic.partitions]))

    def after(self, at: FeedOffset, caps: Mapping[Partition, int] | None = None) -> FeedOffset:
        """The end of the next batch; the same offset where nothing has changed. `caps`: where reading ends."""
        self._filter.check_change(at.progress.filter_digest, self._options.config.changefeed)
        quiet = self._quiet
        progress = quiet[1] if quiet and quiet[0] == at.commit_ts else at.progress
        progress = replace(progress, filter_digest=self._filter.digest)
        while (found := self._step(progress, caps)) is not None:
            progress = found.progress
            moved = physical_ms(progress.checkpoint_ts) - physical_ms(at.progress.checkpoint_ts)
            if found.rows or found.ddls or moved >= _QUIET_MS:
                return found
        self._quiet = (at.commit_ts, progress)
        return at

    def _step(self, progress: Progress, caps: Mapping[Partition, int] | None) -> FeedOffset | None:
        """Do one window of the planner; None if there is none."""
        window, probe = self._planned(progress, caps)
        if window is None:
            return None
        progress = replace(progress, topics=probe.topics)
        window, reports = self._read(window, progress)
        self._judge(window, reports, progress)
        prints = _prints(reports)
        rows = _distinct(prints)
        waiting = {ddl.identity for ddl in self._planner.pending(progress)}
        repeats = sum(len(repeated_in(report)) + report.unjudged for report in reports)
        twice = sum(map(len, prints)) - rows
        after = advanced(added(progress, probe), window, reports, waiting, proven=twice, unproven=repeats)
        after, ddls = self._settled(after, window, reports)
        held = [report for report in reports if report.released]
        ranges = tuple(Range(r.range.partition, r.range.start, r.stop, 0) for r in held)
        found = FeedOffset(after, window.low, ranges, rows, ddls, tuple(report.epochs for report in held))
        self._planned_last = found, held
        return found

    def _planned(self, progress: Progress, caps: Mapping[Partition, int] | None) -> tuple[Window | None, Probe]:
        source, planner = self._source, self._planner
        source.dead_at.update(planner.dead_topics(progress))
        check_kept_marks(progress, self._options.config.limits, _KEPT_MARK)
        probe = source.probe(progress, caps)
        if self.latest is None:
            check_listed(source, progress, probe, _KEPT_MARK)
        resolved = self.latest = probe.resolved.ts
        if resolved is not None and self._options.end_ts is not None:
            resolved = ResolvedTs(min(resolved, self._options.end_ts))
        window = planner.next_window(progress, resolved, probe.ranges)
        if window is None:
            window = planner.look_through(progress, resolved, probe.ranges, probe.before_first_watermark)
        return window, probe

    def _read(self, window: Window, progress: Progress) -> tuple[Window, list[Report]]:
        """The window, up to where it ends, and its reports."""
        while True:
            reports = self._scanned(window)
            reports = counted(kept_reports(reports), progress)
            for report in reports:
                self._source.saw(report)
                if report.messages:
                    self._source.average_bytes[report.range.partition] = report.size / report.messages
                for raw in report.ddls:
                    self._planner.met(understood(raw, _NO_TABLES, progress.topics[raw.position.topic].tables))
            nearer = self._planner.saw(window, seen_in(reports), progress)
            if nearer is None:
                return window, reports
            window = replace(window, high=nearer)

    def _scanned(self, window: Window) -> list[Report]:
        reports: list[Report] = []
        read = ReadTask(self.spec(window), self._readers)
        for bucket, payload in read([(0, window.ranges)]):
            if isinstance(payload, ReconcilerError):
                raise payload
            if bucket == REPORTS:
                reports.append(payload)
        check_whole(window.ranges, [report.range for report in reports])
        return reports

    def spec(self, window: Window) -> ReadSpec:
        """What reads a window."""
        config = self._options.config
        return ReadSpec(
            window=window,
            handle_keys=self._options.handle_keys,
            accepts=self._filter.tables.of_message,
            buckets=1,
            message_bytes=config.limits.message_bytes,
            native=config.spark.native,
            ignored_marks=ignored_marks(config),
            latest=latest_believed(config.limits),
        )

    def _judge(self, window: Window, reports: Sequence[Report], progress: Progress) -> None:
        control = self._source.control
        check_same_log(control, reports, progress.topics)
        check_uncompacted(reports, control.cleanup_policies, control.first_gap)
        refused_rows(reports)
        _refuse_keyless(reports)
        refused_new_topics(reports, progress, self._ledger)
        if suspects := suspicious(reports):
            look = ContentTask(self.spec(window), self._readers, suspects)
            check_contents(list(look(window.ranges)), suspects)

    def _settled(
        self, progress: Progress, window: Window, reports: Sequence[Report]
    ) -> tuple[Progress, tuple[RawDdl, ...]]:
        """The progress behind the DDLs that are due, and those of them that the filter takes."""
        planner = self._planner
        next_row = min((r.next_row_ts for r in reports if r.next_row_ts is not None), default=None)
        stopped_at = [r.watermark or 0 for r in reports if r.ended_early]
        due, _ = planner.due(progress, window, next_row, stopped_at)
        found: list[RawDdl] = []
        for ddl in due:
            waiting = {one.identity for one in planner.pending(progress)} - {ddl.identity}
            planner.settled(ddl)
            progress = progress.after_ddl(CheckpointTs(ddl.commit_ts), ddl.identity)
            progress = read_on(progress, reports, waiting)
            progress = replace(progress, topics=carried_after(ddl, progress, reports))
            if not is_left_out(ddl, self._filter.tables):
                found.append(_raw(ddl))
        planner.forget_done(progress)
        dead = self._source.dead_at
        self._source.dead_at = {topic: ts for topic, ts in dead.items() if ts >= progress.checkpoint_ts}
        return progress, tuple(found)

    def slices(self, batch: FeedOffset) -> list[Slice]:
        """What the tasks of a batch read. Raises InputError where the topics no longer hold what was planned."""
        if not batch.ranges:
            return []
        reports = self._known(batch)
        if reports is None:
            reports = self._read_again(batch)
        prints = _prints(reports)
        rows = _distinct(prints)
        if rows != batch.rows:
            raise InputError(
                f"the batch up to commitTs {batch.commit_ts} ({utc_text(batch.commit_ts)} UTC) holds {rows} row"
                f" changes, {batch.rows} were in it when it was planned",
                where=" and ".join(str(r.partition) for r in batch.ranges),
                hint="the topics, filter.rules or handle-keys were changed: begin a new query with source.start-ts",
            )
        return list(_slices(batch, reports, prints))

    def _read_again(self, batch: FeedOffset) -> list[Report]:
        """The reports of a batch that another driver has planned. Raises InputError unless it lies in the same logs."""
        reports = kept_reports(self._scanned(batch.window))
        topics = {r.partition.topic for r in batch.ranges}
        check_topics(self._source.control.topics(topics), batch.progress.topics)
        if batch.epochs is not None:
            places = ((part.partition, part.start) for part in batch.ranges)
            planned = dict(zip(places, batch.epochs, strict=True))
            for report in reports:
                check_leaders(report.range, report.epochs, planned[report.range.partition, report.range.start])
        return reports

    def _known(self, batch: FeedOffset) -> list[Report] | None:
        """The reports of the batch that was planned last, which Spark mostly asks for next."""
        if self._planned_last is None:
            return None
        last, reports = self._planned_last
        same = (last.low, last.commit_ts, last.ranges) == (batch.low, batch.commit_ts, batch.ranges)
        return reports if same else None

    def commit(self, at: FeedOffset) -> None:
        """Tell Kafka's lag tools how far the query is; losing it loses nothing."""
        self._source.commit_lazily({p: one.start for p, one in at.progress.partitions.items()})

    def close(self) -> None:
        """Close every connection."""
        self._source.close()
        self._readers.forget()


def check_leaders(part: Range, found: Epochs, planned: Epochs) -> None:
    """Raise InputError where other leaders wrote what was read now than what was planned: the log was replaced."""
    if [epoch for epoch, _ in found] != [epoch for epoch, _ in planned] or found[:-1] != planned[:-1]:
        raise InputError(
            "the log was replaced after the batch was planned: other leaders wrote what it holds now",
            where=f"{part.partition} offset={part.start}",
            hint=LOST,
        )


def _prints(reports: Iterable[Report]) -> list[Fingerprints]:
    """Of each report the fingerprints of its row changes: an UPDATE that moves a key has two."""
    return [joined([report.fingerprints, report.more_fingerprints]) for report in reports]


def _distinct(prints: Sequence[Fingerprints]) -> int:
    return len(np.unique(np.concatenate(prints))) if prints else 0


def _slices(batch: FeedOffset, reports: Sequence[Report], prints: Sequence[Fingerprints]) -> Iterator[Slice]:
    """One slice for each report; of a change that came more than once the first one counts."""
    values, counts = np.unique(np.concatenate(prints), return_counts=True)
    repeated, given = values[counts > 1], np.empty(0, dtype=np.uint64)
    for report, own in zip(reports, prints, strict=True):
        of_report, times = np.unique(own[np.isin(own, repeated)], return_counts=True)
        elsewhere = np.isin(of_report, given)
        yield Slice(
            Range(report.range.partition, report.range.start, report.stop, 0),
            batch.low,
            batch.commit_ts,
            frozenset(of_report[elsewhere].tolist()),
            frozenset(of_report[~elsewhere & (times > 1)].tolist()),
            report.epochs,
        )
        given = np.union1d(given, of_report)


def _refuse_keyless(reports: Iterable[Report]) -> None:
    for report in reports:
        for name, position in report.keyless.items():
            raise InputError(
                f"messages of table {name} name no primary key",
                where=str(position),
                hint=f'name its NOT NULL unique key: .option("handle-keys", "{name}(COLUMN)"), or leave the table out'
                " by filter.rules",
            )


def _raw(ddl: DdlEvent) -> RawDdl:
    return RawDdl(ddl.position, ddl.commit_ts, ddl.type, ddl.database, ddl.table, ddl.sql)
