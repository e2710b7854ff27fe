"""A TCP proxy that breaks what goes through it: cuts lines, swallows answers, is slow, changes the server behind it."""

import socket
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from types import TracebackType
from typing import Self

_CHUNK = 1 << 16
_ANSWER_S = 10.0

Place = tuple[str, int]


@dataclass
class _Line:
    """A connection of a client and the one to the server behind it."""

    client: socket.socket
    server: socket.socket
    silenced: threading.Event = field(default_factory=threading.Event)

    def cut(self) -> None:
        """End both sides."""
        for end in (self.client, self.server):
            with suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)
            end.close()


class Proxy:
    """Listens on a port of its own; `to` is where new connections go."""

    def __init__(self, host: str, port: int) -> None:
        self.to: Place = (host, port)
        self.delay_s = 0.0
        """How long each piece of an answer is held."""
        self.refuses = False
        """Whether new connections are ended at once."""
        self.loses: Callable[[bytes], bool] = lambda _: False
        """Whether the answer to what a client just sent is to be lost, and the line with it."""
        self.lost = 0
        self._lines: list[_Line] = []
        self._lock = threading.Lock()
        self._listening = socket.create_server(("127.0.0.1", 0))
        self.port = int(self._listening.getsockname()[1])

    def __enter__(self) -> Self:
        threading.Thread(target=self._accept, daemon=True).start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._listening.close()
        self.cut()

    def cut(self) -> None:
        """End every connection that is open."""
        with self._lock:
            lines, self._lines = self._lines, []
        for line in lines:
            line.cut()

    def _accept(self) -> None:
        while True:
            try:
                client, _ = self._listening.accept()
            except OSError:
                return  # closed
            if self.refuses:
                client.close()
                continue
            try:
                server = socket.create_connection(self.to, timeout=10)
            except OSError:
                client.close()
                continue
            server.settimeout(None)
            line = _Line(client, server)
            with self._lock:
                self._lines.append(line)
            for work in (self._forward, self._answer):
                threading.Thread(target=work, args=(line,), daemon=True).start()

    def _forward(self, line: _Line) -> None:
        with suppress(OSError):
            while piece := line.client.recv(_CHUNK):
                if self.loses(piece):
                    line.silenced.set()
                line.server.sendall(piece)
                if line.silenced.is_set():
                    self.lost += 1
                    return  # the other side cuts the line once the server has answered
        line.cut()

    def _answer(self, line: _Line) -> None:
        with suppress(OSError):
            while piece := line.server.recv(_CHUNK):
                if line.silenced.is_set():
                    break  # it was done, and nobody is told
                if self.delay_s:
                    time.sleep(self.delay_s)
                line.client.sendall(piece)
        line.cut()
