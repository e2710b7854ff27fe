"""Servers that are none: they speak as much of a protocol as it takes to be given a password."""

import select
import socket
import ssl
import struct
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from threading import Thread

from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import padding, rsa
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

SALT = b"abcdefgh123456789012"
_CAPABILITIES = 0x000F_F7FF & ~0x800
"""All of MySQL 8's but encryption."""
_ENCRYPTION = 0x800
_KEY = rsa.generate_private_key(public_exponent=65537, key_size=2048)
OK = b"\0\0\0\x02\0\0\0"


def _in_pem(key: rsa.RSAPrivateKey) -> bytes:
    return key.public_key().public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo)


PUBLIC_KEY = _in_pem(_KEY)


def another_key() -> bytes:
    """The public key of a server that is another one."""
    return _in_pem(rsa.generate_private_key(public_exponent=65537, key_size=2048))


def packet(number: int, payload: bytes) -> bytes:
    """A packet of MySQL's."""
    return struct.pack("<I", len(payload))[:3] + bytes([number % 256]) + payload


def greeting(plugin: str = "mysql_native_password", *, tls: bool = False, version: bytes = b"8.0.30") -> bytes:
    """What a server says first."""
    offered = _CAPABILITIES | (_ENCRYPTION if tls else 0)
    low, high = offered & 0xFFFF, offered >> 16
    first = b"\x0a" + version + b"\0" + struct.pack("<I", 7) + SALT[:8] + b"\0"
    return (
        first + struct.pack("<HBHHB", low, 255, 2, high, 21) + b"\0" * 10 + SALT[8:] + b"\0" + plugin.encode() + b"\0"
    )


@dataclass(slots=True)
class Greedy:
    """Asks whoever comes for a login by `plugin`, by all the means that it has; `heard` is what it was sent."""

    plugin: str
    first: str = "mysql_native_password"
    """What its greeting names."""
    context: ssl.SSLContext | None = None
    """TLS with some certificate."""
    content: bool = False
    """Whether it lets in who has answered."""
    heard: list[bytes] = field(default_factory=list)
    port: int = 0

    def learned(self, password: bytes) -> bool:
        """Whether it knows the password now."""
        return any(password in some or password in _decrypted(some) for some in self.heard)

    def serve(self, listening: socket.socket) -> None:
        """Take one connection."""
        line, _ = listening.accept()
        with line, suppress(OSError):  # who is refused hangs up
            line.settimeout(10)
            line.sendall(packet(0, greeting(self.first, tls=self.context is not None)))
            if self.context is None:
                self._talk(line)
                return
            _receive(line)
            with self.context.wrap_socket(line, server_side=True) as secured:
                self._talk(secured)

    def _talk(self, line: socket.socket) -> None:
        number, said = _receive(line)
        self.heard.append(said)
        prompt = b"\x04Password: " if self.plugin == "dialog" else SALT + b"\0"
        line.sendall(packet(number + 1, b"\xfe" + self.plugin.encode() + b"\0" + prompt))
        while True:
            number, said = _receive(line)
            self.heard.append(said)
            line.sendall(packet(number + 1, self._answer(said)))

    def _answer(self, said: bytes) -> bytes:
        if said in (b"\x01", b"\x02"):
            return b"\x01" + PUBLIC_KEY
        scrambled = self.plugin == "caching_sha2_password" and len(said) == 32
        return b"\x01\x04" if scrambled or not self.content else OK


def _receive(line: socket.socket) -> tuple[int, bytes]:
    head = _exactly(line, 4)
    return head[3], _exactly(line, int.from_bytes(head[:3], "little"))


def _exactly(line: socket.socket, size: int) -> bytes:
    got = b""
    while len(got) < size:
        some = line.recv(size - len(got))
        if not some:
            raise ConnectionResetError
        got += some
    return got


def _decrypted(blob: bytes) -> bytes:
    try:
        message = _KEY.decrypt(blob, padding.OAEP(padding.MGF1(hashes.SHA1()), hashes.SHA1(), None))  # noqa: S303 MySQL's
    except ValueError:
        return b""
    return bytes(one ^ SALT[i % len(SALT)] for i, one in enumerate(message))


