"""The operating system's certificates as a Java trust store.

The Java runtime in a wheel trusts only the authorities it was built with. Where a company's proxy signs connections
with its own authority, the system's bundle (which Python and pip use) knows it and that runtime does not. A store in
Java's own JKS format is a few length-prefixed fields, so no keytool, which the wheel lacks, is needed to write one.
"""

import hashlib
import ssl
import struct
import time
from pathlib import Path

_PASSWORD = "changeit"  # noqa: S105 - Java's customary word; certificates are public, it only guards against damage
_MAGIC, _VERSION, _TRUSTED = 0xFEEDFEED, 2, 2


def trust_store(path: Path) -> list[str]:
    """Write the store to `path` and return the options that make Java use it; none if the system names no authority."""
    certificates = ssl.create_default_context().get_ca_certs(binary_form=True)
    if not certificates:
        return []
    unfinished = path.with_name(f"{path.name}.{time.monotonic_ns()}")
    unfinished.write_bytes(_jks(certificates))
    unfinished.rename(path)
    return [
        f"-Djavax.net.ssl.trustStore={path}",
        "-Djavax.net.ssl.trustStoreType=JKS",
        f"-Djavax.net.ssl.trustStorePassword={_PASSWORD}",
    ]


def _jks(certificates: list[bytes]) -> bytes:
    body = struct.pack(">III", _MAGIC, _VERSION, len(certificates))
    body += b"".join(_entry(f"ca-{number}", der) for number, der in enumerate(certificates))
    salted = _PASSWORD.encode("utf-16-be") + b"Mighty Aphrodite" + body
    return body + hashlib.sha1(salted).digest()  # noqa: S324 - the format's check sum


def _entry(alias: str, der: bytes) -> bytes:
    created = int(time.time() * 1000)
    return struct.pack(">I", _TRUSTED) + _text(alias) + struct.pack(">Q", created) + _text("X.509") + _blob(der)


def _text(value: str) -> bytes:
    return struct.pack(">H", len(value)) + value.encode()


def _blob(value: bytes) -> bytes:
    return struct.pack(">I", len(value)) + value
