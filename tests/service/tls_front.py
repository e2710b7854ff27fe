"""TLS in front of a server that speaks in clear: for servers whose own TLS depends on how they were built."""

import socket
import ssl
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from threading import Thread

from tests.certificates import Certificate


@contextmanager
def tls_front(port: int, shown: Certificate, *, clients_of: str = "") -> Iterator[int]:
    """The port of a front before `port`; it takes only clients whose certificate `clients_of` signed, if named."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(shown.certificate, shown.key)
    if clients_of:
        context.verify_mode = ssl.CERT_REQUIRED
        context.load_verify_locations(clients_of)
    with socket.create_server(("127.0.0.1", 0)) as listening:
        Thread(target=_accept, args=(listening, context, port), daemon=True).start()
        yield listening.getsockname()[1]


def _accept(listening: socket.socket, context: ssl.SSLContext, port: int) -> None:
    with suppress(OSError):  # it is closed when nobody needs it any more
        while True:
            line, _ = listening.accept()
            Thread(target=_serve, args=(line, context, port), daemon=True).start()


def _serve(line: socket.socket, context: ssl.SSLContext, port: int) -> None:
    with (
        suppress(OSError),
        context.wrap_socket(line, server_side=True) as client,
        socket.create_connection(("127.0.0.1", port)) as server,
    ):
        Thread(target=_pump, args=(server, client), daemon=True).start()
        _pump(client, server)


def _pump(source: socket.socket, sink: socket.socket) -> None:
    with suppress(OSError):
        while some := source.recv(1 << 16):
            sink.sendall(some)
        sink.shutdown(socket.SHUT_WR)
