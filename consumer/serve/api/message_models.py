"""What the API answers about messages as they lie in Kafka."""

from typing import Annotated

from pydantic import Field

from consumer.serve.api.models import ApiModel, Tso


class MessageLine(ApiModel):
    """An event of a message, in one line."""

    topic: str
    partition: int
    offset: int
    part: Annotated[int, Field(description="which event of its message, where a message holds several")]
    timestamp: Annotated[int | None, Field(description="Kafka's, ms since 1970")]
    type: Annotated[str, Field(description="INSERT, UPDATE, DELETE, a kind of DDL, WATERMARK; ?: it can't be decoded")]
    commit_ts: Tso | None
    commit_time: str | None
    database: str | None
    table: str | None
    content: Annotated[str, Field(description="the beginning of what it holds")]
    error: Annotated[str | None, Field(description="why it can't be decoded")]


class MessageListing(ApiModel):
    """Messages by commitTs."""

    items: list[MessageLine]
    read: Annotated[int, Field(description="messages that were read to find these")]
    is_whole: Annotated[bool, Field(description="false: the topic holds more that may match")]


class MessageContent(ApiModel):
    """A message with its content: at most 64 KiB of it, `value_bytes` is its whole size."""

    topic: str
    partition: int
    offset: int
    key: Annotated[str | None, Field(description="base64")]
    value: Annotated[str | None, Field(description="base64; null: the message has none")]
    value_bytes: int
    is_whole: Annotated[bool, Field(description="false: the content is longer than what is shown of it")]
    decoded: Annotated[str | None, Field(description="as it is read: decompressed, indented; null: see `fault`")]
    fault: Annotated[str, Field(description="why it can't be decoded")]
