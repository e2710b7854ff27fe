"""How long a client may take over a request, and how many connections there may be.

Whoever reaches the port can open connections and send nothing, half a request, or a byte a second, without any token.
So a request has to be here, headers and body, `REQUEST_S` seconds after its connection or its first byte, and an answer
has to be taken `ANSWER_S` seconds after it began to wait for its reader. Of more than `MOST` connections that wait for
their client those are closed that have waited the longest: a client that sends its request at once, as a health check
does, always finds room. Requests that are worked on are never closed for others; of those `MOST_AT_WORK` are let in
besides health, and `MOST_WAITING` that wait for a changefeed (`consumer.serve.access`).
"""

import asyncio
from typing import Any

import h11
import structlog
from uvicorn.protocols.http.h11_impl import H11Protocol

REQUEST_S = 10.0
"""Seconds for a request to come in whole, from its connection or its first byte."""
ANSWER_S = 20.0
"""Seconds for a client to take what was written, once its buffers are full."""
HANDSHAKE_S = 5.0
"""Seconds for a TLS handshake."""
MOST = 200
"""Connections at once that wait for their client."""
log = structlog.get_logger()


class BoundedProtocol(H11Protocol):
    """uvicorn's HTTP/1.1, with deadlines and a limit of connections."""

    since = 0.0
    """When it began to wait for its client; in the loop's time."""
    _deadline: asyncio.TimerHandle | None = None
    _reader: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]  # as uvicorn has it
        """Begin to wait for a request; make room for it."""
        super().connection_made(transport)
        self._wait()
        known = [one for one in self.connections if isinstance(one, BoundedProtocol) and not one.transport.is_closing()]
        waiting = [one for one in known if one.waits_for_client] if len(known) > MOST else []
        if len(waiting) > MOST:
            min(waiting, key=lambda one: one.since).end("of too many that wait it waited the longest")

    @property
    def waits_for_client(self) -> bool:
        """Whether it would go on if its client sent, or read, something."""
        at_work = self.cycle is not None and not self.cycle.response_complete and self.cycle.more_body is False
        return not at_work or self._reader is not None

    def data_received(self, data: bytes) -> None:
        """Take bytes; the deadline counts from a request's first, and goes once all of it is here."""
        if self._deadline is None and self._is_between_requests():
            self._wait()
        super().data_received(data)
        self._look()

    def on_response_complete(self) -> None:
        """Go on with what was sent ahead; the wait between requests is uvicorn's."""
        self.since = self.loop.time()
        super().on_response_complete()
        self._look()

    def connection_lost(self, exc: Exception | None) -> None:
        """Wait no more."""
        self._wait_no_more()
        self.resume_writing()
        super().connection_lost(exc)

    def pause_writing(self) -> None:
        """Its buffers are full: wait for the reader, but not for ever."""
        super().pause_writing()
        if self._reader is None:
            self.since = self.loop.time()
            self._reader = self.loop.call_later(ANSWER_S, self.end, "its answer was not read in time")

    def resume_writing(self) -> None:
        """It has read."""
        if self._reader is not None:
            self._reader.cancel()
            self._reader = None
        super().resume_writing()

    def end(self, why: str) -> None:
        """Close it at once."""
        self._wait_no_more()
        log.debug("a connection was closed", why=why, client=self.client)
        self.transport.abort()

    def _is_between_requests(self) -> bool:
        return self.conn.their_state is h11.IDLE

    def _look(self) -> None:
        """Keep the deadline while a request is on its way, and while nothing but the deadline would end the wait."""
        state = self.conn.their_state
        coming = state is h11.SEND_BODY or (state is h11.IDLE and self.timeout_keep_alive_task is None)
        if not coming:
            self._wait_no_more()
        elif self._deadline is None:
            self._wait()

    def _wait(self) -> None:
        self.since = self.loop.time()
        self._deadline = self.loop.call_later(REQUEST_S, self.end, "its request did not come in time")

    def _wait_no_more(self) -> None:
        if self._deadline is not None:
            self._deadline.cancel()
            self._deadline = None


class BoundedLoop(asyncio.SelectorEventLoop):
    """An event loop whose servers wait for TLS handshakes for some seconds only."""

    async def create_server(self, *args: Any, **more: Any) -> asyncio.Server:
        """See asyncio."""
        if more.get("ssl") is not None:
            more["ssl_handshake_timeout"] = HANDSHAKE_S
        return await super().create_server(*args, **more)
