"""What the API tells in one situation or another: answers of its own types, so the page is tested against those."""

import time
from dataclasses import dataclass, field
from typing import Any

from consumer.serve.api.models import (
    DdlLine,
    Fault,
    InstanceState,
    PartitionStatus,
    Status,
    StatusSample,
    TableActivity,
    WindowDone,
)
from ordering.timestamps import utc_text

NOW = 1_795_270_000.0
"""A moment that most scenes are at, in s since 1970."""


def tso(at: float) -> int:
    """The TSO of a moment."""
    return int(at * 1000) << 18


def partition(topic: str, number: int, at: float, **more: Any) -> PartitionStatus:
    """A partition whose watermark is of the moment `at`."""
    values: dict[str, Any] = {
        "topic": topic,
        "partition": number,
        "resolved_ts": tso(at),
        "resolved_time": utc_text(tso(at)),
        "watermark_age_seconds": round(NOW - at, 1),
        "begin_offset": 120_000,
        "offset": 884_201 + 31 * number,
        "end_offset": 884_260 + 31 * number,
        "unread": 59,
        "holds_back": False,
        "still_seconds": 0.6,
        "stalled": False,
    }
    return PartitionStatus.model_validate(values | more)


def ddl(statement: str, state: str = "done", **more: Any) -> DdlLine:
    """A line of the DDL log."""
    values = {
        "commit_ts": tso(NOW - 5000),
        "time": utc_text(tso(NOW - 5000)),
        "database": "shop",
        "table": "orders",
        "statement": statement,
        "executed": statement,
        "state": state,
        "duration_ms": 214,
        "reason": "",
        "updated_at": "2026-11-21 12:00:00",
    }
    return DdlLine.model_validate(values | more)


DDLS = [
    ddl("ALTER TABLE `shop`.`orders` ADD COLUMN `note` VARCHAR(200) NOT NULL DEFAULT ''"),
    ddl(
        "CREATE TABLE `shop`.`refunds` (`id` BIGINT PRIMARY KEY, `order_id` BIGINT NOT NULL, `amount` DECIMAL(12,2))",
        executed='CREATE TABLE "shop"."refunds" ("id" bigint PRIMARY KEY, "order_id" bigint NOT NULL,'
        ' "amount" numeric(12,2))',
        table="refunds",
        duration_ms=1180,
        commit_ts=tso(NOW - 90_000),
    ),
]


def windows(count: int) -> list[WindowDone]:
    """The last windows."""
    return [
        WindowDone(
            at=NOW - 1.1 * i,
            window=41_207 - i,
            checkpoint_ts=tso(NOW - 1.1 * i - 1),
            checkpoint_time=utc_text(tso(NOW - 1.1 * i - 1)),
            events=2600 + 137 * (i * i % 11),
            rows=2400 + 120 * (i * i % 11),
            duplicates=0 if i % 5 else 12,
            seconds=0.31 + 0.04 * (i % 4),
        )
        for i in range(count)
    ]


def samples(seconds: int, every: float = 2.0, end: float = NOW, lag: float = 1.2) -> list[StatusSample]:
    """History with a swell, a quiet minute and a peak of lag."""
    found, events = [], 40_000_000
    for i in range(int(seconds / every)):
        at = end - seconds + every * (i + 1)
        phase = (i * every) % 240
        rate = 0 if 100 < phase < 130 else 2400 + 900 * abs((phase / 120) - 1) + 260 * (i * 7 % 5)
        events += int(rate * every)
        behind = lag + (14 if 130 <= phase < 145 else 0) + 0.15 * (i % 4)
        found.append(sample(at, events, behind))
    return found


def sample(at: float, events: int, behind: float) -> StatusSample:
    """One sample."""
    return StatusSample(
        at=at,
        events=events,
        rows=events - events // 20,
        duplicates=events // 500,
        late=0,
        filtered=0,
        quarantined=0,
        lag_watermark_seconds=round(behind / 4, 3),
        lag_now_seconds=round(behind, 3),
        checkpoint_ts=tso(at - behind),
        resolved_ts=tso(at - behind / 2),
    )


