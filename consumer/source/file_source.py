"""Probing files of the storage sink: what TiCDC's `metadata` vouches for, and which files hold it.

`metadata` is read first, then everything is listed: each row at or below its checkpoint lies in a file that is listed.
So all series of files have the same watermark, and a DDL is known before any row is read. DDLs right at the checkpoint
may be written only after it, file by file: they wait until it has moved. A series is read on from the
first of its files that holds a row above the checkpoint; a file that was last written long before the checkpoint holds
none, and a series of such files alone is forgotten: progress does not grow with the days. A listing may lag (NFS caches
directories): a file that was written before `metadata` and is listed only later must not hold what `metadata` vouched
for. Only the store's own clock is compared with itself there; with upstream's it must agree within `CLOCK_SLACK_MS`.
"""

from array import array
from collections.abc import Collection, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import structlog

from consumer.config.model import Config
from consumer.source.offer import Kept, PartitionProbe, Probe
from consumer.storage.layout import METADATA, Listing, RowFile, SchemaFileName
from consumer.storage.place import GoneError, StorageRoot, Vouched
from consumer.storage.reader import LENGTH
from consumer.storage.schema_file import FileDdl, TableFile, ddls_of, table_file
from consumer.tasks.read_spec import ReadSpec
from consumer.tasks.report import RawDdl, Report
from ordering.errors import InputError, SourceError, SourceUnreachableError
from ordering.events import Partition, Position
from ordering.progress import PartitionProgress, Progress, TopicProgress
from ordering.sources.archive import FILES, is_half_done
from ordering.sources.retention import CLOCK_SLACK_MS
from ordering.timestamps import ResolvedTs, physical_ms, utc_text
from ordering.watermark import Resolved
from ordering.window import Range

SCHEMAS = Partition("metadata", 0)
"""Stands for the schema files: always there, and never read by tasks."""
_EVENT_BYTES = 100.0
"""Of a row, while none was read."""
_AT_ONCE = 8
"""Schema files that are read at the same time."""
_WHOLE_SECONDS_MS = 1_000
"""Stores tell times in whole seconds."""
_COLUMNS, _COMMIT_TS, _NUMBER = 5, 2, 3
"""Of a repeated event, see `Report.repeated`."""

_CLOCK = (
    "when a file was written says whether it may hold new rows: let the store's clock agree with upstream's within ten"
    " minutes"
)
_RECREATED = (
    "files were deleted, or a changefeed was created again in this directory: give each one a directory of its own, and"
    " rebuild the target from a dump"
)
_CHANGED = (
    "TiCDC never changes a file: it was half written when it was listed, or replaced. Rows of it may be missing:"
    " compare the target with upstream (`reconciler verify`), then rebuild it from a dump, or load what differs"
)
_LAGS = (
    "the store's listing lags. On NFS, mount with lookupcache=none,acdirmax=1. Compare the target with upstream"
    " (`reconciler verify`), then rebuild it from a dump, or load what differs"
)

_OTHER_SOURCE = (
    "`reconciler progress export` with the config that names the topics, then `reconciler progress import` with this"
    " one, moves the changefeed; the files have to hold all that came after the checkpoint"
)
_HALF_DONE = "`reconciler help runbook` describes how to finish it by hand"
_NOT_SO_OLD = (
    "files may have expired (file-expiration-days), or the changefeed that writes them began later. If they hold all"
    ' that came after it, set source.unproven-beginning = "accept" for one run; else rebuild the target from a dump'
)

log = structlog.get_logger()


