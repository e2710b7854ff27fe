"""A proxy on loopback that lets the store's library reach the store and the logins that it needs, and nothing else.

The library follows redirects, and can't be told not to. So a server in the place of a store could make it ask any
address that this machine reaches, and get there what the first request held: the session token of AWS as a header, and
a signature of Azure in `Referer`.
"""

import json
import os
from collections.abc import Mapping
from contextlib import suppress
from functools import cache
from pathlib import Path
from socket import SHUT_RDWR, create_connection, socket
from socketserver import BaseRequestHandler, ThreadingTCPServer
from threading import Thread
from typing import NamedTuple
from urllib.parse import SplitResult, urlsplit

import structlog

from consumer.large_messages.locations import StorePlace

_CLOUDS = (
    ".amazonaws.com", ".amazonaws.com.cn", ".core.windows.net", ".core.usgovcloudapi.net", ".core.chinacloudapi.cn",
    ".fabric.microsoft.com", ".googleapis.com",
)  # fmt: skip
_LOGINS = frozenset({"login.microsoftonline.com", "oauth2.googleapis.com"})
_OF_MACHINES = frozenset({
    "169.254.169.254", "169.254.170.2", "169.254.170.23", "fd00:ec2::23", "metadata.google.internal", "metadata",
})  # fmt: skip
"""Where a machine asks for the login of its own role."""
_GIVEN = ("access_key", "account_key", "sas_", "token", "service_account", "client_secret", "skip_signature")
"""Parts of the names of options that hold a login, or say that none is needed."""
_ENDPOINTS = frozenset({
    "endpoint", "endpoint_url", "aws_endpoint", "aws_endpoint_url", "azure_endpoint", "azure_storage_endpoint",
})  # fmt: skip
_ADDRESSES = ("endpoint", "authority", "uri", "url")
"""Parts of the names of options that hold an address. In others, as an account's name, one would be a way out."""
_EMULATOR = ("127.0.0.1", 10000)
"""Azurite's address, which the library knows by heart."""
_VARIABLES = ("AWS_", "AZURE_", "AZURITE_", "GOOGLE_", "IDENTITY_", "MSI_")
_PROXIES = ("http_proxy", "https_proxy", "all_proxy")
_PORTS = {"http": 80, "https": 443}
_LONGEST_HEAD, _PIECE, _CONNECT_S = 64 << 10, 1 << 18, 30.0
_MOST_ANSWER = (1 << 30) + (64 << 20)
"""More than the largest file that is read: the library holds errors and pages of listings whole."""
NOT_FOLLOWED = "it leads to another host, and redirects are not followed"
log = structlog.get_logger()


class Allowed(NamedTuple):
    """Which hosts a store's library may ask."""

    addresses: frozenset[tuple[str, int]]
    clouds: tuple[str, ...] = ()
    others: frozenset[str] = frozenset()

    def __call__(self, host: str, port: int) -> bool:
        """Whether this one."""
        name = host.lower().rstrip(".")
        of_a_cloud = port in _PORTS.values() and (name in self.others or name.endswith(self.clouds or ("\0",)))
        return (name, port) in self.addresses or of_a_cloud


def has_proxy(options: Mapping[str, str]) -> bool:
    """Whether requests go through a proxy of the operator's, which decides where they may go."""
    return "proxy_url" in options or any(os.environ.get(one) or os.environ.get(one.upper()) for one in _PROXIES)


def allowed_for(place: StorePlace, options: Mapping[str, str]) -> Allowed:
    """The hosts of a store with these options, and those that its logins come from."""
    variables = {name: value for name, value in os.environ.items() if name.startswith(_VARIABLES)}
    given_urls = [value for name, value in options.items() if any(part in name for part in _ADDRESSES)]
    urls = [*given_urls, *variables.values(), *_in_key(options, variables)]
    web = place.scheme in _PORTS
    if web:
        urls.append(str(place))
    addresses = {_address(parts) for parts in map(_parts, urls) if parts is not None}
    elsewhere = web and not place.host.partition(":")[0].endswith(_CLOUDS)
    if any("use_emulator" in name.lower() for name in (*options, *variables)):
        addresses.add(_EMULATOR)
    has_endpoint = elsewhere or not _ENDPOINTS.isdisjoint(options)
    given = any(part in name for name in options for part in _GIVEN)
    others = _LOGINS if given else _LOGINS | _OF_MACHINES
    return Allowed(frozenset(addresses), () if has_endpoint and given else _CLOUDS, others)


def _parts(url: str) -> SplitResult | None:
    try:
        parts = urlsplit(url)
        is_one = parts.scheme in _PORTS and bool(parts.hostname) and parts.port != 0
    except ValueError:
        return None
    return parts if is_one else None


def _address(parts: SplitResult) -> tuple[str, int]:
    return (parts.hostname or "").lower().rstrip("."), parts.port or _PORTS[parts.scheme]