def status(name: str = "orders", **more: Any) -> Status:
    """A healthy, running changefeed, but for what is said."""
    at = NOW - 1.2
    values: dict[str, Any] = {
        "changefeed": name,
        "file": f"/srv/changefeeds/{name}.toml",
        "target": "postgresql://db-2.internal:5432/warehouse",
        "state": "normal",
        "leads": True,
        "error": None,
        "checkpoint_ts": tso(at),
        "checkpoint_time": utc_text(tso(at)),
        "lag_now_seconds": 1.2,
        "leader_epoch": 4,
        "updated_at": "2026-11-21T14:06:39",
        "leader": InstanceState(name="app-1:2211", silent_seconds=0.4),
        "stand_bys": [
            InstanceState(name="app-2:871", silent_seconds=0.9),
            InstanceState(name="app-3:102", silent_seconds=1.1),
        ],
        "events": 48_112_907,
        "duplicates": 96_412,
        "duplicates_proven": 96_400,
        "duplicates_unproven": 12,
        "late": 0,
        "filtered": 0,
        "quarantined": 3,
        "ddls": 17,
        "rows_written": 45_220_118,
        "windows": 41_207,
        "quarantine": {"held": 0, "superseded": 2, "replayed": 1, "discarded": 0},
        "drift": [],
        "proof": [],
        "last_stop": None,
        "archived": "",
        "retired_topics": [],
        "core": {"used": True, "why": ""},
        "ledger": {"state": "connected", "running": True},
        "source": source([partition("cdc-orders", i, NOW - 1.2 - 0.1 * (i % 3), holds_back=i == 2) for i in range(4)]),
        "ddl_history": DDLS,
        "last_windows": windows(20),
        "stalled_after_seconds": 60.0,
        "held_events": 236,
        "target_seen_seconds_ago": 1.8,
    }
    return Status.model_validate(values | more)


def source(partitions: list[PartitionStatus], **more: Any) -> dict[str, Any]:
    """Kafka with these partitions."""
    holding = [p for p in partitions if p.holds_back]
    lowest = min((p.resolved_ts or 0 for p in partitions), default=None)
    return {
        "state": "connected",
        "probed_seconds_ago": 0.2,
        "resolved_ts": lowest,
        "lag_seconds": 0.3,
        "held_back_by": [f"topic={p.topic} partition={p.partition}" for p in holding],
        "partitions": partitions,
        **more,
    }


def stalled(name: str = "orders", age: float = 184.0, partitions: int = 4) -> Status:
    """One whose partition 2 stands still."""
    found = [partition("cdc-orders", i, NOW - 1.2 - 0.1 * (i % 3)) for i in range(partitions)]
    found[2] = partition(
        "cdc-orders",
        2,
        NOW - age,
        holds_back=True,
        stalled=True,
        still_seconds=age - 1,
        unread=0,
        offset=884_263,
        end_offset=884_263,
    )
    at = NOW - age
    return status(
        name,
        source=source(found, lag_seconds=0.0),
        lag_now_seconds=age,
        checkpoint_ts=tso(at),
        checkpoint_time=utc_text(tso(at)),
        held_events=412_907,
    )


def failed(name: str = "billing") -> Status:
    """One that a lost message ended."""
    error = Fault(
        code="Reconciler:ErrInput",
        message="offsets 88120 to 90455 are gone: retention deleted them before they were applied",
        where="topic=cdc-billing partition=1 offset=88120",
        hint="load a new dump and set source.start-ts, or `reconciler progress rewind` once Kafka has them again",
        exit_code=3,
        at=NOW - 300,
        retry_in_seconds=None,
    )
    seen = source(
        [partition("cdc-billing", i, NOW - 5120 - i, unread=5000, holds_back=i == 1) for i in range(2)],
        probed_seconds_ago=300.0,
    )
    return status(
        name,
        state="failed",
        leads=False,
        error=error,
        leader=None,
        checkpoint_ts=tso(NOW - 5120),
        lag_now_seconds=5120.0,
        source=seen,
        held_events=10_000,
    )


