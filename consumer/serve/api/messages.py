"""The API's look into the topics of a changefeed: messages as they lie in Kafka. These ask Kafka."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Annotated, Any

from fastapi import APIRouter, Path, Query

from consumer.operate.browse import MessageSearch, content_at, look_at
from consumer.operate.message_filter import MessageFilter
from consumer.operate.tail import Told
from consumer.serve.api.changefeeds import ChangefeedId
from consumer.serve.api.errors import BusyError, NotFoundError
from consumer.serve.api.message_models import MessageContent, MessageLine, MessageListing
from consumer.serve.fleet import Fleet
from consumer.serve.operations import readable
from ordering.errors import ConfigError
from ordering.events import Position
from ordering.timestamps import MAX_TSO

_AT_ONCE = 2
_WAIT_S = 10.0
_LINE = 1000
"""Characters of what a message holds, in a list."""
_MOST_SHOWN = 64 << 10
"""Bytes of a message; a page is no place for more."""
_Topic = Annotated[str, Path(min_length=1, max_length=249, description="a topic of the changefeed")]
_Partition = Annotated[int, Path(ge=0, lt=2**31)]
_Offset = Annotated[int, Path(ge=0, lt=2**63)]
_Table = Annotated[str, Query(max_length=500, description="only this table: a rule as in `filter.rules`")]
_Key = Annotated[str, Query(max_length=500, description="only rows with this value in a column of their key")]
_Since = Annotated[int, Query(ge=0, le=MAX_TSO, description="the first from this commitTs on; 0: the newest")]


def looking_router(fleet: Fleet) -> APIRouter:
    """Routes below /api/v2."""
    router, slots = APIRouter(tags=["topics"]), threading.BoundedSemaphore(_AT_ONCE)

    @router.get("/changefeeds/{changefeed_id}/topics/{topic}/messages", operation_id="listMessages")
    def messages(
        changefeed_id: ChangefeedId,
        topic: _Topic,
        table: _Table = "",
        key: _Key = "",
        since: _Since = 0,
        watermarks: bool = True,
        limit: Annotated[int, Query(ge=1, le=200)] = 50,
    ) -> MessageListing:
        """Messages of a topic by commitTs: the newest that match, or the first from `since` on. Changes nothing."""
        config = readable(fleet.feed(changefeed_id))
        wanted = MessageFilter((table,) if table else (), key, since, watermarks)
        with _slot(slots):
            found = look_at(config, MessageSearch(topic, wanted, limit))
        items = [MessageLine.model_validate(_line(one)) for one in found.items]
        return MessageListing(items=items, read=found.read, is_whole=found.is_whole)

    @router.get("/changefeeds/{changefeed_id}/topics/{topic}/messages/{partition}/{offset}", operation_id="getMessage")
    def message(changefeed_id: ChangefeedId, topic: _Topic, partition: _Partition, offset: _Offset) -> MessageContent:
        """One message, as bytes and as it is read: at most 64 KiB of it."""
        config = readable(fleet.feed(changefeed_id))
        with _slot(slots):
            try:
                found = content_at(config, Position(topic, partition, offset), _MOST_SHOWN)
            except ConfigError as error:
                raise NotFoundError(error.fact, where=error.where, hint=error.hint) from error
        return MessageContent.model_validate(found)

    return router


@contextmanager
def _slot(slots: threading.BoundedSemaphore) -> Iterator[None]:
    if not slots.acquire(timeout=_WAIT_S):
        raise BusyError("too many requests read messages already", where="messages", hint="try again soon")
    try:
        yield
    finally:
        slots.release()


def _line(one: Told) -> dict[str, Any]:
    told = one.as_json()
    return {**told, "content": one.summary(_LINE), "part": one.part}
