"""Watermarks that stand still are told of, with topic, partition and age: nothing waits in silence.

The age is counted from when this process saw the watermark rise to when it looked last, by a clock that never jumps.
While a long window is applied, or Kafka is out of reach, nobody looks, and nothing is known. What the watermark itself
says of the time is in `status`.
"""

import time
from collections.abc import Callable
from dataclasses import dataclass

import structlog

from consumer.source.offer import Probe
from ordering.events import Partition
from ordering.timestamps import ResolvedTs, utc_text

_MOST_TOLD = 10
log = structlog.get_logger()


@dataclass(slots=True)
class _Seen:
    watermark: ResolvedTs | None
    since: float
    told: float | None = None


class Stalls:
    """What one run has seen of the watermarks; `limit_s` is `limits.stalled-seconds`."""

    def __init__(self, limit_s: float, now: Callable[[], float] = time.monotonic) -> None:
        self._limit_s, self._now = limit_s, now
        self._seen: dict[Partition, _Seen] = {}
        self._last: Probe | None = None
        self._looked = self._now()

    def look(self, probe: Probe) -> None:
        """Note the watermarks, and warn of those that hold back the rest and stand still; again after `limit_s`.

        The same probe again says nothing new: the rest of a window that DDLs part is applied after one.
        """
        if probe is self._last:
            return
        now = self._now()
        self._last, self._looked = probe, now
        for partition, found in probe.partitions.items():
            seen = self._seen.get(partition)
            if seen is None or seen.watermark != found.watermark:
                self._seen[partition] = _Seen(found.watermark, now)
        due = [p for p in probe.resolved.held_back_by if self._is_due(p, now)]
        for partition in due[:_MOST_TOLD]:
            seen = self._seen[partition]
            log.warning(
                "the watermark stands still and holds back all that comes after it",
                topic=partition.topic,
                partition=partition.partition,
                age_s=round(now - seen.since),
                watermark=utc_text(seen.watermark) if seen.watermark else "none was ever seen",
                unread=probe.partitions[partition].end - probe.partitions[partition].progress.start,
                more=len(due[_MOST_TOLD:]),
                hint=_hint(probe, partition.topic),
            )
        for partition in due:
            self._seen[partition].told = now

    def ages(self) -> dict[Partition, float]:
        """For how many seconds each watermark has not risen, as far as this process saw it. Any thread may ask."""
        looked = self._looked
        return {partition: max(looked - seen.since, 0.0) for partition, seen in list(self._seen.items())}

    def _is_due(self, partition: Partition, now: float) -> bool:
        seen = self._seen.get(partition)
        return seen is not None and now - (seen.since if seen.told is None else seen.told) >= self._limit_s


def _hint(probe: Probe, topic: str) -> str:
    """What to do: TiCDC sends watermarks only to topics of which a table is there that it replicates."""
    holding = {partition.topic for partition in probe.resolved.held_back_by}
    if any(partition.topic not in holding for partition in probe.partitions):
        return (
            "if TiCDC will never write to the topic again (its tables are gone, or have no valid index):"
            f" `reconciler topic retire CONFIG {topic}`"
        )
    return "see whether TiCDC's changefeed runs: `reconciler help runbook`"