def _in_key(options: Mapping[str, str], variables: Mapping[str, str]) -> list[str]:
    """The address in a key of Google's, which the library takes for the store's."""
    texts = [options.get("service_account_key", "")]
    files = [options.get("service_account", ""), options.get("service_account_path", "")]
    for name in filter(None, [*files, variables.get("GOOGLE_SERVICE_ACCOUNT", "")]):
        with suppress(OSError, ValueError):  # the library says what is wrong with it
            texts.append(Path(name).read_text())
    found = []
    for text in filter(None, texts):
        with suppress(ValueError, LookupError, TypeError, RecursionError):
            found.append(str(json.loads(text)["gcs_base_url"]))
    return found


@cache
def proxy_for(allowed: Allowed) -> str:
    """Start a proxy that lives as long as the process, for all stores that may ask the same hosts; its URL."""

    class Handler(_Handler):
        may_go = allowed

    server = ThreadingTCPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    Thread(target=server.serve_forever, daemon=True, name="store-proxy").start()
    return f"http://127.0.0.1:{server.server_address[1]}"


class _Handler(BaseRequestHandler):
    """One request of the library's: a tunnel for TLS, or one exchange without."""

    request: socket
    may_go: Allowed

    def handle(self) -> None:
        with suppress(OSError):  # either side has gone, which the other one sees
            self._handle()

    def _handle(self) -> None:
        head, rest = self._head()
        method, target, _ = (*head.split(b"\r\n", 1)[0].decode("latin-1").split(" "), "", "", "")[:3]
        is_tunnel = method == "CONNECT"
        parts = _parts(f"https://{target}" if is_tunnel else target)
        if parts is None:
            self._answer(400, "no request for a proxy")
            return
        host, port = _address(parts)
        if not self.may_go(host, port):
            log.warning("a store redirects to another host, which is not followed", host=f"{host}:{port}"[:300])
            self._answer(403, NOT_FOLLOWED)
            return
        try:
            line = create_connection((host, port), _CONNECT_S)
        except OSError as error:
            self._answer(502, str(error))
            return
        with line:
            line.settimeout(None)
            if is_tunnel:
                self.request.sendall(b"HTTP/1.1 200 Connected\r\n\r\n")
                line.sendall(rest)
            else:
                line.sendall(_forwarded(head, parts) + rest)
            self._pass(line, is_tunnel=is_tunnel)

    def _head(self) -> tuple[bytes, bytes]:
        read = b""
        self.request.settimeout(_CONNECT_S)
        while b"\r\n\r\n" not in read:
            piece = self.request.recv(_LONGEST_HEAD)
            if not piece or len(read) > _LONGEST_HEAD:
                raise ConnectionError
            read += piece
        self.request.settimeout(None)
        head, _, rest = read.partition(b"\r\n\r\n")
        return head, rest

    def _pass_status(self, line: socket) -> None:
        """The first line of an answer, and that the connection ends behind it, which not every server says."""
        read = b""
        while b"\r\n" not in read:
            piece = line.recv(_LONGEST_HEAD)
            if not piece or len(read) > _LONGEST_HEAD:
                raise ConnectionError
            read += piece
        first, _, rest = read.partition(b"\r\n")
        self.request.sendall(b"\r\n".join((first, b"Connection: close", rest)))

    def _answer(self, status: int, text: str) -> None:
        body = text.encode()
        self.request.sendall(b"HTTP/1.1 %d -\r\nConnection: close\r\nContent-Length: %d\r\n\r\n" % (status, len(body)))
        self.request.sendall(body)

    def _pass(self, line: socket, *, is_tunnel: bool) -> None:
        """What either side sends, until one ends; an answer without an end is cut."""
        came = [0]
        sending = Thread(target=self._send, args=(line, came), daemon=True)
        sending.start()
        with suppress(OSError):
            if not is_tunnel:
                self._pass_status(line)
            while piece := line.recv(_PIECE):
                came[0] += len(piece)
                if came[0] > _MOST_ANSWER:
                    break
                self.request.sendall(piece)
        for one in (line, self.request):
            with suppress(OSError):
                one.shutdown(SHUT_RDWR)
        sending.join()

    def _send(self, line: socket, came: list[int]) -> None:
        with suppress(OSError):
            while piece := self.request.recv(_PIECE):
                came[0] = 0
                line.sendall(piece)
        with suppress(OSError):
            line.shutdown(SHUT_RDWR)  # the library waits no longer


def _forwarded(head: bytes, to: SplitResult) -> bytes:
    """A request as a server takes it, for one exchange: the next one may be for another host."""
    first, *lines = head.split(b"\r\n")
    method = first.split(b" ", 1)[0]
    path = (to.path or "/") + (f"?{to.query}" if to.query else "")
    kept = [one for one in lines if not one.lower().startswith((b"connection:", b"proxy-"))]
    return b"\r\n".join([b"%b %b HTTP/1.1" % (method, path.encode("latin-1")), *kept, b"Connection: close", b"", b""])
