"""Status: what the target knows, what Kafka holds beyond it, what the ledger says."""

import time
from collections.abc import Mapping
from contextlib import closing
from dataclasses import dataclass, field
from typing import Any

from consumer.config.model import Config
from consumer.native import Wanted, chosen
from consumer.proof.state import TableJudgement, state_of
from consumer.run.live_status import counts_told, resolved_told
from consumer.source.port import source_of
from consumer.wiring import reading, target_of
from ordering.errors import ConfigError, ReconcilerError
from ordering.events import TableName
from ordering.progress import Progress
from ordering.timestamps import physical_ms, utc_text
from sinks.bookkeeping.ddl_log import DdlRecord
from sinks.bookkeeping.instances import Instance
from sinks.bookkeeping.progress_rows import Stored
from sinks.bookkeeping.quarantine import states
from sinks.bookkeeping.stops import Stop
from sinks.target import Target

_DDLS = 20
_SHOWN = 200


@dataclass(frozen=True, slots=True)
class TargetState:
    """What the target tells of a changefeed: its row, the latest DDLs, what was quarantined, who runs."""

    stored: Stored | None
    ddls: list[DdlRecord]
    quarantine: dict[str, int]
    instances: list[Instance]
    judged: Mapping[TableName, TableJudgement] = field(default_factory=dict)
    """What the last proof of each table has found."""
    stop: Stop | None = None
    """With which error the last run ended."""

    @property
    def progress(self) -> Progress:
        """How far it is; of one that has not begun, nothing."""
        return Progress() if self.stored is None else self.stored.progress


def known_of(target: Target, changefeed: str) -> TargetState:
    """Ask the target, changing nothing. Raises TargetError and its kinds."""
    stored, stop = target.stored(changefeed), target.stops.last(changefeed)
    if stored is None:
        return TargetState(None, [], states([]), [], stop=stop)
    ddls = target.ddl_log.told(changefeed, _DDLS, stored.progress.checkpoint_ts)
    proven = state_of(target.proofs.state(changefeed))
    judged = {} if proven is None else proven.judged
    quarantined, running = states(target.quarantine.all(changefeed)), target.running(changefeed)
    return TargetState(stored, ddls, quarantined, running, judged, stop)


def status_of(config: Config) -> dict[str, Any]:
    """The whole status of a changefeed, read from target, Kafka and Redis. Raises ReconcilerError for the target."""
    target = target_of(config)
    try:
        known = known_of(target, config.changefeed)
    finally:
        target.close()
    return {
        **told(config, target.name, known, known.progress),
        "core": core_state(config.spark.native),
        "ledger": _ledger_state(config, known.progress),
        "source": _source_state(config, known.progress),
        "ddl_history": [told_of(record) for record in known.ddls],
    }


def core_state(wanted: Wanted) -> dict[str, Any]:
    """Whether tasks on this machine use the compiled core, else why not."""
    try:
        core, why = chosen(wanted)
    except ConfigError as error:
        return {"used": False, "why": error.fact}
    return {"used": core is not None, "why": why}


def lag_now_s(progress: Progress) -> float | None:
    """Seconds that the checkpoint lies behind this machine's clock; None before there is one."""
    if progress.checkpoint_ts == 0:
        return None
    return round(max(0.0, time.time() - physical_ms(progress.checkpoint_ts) / 1000), 3)


def told(config: Config, target_name: str, known: TargetState, progress: Progress) -> dict[str, Any]:
    """The part of the status that target and progress tell."""
    return {
        "changefeed": config.changefeed,
        "target": target_name,
        "checkpoint_ts": progress.checkpoint_ts,
        "checkpoint_time": utc_text(progress.checkpoint_ts),
        "lag_now_seconds": lag_now_s(progress),
        **_leader(known.stored),
        **_instances(known.instances, config.limits.lease_seconds),
        **counts_told(progress),
        "quarantine": known.quarantine,
        "drift": [
            {"table": str(table), "missing": missing, "unexpected": unexpected}
            for table, (missing, unexpected) in sorted(progress.drift.items())
        ],
        "proof": [_judged(table, one) for table, one in sorted(known.judged.items())],
        "last_stop": _stop(known.stop),
        "archived": progress.archived,
        "retired_topics": sorted(name for name, topic in progress.topics.items() if topic.retired),
    }


def _stop(stop: Stop | None) -> dict[str, Any] | None:
    if stop is None:
        return None
    return {"at": stop.at.isoformat(), "exit_code": stop.exit_code, "error": stop.error}


def _judged(table: TableName, one: TableJudgement) -> dict[str, Any]:
    return {
        "table": str(table),
        "verdict": one.verdict,
        "reason": one.reason,
        "checkpoint_ts": one.checkpoint_ts,
        "checkpoint_time": utc_text(one.checkpoint_ts),
        "compared_at": one.at,
        "rows": one.rows,
        "rows_expected": one.rows_expected,
        "buckets": list(one.buckets),
        "columns_left_out": list(one.left_out),
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
        return {"state": "absent by configuration: repetitions of what earlier windows applied are dropped unproven"}
    from consumer.redis.client import UNUSABLE  # noqa: PLC0415 they take long to load
    from consumer.redis.ledger_connection import LedgerConnection  # noqa: PLC0415

    ledger = LedgerConnection(config.redis.uri, config.changefeed, progress.ledger)
    try:
        ledger.ping()
    except UNUSABLE as error:
        return {"state": f"Redis is out of reach: {str(error)[:_SHOWN]}"}
    else:
        return {"state": "connected", "running": ledger.live_status() is not None}
    finally:
        ledger.close()


def _source_state(config: Config, progress: Progress) -> dict[str, Any]:
    try:
        with closing(source_of(reading(config, progress))) as source:
            return {"state": "connected", **resolved_told(progress, source.probe(progress))}
    except ReconcilerError as error:
        return {"state": str(error)}
