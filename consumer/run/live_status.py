"""What the running instance publishes after each round: totals, and how far the partitions are."""

import time
from typing import Any

from consumer.source.offer import PartitionProbe, Probe
from ordering.events import Partition
from ordering.progress import Progress
from ordering.timestamps import ResolvedTs, physical_ms, utc_text


def live_status(progress: Progress, probe: Probe) -> dict[str, Any]:
    """What the running instance publishes after each round."""
    told = {"checkpoint_ts": progress.checkpoint_ts, "archived": progress.archived}
    return {**told, **resolved_told(progress, probe), **counts_told(progress)}


def counts_told(progress: Progress) -> dict[str, int]:
    """Totals since the changefeed began."""
    counts = progress.counts
    return {
        "events": counts.events,
        "duplicates": counts.duplicates,
        "duplicates_proven": counts.duplicates_proven,
        "duplicates_unproven": counts.duplicates_unproven,
        "filtered": counts.filtered,
        "quarantined": counts.quarantined,
        "ddls": counts.ddls,
        "rows_written": counts.rows_written,
        "windows": counts.windows,
    }


def resolved_told(progress: Progress, probe: Probe) -> dict[str, Any]:
    """What Kafka holds, per partition, and how far it is applied."""
    return {
        "resolved_ts": probe.resolved.ts,
        "lag_seconds": lag_seconds(progress, probe),
        "held_back_by": [str(p) for p in probe.resolved.held_back_by],
        "partitions": [_partition(p, found, progress) for p, found in sorted(probe.partitions.items())],
    }


def _partition(p: Partition, found: PartitionProbe, progress: Progress) -> dict[str, Any]:
    # what was probed may have been applied since
    start = progress.partitions.get(p, found.progress).start
    return {
        "topic": p.topic,
        "partition": p.partition,
        "resolved_ts": found.watermark,
        "resolved_time": utc_text(found.watermark or 0),
        "watermark_age_seconds": age_seconds(found.watermark),
        "begin_offset": found.begin,
        "offset": start,
        "end_offset": found.end,
        "unread": max(0, found.end - start),
    }


def lag_seconds(progress: Progress, probe: Probe | None) -> float | None:
    """Seconds that the checkpoint lies behind the global resolvedTs; None while there is only one of them, or none."""
    if probe is None or probe.resolved.ts is None or progress.checkpoint_ts == 0:
        return None
    return max(0.0, (physical_ms(probe.resolved.ts) - physical_ms(progress.checkpoint_ts)) / 1000)


def age_seconds(watermark: ResolvedTs | None) -> float | None:
    """Seconds that a watermark lies behind this machine's clock; None while there is none."""
    return None if watermark is None else round(max(0.0, time.time() - physical_ms(watermark) / 1000), 1)