class FileSource:
    """The files of a changefeed. See `ChangeSource`."""

    vouches = True

    def __init__(self, config: Config, root: StorageRoot) -> None:
        self.config, self._root = config, root
        self.average_bytes: dict[Partition, float] = {}
        self.stretch = 1
        self.dead_at: dict[str, ResolvedTs] = {}
        self._vouched: Vouched | None = None
        self._listing = Listing()
        self._schemas: dict[str, tuple[int, TableFile]] = {}
        """By path, with their versions."""
        self._ddls: dict[int, list[FileDdl]] = {}
        self._late: dict[str, set[int]] = {}
        """Files by series that an earlier listing should have held."""
        self._cap: ResolvedTs | None = None
        self.upto: ResolvedTs | None = None
        """A moment that it ends at."""
        self._sizes = [0, 0]
        self._is_stale = self._is_behind = False
        """Whether files have other lengths than they were listed with; whether `metadata` was told to be behind."""
        self._is_proven = False
        """Whether the beginning of an archive was looked at since this process began."""

    @property
    def events_a_message(self) -> float:
        """See `ChangeSource.events_a_message`: rows a file."""
        count, size = self._sizes
        found = self.average_bytes.values()
        average = sum(found) / len(found) if found else _EVENT_BYTES
        return max(1.0, size / max(1, count) / max(1.0, average))

    def close(self) -> None:
        """See `ChangeSource.close`."""

    def commit_lazily(self, offsets: Mapping[Partition, int]) -> None:
        """See `ChangeSource.commit_lazily`: no tool looks at files' offsets."""

    def saw(self, report: Report) -> None:
        """See `ChangeSource.saw`."""

    def holds_only_watermarks(self, ranges: Iterable[Range]) -> bool:
        """See `ChangeSource.holds_only_watermarks`: files hold none."""
        return not any(ranges)

    def rests(self, _partitions: Collection[Partition]) -> bool:
        """See `ChangeSource.rests`."""
        return False

    def reports(self, _spec: ReadSpec) -> list[Report] | None:
        """See `ChangeSource.reports`."""
        return None

    def reach(self) -> None:
        """See `ChangeSource.reach`."""
        self._root.vouched()

    def ends(self) -> Mapping[Partition, int]:
        """See `ChangeSource.ends`: the checkpoint of now is the bound."""
        found = self._root.vouched()
        self._cap = found.checkpoint if found else None
        return {}

    def identity(self) -> str:
        """See `ChangeSource.identity`."""
        return self._root.uri

    def message(self, position: Position) -> Kept:
        """See `ChangeSource.message`."""
        raise SourceError("rows of files can't be looked up one by one", where=str(position))

    def check_uncompacted(self, reports: Sequence[Report]) -> None:
        """See `ChangeSource.check_uncompacted`: rows that were vouched for before their file was listed."""
        for report in reports:
            late = self._late.get(report.range.partition.topic, ())
            events = array("Q", report.repeated) if late else array("Q")
            for number, ts in zip(events[_NUMBER::_COLUMNS], events[_COMMIT_TS::_COLUMNS], strict=True):
                if number in late:
                    raise _late(Position(*report.range.partition, number), ts)

    def check_same_log(
        self,
        reports: Sequence[Report],
        topics: Mapping[str, TopicProgress],  # noqa: ARG002
        *,
        ask: bool = False,  # noqa: ARG002
    ) -> None:
        """See `ChangeSource.check_same_log`: what was read has to be as long as what was listed.

        Raises SourceUnreachableError where it is not: all is listed again then. A file that is gone is told of by who
        reads it.
        """
        for report in reports:
            part = report.range
            files = self._listing.series.get(part.partition.topic, {})
            sizes = [files[number].size for number in range(part.start, part.stop) if number in files]
            is_whole = report.stop == part.stop and not report.segment and len(sizes) == part.messages
            if is_whole and report.content != sum(sizes):
                self._is_stale = True
                fact = f"{report.content} bytes were read of files {part.start} to {part.stop - 1}"
                where = self._root.where(part.partition.topic)
                raise SourceUnreachableError(f"{fact}, and {sum(sizes)} bytes were listed", where=where, hint=LENGTH)

    def check_sent_once(self, reports: Sequence[Report]) -> None:
        """See `ChangeSource.check_sent_once`: rows without a key are refused."""

    def probe(self, progress: Progress, caps: Mapping[Partition, int] | None = None) -> Probe:  # noqa: ARG002
        """See `ChangeSource.probe`. Raises InputError and SourceError."""
        self._look(progress)
        resolved = self._bounded()
        partitions = {
            SCHEMAS: PartitionProbe(progress.partitions.get(SCHEMAS, PartitionProgress(0, 0)), 0, 0, resolved)
        }
        self._refuse_lost(progress)
        if progress.archived and resolved is not None and resolved >= progress.checkpoint_ts:
            self.check_begun(progress.checkpoint_ts)
        oldest_ms = _oldest_ms(progress)
        self._sizes = [0, 0]
        for series, files in sorted(self._listing.series.items()):
            found = self._series(Partition(series, 0), files, progress, oldest_ms)
            if found is not None:
                partitions[Partition(series, 0)] = replace(found, watermark=resolved)
        topics = {name: topic for name, topic in progress.topics.items() if progress.archived and topic.id != FILES}
        topics |= {p.topic: progress.topics.get(p.topic, TopicProgress(FILES)) for p in partitions}
        held_back = () if resolved else (SCHEMAS,)
        ddls = tuple(_raw(ddl) for ts, some in sorted(self._ddls.items()) if ts >= progress.base_ts for ddl in some)
        return Probe(topics, partitions, Resolved(resolved, held_back), ddls)

    def check_holds(self, progress: Progress, upto: int) -> None:
        """Raise unless the files hold all that came after the checkpoint, up to `upto` at least: that was just probed.

        InputError where they may begin after it; SourceUnreachableError where they are not so far yet.
        """
        at, reached = progress.checkpoint_ts, self._bounded() or ResolvedTs(0)
        upto = max(upto, at + 1) if progress.executed else upto  # files at `at` may come after it
        if reached < upto:
            fact = f"the files reach {reached} ({utc_text(reached)} UTC), not yet {upto} ({utc_text(upto)} UTC)"
            raise SourceUnreachableError(fact, where=self._root.uri, hint="see whether their changefeed runs")
        self._is_proven = False  # it was not listed while something else was read
        self.check_begun(at)
        parts = {(one.database, one.table, one.query) for ts, one in self._schemas.values() if ts == at and one.query}
        if is_half_done(progress.executed, at, len(parts)):
            fact = f"of the DDL at {at} some parts were executed, and not all: they come as one from files"
            raise InputError(fact, where=self._root.uri, hint=_HALF_DONE)

    def check_begun(self, at: int) -> None:
        """Raise InputError where the files may begin after `at`; once, for from then on `_compare` tells what is gone.

        Whole directories expire without a trace, but the oldest first: so a file that was written before proves it.
        """
        if self._is_proven:
            return
        written = (file.modified_ms for files in self._listing.series.values() for file in files.values())
        accepts = self.config.source.unproven_beginning == "accept"
        if not accepts and min(written, default=at) > physical_ms(at) - CLOCK_SLACK_MS:
            fact = f"no file was written before {at} ({utc_text(at)} UTC): the files may begin after it"
            raise InputError(fact, where=self._root.uri, hint=_NOT_SO_OLD)
        self._is_proven = True

    def _look(self, progress: Progress) -> None:
        """Read `metadata`, and list all files if it has moved: without that nothing new counts."""
        found, before = self._root.vouched(), self._vouched
        self._tell_behind(found, max(progress.checkpoint_ts, before.checkpoint if before else 0))
        if before is not None and (found is None or found.checkpoint <= before.checkpoint):
            found = before if self._is_stale else None
        if found is None:
            return
        if found.written_ms + CLOCK_SLACK_MS < physical_ms(found.checkpoint):
            fact = f"metadata was written before its checkpoint, {utc_text(found.checkpoint)} UTC, by the store's clock"
            raise InputError(fact, where=self._root.where(METADATA), hint=_CLOCK)
        listing = self._root.listing()
        if before is not None:
            self._compare(listing, before.written_ms - _WHOLE_SECONDS_MS, progress)
        self._listing = listing
        self._read_schemas(progress.base_ts, found.checkpoint - 1)
        self._vouched, self._is_stale = found, False

    def _tell_behind(self, found: Vouched | None, known: int) -> None:
        """Warn once where `metadata` went back, and when it does so again after it had come up."""
        at = found.checkpoint if found else 0
        if at < known and not self._is_behind:
            told = "metadata is behind what is known already: nothing new is applied until it has come up to that"
            log.warning(told, metadata=at, known=known, at=self._root.where(METADATA))
        self._is_behind = at < known

    def _compare(self, listing: Listing, before_ms: int, progress: Progress) -> None:
        """Note what the last listing should have held.

        Raises InputError for files that are gone and were not read, and for those that were read and have changed.
        """
        for series, files in listing.series.items():
            known = self._listing.series.get(series, {})
            late = {n for n, file in files.items() if n not in known and file.modified_ms < before_ms}
            if late:
                self._late.setdefault(series, set()).update(late)
        oldest_ms = _oldest_ms(progress)
        for series, files in self._listing.series.items():
            partition, left = Partition(series, 0), listing.series.get(series, {})
            at = progress.partitions.get(partition)
            for number, file in sorted(files.items()):
                is_read = number < at.start if at else file.modified_ms < oldest_ms
                if number not in left and not is_read:
                    raise _gone(partition, number)
                if at and is_read and number in left and left[number].size != file.size:
                    raise _changed(partition, file, left[number])

    def _bounded(self) -> ResolvedTs | None:
        if self._vouched is None:
            return None
        return min(ts for ts in (self._vouched.checkpoint, self._cap, self.upto) if ts is not None)

    def _read_schemas(self, low: int, high: int) -> None:
        """Read the schema files that are new and may hold a DDL that is due, and join what those of a version say."""
        due = [name for name in self._listing.schemas if low <= name.version <= high]
        new = [name for name in due if name.path not in self._schemas]
        there = {name.path for name in due}
        self._schemas = {path: known for path, known in self._schemas.items() if path in there}
        with ThreadPoolExecutor(_AT_ONCE) as pool:
            found = list(pool.map(self._table_file, new))
        self._schemas |= {name.path: (name.version, one) for name, one in zip(new, found, strict=True)}
        self._ddls = {version: ddls for version, ddls in self._ddls.items() if version >= low}
        for version in {name.version for name in new}:
            self._ddls[version] = ddls_of((path, one) for path, (at, one) in self._schemas.items() if at == version)

    def _table_file(self, name: SchemaFileName) -> TableFile:
        where = self._root.where(name.path)
        try:
            found = table_file(self._root.read_schema(name.path), where)
        except GoneError:
            raise SourceUnreachableError("a schema file is gone while it is read", where=where) from None
        if found.version != name.version:
            raise InputError(f"a schema file says it is of version {found.version}", where=where)
        return found

    def _refuse_lost(self, progress: Progress) -> None:
        """Raise InputError for files that are gone and held something that is not applied; and for topics' progress."""
        of_topics = sorted(p.topic for p in progress.partitions if p != SCHEMAS and not p.is_files)
        if of_topics:
            fact = f"the progress of this changefeed is one of topics: {of_topics[0]}"
            raise InputError(fact, where=self._root.uri, hint=_OTHER_SOURCE)
        for partition, at in progress.partitions.items():
            if partition != SCHEMAS and at.start < at.read_to and partition.topic not in self._listing.series:
                raise _gone(partition, at.start)

    def _series(
        self, partition: Partition, files: Mapping[int, RowFile], progress: Progress, oldest_ms: int
    ) -> PartitionProbe | None:
        """What there is to read of a series; None where nothing of it can matter any more."""
        lowest, highest = min(files), max(files)
        known = progress.partitions.get(partition)
        late = self._late.get(partition.topic, ())
        needed = [number for number, file in files.items() if file.modified_ms >= oldest_ms or number in late]
        if known is None and not needed:
            return None
        at = known or PartitionProgress(min(needed), min(needed))
        # numbers rise as files are written: if the first that is left is too old to matter, so were those before it
        if lowest > at.start or (known is None and 1 < lowest == at.start):
            self._refuse_cut(partition, at, lowest)
        if at.start > highest + 1:
            fact = f"file number {at.start - 1} was read, and now number {highest} is the last"
            raise InputError(fact, where=self._root.where(partition.topic), hint=_RECREATED)
        end = at.start
        while end in files:
            end += 1
        if end <= highest:
            hint = "it may come yet: TiCDC writes them in order; if it is lost, rebuild the target from a dump"
            fact = f"file number {end} is missing, though number {highest} is there"
            raise SourceUnreachableError(fact, where=self._root.where(partition.topic), hint=hint)
        if known is not None and not needed and known.start == end and not _is_in_window(partition, progress):
            return None
        self._sizes[0] += end - at.start
        self._sizes[1] += sum(files[number].size for number in range(at.start, end))
        return PartitionProbe(at, end, end, None, lowest)

    def _refuse_cut(self, partition: Partition, at: PartitionProgress, lowest: int) -> None:
        if lowest <= at.start and self.config.source.unproven_beginning == "accept":
            log.warning("the first files of a series are gone; what they held is not applied", at=partition.topic)
            return
        raise _gone(partition, min(at.start, lowest - 1))


