"""Watermarks of the future: all that comes after one counts as applied, so clocks bound what is believed.

A message of another changefeed, or a TSO of a PD whose clock had jumped, can carry one. This machine's clock alone
would believe it a day later: so the time at which Kafka took the message counts as well, which stays as it is.
"""

import time
from collections.abc import Callable, Collection, Mapping
from typing import Any

from consumer.config.model import Config, LimitsSection
from ordering.errors import InputError
from ordering.events import Partition, Position
from ordering.progress import Progress
from ordering.rewind import reached
from ordering.timestamps import LEAST_TSO, MAX_TSO, ResolvedTs, physical_ms, utc_text

_LOGICAL = (1 << 18) - 1
_HINT = (
    "compare this machine's clock with upstream's, and look whether something else writes to the topic, or"
    " source.watermark-from names another cluster's TiCDC; if upstream's clock had jumped, set"
    " limits.clock-ahead-seconds so that it is allowed; if something else wrote it, list its position in"
    " source.ignored-watermarks (`reconciler help recovery`)"
)
_KEPT = (
    "it was believed under another limits.clock-ahead-seconds, and since then what came late was dropped: list its"
    " position in source.ignored-watermarks, and `reconciler progress rewind` to the watermark before it in its"
    " partition (`reconciler help recovery`)"
)


def latest_believed(limits: LimitsSection) -> int:
    """The highest commitTs that an event may have now; of a later one nobody would know when its turn comes."""
    return min(MAX_TSO, int(1000 * (time.time() + limits.clock_ahead_seconds)) << 18 | _LOGICAL)


def check_clock(ts: int, limits: LimitsSection, where: str, written_ms: int | None = None) -> None:
    """Raise InputError for a watermark that lies further ahead than is allowed. `written_ms`: when Kafka took it."""
    if ts > latest_believed(limits):
        by = "this machine's clock"
    elif written_ms is not None and is_ahead(ts, written_ms, limits):
        by = f"the clock of Kafka, which took it at {utc_text(written_ms << 18)} UTC"
    else:
        return
    fact = f"a watermark says {ts} ({utc_text(ts)} UTC), which is in the future by {by}"
    raise InputError(fact, where=where, hint=_HINT)


def check_mark(ts: int, limits: LimitsSection, partition: Partition, message: Any) -> None:
    """See `check_clock`, of a message; some hold no time, or a producer's zero."""
    kind, ms = message.timestamp()
    is_time = kind and ms >= physical_ms(LEAST_TSO)
    check_clock(ts, limits, f"{partition} offset={message.offset()}", ms if is_time else None)


def ignored_marks(config: Config) -> frozenset[Position]:
    """The positions of watermarks that do not count, as an operator says."""
    named = (place.split("/") for place in config.source.ignored_watermarks)
    return frozenset(Position(topic, int(partition), int(offset)) for topic, partition, offset in named)


def is_ahead(ts: int, of_ms: int, limits: LimitsSection) -> bool:
    """Whether a TSO lies further ahead of a moment than is allowed."""
    return physical_ms(ts) > of_ms + 1000 * limits.clock_ahead_seconds


def check_kept_marks(known: Progress, limits: LimitsSection, hint: str = _KEPT) -> None:
    """Raise InputError where the progress holds a watermark that is not believed any more, and that counts."""
    latest = latest_believed(limits)
    retired = {name for name, topic in known.topics.items() if topic.retired}
    for partition, at in known.partitions.items():
        if at.watermark is not None and at.watermark > latest and partition.topic not in retired:
            fact = f"the progress holds a watermark of the future: {at.watermark} ({utc_text(at.watermark)} UTC)"
            raise InputError(fact, where=str(partition), hint=hint)


def doubted_marks(known: Progress, config: Config) -> set[Partition]:
    """The partitions whose kept watermark is not believed any more, or may be one that an operator says not to believe.

    Of the latter only those that are not below the checkpoint: others promise nothing that is not applied.
    """
    latest, high = latest_believed(config.limits), reached(known)
    listed = {Partition(*position[:2]) for position in ignored_marks(config)}
    marks = {p: at.watermark for p, at in known.partitions.items() if at.watermark is not None}
    return {p for p, ts in marks.items() if ts > latest or (p in listed and ts >= high)}


def check_caught_up(
    known: Progress,
    spans: Mapping[Partition, tuple[int, int]],
    doubted: Collection[Partition],
    marks_before: Callable[[Mapping[Partition, tuple[int, int]]], Mapping[Partition, ResolvedTs]],
) -> None:
    """Raise InputError where a partition whose kept watermark is not believed has not reached the checkpoint yet.

    What it gets at or below that after a rewind would count as repetitions.
    """
    asked = {p: spans[p] for p in doubted if p in spans and not known.topics[p.topic].retired}
    marks, high = marks_before(asked) if asked else {}, reached(known)
    for p in sorted(asked):
        if marks.get(p, 0) < high:
            told = f"its last watermark is {utc_text(marks[p])} UTC" if p in marks else "it has no watermark"
            fact = f"a partition has not caught up with the checkpoint, {utc_text(high)} UTC: {told}"
            raise InputError(fact, where=str(p), hint="rewind once TiCDC has sent a later one to it")