@contextmanager
def served(serve: Callable[[socket.socket], None]) -> Iterator[int]:
    """Run it beside; its port on loopback."""
    with socket.create_server(("127.0.0.1", 0)) as listening:
        thread = Thread(target=serve, args=(listening,), daemon=True)
        thread.start()
        yield int(listening.getsockname()[1])
        listening.close()
        thread.join(10)


def greedy_postgres(listening: socket.socket, heard: list[bytes], context: ssl.SSLContext | None = None) -> None:
    """A PostgreSQL that asks for the password as it is."""
    line, _ = listening.accept()
    with suppress(OSError):
        line.settimeout(10)
        while (size := int.from_bytes(_exactly(line, 4))) == 8:
            asked = int.from_bytes(_exactly(line, 4))
            encrypt = context is not None and asked == 80877103
            line.sendall(b"S" if encrypt else b"N")
            if encrypt and context is not None:
                line = context.wrap_socket(line, server_side=True)
        _exactly(line, size - 4)
        line.sendall(b"R" + struct.pack(">II", 8, 3))
        heard.append(line.recv(1 << 16))
    line.close()


def endless(answer: bytes, payload: bytes) -> Callable[[socket.socket], None]:
    """A MySQL that takes settings, and answers a question with `answer` and then packets without an end."""
    first = answer.count(COLUMN) * 2 + 2
    piece = b"".join(packet(first + i, payload) for i in range(256 if len(payload) < 0xFFFFFF else 1))

    def serve(listening: socket.socket) -> None:
        line, _ = listening.accept()
        with line, suppress(OSError):
            line.settimeout(20)
            line.sendall(packet(0, greeting()))
            number, _ = _receive(line)
            line.sendall(packet(number + 1, OK))
            while _receive(line)[1][1:4] == b"SET":
                line.sendall(packet(1, OK))
            line.sendall(answer)
            while True:
                line.sendall(piece)

    return serve


def told(kind: bytes, payload: bytes = b"") -> bytes:
    """A message of PostgreSQL's."""
    return kind + struct.pack(">I", len(payload) + 4) + payload


PG_READY = told(b"Z", b"I")
_PG_COLUMN = b"c\0" + struct.pack(">IHIhih", 0, 0, 25, -1, -1, 0)
PG_ROWS = told(b"1") + told(b"2") + told(b"T", struct.pack(">H", 1) + _PG_COLUMN)
"""How an answer with one column, a text, begins."""


def endless_postgres(answer: bytes, piece: bytes, *, login: bool = False) -> Callable[[socket.socket], None]:
    """A PostgreSQL that takes settings, and answers a question with `answer` and then `piece` without an end.

    `login`: it answers the login so.
    """

    def serve(listening: socket.socket) -> None:
        line, _ = listening.accept()
        with line, suppress(OSError):
            line.settimeout(20)
            while (size := int.from_bytes(_exactly(line, 4))) == 8:
                _exactly(line, 4)
                line.sendall(b"N")
            _exactly(line, size - 4)
            line.sendall(told(b"R", struct.pack(">I", 0)) + (b"" if login else PG_READY))
            while not login and (kind := _exactly(line, 1)) != b"P":
                _exactly(line, int.from_bytes(_exactly(line, 4)) - 4)
                if kind == b"Q":
                    line.sendall(told(b"C", b"SET\0") + PG_READY)
            line.sendall(answer)
            rest = b""
            while listening.fileno() >= 0:  # who has hung up without reading may leave the line without room for ever
                rest = rest or piece
                if select.select([], [line], [], 0.1)[1]:
                    rest = rest[line.send(rest) :]

    return serve


COLUMN = b"\x03def" + b"\0" * 3 + b"\x01c\0" + b"\x0c\x2d\0\0\0\0\0\xfd\0\0\0\0\0"
"""The definition of a column `c`, a text."""
ROWS = packet(1, b"\x01") + packet(2, COLUMN) + packet(3, b"\xfe\0\0\x02\0")
"""How an answer with one column begins."""
