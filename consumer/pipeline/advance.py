"""The progress after a window, out of its reports; pure."""

from collections.abc import Collection, Iterable, Sequence
from dataclasses import replace

from consumer.ddl.check_columns import refused_types
from consumer.pipeline.duplicates import repeated_in
from consumer.redis.fingerprints import joined
from consumer.redis.ledger import Ledger
from consumer.tasks.report import Report
from ordering.errors import InputError, TargetError
from ordering.events import DdlEvent, Partition, Position, TableName
from ordering.progress import PartitionProgress, Progress, TopicProgress
from ordering.rows.keyless_rows import Copies, merged
from ordering.timestamps import CheckpointTs, ResolvedTs
from ordering.topic_lifecycle import after, carrying
from ordering.watermark import raised
from ordering.window import Window
from sinks.bookkeeping.tables import PROGRESS_DATABASE
from sinks.rows.schema import Catalog


def kept_reports(reports: Sequence[Report]) -> list[Report]:
    """The reports by partition and offset.

    Where a part of a partition's range met a watermark above the window, the parts behind it don't count: what they
    hold is read by a later window. Where a part met the first event above it while looking ahead, nothing of the parts
    behind it is counted.
    """
    kept: list[Report] = []
    ended: set[Partition] = set()
    counted: dict[Partition, int] = {}
    for report in sorted(reports, key=lambda r: (r.range.partition, r.range.start)):
        partition = report.range.partition
        if partition not in ended:
            kept.append(_uncounted(report, counted[partition]) if partition in counted else report)
        if report.ended_early:
            ended.add(partition)
        if report.counted_to < report.stop:
            counted.setdefault(partition, report.counted_to)
    return kept


def _uncounted(report: Report, counted_to: int) -> Report:
    return replace(report, counted_to=counted_to, events=0, filtered=0, repeated=b"", unjudged=0)


def counted(reports: Sequence[Report], progress: Progress) -> list[Report]:
    """The reports, with nothing counted of a range that begins behind what its partition holds."""
    starts = {p: at.start for p, at in progress.partitions.items()}
    return [
        _uncounted(r, r.range.start) if starts.get(r.range.partition, r.range.start) < _begin(r, reports) else r
        for r in reports
    ]


def _begin(report: Report, reports: Sequence[Report]) -> int:
    return min(r.range.start for r in reports if r.range.partition == report.range.partition)


def refused_tables(reports: Sequence[Report], catalog: Catalog, zone: str) -> None:
    """Raise for rows of a table that the target lacks, or that has no handle key, or that is our own.

    TableMismatchError for a column of it in which upstream's values would mean something else.
    """
    for report in reports:
        for name, position in {**report.tables, **report.keyless}.items():
            _check_table(name, position, catalog, keyless=name in report.keyless)
    refused_types(reports, catalog, zone)


def _check_table(name: TableName, position: Position, catalog: Catalog, *, keyless: bool) -> None:
    if name.database.lower() == PROGRESS_DATABASE:
        hint = "exclude this database in the changefeed's filter rules"
        raise InputError(f"a message writes to the reconciler's own database: {name}", where=str(position), hint=hint)
    if catalog.get(name) is None:
        hint = "create it as it is upstream, or begin with a topic that holds its CREATE TABLE"
        if keyless:
            hint += "; if it has no valid index, set filter.force-replicate or leave it out by filter.rules"
        raise TargetError(f"table {name} is missing in the target", where=str(position), hint=hint)
    if keyless:
        hint = "give it a primary key or a NOT NULL unique key upstream, or set filter.force-replicate"
        raise InputError(f"table {name} has no valid index (force-replicate)", where=str(position), hint=hint)


def refused_new_topics(reports: Sequence[Report], progress: Progress, ledger: Ledger) -> None:
    """Raise for a topic or partition that is new to a running changefeed with rows at or below the checkpoint (R8).

    It is until a window that it has a say in is applied: looking ahead counts nothing of what it passes over. Unless
    the ledger proves all of them: where partitions are added, TiCDC goes on from its own checkpoint, and what it sends
    again may lie in the new ones.
    """
    if progress.base_ts <= progress.began_ts:
        return
    for report in reports:
        known = progress.partitions.get(report.range.partition)
        is_new = known is None or known.is_new or known.is_unread
        if is_new and (report.repeated or report.unjudged) and not _is_proven(report, ledger):
            raise InputError(
                "a topic or partition that is new to this changefeed, or counts again, holds rows at or below its"
                " checkpoint",
                where=str(report.range.partition),
                hint=f"rows of it may be missing in the target: {_way_on(report)}",
            )


def _is_proven(report: Report, ledger: Ledger) -> bool:
    verdict = ledger.judge(repeated_in(report))
    return not (verdict.unproven or verdict.late or report.unjudged)


def _way_on(report: Report) -> str:
    lowest = min(repeated_in(report)[:, 2].tolist(), default=0)
    other = "another changefeed id with its own start-ts for it"
    return (
        f"`reconciler progress rewind CONFIG {lowest - 1}` applies them, or use {other}" if lowest else f"use {other}"
    )


def advanced(
    progress: Progress,
    window: Window,
    reports: Sequence[Report],
    waiting: Collection[str],
    *,
    proven: int,
    unproven: int,
) -> Progress:
    """The progress once the window's rows are applied. `waiting`: identities of DDLs still to be executed."""
    counts = progress.counts.plus(
        events=sum(r.events for r in reports),
        duplicates_proven=proven,
        duplicates_unproven=unproven,
        windows=int(window.high > window.low),
        filtered=sum(r.filtered for r in reports),
    )
    high = CheckpointTs(window.high)
    kept = {"executed": progress.executed} if window.rewound else {}
    moved = progress.at(high, base_ts=high, topics=carried(progress, reports), counts=counts, window=None, **kept)
    moved = read_on(moved, reports, waiting)
    return moved if window.to_end else _joined(moved, reports)


