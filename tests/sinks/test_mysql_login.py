"""A server that is none of ours, or stands in between, asks for the password as it is: it does not get it."""

import socket
import struct
from collections.abc import Iterator
from contextlib import contextmanager
from threading import Thread

import pytest

from ordering.errors import TargetError, TargetUnreachableError
from sinks.mysql.connection import MysqlConnection
from sinks.uri import parse_target_uri

SECRET = "s3cr3t-Pa55"
_CAPABILITIES = 0x000F_F7FF & ~0x800
"""All of MySQL 8's but encryption."""


def packet(number: int, payload: bytes) -> bytes:
    return struct.pack("<I", len(payload))[:3] + bytes([number]) + payload


def greeting() -> bytes:
    salt = b"12345678"
    low, high = _CAPABILITIES & 0xFFFF, _CAPABILITIES >> 16
    first = b"\x0a8.0.30\0" + struct.pack("<I", 7) + salt + b"\0" + struct.pack("<HBHHB", low, 255, 2, high, 21)
    return packet(0, first + b"\0" * 10 + b"123456789012\0" + b"mysql_native_password\0")


@contextmanager
def greedy_server(plugin: bytes) -> Iterator[tuple[int, list[bytes]]]:
    """Asks whoever comes to log in again by a plugin; what it was sent after that."""
    got: list[bytes] = []
    with socket.create_server(("127.0.0.1", 0)) as listening:

        def serve() -> None:
            line, _ = listening.accept()
            with line:
                line.settimeout(10)
                line.sendall(greeting())
                got.append(line.recv(1 << 16))
                line.sendall(packet(2, b"\xfe" + plugin + b"\0" + (b"\x04Password: " if plugin == b"dialog" else b"")))
                while some := line.recv(1 << 16):
                    got.append(some)

        thread = Thread(target=serve, daemon=True)
        thread.start()
        yield listening.getsockname()[1], got
        thread.join(10)


@pytest.mark.parametrize("plugin", ["mysql_clear_password", "dialog"])
def test_no_password_in_clear(plugin: str) -> None:
    with greedy_server(plugin.encode()) as (port, got):
        with pytest.raises(TargetError, match="in clear") as caught:
            MysqlConnection(parse_target_uri(f"mysql://root:{SECRET}@127.0.0.1:{port}"))
        assert not isinstance(caught.value, TargetUnreachableError)
    assert got
    assert SECRET.encode() not in b"".join(got)
