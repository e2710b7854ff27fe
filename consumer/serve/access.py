"""Who may ask what: the token, the names by which this server may be called, the size of a body.

- Everything needs the token (`Authorization: Bearer TOKEN`), but health and the page's files, which show nothing; on a
  loopback address the API's document and the metrics are open too.
- A page of another site must not talk to us by a DNS name that it made point here: `Host` is an IP address,
  `localhost`, this machine's name or a name that the operator gave, and an `Origin` has to be this very server.
- At most `MOST_AT_WORK` requests are worked on at once, health apart, which needs nothing that could be used up. One
  counts once all of it is here, and not while its client leaves earlier answers unread: who sends half a body, or
  many requests in one go and reads nothing, takes nobody's place.
- Who waits for his write (`/wait`) works on nothing: of these there may be `MOST_WAITING`.
- A body is at most `MOST_BODY` bytes; it is counted while it comes in, whatever its header says.
"""

import hmac
import ipaddress
import re
import socket
from dataclasses import dataclass, field

from starlette.datastructures import Headers
from starlette.responses import JSONResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from consumer.serve.api.errors import (
    BusyError,
    ForbiddenError,
    RequestError,
    TooLargeError,
    UnauthorizedError,
    failure_of,
)

MOST_BODY = 1 << 20
"""Bytes; a config is some kilobytes."""
MOST_AT_WORK = 100
"""Requests besides health."""
MOST_WAITING = 5000
"""Requests that wait for a changefeed; each keeps a connection."""
_HEALTH = re.compile(r"/healthz?|/api/v2/health")
_WAITING = re.compile(r"/api/v2/changefeeds/[^/]+/wait")
_OPEN = re.compile(rf"/|{_HEALTH.pattern}|/page/.*")
_OPEN_ON_LOOPBACK = re.compile(r"/metrics|/openapi\.json")
_HOST = re.compile(
    r"(?:(?P<name>[A-Za-z0-9._-]{1,253})|\[(?P<address>[0-9A-Fa-f:.]{2,45})\])(?::[0-9]{1,5})?", re.ASCII
)
"""What a Host header may hold: no user, path or blank, which other parsers would read in another way."""
_HEADERS = {
    b"x-content-type-options": b"nosniff",
    b"referrer-policy": b"no-referrer",
    b"x-frame-options": b"DENY",
    b"cache-control": b"no-store",
}
_HEARD = frozenset({"GET", "HEAD"})


@dataclass(frozen=True, slots=True)
class Access:
    """What is asked of every request."""

    token: str = field(repr=False)
    """Empty: nobody has it."""
    loopback: bool
    names: frozenset[str] = frozenset()
    """By which this server may be called besides IP addresses, localhost and the machine's own name."""

    def check(self, method: str, path: str, headers: Headers) -> None:
        """Raise ForbiddenError or UnauthorizedError for a request that may not be answered."""
        host = _name_of(headers.getlist("host"))
        if host is None or not self._is_ours(host):
            hint = f"start `reconciler serve` with --allow-host {host or 'NAME'} if that is its name"
            raise ForbiddenError("this server is not known by the name in Host", where="header Host", hint=hint)
        if any(
            origin not in (f"http://{headers['host']}", f"https://{headers['host']}")
            for origin in headers.getlist("origin")
        ):
            raise ForbiddenError(
                "pages of other origins may not use this API", where="header Origin", hint="use the server's own page"
            )
        if not self._is_open(method, path):
            self._check_token(headers.get("authorization", ""))

    def _is_ours(self, name: str) -> bool:
        if name in self.names or name in ("localhost", socket.gethostname().lower()):
            return True
        try:
            ipaddress.ip_address(name)
        except ValueError:
            return False
        return True

    def _is_open(self, method: str, path: str) -> bool:
        if method not in _HEARD:
            return False
        return bool(_OPEN.fullmatch(path) or (self.loopback and _OPEN_ON_LOOPBACK.fullmatch(path)))

    def _check_token(self, authorization: str) -> None:
        if not self.token:
            hint = "start `reconciler serve` with the environment variable RECONCILER_TOKEN, and send it"
            raise UnauthorizedError("this server was started without a token", where="RECONCILER_TOKEN", hint=hint)
        kind, _, given = authorization.partition(" ")
        right = hmac.compare_digest(given.strip().encode(), self.token.encode())
        if kind.lower() != "bearer" or not right:
            fact = "the token is wrong" if authorization else "a token is needed"
            raise UnauthorizedError(fact, where="header Authorization", hint="Authorization: Bearer $RECONCILER_TOKEN")


