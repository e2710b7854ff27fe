"""Status: what the target knows, what Kafka holds beyond it, what the ledger says."""

import time
from dataclasses import dataclass
from typing import Any

from consumer.config import Config
from consumer.display import lag_seconds
from consumer.ledger import Ledger
from consumer.redis_client import UNUSABLE
from consumer.source import PartitionProbe, Probe, Source
from consumer.targets import target_of
from ordering.errors import ReconcilerError
from ordering.events import Partition
from ordering.progress import Progress
from ordering.timestamps import ResolvedTs, physical_ms, utc_text
from sinks.ddl_log import DdlRecord
from sinks.instances import Instance
from sinks.quarantine import states
from sinks.target import Stored, Target

_DDLS = 20
_SHOWN = 200


def live_status(progress: Progress, probe: Probe) -> dict[str, Any]:
    """What the running instance publishes after each round."""
    return {"checkpoint_ts": progress.checkpoint_ts, **resolved_told(progress, probe), **counts_told(progress)}


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


def age_seconds(watermark: ResolvedTs | None) -> float | None:
    """Seconds that a watermark lies behind this machine's clock; None while there is none."""
    return None if watermark is None else round(max(0.0, time.time() - physical_ms(watermark) / 1000), 1)


@dataclass(frozen=True, slots=True)
class Known:
    """What the target tells of a changefeed: its row, the latest DDLs, what was set aside, who runs."""

    stored: Stored | None
    ddls: list[DdlRecord]
    quarantine: dict[str, int]
    instances: list[Instance]

    @property
    def progress(self) -> Progress:
        """How far it is; of one that has not begun, nothing."""
        return Progress() if self.stored is None else self.stored.progress


def known_of(target: Target, changefeed: str) -> Known:
    """Ask the target, changing nothing. Raises TargetError and its kinds."""
    stored = target.stored(changefeed)
    if stored is None:
        return Known(None, [], states([]), [])
    ddls = target.ddl_log(changefeed, _DDLS)
    return Known(stored, ddls, states(target.quarantined(changefeed)), target.running(changefeed))


def status_of(config: Config) -> dict[str, Any]:
    """The whole status of a changefeed, read from target, Kafka and Redis. Raises ReconcilerError for the target."""
    target = target_of(config)
    try:
        known = known_of(target, config.changefeed)
    finally:
        target.close()
    return {
        **told(config, target.name, known, known.progress),
        "ledger": _ledger_state(config, known.progress),
        "source": _source_state(config, known.progress),
        "ddl_history": [told_of(record) for record in known.ddls],
    }


def told(config: Config, target_name: str, known: Known, progress: Progress) -> dict[str, Any]:
    """The part of the status that target and progress tell."""
    return {
        "changefeed": config.changefeed,
        "target": target_name,
        "checkpoint_ts": progress.checkpoint_ts,
        "checkpoint_time": utc_text(progress.checkpoint_ts),
        **_leader(known.stored),
        **_instances(known.instances, config.limits.lease_seconds),
        **counts_told(progress),
        "quarantine": known.quarantine,
        "drift": [
            {"table": str(table), "missing": missing, "unexpected": unexpected}
            for table, (missing, unexpected) in sorted(progress.drift.items())
        ],
    }


def _leader(stored: Stored | None) -> dict[str, Any]:
    if stored is None:
        return {"state": "new", "leader_epoch": 0, "updated_at": None}
    return {"state": "known", "leader_epoch": stored.epoch, "updated_at": stored.updated_at.isoformat()}


def _instances(found: list[Instance], lease_s: float) -> dict[str, Any]:
    """Who leads, and who stands by and lives."""
    leader = next((one for one in found if one.epoch), None)
    alive = [one for one in found if not one.epoch and one.silent_s < lease_s]
    return {"leader": None if leader is None else _instance(leader), "stand_bys": [_instance(one) for one in alive]}


def _instance(one: Instance) -> dict[str, Any]:
    return {"name": one.name, "silent_seconds": round(one.silent_s, 1)}


def told_of(record: DdlRecord) -> dict[str, Any]:
    """A line of the DDL log, for `status` and `ddl list`."""
    return {
        "commit_ts": record.commit_ts,
        "time": utc_text(record.commit_ts),
        "database": record.database,
        "table": record.table,
        "statement": record.sql,
        "executed": record.executed,
        "state": record.state,
        "duration_ms": record.duration_ms,
        "reason": record.reason,
        "updated_at": record.updated_at,
    }


def _ledger_state(config: Config, progress: Progress) -> dict[str, Any]:
    if not config.redis.uri:
        return {"state": "absent by configuration: duplicates are dropped unproven"}
    ledger = Ledger(config.redis.uri, config.changefeed, progress.ledger)
    try:
        ledger.ping()
    except UNUSABLE as error:
        return {"state": f"Redis is out of reach: {str(error)[:_SHOWN]}"}
    else:
        return {"state": "connected", "running": ledger.live_status() is not None}
    finally:
        ledger.close()


def _source_state(config: Config, progress: Progress) -> dict[str, Any]:
    source = Source.of(config)
    try:
        return {"state": "connected", **resolved_told(progress, source.probe(progress))}
    except ReconcilerError as error:
        return {"state": str(error)}
    finally:
        source.close()
