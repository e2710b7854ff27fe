"""The status page."""

from fastapi import APIRouter
from fastapi.responses import HTMLResponse

_SHELL = """<!doctype html>
<html lang="en"><meta charset="utf-8"><title>ticdc-reconciler</title>
<p>The API is under <code>/api/v2/changefeeds</code>, its document at <a href="/openapi.json">/openapi.json</a>.</p>
</html>
"""


def page_router() -> APIRouter:
    """Routes of the page: `/`, and its files below `/page/`. They are open, so they must show nothing."""
    router = APIRouter(include_in_schema=False)

    @router.get("/")
    async def shell() -> HTMLResponse:
        return HTMLResponse(_SHELL)

    return router
