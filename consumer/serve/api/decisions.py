"""The API's log of DDLs, its quarantine and the list of windows, and what an operator decides. These ask the target."""

from collections.abc import Iterable
from typing import Annotated

from fastapi import APIRouter, Path, Query

from consumer.config.model import Config
from consumer.operate import quarantine as held
from consumer.operate.audit import audit_of
from consumer.operate.decisions import ddl_log, decide_ddl, retire_topic, return_topic
from consumer.operate.status import told_of
from consumer.quarantine.content import told_content
from consumer.quarantine.presentation import place_of, position_of, told_message
from consumer.serve.api.changefeeds import ChangefeedId
from consumer.serve.api.decision_models import (
    DdlDecided,
    Decision,
    DiscardRequest,
    MessageAside,
    QuarantinedMessage,
    QuarantineList,
    ReplayRequest,
    TopicDecided,
    VerdictLine,
    Verdicts,
    WindowLine,
    WindowList,
)
from consumer.serve.api.errors import NotFoundError, RequestError
from consumer.serve.api.models import DdlLine, DdlListing
from consumer.serve.fleet import Fleet
from consumer.serve.operations import Operations, at_rest, ordered, questioned, readable
from ordering.errors import ConfigError
from ordering.events import Position
from sinks.bookkeeping.ddl_log import DECIDED, DdlState

_CommitTs = Annotated[int, Path(ge=0, lt=2**64, description="TSO of the DDL that stops the changefeed")]
_Topic = Annotated[str, Path(min_length=1, max_length=249, description="a topic's name")]
_Partition = Annotated[int, Path(ge=0, lt=2**31)]
_Offset = Annotated[int, Path(ge=0, lt=2**63)]
_MOST_SHOWN = 64 << 10
"""Bytes of a message; a page is no place for more."""
_Limit = Annotated[int, Query(ge=1, le=1000, description="how many, newest first")]


def deciding_router(fleet: Fleet, operations: Operations) -> APIRouter:
    """Routes below /api/v2."""
    router = APIRouter()
    _ddls(router, fleet)
    _quarantine(router, fleet, operations)
    _topics(router, fleet, operations)
    _audit(router, fleet)
    return router


def _audit(router: APIRouter, fleet: Fleet) -> None:
    @router.get("/changefeeds/{changefeed_id}/audit", operation_id="listWindows", tags=["changefeeds"])
    async def audit(changefeed_id: ChangefeedId, limit: _Limit = 50) -> WindowList:
        """The windows applied last, where `target.audit` keeps the list."""
        lines = await questioned(fleet.feed(changefeed_id), lambda config: audit_of(config, limit))
        return WindowList(total=len(lines), items=[WindowLine.model_validate(line) for line in lines])


def _ddls(router: APIRouter, fleet: Fleet) -> None:
    @router.get("/changefeeds/{changefeed_id}/ddls", operation_id="listDdls", tags=["ddls"])
    async def ddls(changefeed_id: ChangefeedId, limit: _Limit = 50) -> DdlListing:
        """The log of DDLs: what came, what was executed, what became of it."""
        lines = await questioned(fleet.feed(changefeed_id), lambda config: ddl_log(config, limit))
        items = [DdlLine.model_validate(told_of(line)) for line in lines]
        return DdlListing(total=len(items), items=items)

    @router.post("/changefeeds/{changefeed_id}/ddls/{commit_ts}/skip", operation_id="skipDdl", tags=["ddls"])
    async def skip(changefeed_id: ChangefeedId, commit_ts: _CommitTs, body: Decision) -> DdlDecided:
        """Leave out the DDL that stops the changefeed; then resume it."""
        feed = fleet.feed(changefeed_id)
        return await ordered(feed, lambda: _decided(readable(feed), commit_ts, DdlState.SKIP, body.reason))

    @router.post("/changefeeds/{changefeed_id}/ddls/{commit_ts}/done", operation_id="takeDdlAsDone", tags=["ddls"])
    async def done(changefeed_id: ChangefeedId, commit_ts: _CommitTs, body: Decision) -> DdlDecided:
        """Report that you made the DDL's change by hand; then resume the changefeed."""
        feed = fleet.feed(changefeed_id)
        return await ordered(feed, lambda: _decided(readable(feed), commit_ts, DdlState.TAKE, body.reason))