def _joined(progress: Progress, reports: Sequence[Report]) -> Progress:
    """The progress once a window was applied: all that its partitions had at or below the checkpoint was judged.

    Also where nothing was left to read of one because a look to its end had judged all of it: its watermark says so.
    """
    read = {report.range.partition for report in reports}
    known = {
        p: replace(at, is_new=False)
        for p, at in progress.partitions.items()
        if at.is_new and (p in read or (at.watermark or 0) >= progress.checkpoint_ts)
    }
    return replace(progress, partitions={**progress.partitions, **known})


def copies_in(reports: Sequence[Report]) -> list[Copies]:
    """Events of rows without a key, over all partitions."""
    return merged(copies for report in reports for copies in report.copies)


def carried(progress: Progress, reports: Sequence[Report]) -> dict[str, TopicProgress]:
    """The topics with the tables whose rows the reports tell of."""
    topics = dict(progress.topics)
    for report in reports:
        topic = report.range.partition.topic
        topics[topic] = carrying(topics[topic], (*report.tables, *report.above))
    return topics


def carried_after(ddl: DdlEvent, progress: Progress, reports: Sequence[Report]) -> dict[str, TopicProgress]:
    """The topics once a DDL was executed: what has rows above it is not of the tables that it removed."""
    topics = {name: after(topic, name, ddl) for name, topic in progress.topics.items()}
    for report in reports:
        topic = report.range.partition.topic
        later = [table for table, highest in report.above.items() if highest > ddl.commit_ts]
        topics[topic] = carrying(topics[topic], later)
    return topics


def read_on(progress: Progress, reports: Sequence[Report], waiting: Collection[str]) -> Progress:
    """The progress with the offsets to read on from: the lowest that holds something that is not applied."""
    partitions = dict(progress.partitions)
    by_partition: dict[Partition, list[Report]] = {}
    for report in reports:
        by_partition.setdefault(report.range.partition, []).append(report)
    for partition, some in by_partition.items():
        _check_known(some, progress, waiting)
        partitions[partition] = _partition(partitions.get(partition), some, waiting)
    return replace(progress, partitions=partitions)


def _check_known(reports: Iterable[Report], progress: Progress, waiting: Collection[str]) -> None:
    """Whoever reads on from behind a DDL never meets it again: one above the checkpoint has to wait."""
    for ddl in (ddl for report in reports for ddl in report.ddls):
        if ddl.commit_ts > progress.checkpoint_ts and ddl.identity not in waiting:
            raise RuntimeError(f"the DDL at commitTs {ddl.commit_ts} ({ddl.position}) does not wait for its turn")


def _partition(known: PartitionProgress | None, reports: list[Report], waiting: Collection[str]) -> PartitionProgress:
    stop = max(report.stop for report in reports)
    held = [report.first_above for report in reports if report.first_above is not None]
    held += [d.position.offset for report in reports for d in report.ddls if d.identity in waiting]
    watermarks = [None if r.watermark is None else ResolvedTs(r.watermark) for r in reports]
    first = min(report.range.start for report in reports)
    before = known or PartitionProgress(first, first)
    watermark = raised(before.watermark, *watermarks)
    if before.start < first:  # only looked further: what is held before it stays held, and nothing of it is counted
        return replace(before, read_to=max(stop, before.read_to), watermark=watermark, epoch=reports[-1].range.epoch)
    counted = max(before.counted_to, reports[-1].counted_to)
    start = min([*held, stop])
    passed, epoch = _passed(before, reports, start), reports[-1].range.epoch
    return PartitionProgress(start, max(stop, before.read_to), watermark, counted, passed, epoch, before.is_new)


def _passed(before: PartitionProgress, reports: list[Report], start: int) -> ResolvedTs | None:
    """The last watermark before an offset, where reports tell of all watermarks."""
    found = [pair for r in reports for pair in joined([r.watermarks]).reshape(-1, 2).tolist() if pair[0] < start]
    return ResolvedTs(max(found)[1]) if found else before.passed


def rows_after(
    ddl: DdlEvent, waiting: Iterable[DdlEvent], reports: Sequence[Report], seen: ResolvedTs
) -> set[TableName]:
    """The tables that have rows above a DDL: it left them. `seen`: up to where every message was read.

    Not those that a later DDL up to these rows may have created again.
    """
    later: dict[TableName, int] = {}
    for table, highest in (pair for report in reports for pair in report.above.items()):
        later[table] = max(highest, later.get(table, 0))
    behind = {table: highest for table, highest in later.items() if ddl.commit_ts < highest <= seen}
    again = _created_from(ddl, waiting) if behind else {}
    return {table for table, highest in behind.items() if again.get(table.folded, highest + 1) > highest}


def _created_from(ddl: DdlEvent, waiting: Iterable[DdlEvent]) -> dict[TableName, int]:
    """The first commitTs at which others from this DDL's on may create a table, by its folded name."""
    found: dict[TableName, int] = {}
    for other in waiting:
        if other.commit_ts >= ddl.commit_ts and other.identity != ddl.identity:
            for name in (*other.adds, TableName(other.database, other.table)):
                found[name.folded] = min(other.commit_ts, found.get(name.folded, other.commit_ts))
    return found