def unseen(name: str = "billing") -> Status:
    """One that has failed before any run of this process had looked at Kafka."""
    nothing = source([], state="unknown", probed_seconds_ago=None, lag_seconds=None)
    more = {"source": nothing, "held_events": None, "ledger": {"state": "unknown", "running": False}}
    return Status.model_validate({**failed(name).model_dump(), **more})


def many(count: int = 1000) -> Status:
    """One with many partitions over long topics."""
    found = [
        partition(f"cdc-warehouse-region-{i // 50:02d}", i % 50, NOW - 1 - (i * 37 % 100) / 50, holds_back=i == 37)
        for i in range(count)
    ]
    found[count * 641 // 1000] = partition(
        "cdc-warehouse-region-12", 41, NOW - 96, holds_back=True, stalled=True, still_seconds=95.2
    )
    return status("warehouse", source=source(found), lag_now_seconds=96.0)


SCRIPT = "<script>document.title='owned'</script><img src=x onerror=\"document.title='owned'\">"
TURNED = "\u202eevil\u202c مرحبا"
LONG = "a-very-long-name-that-never-ends-" * 12


def hostile() -> Status:
    """One whose names and texts want to be markup, turn around what stands beside them, or never end."""
    found = [
        partition(SCRIPT, 0, NOW - 90, holds_back=True, stalled=True, still_seconds=88.0),
        partition(TURNED, 1, NOW - 1),
        partition(LONG, 2, NOW - 1),
    ]
    ddls = [
        ddl(f"ALTER TABLE `{SCRIPT}` ADD COLUMN `{TURNED}` INT", table=SCRIPT, database=TURNED),
        ddl(
            f"CREATE TABLE `{LONG}` (`{LONG}` INT)",
            table=LONG,
            state="failed",
            reason=f"{SCRIPT} {LONG}",
            commit_ts=1 << 60,
        ),
    ]
    error = Fault(
        code="Reconciler:ErrTarget",
        message=SCRIPT,
        where=LONG,
        hint=f"{TURNED} `{SCRIPT}`",
        exit_code=4,
        at=NOW,
        retry_in_seconds=4.0,
    )
    return status(
        "x." + "y" * 120,
        target=f"mysql://{LONG}",
        error=error,
        state="warning",
        source=source(found),
        ddl_history=ddls,
        leader=InstanceState(name=SCRIPT, silent_seconds=1.0),
        stand_bys=[InstanceState(name=LONG, silent_seconds=1.0), InstanceState(name=TURNED, silent_seconds=1.0)],
    )


def written(feed: Status) -> list[TableActivity]:
    """What was written to each table that a status names."""
    told = [one.table for one in (*feed.proof, *feed.drift)] + [
        f"{one.database}.{one.table}" for one in feed.ddl_history
    ]
    return [
        TableActivity(
            table=name,
            rows_written=184_220 // (i + 1),
            checkpoint_ts=tso(NOW - 40 * i),
            checkpoint_time=utc_text(tso(NOW - 40 * i)),
            written_at=NOW - 40 * i,
        )
        for i, name in enumerate(dict.fromkeys(told))
    ]


@dataclass(slots=True)
class Scene:
    """What the API knows at a moment; tests change it while the page looks."""

    feeds: dict[str, Status] = field(default_factory=dict)
    history: dict[str, list[StatusSample]] = field(default_factory=dict)
    tables: dict[str, list[TableActivity]] = field(default_factory=dict)
    began: float = field(default_factory=time.monotonic)

    @classmethod
    def of(cls, *feeds: Status) -> "Scene":
        """A scene with these changefeeds, an hour of history each."""
        found = {one.changefeed: one for one in feeds}
        tables = {name: written(one) for name, one in found.items()}
        return cls(found, {name: samples(3600) for name in found}, tables)
