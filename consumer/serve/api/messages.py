"""The API's look into the topics of a changefeed: messages as they lie in Kafka. These ask Kafka."""

import threading
from collections import Counter
from collections.abc import Callable
from typing import Annotated, Any, TypeVar

from fastapi import APIRouter, Path, Query

from consumer.config.model import Config
from consumer.operate.browse import MessageSearch, content_at, look_at
from consumer.operate.message_filter import MessageFilter
from consumer.operate.tail import Told
from consumer.serve.api.changefeeds import ChangefeedId
from consumer.serve.api.errors import BusyError, NotFoundError
from consumer.serve.api.message_models import MessageContent, MessageLine, MessageListing
from consumer.serve.fleet import Fleet
from consumer.serve.operations import questioned
from ordering.errors import ConfigError
from ordering.events import Position
from ordering.timestamps import MAX_TSO

_AT_ONCE, _OF_ALL = 2, 8
"""Looks at the messages of one changefeed, and of all."""
_WAIT_S = 10.0
_LINE = 1000
"""Characters of what a message holds, in a list."""
_MOST_SHOWN = 64 << 10
"""Bytes of a message; a page is no place for more."""
T = TypeVar("T")
_Topic = Annotated[str, Path(min_length=1, max_length=249, description="a topic of the changefeed")]
_Partition = Annotated[int, Path(ge=0, lt=2**31)]
_Offset = Annotated[int, Path(ge=0, lt=2**63)]
_Table = Annotated[str, Query(max_length=500, description="only this table: a rule as in `filter.rules`")]
_Key = Annotated[str, Query(max_length=500, description="only rows with this value in a column of their key")]
_Since = Annotated[int, Query(ge=0, le=MAX_TSO, description="the first from this commitTs on; 0: the newest")]


def looking_router(fleet: Fleet) -> APIRouter:
    """Routes below /api/v2."""
    router, slots = APIRouter(tags=["topics"]), _Slots()

    @router.get("/changefeeds/{changefeed_id}/topics/{topic}/messages", operation_id="listMessages")
    async def messages(
        changefeed_id: ChangefeedId,
        topic: _Topic,
        table: _Table = "",
        key: _Key = "",
        since: _Since = 0,
        watermarks: bool = True,
        limit: Annotated[int, Query(ge=1, le=200)] = 50,
    ) -> MessageListing:
        """Messages of a topic by commitTs: the newest that match, or the first from `since` on. Changes nothing."""
        wanted = MessageFilter((table,) if table else (), key, since, watermarks)

        def look(config: Config) -> MessageListing:
            found = look_at(config, MessageSearch(topic, wanted, limit))
            items = [MessageLine.model_validate(_line(one)) for one in found.items]
            return MessageListing(items=items, read=found.read, is_whole=found.is_whole)

        feed = fleet.feed(changefeed_id)
        return await questioned(feed, lambda config: slots.given(feed.name, lambda: look(config)))

    @router.get("/changefeeds/{changefeed_id}/topics/{topic}/messages/{partition}/{offset}", operation_id="getMessage")
    async def message(
        changefeed_id: ChangefeedId, topic: _Topic, partition: _Partition, offset: _Offset
    ) -> MessageContent:
        """One message, as bytes and as it is read: at most 64 KiB of it."""

        def look(config: Config) -> MessageContent:
            try:
                found = content_at(config, Position(topic, partition, offset), _MOST_SHOWN)
            except ConfigError as error:
                raise NotFoundError(error.fact, where=error.where, hint=error.hint) from error
            return MessageContent.model_validate(found)

        feed = fleet.feed(changefeed_id)
        return await questioned(feed, lambda config: slots.given(feed.name, lambda: look(config)))

    return router


class _Slots:
    """Room for looks at messages, which may hold much memory: one changefeed's Kafka can't take all of it."""

    def __init__(self) -> None:
        self._room = threading.Condition()
        self._looking: Counter[str] = Counter()

    def given(self, name: str, look: Callable[[], T]) -> T:
        """What a look finds, once there is room for it. Raises BusyError."""
        with self._room:
            if not self._room.wait_for(lambda: self._is_free(name), _WAIT_S):
                raise BusyError("too many requests read messages already", where="messages", hint="try again soon")
            self._looking[name] += 1
        try:
            return look()
        finally:
            with self._room:
                self._looking[name] -= 1
                self._room.notify_all()

    def _is_free(self, name: str) -> bool:
        return self._looking[name] < _AT_ONCE and self._looking.total() < _OF_ALL


def _line(one: Told) -> dict[str, Any]:
    told = one.as_json()
    return {**told, "content": one.summary(_LINE), "part": one.part}
