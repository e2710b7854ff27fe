"""The API's log of DDLs and its quarantine, and what an operator decides about both. These ask the target."""

from collections.abc import Iterable
from typing import Annotated

from fastapi import APIRouter, Path, Query

from consumer import replaying
from consumer.config import Config
from consumer.operate import ddl_log, decide_ddl
from consumer.quarantine_told import place_of, position_of, told_message
from consumer.serving.changing import Operations, readable
from consumer.serving.faults import RequestError
from consumer.serving.fleet import Fleet
from consumer.serving.reading import ChangefeedId
from consumer.serving.shapes import (
    Ddl,
    DdlDecided,
    DdlLog,
    Decision,
    DiscardRequest,
    MessageAside,
    QuarantineList,
    ReplayRequest,
    Verdict,
    Verdicts,
)
from consumer.status import told_of
from sinks.ddl_log import DECIDED, DdlState

_CommitTs = Annotated[int, Path(ge=0, lt=2**64, description="TSO of the DDL that stops the changefeed")]
_Limit = Annotated[int, Query(ge=1, le=1000, description="how many, newest first")]


def deciding_router(fleet: Fleet, operations: Operations) -> APIRouter:
    """Routes below /api/v2."""
    router = APIRouter()
    _ddls(router, fleet)
    _quarantine(router, fleet, operations)
    return router


def _ddls(router: APIRouter, fleet: Fleet) -> None:
    @router.get("/changefeeds/{changefeed_id}/ddls", operation_id="listDdls", tags=["ddls"])
    def ddls(changefeed_id: ChangefeedId, limit: _Limit = 50) -> DdlLog:
        """The log of DDLs: what came, what was executed, what became of it."""
        lines = ddl_log(readable(fleet.feed(changefeed_id)), limit)
        items = [Ddl.model_validate(told_of(line)) for line in lines]
        return DdlLog(total=len(items), items=items)

    @router.post("/changefeeds/{changefeed_id}/ddls/{commit_ts}/skip", operation_id="skipDdl", tags=["ddls"])
    def skip(changefeed_id: ChangefeedId, commit_ts: _CommitTs, body: Decision) -> DdlDecided:
        """Leave out the DDL that stops the changefeed; then resume it."""
        return _decided(readable(fleet.feed(changefeed_id)), commit_ts, DdlState.SKIP, body.reason)

    @router.post("/changefeeds/{changefeed_id}/ddls/{commit_ts}/done", operation_id="takeDdlAsDone", tags=["ddls"])
    def done(changefeed_id: ChangefeedId, commit_ts: _CommitTs, body: Decision) -> DdlDecided:
        """Say that the DDL's change has been made by hand; then resume the changefeed."""
        return _decided(readable(fleet.feed(changefeed_id)), commit_ts, DdlState.TAKE, body.reason)


def _quarantine(router: APIRouter, fleet: Fleet, operations: Operations) -> None:
    @router.get("/changefeeds/{changefeed_id}/quarantine", operation_id="listQuarantine", tags=["quarantine"])
    def aside(changefeed_id: ChangefeedId) -> QuarantineList:
        """Messages that were set aside, and what became of them."""
        found = replaying.listed(readable(fleet.feed(changefeed_id)))
        items = [MessageAside.model_validate(told_message(one)) for one in found]
        return QuarantineList(total=len(items), items=items)

    @router.post("/changefeeds/{changefeed_id}/quarantine/replay", operation_id="replay", tags=["quarantine"])
    def replay(changefeed_id: ChangefeedId, body: ReplayRequest) -> Verdicts:
        """Apply messages whose cause was mended, where nothing newer of their rows was."""
        positions = list(map(position_of, body.messages))
        with operations.stopped(fleet.feed(changefeed_id)) as config:
            return _verdicts(replaying.replay(config, positions))

    @router.post("/changefeeds/{changefeed_id}/quarantine/discard", operation_id="discard", tags=["quarantine"])
    def discard(changefeed_id: ChangefeedId, body: DiscardRequest) -> Verdicts:
        """Leave messages out for good; they stay listed."""
        if bool(body.messages) is body.all:
            raise RequestError("which messages?", where="body", hint='give "messages", or "all": true')
        positions = list(map(position_of, body.messages))
        with operations.stopped(fleet.feed(changefeed_id)) as config:
            return _verdicts(replaying.discard(config, positions, body.reason))


def _decided(config: Config, commit_ts: int, decision: DdlState, reason: str) -> DdlDecided:
    line = decide_ddl(config, commit_ts, decision, reason)
    return DdlDecided(commit_ts=commit_ts, statement=line.sql, becomes=DECIDED[decision].value)


def _verdicts(found: Iterable[replaying.Verdict]) -> Verdicts:
    return Verdicts(
        items=[Verdict(message=place_of(one.position), state=one.state.value, why=one.why) for one in found]
    )
