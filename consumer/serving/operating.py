"""The API's orders: create, change, pause, resume, delete; and the config as it is kept."""

from typing import Annotated

from fastapi import APIRouter, Depends, Query

from consumer.serving.bodies import CONFIG_BODY, config_text
from consumer.serving.changing import Operations
from consumer.serving.faults import RequestError
from consumer.serving.fleet import Fleet
from consumer.serving.reading import ChangefeedId
from consumer.serving.shapes import ChangeDone, ChangefeedChange, ConfigShown, Deleted, Summary
from consumer.serving.telling import summary_of


def operating_router(fleet: Fleet, operations: Operations) -> APIRouter:
    """Routes below /api/v2."""
    router = APIRouter(tags=["changefeeds"])

    @router.post("/changefeeds", operation_id="createChangefeed", status_code=201, openapi_extra=CONFIG_BODY)
    def create(text: Annotated[str, Depends(config_text)]) -> Summary:
        """Keep a config as `ID.toml` and start it."""
        return summary_of(operations.create(text))

    @router.get("/changefeeds/{changefeed_id}/config", operation_id="getConfig")
    def config(changefeed_id: ChangefeedId) -> ConfigShown:
        """The config as its file holds it, without secrets."""
        return operations.config(fleet.feed(changefeed_id))

    @router.put("/changefeeds/{changefeed_id}", operation_id="updateChangefeed")
    def change(changefeed_id: ChangefeedId, body: ChangefeedChange) -> ChangeDone:
        """Change some keys. A changefeed that runs is restarted; what must stay is refused with the reason (409)."""
        feed = fleet.feed(changefeed_id)
        done = operations.change(feed, body.model_dump(exclude_unset=True))
        return ChangeDone(changed=done.keys, restarted=done.restarted, changefeed=summary_of(feed))

    @router.post("/changefeeds/{changefeed_id}/pause", operation_id="pauseChangefeed")
    def pause(changefeed_id: ChangefeedId) -> Summary:
        """Stop it until it is resumed; its window is finished or rolled back."""
        feed = fleet.feed(changefeed_id)
        operations.pause(feed)
        return summary_of(feed)

    @router.post("/changefeeds/{changefeed_id}/resume", operation_id="resumeChangefeed")
    def resume(changefeed_id: ChangefeedId) -> Summary:
        """Start one that is paused or has failed; its file is read anew."""
        feed = fleet.feed(changefeed_id)
        operations.resume(feed)
        return summary_of(feed)

    @router.delete("/changefeeds/{changefeed_id}", operation_id="deleteChangefeed")
    def delete(
        changefeed_id: ChangefeedId,
        delete_progress: Annotated[bool, Query(description="forget the progress in the target too")] = False,
        confirm: Annotated[str, Query(description="with delete_progress: the id once more")] = "",
    ) -> Deleted:
        """Stop it and remove its file. Rows stay; so does the progress, unless asked: it begins anew then."""
        feed = fleet.feed(changefeed_id)
        if delete_progress and confirm != changefeed_id:
            hint = f"add confirm={changefeed_id} if that is meant"
            raise RequestError("this forgets how far the target is", where="query delete_progress", hint=hint)
        operations.delete(feed, progress=delete_progress)
        return Deleted(id=changefeed_id, progress_deleted=delete_progress)

    return router