def _quarantine(router: APIRouter, fleet: Fleet, operations: Operations) -> None:
    @router.get("/changefeeds/{changefeed_id}/quarantine", operation_id="listQuarantine", tags=["quarantine"])
    async def aside(changefeed_id: ChangefeedId) -> QuarantineList:
        """Messages that were quarantined, and what became of them."""
        found = await questioned(fleet.feed(changefeed_id), held.listed)
        items = [MessageAside.model_validate(told_message(one)) for one in found]
        return QuarantineList(total=len(items), items=items)

    @router.get(
        "/changefeeds/{changefeed_id}/quarantine/{topic}/{partition}/{offset}",
        operation_id="getQuarantined",
        tags=["quarantine"],
    )
    async def one(
        changefeed_id: ChangefeedId, topic: _Topic, partition: _Partition, offset: _Offset
    ) -> QuarantinedMessage:
        """One of them with its content, as bytes and as it is read."""

        def look(config: Config) -> QuarantinedMessage:
            try:
                found = held.message_of(config, Position(topic, partition, offset))
            except ConfigError as error:
                raise NotFoundError(error.fact, where=error.where, hint=error.hint) from error
            return QuarantinedMessage.model_validate(told_message(found) | told_content(found, config, _MOST_SHOWN))

        return await questioned(fleet.feed(changefeed_id), look)

    @router.post("/changefeeds/{changefeed_id}/quarantine/replay", operation_id="replay", tags=["quarantine"])
    async def replay(changefeed_id: ChangefeedId, body: ReplayRequest) -> Verdicts:
        """Apply messages whose cause was fixed, where nothing newer of their rows was."""
        feed, positions = fleet.feed(changefeed_id), list(map(position_of, body.messages))
        return await at_rest(operations, feed, lambda config: _verdicts(held.replay(config, positions)))

    @router.post("/changefeeds/{changefeed_id}/quarantine/discard", operation_id="discard", tags=["quarantine"])
    async def discard(changefeed_id: ChangefeedId, body: DiscardRequest) -> Verdicts:
        """Leave messages out for good; they stay listed."""
        if bool(body.messages) is body.all:
            raise RequestError("which messages?", where="body", hint='give "messages", or "all": true')
        feed, positions = fleet.feed(changefeed_id), list(map(position_of, body.messages))
        return await at_rest(operations, feed, lambda config: _verdicts(held.discard(config, positions, body.reason)))


def _topics(router: APIRouter, fleet: Fleet, operations: Operations) -> None:
    @router.post("/changefeeds/{changefeed_id}/topics/{topic}/retire", operation_id="retireTopic", tags=["topics"])
    async def retire(changefeed_id: ChangefeedId, topic: _Topic) -> TopicDecided:
        """No longer wait for a topic to which TiCDC will never write again; a running changefeed is restarted."""
        await at_rest(operations, fleet.feed(changefeed_id), lambda config: retire_topic(config, topic))
        return TopicDecided(topic=topic, retired=True)

    @router.post("/changefeeds/{changefeed_id}/topics/{topic}/return", operation_id="returnTopic", tags=["topics"])
    async def return_(changefeed_id: ChangefeedId, topic: _Topic) -> TopicDecided:
        """Let a retired topic count again; a running changefeed is restarted."""
        await at_rest(operations, fleet.feed(changefeed_id), lambda config: return_topic(config, topic))
        return TopicDecided(topic=topic, retired=False)


def _decided(config: Config, commit_ts: int, decision: DdlState, reason: str) -> DdlDecided:
    line = decide_ddl(config, commit_ts, decision, reason)
    return DdlDecided(commit_ts=commit_ts, statement=line.sql, becomes=DECIDED[decision].value)


def _verdicts(found: Iterable[held.Verdict]) -> Verdicts:
    return Verdicts(
        items=[VerdictLine(message=place_of(one.position), state=one.state.value, why=one.why) for one in found]
    )
