"""The API's questions: list, status, history, answered from memory; and waiting for one's own write."""

import asyncio
from collections.abc import Coroutine
from typing import Annotated, Any, Literal

from fastapi import APIRouter, Path, Query, Request
from pydantic import BeforeValidator
from starlette.requests import ClientDisconnect

from consumer.library.wait import Waited
from consumer.serve.api.errors import ConflictError
from consumer.serve.api.models import ChangefeedList, History, State, Status, TableListing, WaitAnswer
from consumer.serve.fleet import Fleet
from consumer.serve.status import status_of, summary_of, tables_of
from ordering.timestamps import MAX_TSO

ChangefeedId = Annotated[str, Path(min_length=1, max_length=255, description="the changefeed's id")]

_Step = Annotated[
    Literal[2, 60, 900],
    BeforeValidator(int),  # a query is text
    Query(description="seconds between samples: of the last hour, day, or thirty days"),
]


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
        """Status of one, as its run and the target last reported it."""
        return status_of(fleet.feed(changefeed_id))

    @router.get("/changefeeds/{changefeed_id}/history", operation_id="getHistory")
    async def get_history(
        changefeed_id: ChangefeedId,
        since: Annotated[float, Query(ge=0, description="only samples after this moment, seconds since 1970")] = 0,
        step: _Step = 2,
    ) -> History:
        """Samples of the past; those of a day and of thirty days also from before this process was started."""
        return History(interval_seconds=step, items=fleet.feed(changefeed_id).ring.since(since, step))

    @router.get("/changefeeds/{changefeed_id}/tables", operation_id="listTables")
    async def list_tables(
        changefeed_id: ChangefeedId,
        contains: Annotated[str, Query(max_length=200, description="a part of `database.table`, in any case")] = "",
        limit: Annotated[int, Query(ge=1, le=1000, description="how many, written last first")] = 50,
    ) -> TableListing:
        """Rows written to each table since this process began, and when; from memory."""
        return tables_of(fleet.feed(changefeed_id), contains, limit)

    @router.get("/changefeeds/{changefeed_id}/wait", operation_id="waitForChangefeed")
    async def wait(
        request: Request,
        changefeed_id: ChangefeedId,
        tso: Annotated[int, Query(ge=0, le=MAX_TSO, description="commitTs of your transaction")],
        timeout: Annotated[float, Query(ge=1, le=600, description="seconds")] = 30,  # noqa: ASYNC109 the client's
    ) -> WaitAnswer:
        """Answer once the target holds all that was committed upstream up to a TSO, or when the time is over."""
        feed = fleet.feed(changefeed_id)
        if feed.waiters is None:
            raise ConflictError("its config can't be used", where=f"changefeed {feed.name}", hint="see its status")
        found = await _unless_gone(request, feed.waiters.wait(tso, timeout))
        return WaitAnswer(changefeed=feed.name, tso=tso, covered=found.covered, checkpoint_ts=found.checkpoint_ts)

    return router


async def _unless_gone(request: Request, waiting: Coroutine[Any, Any, Waited]) -> Waited:
    """What is waited for, unless the client leaves. Raises ClientDisconnect."""
    waited, gone = asyncio.create_task(waiting), asyncio.create_task(_gone(request))
    try:
        await asyncio.wait((waited, gone), return_when=asyncio.FIRST_COMPLETED)
        if not waited.done():
            raise ClientDisconnect
        return waited.result()
    finally:
        waited.cancel()
        gone.cancel()


async def _gone(request: Request) -> None:
    while (await request.receive())["type"] != "http.disconnect":
        pass
