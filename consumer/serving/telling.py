"""A changefeed's status from memory: nothing here asks Kafka, Redis or the target."""

import time
from typing import Any, get_args

from consumer.display import lag_seconds
from consumer.serving.feed import Feed
from consumer.serving.moments import now
from consumer.serving.shapes import (
    Ddl,
    Ledger,
    PartitionStatus,
    SourceStatus,
    State,
    Status,
    Summary,
)
from consumer.source import Probe
from consumer.status import counts_told, resolved_told, told, told_of
from ordering.events import Partition
from ordering.progress import Progress
from ordering.timestamps import physical_ms, utc_text

STATES: tuple[State, ...] = get_args(State)


def progress_of(feed: Feed) -> Progress:
    """The newest that is known: of the run, else of the target."""
    last = feed.last
    if last is not None:
        return last.progress
    return Progress() if feed.knowing is None else feed.knowing.known.progress


def lag_now_s(progress: Progress) -> float | None:
    """Seconds that the checkpoint lies behind this machine's clock; None before there is one."""
    if progress.checkpoint_ts == 0:
        return None
    return round(max(0.0, now() - physical_ms(progress.checkpoint_ts) / 1000), 3)


def summary_of(feed: Feed) -> Summary:
    """A line of the list."""
    progress, last, knowing = progress_of(feed), feed.last, feed.knowing
    known = None if knowing is None else knowing.known
    return Summary(
        id=feed.name,
        state=feed.state,
        checkpoint_tso=progress.checkpoint_ts,
        checkpoint_time=utc_text(progress.checkpoint_ts),
        lag_seconds=None if last is None else lag_seconds(progress, last.probe),
        lag_now_seconds=lag_now_s(progress),
        leads=feed.leads,
        leader=None if known is None else next((one.name for one in known.instances if one.epoch), None),
        target="" if knowing is None else knowing.target_name,
        stalled_partitions=_stalled(feed),
        quarantine_held=0 if known is None else known.quarantine.get("held", 0),
        error=feed.fault,
    )


def _stalled(feed: Feed) -> int:
    """How many partitions hold back the rest and have stood still for too long."""
    last, runner = feed.last, feed.runner
    if last is None or last.probe is None or runner is None or feed.config is None:
        return 0
    ages, limit = runner.stalls.ages(), feed.config.limits.stalled_seconds
    return sum(ages.get(place, 0.0) >= limit for place in last.probe.resolved.held_back_by)


def status_of(feed: Feed) -> Status:
    """All that is known of it."""
    progress, source = progress_of(feed), _source(feed)
    values = {
        **_known(feed, progress),
        "state": feed.state,
        "leads": feed.leads,
        "error": feed.fault,
        "lag_now_seconds": lag_now_s(progress),
        "late": feed.late,
        "ledger": _ledger(feed),
        "source": source,
        "last_windows": list(feed.watching.windows),
        "stalled_after_seconds": feed.config.limits.stalled_seconds if feed.config else 0.0,
        "held_events": sum(p.unread for p in source.partitions),
    }
    return Status.model_validate(values)


def _known(feed: Feed, progress: Progress) -> dict[str, Any]:
    """What the target told, with the progress of the run in the place of its own."""
    knowing = feed.knowing
    if feed.config is None or knowing is None:  # its file can't be read
        return {**_UNREADABLE, "changefeed": feed.name, **counts_told(progress)}
    known = knowing.known
    seen = None if knowing.read_at is None else round(time.monotonic() - knowing.read_at, 1)
    return {
        **told(feed.config, knowing.target_name, known, progress),
        "ddl_history": [Ddl.model_validate(told_of(line)) for line in known.ddls],
        "target_seen_seconds_ago": seen,
    }


def _ledger(feed: Feed) -> Ledger:
    if feed.config is not None and not feed.config.redis.uri:
        return Ledger(state="absent by configuration", running=False)
    pipeline = None if feed.runner is None else feed.runner.pipeline
    if pipeline is None:
        return Ledger(state="not running", running=False)
    available = pipeline.ledger.available
    return Ledger(state="connected" if available else "out of reach", running=available)


def _source(feed: Feed) -> SourceStatus:
    last = feed.last
    probe = None if last is None else last.probe
    if last is None or probe is None:
        state = "not running" if feed.runner is None or feed.runner.trouble is None else "out of reach"
        return SourceStatus.model_validate({**_NO_SOURCE, "state": state})
    values = resolved_told(last.progress, probe)
    partitions = [_partition(feed, probe, values) for values in values["partitions"]]
    ago = round(time.monotonic() - last.at, 1)
    state = "connected" if feed.leads else "not running"
    return SourceStatus.model_validate({**values, "state": state, "probed_seconds_ago": ago, "partitions": partitions})


_UNREADABLE: dict[str, Any] = {
    "target": "",
    "checkpoint_ts": 0,
    "checkpoint_time": "-",
    "leader_epoch": 0,
    "updated_at": None,
    "leader": None,
    "stand_bys": [],
    "quarantine": {},
    "drift": [],
    "ddl_history": [],
    "target_seen_seconds_ago": None,
}
_NO_SOURCE: dict[str, Any] = {
    "probed_seconds_ago": None,
    "resolved_ts": None,
    "lag_seconds": None,
    "held_back_by": [],
    "partitions": [],
}


def _partition(feed: Feed, probe: Probe, values: dict[str, Any]) -> PartitionStatus:
    place = Partition(values["topic"], values["partition"])
    runner = feed.runner
    still = runner.stalls.ages().get(place, 0.0) if runner is not None else 0.0
    holds = place in probe.resolved.held_back_by
    limit = feed.config.limits.stalled_seconds if feed.config else 0.0
    more = {"holds_back": holds, "still_seconds": round(still, 1), "stalled": holds and still >= limit}
    return PartitionStatus.model_validate({**values, **more})
