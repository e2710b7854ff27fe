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


class ApiModel(BaseModel):
    """Answers are closed: what is not in the document is not sent."""

    model_config = ConfigDict(extra="forbid")


class Fault(ApiModel):
    """Why a changefeed does not go on, or not now."""

    code: Annotated[str, Field(description="kind of the error, e.g. `Reconciler:ErrInput`")]
    message: Annotated[str, Field(description="the fact")]
    where: str
    hint: Annotated[str, Field(description="what to do")]
    exit_code: Annotated[int, Field(description="with which `reconciler run` would end")]
    at: Annotated[float, Field(description="seconds since 1970")]
    retry_in_seconds: Annotated[float | None, Field(description="until it is tried again; null: it needs an operator")]


class Summary(ApiModel):
    """A changefeed in the list."""

    id: str
    state: State
    checkpoint_tso: Tso
    checkpoint_time: str
    lag_seconds: Annotated[float | None, Field(description="checkpoint behind the global resolvedTs")]
    lag_now_seconds: Annotated[float | None, Field(description="checkpoint behind this machine's clock")]
    leads: Annotated[bool, Field(description="whether this process leads it")]
    leader: Annotated[str | None, Field(description="who leads it, as the target last reported")]
    target: str
    stalled_partitions: Annotated[int, Field(description="partitions that `stalled` is said of in the status")]
    quarantine_held: Annotated[int, Field(description="quarantined messages that nobody has decided about")]
    error: Fault | None


class WaitAnswer(ApiModel):
    """Whether the target holds what was asked for."""

    changefeed: str
    tso: Tso
    covered: Annotated[bool, Field(description="every transaction with a commitTs up to `tso` is in the target")]
    checkpoint_ts: Annotated[int, Field(ge=0, description="what is applied; 0: nothing is known yet")]


class ChangefeedList(ApiModel):
    """All changefeeds, by id."""

    total: int
    items: list[Summary]


class InstanceState(ApiModel):
    """A process that runs the changefeed or stands by."""

    name: str
    silent_seconds: float


class LedgerState(ApiModel):
    """Redis, as this process saw it last."""

    state: Annotated[
        Literal["connected", "out of reach", "absent by configuration", "unknown"],
        Field(description="`unknown`: no run of this process has asked it"),
    ]
    running: bool


class CoreState(ApiModel):
    """The compiled core, as this process can use it."""

    used: bool
    why: Annotated[str, Field(description="why it is not used")]


class PartitionStatus(ApiModel):
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


class SourceStatus(ApiModel):
    """Kafka, as this process saw it last."""

    state: Annotated[
        Literal["connected", "out of reach", "unknown"],
        Field(description="as of the last look; `unknown`: no run of this process has looked"),
    ]
    probed_seconds_ago: Annotated[
        float | None, Field(description="age of all that is said here; it grows while the changefeed does not run")
    ]
    resolved_ts: Tso | None
    lag_seconds: float | None
    held_back_by: Annotated[list[str], Field(description="`topic=T partition=P`")]
    partitions: list[PartitionStatus]


class DdlLine(ApiModel):
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


class Drifted(ApiModel):
    """A table that has drifted, with rows counted since the changefeed began."""

    table: str
    missing: Annotated[int, Field(description="rows that were not there though the events say so")]
    unexpected: Annotated[int, Field(description="rows that were there though the events say no")]


class LastStop(ApiModel):
    """With which error the last run of the changefeed ended, if none has led since."""

    at: str
    exit_code: int
    error: Annotated[str, Field(description="as `run` printed it")]


class TableProof(ApiModel):
    """What the last comparison of a table with its events has found; see `reconciler help proof`."""

    table: str
    verdict: Literal["equal", "different", "base", "unproven"]
    reason: Annotated[str, Field(description="why it is `base` or `unproven`, or what is gone")]
    checkpoint_ts: Annotated[Tso, Field(description="of the comparison")]
    checkpoint_time: str
    compared_at: Annotated[str, Field(description="when, in UTC")]
    rows: int
    rows_expected: int
    buckets: Annotated[list[int], Field(description="those that differ")]
    columns_left_out: Annotated[list[str], Field(description="columns that are not compared")]


class TableActivity(ApiModel):
    """What this process has written to a table."""

    table: str
    rows_written: Annotated[int, Field(description="rows deleted and written since this process began")]
    checkpoint_ts: Annotated[Tso, Field(description="of the last commit with rows of it")]
    checkpoint_time: str
    written_at: Annotated[float, Field(description="seconds since 1970, when that was")]


