"""A server with the page's own routes and an API whose answers a test sets, delays, breaks or takes away."""

import asyncio
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import uvicorn
from fastapi import FastAPI, Request
from fastapi.responses import JSONResponse, Response

from consumer.page import page_router
from consumer.serving.shapes import ChangefeedList, History, Status, Summary
from tests.page.scenes import Scene
from tests.service.lab import eventually


class Stage:
    """The server. `scene` is what it tells; the rest is how it fails."""

    def __init__(self, scene: Scene) -> None:
        self.scene = scene
        self.delay_s = 0.0
        self.token = ""
        self.answer: Response | None = None
        """In the place of every answer."""
        self.asked: list[tuple[str, str, str]] = []
        """Method, path with query, Authorization."""
        self._socket = socket.create_server(("127.0.0.1", 0))
        self.port = self._socket.getsockname()[1]
        self._server: uvicorn.Server | None = None
        self._thread: threading.Thread | None = None

    @property
    def url(self) -> str:
        """Of the page."""
        return f"http://127.0.0.1:{self.port}/"

    def start(self) -> None:
        """Serve; again after `stop`."""
        if self._socket.fileno() < 0:
            self._socket = socket.create_server(("127.0.0.1", self.port))
        config = uvicorn.Config(self._app(), log_config=None, lifespan="off", ws="none", timeout_graceful_shutdown=1)
        self._server = server = uvicorn.Server(config)
        self._thread = threading.Thread(target=lambda: asyncio.run(server.serve([self._socket])), daemon=True)
        self._thread.start()
        eventually("the server has started", lambda: server.started, 20)

    def stop(self) -> None:
        """Be gone: connections are refused."""
        assert self._server is not None
        assert self._thread is not None
        self._server.should_exit = self._server.force_exit = True
        self._thread.join(20)
        self._socket.close()

    @property
    def is_gone(self) -> bool:
        """Whether `stop` was called last."""
        return self._socket.fileno() < 0

    def _app(self) -> FastAPI:
        app = FastAPI(openapi_url=None)
        app.include_router(page_router())
        app.add_api_route("/api/v2/changefeeds", self._list)
        app.add_api_route("/api/v2/changefeeds/{name}", self._one)
        app.add_api_route("/api/v2/changefeeds/{name}/history", self._history)
        app.add_api_route("/api/v2/changefeeds/{name}/{verb}", self._command, methods=["POST"])
        return app

    async def _spoilt(self, request: Request) -> Response | None:
        """What comes in the place of an answer, after the delay."""
        path = request.url.path + (f"?{request.url.query}" if request.url.query else "")
        given = request.headers.get("authorization", "")
        self.asked.append((request.method, path, given))
        await asyncio.sleep(self.delay_s)
        if self.token and given != f"Bearer {self.token}":
            fact = "the token is wrong" if given else "a token is needed"
            return _failure(401, fact, "Authorization: Bearer $RECONCILER_TOKEN")
        return self.answer

    async def _list(self, request: Request) -> Response:
        if spoilt := await self._spoilt(request):
            return spoilt
        items = [summary_of(one) for one in self.scene.feeds.values()]
        return _json(ChangefeedList(total=len(items), items=items))

    async def _one(self, request: Request, name: str) -> Response:
        if spoilt := await self._spoilt(request):
            return spoilt
        found = self.scene.feeds.get(name)
        return _failure(404, f"there is no changefeed {name!r}", "") if found is None else _json(found)

    async def _history(self, request: Request, name: str, since: float = 0) -> Response:
        if spoilt := await self._spoilt(request):
            return spoilt
        items = [one for one in self.scene.history.get(name, []) if one.at > since]
        return _json(History(interval_seconds=2.0, items=items))

    async def _command(self, request: Request, name: str, verb: str) -> Response:
        if spoilt := await self._spoilt(request):
            return spoilt
        state = {"pause": "stopped", "resume": "normal"}[verb]
        feeds = self.scene.feeds
        feeds[name] = feeds[name].model_copy(update={"state": state, "error": None})
        return JSONResponse({})


def summary_of(status: Status) -> Summary:
    """The list's line of a status."""
    return Summary(
        id=status.changefeed,
        state=status.state,
        checkpoint_tso=status.checkpoint_ts,
        checkpoint_time=status.checkpoint_time,
        lag_seconds=status.source.lag_seconds,
        lag_now_seconds=status.lag_now_seconds,
        leads=status.leads,
        leader=None if status.leader is None else status.leader.name,
        target=status.target,
        stalled_partitions=sum(p.stalled for p in status.source.partitions),
        quarantine_held=status.quarantine.get("held", 0),
        error=status.error,
    )


def _json(shape: Any) -> Response:
    return Response(shape.model_dump_json(), media_type="application/json")


def _failure(status: int, fact: str, hint: str) -> Response:
    return JSONResponse({"error_code": "", "error_msg": fact, "fact": fact, "where": "", "hint": hint}, status)


@contextmanager
def staged(scene: Scene) -> Iterator[Stage]:
    """A stage that serves."""
    stage = Stage(scene)
    stage.start()
    try:
        yield stage
    finally:
        stage.stop()
