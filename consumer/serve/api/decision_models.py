"""What the API asks and answers about DDLs, quarantined messages and topics that somebody decides about."""

from typing import Annotated

from pydantic import Field

from consumer.serve.api.models import ApiModel, Tso


class Decision(ApiModel):
    """Why a DDL is decided about."""

    reason: Annotated[str, Field(max_length=1000)] = ""


class DdlDecided(ApiModel):
    """What becomes of a DDL at the next start."""

    commit_ts: Tso
    statement: str
    becomes: str


class MessageAside(ApiModel):
    """A message that was quarantined."""

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


class QuarantinedMessage(MessageAside):
    """A message that was quarantined, with its content: at most 64 KiB of it, `value_bytes` is its whole size."""

    key: Annotated[str | None, Field(description="base64")]
    value: Annotated[str | None, Field(description="base64; null: the message has none")]
    value_bytes: int
    is_whole: Annotated[bool, Field(description="false: the content is longer than what is shown of it")]
    decoded: Annotated[str | None, Field(description="as it is read: decompressed, indented; null: see `fault`")]
    fault: Annotated[str, Field(description="why it can't be decoded")]


class QuarantineList(ApiModel):
    """Messages that were quarantined, by position."""

    total: int
    items: list[MessageAside]


class ReplayRequest(ApiModel):
    """Which messages to apply; none: all that are held."""

    messages: Annotated[list[str], Field(default_factory=list, max_length=1000, description="TOPIC/PARTITION/OFFSET")]


class DiscardRequest(ApiModel):
    """Which messages to leave out for good, or all, and why."""

    messages: Annotated[list[str], Field(default_factory=list, max_length=1000, description="TOPIC/PARTITION/OFFSET")]
    all: bool = False
    reason: Annotated[str, Field(min_length=1, max_length=1000)]


class VerdictLine(ApiModel):
    """What became of a message."""

    message: str
    state: str
    why: str


class Verdicts(ApiModel):
    """What became of each message; the changefeed was stopped meanwhile, if it ran."""

    items: list[VerdictLine]


class TopicDecided(ApiModel):
    """Whether the others wait for a topic from now on."""

    topic: str
    retired: bool


class WindowLine(ApiModel):
    """An applied window: what of commitTs in (above_ts, checkpoint_ts] was written, and by which leader."""

    above_ts: Tso
    checkpoint_ts: Tso
    epoch: int
    applied_at: str
    duration_ms: int
    rows: int
    rows_by_table: Annotated[dict[str, int] | None, Field(description="null: of which tables is not known")]


class WindowList(ApiModel):
    """Applied windows, newest first; none without `target.audit`."""

    total: int
    items: list[WindowLine]