def _name_of(hosts: list[str]) -> str | None:
    """The name, or the address, of the one Host header; None where it is not exactly that and a port."""
    match = _HOST.fullmatch(hosts[0]) if len(hosts) == 1 else None
    return None if match is None else (match["name"] or match["address"]).lower()


class Guard:
    """Checks each request before the application sees it."""

    def __init__(self, app: ASGIApp, access: Access) -> None:
        self._app, self._access = app, access
        self._at_work = self._waiting = 0

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer, or refuse."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        sending = _with_headers(send)
        try:
            headers = Headers(scope=scope)
            self._access.check(scope["method"], scope["path"], headers)
            _check_size(int(headers.get("content-length", "0") or 0))
            await self._answer(scope, _counting(receive), sending)
        except RequestError as error:
            more = {"WWW-Authenticate": "Bearer"} if isinstance(error, UnauthorizedError) else None
            answer = JSONResponse(failure_of(error).model_dump(), error.status, more)
            await answer(scope, receive, sending)

    async def _answer(self, scope: Scope, receive: Receive, send: Send) -> None:
        if _HEALTH.fullmatch(scope["path"]):
            await self._app(scope, receive, send)
            return
        whole = await _whole(receive)
        if whole is None:
            return
        if _WAITING.fullmatch(scope["path"]):
            await self._wait(scope, whole, send)
            return
        if self._at_work >= MOST_AT_WORK:
            raise BusyError("too many requests are under way", where=scope["path"][:200], hint="try again soon")
        self._at_work += 1
        try:
            await self._app(scope, whole, self._left_meanwhile(send))
        finally:
            self._at_work -= 1

    def _left_meanwhile(self, send: Send) -> Send:
        """What sends an answer, and is not at work while it waits until the client has read what was sent before."""

        async def sending(message: Message) -> None:
            self._at_work -= 1
            try:
                await send(message)
            finally:
                self._at_work += 1

        return sending

    async def _wait(self, scope: Scope, receive: Receive, send: Send) -> None:
        if self._waiting >= MOST_WAITING:
            raise BusyError("too many requests wait", where=scope["path"][:200], hint="try again soon")
        self._waiting += 1
        try:
            await self._app(scope, receive, send)
        finally:
            self._waiting -= 1


def _check_size(size: int) -> None:
    if size > MOST_BODY:
        raise TooLargeError(
            f"the body is larger than {MOST_BODY} bytes", where="body", hint="a config is some kilobytes"
        )


def _counting(receive: Receive) -> Receive:
    size = 0

    async def counted() -> Message:
        nonlocal size
        message = await receive()
        size += len(message.get("body", b""))
        _check_size(size)
        return message

    return counted


async def _whole(receive: Receive) -> Receive | None:
    """What gives a request's body at once; None if the client left before all of it was here."""
    body, is_more = bytearray(), True
    while is_more:
        message = await receive()
        if message["type"] == "http.disconnect":
            return None
        body += message.get("body", b"")
        is_more = message.get("more_body", False)
    waiting: list[Message] = [{"type": "http.request", "body": bytes(body), "more_body": False}]

    async def given() -> Message:
        return waiting.pop() if waiting else await receive()

    return given


def _with_headers(send: Send) -> Send:
    async def sending(message: Message) -> None:
        if message["type"] == "http.response.start":
            given = {name.lower() for name, _ in message["headers"]}
            message["headers"] = [*message["headers"], *((n, v) for n, v in _HEADERS.items() if n not in given)]
        await send(message)

    return sending
