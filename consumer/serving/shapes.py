"""What the API answers, as types: the OpenAPI document at /openapi.json is made from them.

Names are those of `reconciler status --json`, and TiCDC's (Open API v2) where it has the same thing. TSOs are integers
beyond 2^53: programs whose numbers are floating take the time beside them.
"""

from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field

State = Literal["pending", "normal", "warning", "stopped", "failed"]
"""TiCDC's words. `pending`: starting, or standing by; `warning`: what may pass by itself is being tried again;
`stopped`: paused by an operator; `failed`: it needs one."""
Json = dict[str, Any]
Tso = Annotated[int, Field(ge=0, description="TSO: physical milliseconds << 18 | logical")]


class Shape(BaseModel):
    """Answers are closed: what is not in the document is not sent."""

    model_config = ConfigDict(extra="forbid")


class Fault(Shape):
    """Why a changefeed does not go on, or not now."""

    code: Annotated[str, Field(description="kind of the error, e.g. `Reconciler:ErrInput`")]
    message: Annotated[str, Field(description="the fact")]
    where: str
    hint: Annotated[str, Field(description="what to do")]
    exit_code: Annotated[int, Field(description="with which `reconciler run` would end")]
    at: Annotated[float, Field(description="seconds since 1970")]
    retry_in_seconds: Annotated[float | None, Field(description="until it is tried again; null: it needs an operator")]


class Summary(Shape):
    """A changefeed in the list."""

    id: str
    state: State
    checkpoint_tso: Tso
    checkpoint_time: str
    lag_seconds: Annotated[float | None, Field(description="checkpoint behind the global resolvedTs")]
    lag_now_seconds: Annotated[float | None, Field(description="checkpoint behind this machine's clock")]
    leads: Annotated[bool, Field(description="whether this process leads it")]
    leader: Annotated[str | None, Field(description="who leads it, as the target last told")]
    target: str
    stalled_partitions: Annotated[int, Field(description="partitions that `stalled` is said of in the status")]
    quarantine_held: Annotated[int, Field(description="messages set aside that nobody has decided about")]
    error: Fault | None


class ChangefeedList(Shape):
    """All changefeeds, by id."""

    total: int
    items: list[Summary]


class Instance(Shape):
    """A process that runs the changefeed or stands by."""

    name: str
    silent_seconds: float


class Ledger(Shape):
    """Redis."""

    state: Literal["connected", "out of reach", "absent by configuration", "not running"]
    running: bool


class PartitionStatus(Shape):
    """A partition, as this process saw it last."""

    topic: str
    partition: int
    resolved_ts: Tso | None
    resolved_time: str
    watermark_age_seconds: Annotated[float | None, Field(description="watermark behind this machine's clock")]
    begin_offset: Annotated[int, Field(description="oldest offset that Kafka still has")]
    offset: Annotated[int, Field(description="from where reading goes on; what lies before is applied")]
    end_offset: int
    unread: int
    holds_back: Annotated[bool, Field(description="its watermark is the lowest, or missing")]
    still_seconds: Annotated[float, Field(description="so long its watermark has not risen while this process looked")]
    stalled: Annotated[bool, Field(description="it holds back and stands still for `limits.stalled-seconds`")]


class SourceStatus(Shape):
    """Kafka, as this process saw it last."""

    state: Literal["connected", "not running", "out of reach"]
    probed_seconds_ago: float | None
    resolved_ts: Tso | None
    lag_seconds: float | None
    held_back_by: Annotated[list[str], Field(description="`topic=T partition=P`")]
    partitions: list[PartitionStatus]


class Ddl(Shape):
    """A line of the DDL log."""

    commit_ts: Tso
    time: str
    database: str
    table: str
    statement: str
    executed: str
    state: str
    duration_ms: int | None
    reason: str
    updated_at: str


class Drifted(Shape):
    """A table that has drifted, with rows counted since the changefeed began."""

    table: str
    missing: Annotated[int, Field(description="rows that were not there though the events say so")]
    unexpected: Annotated[int, Field(description="rows that were there though the events say no")]


class WindowDone(Shape):
    """A window that this process applied."""

    at: Annotated[float, Field(description="seconds since 1970, when it was done")]
    window: Annotated[int, Field(description="its number since the changefeed began, as in the log")]
    checkpoint_ts: Tso
    checkpoint_time: str
    events: int
    rows: int
    duplicates: int
    seconds: float