def _oldest_ms(progress: Progress) -> int:
    """When a file was written that may hold a row above the checkpoint."""
    return physical_ms(progress.base_ts) - CLOCK_SLACK_MS if progress.base_ts else 0


def _late(position: Position, commit_ts: int) -> InputError:
    fact = f"a file holds commitTs {commit_ts}, which is passed already, and was listed only after that"
    return InputError(fact, where=str(position), hint=_LAGS)


def _gone(partition: Partition, number: int) -> InputError:
    return InputError(
        f"file number {number} is gone, and what it held may not be applied",
        where=str(Position(*partition, number)),
        hint="it expired (file-expiration-days) or was deleted: rebuild the target from a dump and set start-ts to its"
        ' position; or, if the target holds all that was deleted, set source.unproven-beginning = "accept" for one run',
    )


def _changed(partition: Partition, before: RowFile, now: RowFile) -> InputError:
    fact = f"file number {now.number} held {before.size} bytes when it was read, and holds {now.size} now"
    return InputError(fact, where=str(Position(*partition, now.number)), hint=_CHANGED)


def _is_in_window(partition: Partition, progress: Progress) -> bool:
    return progress.window is not None and any(r.partition == partition for r in progress.window.ranges)


def _raw(ddl: FileDdl) -> RawDdl:
    position = Position(ddl.path, 0, ddl.commit_ts)
    return RawDdl(position, ddl.commit_ts, ddl.type, ddl.database, ddl.table, ddl.sql)
