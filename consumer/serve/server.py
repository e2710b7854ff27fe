"""`reconciler serve`: opens the directory, listens, and ends all cleanly at SIGTERM."""

import asyncio
import ipaddress
import os
import resource
import socket
import ssl
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import structlog
import uvicorn

from consumer.config.text import secret_file
from consumer.runtime.file_locks import try_lock
from consumer.runtime.scratch import scratch_directory
from consumer.runtime.secrets import TOKEN_VARIABLE as _TOKEN
from consumer.runtime.secrets import take_variable
from consumer.runtime.signals import handled
from consumer.serve.access import Access
from consumer.serve.app import application
from consumer.serve.connections import BoundedLoop, BoundedProtocol
from consumer.serve.fleet import Fleet
from consumer.serve.page import page_router
from ordering.errors import ConfigError

_IN_A_FILE = "file:"
"""As in the config: the token is in the file that follows, so that it is in no environment."""
_SHORTEST_TOKEN = 16
_LOCK = ".serve.lock"
_BACKLOG = 128
"""Connections that are taken in at once; each costs a file descriptor before it is counted."""
_GRACE_S = 3
"""So long answers that are under way may take at the end."""
log = structlog.get_logger()


@dataclass(frozen=True, slots=True)
class Listen:
    """Where to listen, how, and by which names."""

    host: str = "127.0.0.1"
    port: int = 8300
    tls_cert: Path | None = None
    tls_key: Path | None = None
    allow_host: tuple[str, ...] = ()

    @property
    def is_loopback(self) -> bool:
        """Whether only this machine reaches it."""
        if self.host == "localhost":
            return True
        try:
            return ipaddress.ip_address(self.host).is_loopback
        except ValueError:
            return False


def serve(folder: Path, listen: Listen) -> None:
    """Run all changefeeds of a directory until SIGTERM or SIGINT. Raises ConfigError."""
    access = Access(_token(listen), listen.is_loopback, frozenset(name.lower() for name in listen.allow_host))
    if not folder.is_dir():
        raise ConfigError("there is no such directory", where=str(folder), hint="a TOML file for each changefeed in it")
    secured = _tls(listen)
    _raise_file_limit()
    with _only_one(folder), scratch_directory() as scratch, _listening(listen) as listening:
        fleet = Fleet(folder, scratch)
        server = _Server(_uvicorn_config(fleet, access))
        server.config.load()
        server.config.ssl = secured
        fleet.open()
        log.info("serving", url=_url(listening, "http" if secured is None else "https"), changefeeds=len(fleet.all()))
        with asyncio.Runner(loop_factory=BoundedLoop) as runner:
            runner.run(server.serve(sockets=[listening]))
        with handled(_nothing):  # another signal does not cut the end short
            is_stopped = fleet.stop()
        if not is_stopped:
            log.warning("a window could not be ended in time; the target rolls it back")
            sys.stderr.flush()
            os._exit(0)  # a thread that waits for the target would keep the process
    log.info("stopped")


def _nothing(_number: int, _frame: object) -> None:
    """Let a signal pass."""


def _raise_file_limit() -> None:
    """Let this process have as many connections as it may: each is an open file, and thousands may wait."""
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))


class _Server(uvicorn.Server):
    """uvicorn, ended by our signals: they end the changefeeds too."""

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Ask for the end, and do not raise the signal again afterwards."""

        def stop(_number: int, _frame: object) -> None:
            self.should_exit = True

        with handled(stop):
            yield


@contextmanager
def _only_one(folder: Path) -> Iterator[None]:
    """Hold the directory: two processes would write its files. One that can't be written needs no holding."""
    try:
        held = try_lock(folder / _LOCK)
    except OSError as error:
        log.warning("the directory can't be written: changes through the API are refused", why=error.strerror)
        yield
        return
    if held is None:
        raise ConfigError("another process serves this directory", where=str(folder), hint="give each its own copy")
    with held:
        yield


def _url(listening: socket.socket, scheme: str) -> str:
    host, port = listening.getsockname()[:2]
    return f"{scheme}://{f'[{host}]' if ':' in host else host}:{port}/"


def _uvicorn_config(fleet: Fleet, access: Access) -> uvicorn.Config:
    return uvicorn.Config(
        application(fleet, access, page_router()),
        log_config=None,
        access_log=False,
        server_header=False,
        lifespan="off",
        ws="none",
        http=BoundedProtocol,
        backlog=_BACKLOG,
        timeout_graceful_shutdown=_GRACE_S,
    )


def _token(listen: Listen) -> str:
    token = take_variable(_TOKEN, _TOKEN) or ""
    if token.startswith(_IN_A_FILE):
        token = secret_file(Path(token.removeprefix(_IN_A_FILE)), _TOKEN)
    if not token and not listen.is_loopback:
        hint = f"export {_TOKEN}=$(openssl rand -hex 32), or listen on 127.0.0.1"
        raise ConfigError(
            f"{listen.host} can be reached from elsewhere, and there is no token", where=_TOKEN, hint=hint
        )
    if token and len(token) < _SHORTEST_TOKEN:
        hint = f"export {_TOKEN}=$(openssl rand -hex 32)"
        raise ConfigError(f"the token is shorter than {_SHORTEST_TOKEN} characters", where=_TOKEN, hint=hint)
    if not token:
        hint = f"export {_TOKEN}=$(openssl rand -hex 32) before the start"
        log.warning("there is no token: the API is closed, and the page can't be used", where=_TOKEN, hint=hint)
    return token


def _listening(listen: Listen) -> socket.socket:
    try:
        family = socket.AF_INET6 if ":" in listen.host else socket.AF_INET
        return socket.create_server((listen.host, listen.port), family=family)
    except OSError as error:
        where = f"{listen.host}:{listen.port}"
        hint = "--host and --port choose another address"
        raise ConfigError(f"can't listen: {error.strerror}", where=where, hint=hint) from error


def _tls(listen: Listen) -> ssl.SSLContext | None:
    if listen.tls_cert is None and listen.tls_key is None:
        return None
    if listen.tls_cert is None or listen.tls_key is None:
        raise ConfigError("TLS needs a certificate and its key", hint="give both --tls-cert FILE and --tls-key FILE")
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    try:
        context.load_cert_chain(listen.tls_cert, listen.tls_key)
    except (OSError, ssl.SSLError) as error:
        where = f"{listen.tls_cert}, {listen.tls_key}"
        raise ConfigError(
            f"the certificate can't be used: {error}", where=where, hint="PEM files, key without password"
        ) from error
    return context
