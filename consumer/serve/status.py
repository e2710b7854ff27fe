"""A changefeed's status from memory: nothing here asks Kafka, Redis or the target."""

import time
from collections.abc import Mapping
from typing import Any, get_args

from consumer.operate.status import core_state, lag_now_s, told, told_of
from consumer.run.live_status import counts_told, lag_seconds, resolved_told
from consumer.runtime.advice import with_config
from consumer.serve.api.models import (
    DdlLine,
    LedgerState,
    PartitionStatus,
    SourceStatus,
    State,
    Status,
    Summary,
    TableActivity,
    TableListing,
)
from consumer.serve.changefeed import Feed
from ordering.errors import SourceUnreachableError
from ordering.events import Partition
from ordering.progress import Progress
from ordering.timestamps import utc_text

STATES: tuple[State, ...] = get_args(State)


def progress_of(feed: Feed) -> Progress:
    """The newest that is known: of the run, or of the target where another instance may be further."""
    last = feed.last
    stored = Progress() if feed.knowing is None else feed.knowing.known.progress
    if last is None or (not feed.leads and stored.checkpoint_ts > last.progress.checkpoint_ts):
        return stored
    return last.progress


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
        "file": str(feed.path),
        "state": feed.state,
        "leads": feed.leads,
        "error": feed.fault,
        "late": feed.late,
        "core": _NO_CONFIG if feed.config is None else core_state(feed.config.spark.native),
        "ledger": _ledger(feed),
        "source": source,
        "last_windows": list(feed.watching.windows),
        "stalled_after_seconds": feed.config.limits.stalled_seconds if feed.config else 0.0,
        "held_events": None if source.probed_seconds_ago is None else sum(p.unread for p in source.partitions),
    }
    return Status.model_validate(values)


def tables_of(feed: Feed, contains: str, limit: int) -> TableListing:
    """The tables that it has written to, by name."""
    found = feed.watching.tables.newest(contains)
    items = [
        TableActivity(
            table=str(table),
            rows_written=one.rows,
            checkpoint_ts=one.checkpoint_ts,
            checkpoint_time=utc_text(one.checkpoint_ts),
            written_at=one.at,
        )
        for table, one in found[:limit]
    ]
    return TableListing(total=len(found), items=items)


def _known(feed: Feed, progress: Progress) -> dict[str, Any]:
    """What the target told, with the progress of the run in the place of its own."""
    knowing = feed.knowing
    if feed.config is None or knowing is None:  # its file can't be read
        return {**_UNREADABLE, "changefeed": feed.name, "lag_now_seconds": lag_now_s(progress), **counts_told(progress)}
    known = knowing.known
    seen = None if knowing.read_at is None else round(time.monotonic() - knowing.read_at, 1)
    found = told(feed.config, knowing.target_name, known, progress)
    stop = found["last_stop"]
    return {
        **found,
        "proof": [{**one, "reason": with_config(one["reason"], feed.path)} for one in found["proof"]],
        "last_stop": None if stop is None else {**stop, "error": with_config(stop["error"], feed.path)},
        "ddl_history": [DdlLine.model_validate(told_of(line)) for line in known.ddls],
        "target_seen_seconds_ago": seen,
    }


def _ledger(feed: Feed) -> LedgerState:
    if feed.config is not None and not feed.config.redis.uri:
        return LedgerState(state="absent by configuration", running=False)
    last = feed.last
    if last is None or last.is_ledger_there is None:
        return LedgerState(state="unknown", running=False)
    return LedgerState(state="connected" if last.is_ledger_there else "out of reach", running=last.is_ledger_there)


def _source(feed: Feed) -> SourceStatus:
    """What Kafka said last, and when; nothing is made up where nobody has asked it."""
    last = feed.last
    state = "out of reach" if isinstance(_trouble(feed), SourceUnreachableError) else "connected"
    if last is None or last.probe is None or last.probed_at is None:
        return SourceStatus.model_validate({**_NO_SOURCE, "state": "unknown" if state == "connected" else state})
    values = resolved_told(last.progress, last.probe)
    runner, holding = feed.runner, frozenset(last.probe.resolved.held_back_by)
    ages = {} if runner is None else runner.stalls.ages()
    limit = feed.config.limits.stalled_seconds if feed.config else 0.0
    partitions = [_partition(one, holding, ages, limit) for one in values["partitions"]]
    ago = round(time.monotonic() - last.probed_at, 1)
    return SourceStatus.model_validate({**values, "state": state, "probed_seconds_ago": ago, "partitions": partitions})


def _trouble(feed: Feed) -> BaseException | None:
    """What keeps it from going on."""
    return feed.error if feed.runner is None else feed.runner.trouble


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
    "proof": [],
    "last_stop": None,
    "archived": "",
    "retired_topics": [],
    "ddl_history": [],
    "target_seen_seconds_ago": None,
}
_NO_CONFIG = {"used": False, "why": "its file can't be read"}
_NO_SOURCE: dict[str, Any] = {
    "probed_seconds_ago": None,
    "resolved_ts": None,
    "lag_seconds": None,
    "held_back_by": [],
    "partitions": [],
}


def _partition(
    values: dict[str, Any], holding: frozenset[Partition], ages: Mapping[Partition, float], limit: float
) -> PartitionStatus:
    """One of thousands, perhaps: nothing here looks at all of them."""
    place = Partition(values["topic"], values["partition"])
    holds, still = place in holding, ages.get(place, 0.0)
    more = {"holds_back": holds, "still_seconds": round(still, 1), "stalled": holds and still >= limit}
    return PartitionStatus.model_validate({**values, **more})