class TableListing(ApiModel):
    """Tables that this process has written to, those written last first."""

    total: Annotated[int, Field(description="tables that match, of which `items` are the first")]
    items: list[TableActivity]


class WindowDone(ApiModel):
    """A window that this process applied."""

    at: Annotated[float, Field(description="seconds since 1970, when it was done")]
    window: Annotated[int, Field(description="its number since the changefeed began, as in the log")]
    checkpoint_ts: Tso
    checkpoint_time: str
    events: int
    rows: int
    duplicates: int
    seconds: float


class Status(ApiModel):
    """A changefeed: the keys of `reconciler status --json`, from memory, and what only the running process knows."""

    changefeed: str
    file: Annotated[str, Field(description="its config file on the server, for the commands of `reconciler`")]
    target: str
    state: State
    leads: bool
    error: Fault | None
    checkpoint_ts: Tso
    checkpoint_time: str
    lag_now_seconds: float | None
    leader_epoch: int
    updated_at: str | None
    leader: InstanceState | None
    stand_bys: list[InstanceState]
    events: int
    duplicates: int
    duplicates_proven: int
    duplicates_unproven: int
    late: Annotated[int, Field(description="late events that stopped this changefeed since this process began")]
    filtered: int
    quarantined: Annotated[int, Field(description="messages ever quarantined")]
    ddls: int
    rows_written: int
    windows: int
    quarantine: Annotated[dict[str, int], Field(description="messages by state: held, superseded, replayed, discarded")]
    drift: list[Drifted]
    proof: list[TableProof]
    last_stop: LastStop | None
    archived: Annotated[str, Field(description="why the archive is read instead of the topics; empty: the topics are")]
    retired_topics: Annotated[list[str], Field(description="topics from which nothing more is expected")]
    core: CoreState
    ledger: LedgerState
    source: SourceStatus
    ddl_history: list[DdlLine]
    last_windows: Annotated[list[WindowDone], Field(description="newest first")]
    stalled_after_seconds: Annotated[float, Field(description="`limits.stalled-seconds`")]
    held_events: Annotated[
        int | None, Field(description="messages that Kafka holds and that are not applied; null: nobody has looked")
    ]
    target_seen_seconds_ago: Annotated[
        float | None, Field(description="age of what was read from the target: leader, stand-bys, quarantine, DDLs")
    ]


class StatusSample(ApiModel):
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


class History(ApiModel):
    """Samples, oldest first."""

    interval_seconds: float
    items: list[StatusSample]


class DdlListing(ApiModel):
    """DDLs, newest first."""

    total: int
    items: list[DdlLine]


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


class ChangeDone(ApiModel):
    """What a change did."""

    changed: Annotated[list[str], Field(description="the keys that differ now")]
    restarted: Annotated[bool, Field(description="a run reads its config at its start, so one that ran was restarted")]
    changefeed: Summary


class ConfigShown(ApiModel):
    """The config as its file holds it: references as they are, other secrets hidden."""

    file: str
    config: Json
    text: Annotated[str | None, Field(description="`config` as TOML, to be edited; null: too long for that")]


class KeyChange(ApiModel):
    """A key that a change would change; secrets are hidden."""

    key: str
    before: Annotated[str | None, Field(description="as JSON; null: the key is not in the file")]
    after: Annotated[str | None, Field(description="as JSON; null: the key is taken out, its default counts")]


class ChangePreview(ApiModel):
    """What a change would do; nothing is done yet."""

    keys: list[KeyChange]
    restarts: Annotated[bool, Field(description="whether it runs, and would be restarted")]
    change: Annotated[Json, Field(description="the body of the PUT that does it")]


class CheckLine(ApiModel):
    """What one test of `check` found."""

    subject: str
    ok: bool
    is_whole: Annotated[bool, Field(description="false: it runs without this, but something is missing")]
    fact: str
    where: str
    hint: str
    exit_code: int


class CheckResult(ApiModel):
    """What `reconciler check` says of a config; nothing was kept."""

    ok: Annotated[bool, Field(description="no test has failed")]
    items: list[CheckLine]


class Deleted(ApiModel):
    """What a delete did."""

    id: str
    progress_deleted: bool


class Health(ApiModel):
    """That the process answers."""

    status: Literal["ok"]
    version: str
    changefeeds: Annotated[dict[str, int], Field(description="how many are in each state")]


class FailureDetail(ApiModel):
    """Every answer that is not a success; TiCDC's two names, and our three parts of an error."""

    error_code: str
    error_msg: str
    fact: str
    where: str
    hint: str
