"""What every embedded server is: a data directory, a port that it keeps, and one process that can be broken."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from pathlib import Path
from types import TracebackType
from typing import ClassVar, Self

from consumer.embedded.errors import EmbeddedError
from consumer.embedded.ports import PortLease, is_free, lease_port
from consumer.embedded.process import ServerProcess


class EmbeddedServer(ABC):
    """A context manager over one server; `stop` and `start` keep data and port, `close` gives the port back."""

    name: ClassVar[str]

    def __init__(self, directory: Path, port: int | None) -> None:
        self.directory = directory.absolute()
        self._leases: list[PortLease] = []
        self.port = self._lease(port)
        self._process: ServerProcess | None = None

    @abstractmethod
    def _command(self) -> list[str]:
        """Prepare the data directory where that is needed, and return the command that serves it."""

    @abstractmethod
    def _ready(self) -> bool:
        """Whether the server answers in its own protocol."""

    @property
    def log(self) -> Path:
        """What the server printed, over all its starts."""
        return self.directory / f"{self.name}.log"

    @property
    def running(self) -> bool:
        """Whether the server's process exists."""
        return self._process is not None and self._process.running

    @property
    def pid(self) -> int:
        """The server's process id."""
        return self._existing().pid

    def start(self) -> Self:
        """Start it and wait until it serves; nothing happens if it runs already."""
        if not self.running:
            self._refuse_taken_port()
            self._prepared().start()
        return self

    def stop(self) -> None:
        """End it in its own good order; data and port are kept."""
        self._act(ServerProcess.stop)

    def kill(self) -> None:
        """End it as a crash would."""
        self._act(ServerProcess.kill)

    def restart(self) -> None:
        """Stop, then start on the same data and port."""
        self.stop()
        self.start()

    def pause(self) -> None:
        """Freeze it: connections stay open, nothing answers."""
        self._existing().pause()

    def resume(self) -> None:
        """Let it go on after `pause`."""
        self._existing().resume()

    def close(self) -> None:
        """Stop it and give its ports back."""
        self.stop()
        for lease in self._leases:
            lease.release()

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _lease(self, wanted: int | None = None) -> int:
        self._leases.append(lease_port(wanted))
        return self._leases[-1].port

    def _refuse_taken_port(self) -> None:
        # otherwise whatever listens there would pass for ours
        if not is_free(self.port):
            raise EmbeddedError(f"{self.name} cannot listen on 127.0.0.1:{self.port}: something else does")

    def _prepared(self) -> ServerProcess:
        if self._process is None:
            self.directory.mkdir(parents=True, exist_ok=True)
            self._process = self._process_of(self._command())
        return self._process

    def _process_of(self, command: Sequence[str]) -> ServerProcess:
        return ServerProcess(self.name, command, self.log, self._ready)

    def _existing(self) -> ServerProcess:
        if self._process is None:
            raise EmbeddedError(f"{self.name} was never started")
        return self._process

    def _act(self, action: Callable[[ServerProcess], None]) -> None:
        if self._process is not None:
            action(self._process)
