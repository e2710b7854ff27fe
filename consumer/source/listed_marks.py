"""Watermarks that an operator lists as not to be believed, and that the progress rests on: they were believed before.

To read past them is not enough then. What came to their partition since, at or below them, was taken for repetitions,
and would be until TiCDC's own watermarks have passed them.
"""

from consumer.config.model import Config
from consumer.source.clock import ignored_marks
from consumer.source.offer import Probe
from consumer.source.port import ChangeSource
from consumer.wiring import format_of
from ordering.errors import InputError
from ordering.events import Partition, Position
from ordering.progress import Progress
from ordering.timestamps import ResolvedTs, utc_text

_LISTED = (
    "it was believed before its position was listed, and since then what came late was dropped: `reconciler progress"
    " rewind` to before it was written (`reconciler help recovery`); where that can't be, take its position out of"
    " source.ignored-watermarks until TiCDC's own ones have passed it, then compare with upstream (`reconciler verify`)"
)


def check_listed(source: ChangeSource, known: Progress, probe: Probe, hint: str = _LISTED) -> None:
    """Raise InputError where the progress holds such a watermark, as far as its message is still there.

    `probe`: of this progress.
    """
    for position in sorted(ignored_marks(source.config)):
        partition = Partition(*position[:2])
        at, found = known.partitions.get(partition), probe.partitions.get(partition)
        if at is None or found is None or not found.begin <= position.offset < at.read_to:
            continue
        if probe.topics[partition.topic].retired or at.watermark is None or _mark_at(source, position) != at.watermark:
            continue
        fact = f"the progress holds an ignored watermark: {at.watermark} ({utc_text(at.watermark)} UTC)"
        raise InputError(fact, where=str(position), hint=hint)


def _mark_at(source: ChangeSource, position: Position) -> ResolvedTs | None:
    config: Config = source.config
    kept, told = source.message(position), format_of(config)
    return told.watermark_in(told.content(kept.key, kept.value), config.limits.message_bytes)
