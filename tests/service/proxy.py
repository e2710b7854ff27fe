"""A TCP proxy that breaks what goes through it: cuts lines, swallows or holds answers, is slow, changes the server."""

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
_LENGTH = 4

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
        self._flowing = threading.Event()
        self._flowing.set()
        self._holds_behind = 0
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
        self.release()

    def hold(self) -> None:
        """Keep back all answers; what is asked goes through."""
        self._flowing.clear()

    def hold_behind(self, size: int) -> None:
        """The same behind the next answer of so many bytes. Answers are Kafka's: each begins with its length."""
        self._holds_behind = size

    def release(self) -> None:
        """Give on what was kept back, and what comes."""
        self._holds_behind = 0
        self._flowing.set()

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
        begun = b""
        with suppress(OSError):
            while piece := line.server.recv(_CHUNK):
                if line.silenced.is_set():
                    break  # it was done, and nobody is told
                if self.delay_s:
                    time.sleep(self.delay_s)
                self._flowing.wait()
                line.client.sendall(piece)
                begun = self._held_behind(begun + piece) if self._holds_behind else b""
        line.cut()

    def _held_behind(self, given: bytes) -> bytes:
        """Hold what follows if an answer that is complete is large enough; what was given of the next one."""
        while len(given) >= (size := _LENGTH + int.from_bytes(given[:_LENGTH])) > _LENGTH:
            if size >= self._holds_behind:
                self.hold()
            given = given[size:]
        return given
