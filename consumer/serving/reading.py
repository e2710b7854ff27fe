"""The API's questions: list, status, history, DDL log. Answered from memory."""

from typing import Annotated

from fastapi import APIRouter, Path, Query

from consumer.serving.fleet import Fleet
from consumer.serving.history import EVERY_S
from consumer.serving.shapes import ChangefeedList, History, State, Status
from consumer.serving.telling import status_of, summary_of

ChangefeedId = Annotated[str, Path(min_length=1, max_length=255, description="the changefeed's id")]


def reading_router(fleet: Fleet) -> APIRouter:
    """Routes below /api/v2."""
    router = APIRouter(tags=["changefeeds"])

    @router.get("/changefeeds", operation_id="listChangefeeds")
    async def list_changefeeds(
        state: Annotated[State | None, Query(description="only those in this state")] = None,
    ) -> ChangefeedList:
        """All changefeeds."""
        found = [summary for feed in fleet.all() if state in (None, (summary := summary_of(feed)).state)]
        return ChangefeedList(total=len(found), items=found)

    @router.get("/changefeeds/{changefeed_id}", operation_id="getChangefeed")
    async def get_changefeed(changefeed_id: ChangefeedId) -> Status:
        """Status of one, as its run and the target last told it."""
        return status_of(fleet.feed(changefeed_id))

    @router.get("/changefeeds/{changefeed_id}/history", operation_id="getHistory")
    async def get_history(
        changefeed_id: ChangefeedId,
        since: Annotated[float, Query(ge=0, description="only samples after this moment, seconds since 1970")] = 0,
    ) -> History:
        """Samples of the last hour that this process has run."""
        return History(interval_seconds=EVERY_S, items=fleet.feed(changefeed_id).ring.since(since))

    return router
