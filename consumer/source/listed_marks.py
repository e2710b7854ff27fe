"""Watermarks that an operator lists as not to be believed, and that the progress rests on: they were believed before.

To read past them is not enough then. What came to their partition since, at or below them, was taken for repetitions,
and would be until TiCDC's own watermarks have passed them.
"""

from collections.abc import Iterator

import structlog

from consumer.source.clock import ignored_marks
from consumer.source.offer import Probe
from consumer.source.port import ChangeSource
from consumer.source.probe import Source
from consumer.wiring import format_of
from ordering.errors import ConfigError, InputError
from ordering.events import Partition, Position
from ordering.progress import Progress
from ordering.rewind import reached
from ordering.timestamps import ResolvedTs, utc_text

log = structlog.get_logger()
_LISTED = (
    "it was believed before its position was listed, and since then what came late was dropped: `reconciler progress"
    " rewind` to the watermark before it in its partition (`reconciler help recovery`); where that can't be, take its"
    " position out of source.ignored-watermarks until TiCDC's own ones have passed it, then compare with upstream"
    " (`reconciler verify`)"
)


def check_listed(source: ChangeSource, known: Progress, probe: Probe, hint: str = _LISTED) -> None:
    """Raise InputError where the progress rests on such a watermark, as far as its message is still there.

    `probe`: of this progress. One that the checkpoint and TiCDC's own ones have come up to promises nothing more.
    """
    if not isinstance(source, Source):
        return
    for position, ts in _believed(source, known, probe):
        fact = f"the progress holds an ignored watermark: {ts} ({utc_text(ts)} UTC)"
        partition = Partition(*position[:2])
        found = probe.partitions[partition]
        own = source.marks_before({partition: (found.begin, found.end)}).get(partition, 0)
        if ts > min(reached(known), own):
            raise InputError(fact, where=str(position), hint=hint)
        told = "rows that came late until then may be missing: compare with upstream (`reconciler verify`)"
        log.warning(fact, where=str(position), hint=told)


def check_before_listed(source: Source, known: Progress, probe: Probe, to: int) -> None:
    """Raise ConfigError for a rewind to above the last watermark before such a one in its partition.

    Rows that were committed before it was written may have come after it.
    """
    for position, ts in _believed(source, known, probe):
        partition = Partition(*position[:2])
        before = source.marks_before({partition: (probe.partitions[partition].begin, position.offset)})
        if partition in before and to > before[partition]:
            last = before[partition]
            raise ConfigError(
                f"commitTs {to} is above the last watermark before the ignored one of {ts} ({utc_text(ts)} UTC)",
                where=str(position),
                hint=f"rows above that may have come late: rewind to {last} ({utc_text(last)} UTC) or further",
            )


def _believed(source: Source, known: Progress, probe: Probe) -> Iterator[tuple[Position, ResolvedTs]]:
    for position in sorted(ignored_marks(source.config)):
        partition = Partition(*position[:2])
        at, found = known.partitions.get(partition), probe.partitions.get(partition)
        if at is None or found is None or not found.begin <= position.offset < at.read_to:
            continue
        if probe.topics[partition.topic].retired or at.watermark is None or _mark_at(source, position) != at.watermark:
            continue
        yield position, at.watermark


def _mark_at(source: Source, position: Position) -> ResolvedTs | None:
    kept, told = source.message(position), format_of(source.config)
    return told.watermark_in(told.content(kept.key, kept.value), source.config.limits.message_bytes)
