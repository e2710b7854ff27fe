"""The API's orders: create, change, pause, resume, delete; and the config as it is kept."""

from typing import Annotated

from fastapi import APIRouter, Depends, Query

from consumer.serve.api.changefeeds import ChangefeedId
from consumer.serve.api.errors import RequestError
from consumer.serve.api.models import (
    ChangeDone,
    ChangefeedChange,
    ChangePreview,
    CheckLine,
    CheckResult,
    ConfigShown,
    Deleted,
    KeyChange,
    Summary,
)
from consumer.serve.api.request_body import CONFIG_BODY, TOML_BODY, config_text, toml_text
from consumer.serve.fleet import Fleet
from consumer.serve.operations import Operations, ordered
from consumer.serve.status import summary_of


def operating_router(fleet: Fleet, operations: Operations) -> APIRouter:
    """Routes below /api/v2."""
    router = APIRouter(tags=["changefeeds"])

    @router.post("/changefeeds", operation_id="createChangefeed", status_code=201, openapi_extra=CONFIG_BODY)
    async def create(text: Annotated[str, Depends(config_text)]) -> Summary:
        """Keep a config as `ID.toml` and start it."""
        return summary_of(await operations.untold.ask("changefeeds", lambda: operations.create(text)))

    @router.post("/changefeeds/check", operation_id="checkChangefeed", openapi_extra=CONFIG_BODY)
    async def check(text: Annotated[str, Depends(config_text)]) -> CheckResult:
        """Try Kafka, Redis and the target of a config, as `reconciler check`; nothing is kept or changed."""
        found = await operations.checks.ask("changefeeds/check", lambda: operations.check(text))
        items = [CheckLine(**one.as_json(), is_whole=one.is_whole) for one in found]
        return CheckResult(ok=all(one.ok for one in items), items=items)

    @router.get("/changefeeds/{changefeed_id}/config", operation_id="getConfig")
    def config(changefeed_id: ChangefeedId) -> ConfigShown:
        """The config as its file holds it, without secrets."""
        return operations.config(fleet.feed(changefeed_id))

    @router.put("/changefeeds/{changefeed_id}", operation_id="updateChangefeed")
    async def change(changefeed_id: ChangefeedId, body: ChangefeedChange) -> ChangeDone:
        """Change some keys. A changefeed that runs is restarted; what must stay is refused with the reason (409)."""
        feed = fleet.feed(changefeed_id)
        done = await ordered(feed, lambda: operations.change(feed, body.model_dump(exclude_unset=True)))
        return ChangeDone(changed=done.keys, restarted=done.restarted, changefeed=summary_of(feed))

    @router.post("/changefeeds/{changefeed_id}/preview", operation_id="previewChange", openapi_extra=TOML_BODY)
    async def preview(changefeed_id: ChangefeedId, text: Annotated[str, Depends(toml_text)]) -> ChangePreview:
        """What an edited config would change, key by key, and the PUT that does it; refused as that would be."""
        feed = fleet.feed(changefeed_id)
        found = await ordered(feed, lambda: operations.preview(feed, text))
        keys = [KeyChange(key=one.key, before=one.before, after=one.after) for one in found.keys]
        return ChangePreview(keys=keys, restarts=found.restarts, change=found.change)

    @router.post("/changefeeds/{changefeed_id}/pause", operation_id="pauseChangefeed")
    async def pause(changefeed_id: ChangefeedId) -> Summary:
        """Stop it until it is resumed; its window is finished or rolled back."""
        feed = fleet.feed(changefeed_id)
        await ordered(feed, lambda: operations.pause(feed))
        return summary_of(feed)

    @router.post("/changefeeds/{changefeed_id}/resume", operation_id="resumeChangefeed")
    async def resume(changefeed_id: ChangefeedId) -> Summary:
        """Start one that is paused or has failed; its file is read again."""
        feed = fleet.feed(changefeed_id)
        await ordered(feed, lambda: operations.resume(feed))
        return summary_of(feed)

    @router.delete("/changefeeds/{changefeed_id}", operation_id="deleteChangefeed")
    async def delete(
        changefeed_id: ChangefeedId,
        delete_progress: Annotated[bool, Query(description="forget the progress in the target too")] = False,
        confirm: Annotated[str, Query(description="with delete_progress: the id once more")] = "",
    ) -> Deleted:
        """Stop it and remove its file. Rows stay; so does the progress, unless asked: it starts over then."""
        feed = fleet.feed(changefeed_id)
        if delete_progress and confirm != changefeed_id:
            hint = f"add confirm={changefeed_id} to confirm it"
            raise RequestError("this forgets how far the target is", where="query delete_progress", hint=hint)
        await ordered(feed, lambda: operations.delete(feed, progress=delete_progress))
        return Deleted(id=changefeed_id, progress_deleted=delete_progress)

    return router
