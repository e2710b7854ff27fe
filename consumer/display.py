"""What a person sees of a run: one log line a window, what holds the watermark back, how long catching up takes."""

import time

import structlog

from consumer.source import Probe
from ordering.progress import Progress
from ordering.timestamps import physical_ms, utc_text

_IDLE_EVERY_S = 10.0
log = structlog.get_logger()


class Display:
    """Logs windows and idleness; keeps nothing but rates."""

    def __init__(self) -> None:
        self._said_idle = 0.0
        self._rate = 0.0

    def window(self, before: Progress, after: Progress, probe: Probe | None, seconds: float) -> None:
        """Say what a window did: rows, rate, lag behind the watermark, and how long the backlog will take."""
        events = after.counts.events - before.counts.events
        rate = events / seconds if seconds > 0 else 0.0
        self._rate = rate if self._rate == 0 else 0.7 * self._rate + 0.3 * rate
        backlog = sum(p.end - p.bound for p in probe.partitions.values()) if probe else 0
        log.info(
            "window applied",
            checkpoint=f"{after.checkpoint_ts} ({utc_text(after.checkpoint_ts)} UTC)",
            events=events,
            rows=after.counts.rows_written - before.counts.rows_written,
            duplicates=after.counts.duplicates - before.counts.duplicates,
            seconds=round(seconds, 2),
            events_per_s=round(rate),
            lag_s=lag_seconds(after, probe),
            backlog_messages=backlog,
            eta=_duration(backlog / self._rate) if backlog and self._rate > 0 else "-",
        )

    def idle(self, progress: Progress, probe: Probe | None) -> None:
        """Say now and then that nothing is resolved, and who holds it back."""
        now = time.monotonic()
        if probe is None or now - self._said_idle < _IDLE_EVERY_S:
            return
        self._said_idle = now
        unread = {p: f for p, f in probe.partitions.items() if f.end > f.progress.start}
        if probe.resolved.ts is None:
            held = ", ".join(map(str, probe.resolved.held_back_by)) or "no partition yet"
            log.warning("nothing can be applied: no watermark has been seen in a partition", held_back_by=held)
        elif unread:
            held = ", ".join(map(str, probe.resolved.held_back_by))
            log.info("waiting for the next watermark", held_back_by=held, resolved=utc_text(probe.resolved.ts))
        else:
            log.info("idle: everything is applied", checkpoint=utc_text(progress.checkpoint_ts))


def lag_seconds(progress: Progress, probe: Probe | None) -> float | None:
    """Seconds that the checkpoint lies behind the global resolvedTs; None while that is unknown."""
    if probe is None or probe.resolved.ts is None:
        return None
    return max(0.0, (physical_ms(probe.resolved.ts) - physical_ms(progress.checkpoint_ts)) / 1000)


def _duration(seconds: float) -> str:
    whole = int(seconds)
    return f"{whole // 3600}:{whole // 60 % 60:02d}:{whole % 60:02d}"