class Status(Shape):
    """A changefeed: the keys of `reconciler status --json`, from memory, and what only the running process knows."""

    changefeed: str
    target: str
    state: State
    leads: bool
    error: Fault | None
    checkpoint_ts: Tso
    checkpoint_time: str
    lag_now_seconds: float | None
    leader_epoch: int
    updated_at: str | None
    leader: Instance | None
    stand_bys: list[Instance]
    events: int
    duplicates: int
    duplicates_proven: int
    duplicates_unproven: int
    late: Annotated[int, Field(description="late events that stopped this changefeed since this process began")]
    filtered: int
    quarantined: Annotated[int, Field(description="messages ever set aside")]
    ddls: int
    rows_written: int
    windows: int
    quarantine: Annotated[dict[str, int], Field(description="messages by state: held, superseded, replayed, discarded")]
    drift: list[Drifted]
    ledger: Ledger
    source: SourceStatus
    ddl_history: list[Ddl]
    last_windows: Annotated[list[WindowDone], Field(description="newest first")]
    stalled_after_seconds: Annotated[float, Field(description="`limits.stalled-seconds`")]
    held_events: Annotated[int, Field(description="messages that Kafka holds and that are not applied")]
    target_seen_seconds_ago: Annotated[
        float | None, Field(description="age of what was read from the target: leader, stand-bys, quarantine, DDLs")
    ]


class Sample(Shape):
    """The changefeed at a moment; counts are totals since it began, so rates are differences."""

    at: Annotated[float, Field(description="seconds since 1970")]
    events: int
    rows: int
    duplicates: int
    late: int
    filtered: int
    quarantined: int
    lag_watermark_seconds: float | None
    lag_now_seconds: float | None
    checkpoint_ts: Tso
    resolved_ts: Tso | None


class History(Shape):
    """Samples, oldest first."""

    interval_seconds: float
    items: list[Sample]


class DdlLog(Shape):
    """DDLs, newest first."""

    total: int
    items: list[Ddl]


class NewChangefeed(BaseModel):
    """A config, as a changefeed's TOML file holds it: the same keys, checked in the same way (README, reference)."""

    model_config = ConfigDict(extra="allow")
    changefeed: Annotated[str, Field(description="its id")]
    source: Json
    target: Json
    redis: Json | None = None
    limits: Json | None = None
    filter: Json | None = None
    quarantine: Json | None = None


class ChangefeedChange(BaseModel):
    """The keys to change, in their sections; null takes a key out of the file, so that its default counts."""

    model_config = ConfigDict(extra="allow")
    source: Json | None = None
    target: Json | None = None
    redis: Json | None = None
    limits: Json | None = None
    filter: Json | None = None
    quarantine: Json | None = None


class ChangeDone(Shape):
    """What a change did."""

    changed: Annotated[list[str], Field(description="the keys that differ now")]
    restarted: Annotated[bool, Field(description="a run reads its config at its start, so one that ran was restarted")]
    changefeed: Summary


class ConfigShown(Shape):
    """The config as its file holds it: references as they are, other secrets hidden."""

    file: str
    config: Json


class Deleted(Shape):
    """What a delete did."""

    id: str
    progress_deleted: bool


class Decision(Shape):
    """Why a DDL is decided about."""

    reason: Annotated[str, Field(max_length=1000)] = ""


class DdlDecided(Shape):
    """What becomes of a DDL at the next start."""

    commit_ts: Tso
    statement: str
    becomes: str


class MessageAside(Shape):
    """A message that was set aside."""

    message: Annotated[str, Field(description="TOPIC/PARTITION/OFFSET")]
    topic: str
    partition: int
    offset: int
    state: str
    about: str
    reason: str
    commit_ts: Tso | None
    commit_time: str
    timestamp: int | None
    note: str
    updated_at: str | None


class QuarantineList(Shape):
    """Messages that were set aside, by position."""

    total: int
    items: list[MessageAside]


class ReplayRequest(Shape):
    """Which messages to apply; none: all that are held."""

    messages: Annotated[list[str], Field(max_length=1000, description="TOPIC/PARTITION/OFFSET")] = []


class DiscardRequest(Shape):
    """Which messages to leave out for good, or all, and why."""

    messages: Annotated[list[str], Field(max_length=1000, description="TOPIC/PARTITION/OFFSET")] = []
    all: bool = False
    reason: Annotated[str, Field(min_length=1, max_length=1000)]


class Verdict(Shape):
    """What became of a message."""

    message: str
    state: str
    why: str


class Verdicts(Shape):
    """What became of each message; the changefeed was stopped meanwhile, if it ran."""

    items: list[Verdict]


class Health(Shape):
    """That the process answers."""

    status: Literal["ok"]
    version: str
    changefeeds: Annotated[dict[str, int], Field(description="how many are in each state")]


class Failure(Shape):
    """Every answer that is not a success; TiCDC's two names, and our three parts of an error."""

    error_code: str
    error_msg: str
    fact: str
    where: str
    hint: str
