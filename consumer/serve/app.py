"""The application: the API under /api/v2, its document, health, metrics, and the page."""

from collections.abc import Awaitable, Callable
from importlib.metadata import version
from typing import Any

import structlog
from fastapi import APIRouter, Depends, FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse, Response
from fastapi.security import HTTPBearer
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect
from starlette.types import ASGIApp

from consumer.serve.access import Access, Guard
from consumer.serve.api.changefeeds import reading_router
from consumer.serve.api.decisions import deciding_router
from consumer.serve.api.errors import NotFoundError, RequestError, failure_of, http_status_of
from consumer.serve.api.messages import looking_router
from consumer.serve.api.models import FailureDetail, Health
from consumer.serve.api.operations import operating_router
from consumer.serve.fleet import Fleet
from consumer.serve.metrics import metrics_router
from consumer.serve.operations import Operations
from ordering.errors import ReconcilerError

VERSION = version("ticdc-reconciler")
_FAILURES: dict[int | str, dict[str, Any]] = {
    code: {"model": FailureDetail} for code in (400, 401, 403, 404, 405, 409, 413, 415, 500, 502, 503, 504)
}
log = structlog.get_logger()


def application(fleet: Fleet, access: Access, *more: APIRouter) -> ASGIApp:
    """What uvicorn serves; `more` are routers of other parts, such as the page."""
    return Guard(api(fleet, *more), access)


def api(fleet: Fleet, *more: APIRouter) -> FastAPI:
    """The application without its guard; it knows its OpenAPI document."""
    app = FastAPI(
        title="ticdc-reconciler",
        version=VERSION,
        summary="Changefeeds of `reconciler serve`",
        docs_url=None,  # they would load scripts from elsewhere
        redoc_url=None,
        responses=_FAILURES,
    )
    app.add_exception_handler(ReconcilerError, _foreseen(fleet))
    app.add_exception_handler(RequestValidationError, _invalid)
    app.add_exception_handler(HTTPException, _of_http)
    app.add_exception_handler(ClientDisconnect, _gone)
    app.add_exception_handler(Exception, _bug)
    token = Depends(HTTPBearer(auto_error=False, description="RECONCILER_TOKEN; checked before anything else"))
    app.include_router(_health_router(fleet))
    app.include_router(metrics_router(fleet))
    operations = Operations(fleet)
    routers = reading_router(fleet), operating_router(fleet, operations), deciding_router(fleet, operations)
    for router in (*routers, looking_router(fleet)):
        app.include_router(router, prefix="/api/v2", dependencies=[token])
    for router in more:
        app.include_router(router)
    return app


def _health_router(fleet: Fleet) -> APIRouter:
    router = APIRouter(tags=["health"])

    @router.get("/api/v2/health", operation_id="health")
    @router.get("/health", include_in_schema=False)
    @router.get("/healthz", include_in_schema=False)
    async def health() -> Health:
        """Whether the process answers. A changefeed that has failed does not make it ill: see its status."""
        return Health(status="ok", version=VERSION, changefeeds=fleet.states())

    return router


def _foreseen(fleet: Fleet) -> Callable[[Request, Exception], Awaitable[JSONResponse]]:
    """Answers an error; its commands name the file of the changefeed that the request is about."""

    async def answer(request: Request, error: Exception) -> JSONResponse:
        status = http_status_of(error) if isinstance(error, ReconcilerError) else 500
        feed = fleet.feeds.get(request.path_params.get("changefeed_id", ""))
        return JSONResponse(failure_of(error, None if feed is None else feed.path).model_dump(), status)

    return answer


async def _invalid(_request: Request, error: Exception) -> JSONResponse:
    found = error.errors() if isinstance(error, RequestValidationError) else []
    said = "; ".join(f"{'.'.join(map(str, one['loc']))}: {one['msg']}" for one in found)
    wrong = RequestError(f"the request is wrong: {said[:1000]}", where="request", hint="see /openapi.json")
    return JSONResponse(failure_of(wrong).model_dump(), wrong.status)


async def _of_http(request: Request, error: Exception) -> JSONResponse:
    if not isinstance(error, HTTPException):
        return await _bug(request, error)
    kind: type[RequestError] = NotFoundError if error.status_code == NotFoundError.status else RequestError
    wrong = kind(str(error.detail), where=f"{request.method} {request.url.path}"[:500], hint="see /openapi.json")
    return JSONResponse(failure_of(wrong).model_dump(), error.status_code, dict(error.headers or {}))


async def _gone(request: Request, _error: Exception) -> Response:
    """The client has left in the middle of its request, as clients do; nobody reads the answer."""
    log.debug("a client left before its request was here", path=request.url.path)
    return Response(status_code=RequestError.status)


async def _bug(request: Request, error: Exception) -> JSONResponse:
    log.error("a request met a bug", path=request.url.path, exc_info=error)
    return JSONResponse(failure_of(error).model_dump(), 500)
