"""A server with the page's own routes and an API whose answers a test sets, delays, breaks or takes away."""

import asyncio
import json
import socket
import threading
import time
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from itertools import pairwise
from typing import Any

import uvicorn
from fastapi import FastAPI, Request
from fastapi.responses import JSONResponse, Response

from consumer.embedded.ports import lease_port
from consumer.serve.api.decision_models import QuarantineList
from consumer.serve.api.models import ChangefeedList, Health, History, Status, Summary, TableListing
from consumer.serve.page import page_router
from tests.page.scenes import Scene
from tests.service.lab import DEADLINE_S, eventually


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
        self.asked_at: list[float] = []
        """When the list of changefeeds was asked for, in monotonic seconds."""
        self.decided: list[tuple[str, int, str, str]] = []
        """Changefeed, commitTs, word and reason of each DDL that was decided about."""
        self.answers: dict[str, Any] = {}
        """Of `METHOD PATH` below /api/v2/changefeeds: a type of the API, or what a test makes of the body."""
        self.sent: list[tuple[str, str, Any]] = []
        """Method, path below /api/v2/changefeeds with query, and body, as JSON or text, of what `answers` answered."""
        self._lease = lease_port()
        self._socket = socket.create_server(("127.0.0.1", self.port))
        self._server: uvicorn.Server | None = None
        self._thread: threading.Thread | None = None

    @property
    def port(self) -> int:
        """Nobody takes it between `stop` and `start`."""
        return self._lease.port

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
        eventually("the server has started", lambda: server.started)

    def stop(self) -> None:
        """Be gone: connections are refused."""
        assert self._server is not None
        assert self._thread is not None
        self._server.should_exit = self._server.force_exit = True
        self._thread.join(DEADLINE_S)
        self._socket.close()

    def end(self) -> None:
        """Be gone for good."""
        self.stop()
        self._lease.release()

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
        app.add_api_route("/api/v2/changefeeds/{name}/tables", self._tables)
        for verb in ("pause", "resume"):
            app.add_api_route(f"/api/v2/changefeeds/{{name}}/{verb}", self._command(verb), methods=["POST"])
        app.add_api_route("/api/v2/changefeeds/{name}/ddls/{commit_ts}/{verb}", self._decide, methods=["POST"])
        app.add_api_route("/api/v2/health", self._health)
        app.add_api_route("/api/v2/changefeeds{rest:path}", self._other, methods=["GET", "POST", "PUT", "DELETE"])
        return app

    async def _spoilt(self, request: Request) -> Response | None:
        """What comes in the place of an answer, after the delay."""
        path = request.url.path + (f"?{request.url.query}" if request.url.query else "")
        given = request.headers.get("authorization", "")
        self.asked.append((request.method, path, given))
        await asyncio.sleep(self.delay_s)
        if self.token and given != f"Bearer {self.token}":
            fact = "the token is wrong" if given else "a token is needed"
            return failure(401, fact, "Authorization: Bearer $RECONCILER_TOKEN")
        return self.answer

    async def _decide(self, request: Request, name: str, commit_ts: int, verb: str) -> Response:
        if spoilt := await self._spoilt(request):
            return spoilt
        self.decided.append((name, commit_ts, verb, (await request.json())["reason"]))
        return JSONResponse({})

    async def _list(self, request: Request) -> Response:
        self.asked_at.append(time.monotonic())
        if spoilt := await self._spoilt(request):
            return spoilt
        items = [summary_of(one) for one in self.scene.feeds.values()]
        return _json(ChangefeedList(total=len(items), items=items))

    async def _one(self, request: Request, name: str) -> Response:
        if spoilt := await self._spoilt(request):
            return spoilt
        found = self.scene.feeds.get(name)
        return failure(404, f"there is no changefeed {name!r}", "") if found is None else _json(found)

    async def _history(self, request: Request, name: str, since: float = 0, step: int = 2) -> Response:
        if spoilt := await self._spoilt(request):
            return spoilt
        items = [one for one in self.scene.history.get(name, []) if one.at > since]
        coarse = [one for one, after in pairwise([*items, None]) if after is None or one.at // step != after.at // step]
        return _json(History(interval_seconds=step, items=coarse))

    async def _tables(self, request: Request, name: str, contains: str = "", limit: int = 50) -> Response:
        if spoilt := await self._spoilt(request):
            return spoilt
        found = [one for one in self.scene.tables.get(name, []) if contains.lower() in one.table.lower()]
        return _json(TableListing(total=len(found), items=found[:limit]))

    def _command(self, verb: str) -> Callable[[Request, str], Awaitable[Response]]:
        async def command(request: Request, name: str) -> Response:
            if spoilt := await self._spoilt(request):
                return spoilt
            state = {"pause": "stopped", "resume": "normal"}[verb]
            feeds = self.scene.feeds
            feeds[name] = feeds[name].model_copy(update={"state": state, "error": None})
            return JSONResponse({})

        return command

    async def _health(self) -> Response:
        return _json(Health(status="ok", version="1.2.3", changefeeds={}))

    async def _other(self, request: Request, rest: str) -> Response:
        """What a test has an answer for."""
        if spoilt := await self._spoilt(request):
            return spoilt
        found = self.answers.get(f"{request.method} {rest}")
        if found is None and rest.endswith("/quarantine"):
            return _json(QuarantineList(total=0, items=[]))
        if found is None:
            return failure(404, f"nothing is said of {request.method} {rest}", "")
        body = await request.body()
        is_json = request.headers.get("content-type") == "application/json"
        told = json.loads(body) if is_json else body.decode()
        self.sent.append((request.method, rest + (f"?{request.url.query}" if request.url.query else ""), told))
        answer = found if isinstance(found, Response) or not callable(found) else found(told)
        return answer if isinstance(answer, Response) else _json(answer)


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


def failure(status: int, fact: str, hint: str) -> Response:
    """A refusal."""
    return JSONResponse({"error_code": "", "error_msg": fact, "fact": fact, "where": "", "hint": hint}, status)


@contextmanager
def staged(scene: Scene) -> Iterator[Stage]:
    """A stage that serves."""
    stage = Stage(scene)
    stage.start()
    try:
        yield stage
    finally:
        stage.end()
