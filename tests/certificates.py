"""Throw-away authorities and certificates for servers and clients under test; keys are created again each time."""

import os
import pwd
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import cached_property
from ipaddress import ip_address
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import BestAvailableEncryption, Encoding, NoEncryption, PrivateFormat
from cryptography.x509.oid import NameOID

_DAY = timedelta(days=1)


@dataclass(frozen=True, slots=True)
class Certificate:
    """PEM files: the certificate, its key, and both in one."""

    certificate: Path
    key: Path
    both: Path


class Authority:
    """Signs what it is asked to; `file` is what its friends trust."""

    def __init__(self, directory: Path, name: str = "authority") -> None:
        self.directory, self._name = directory / name, name
        self.directory.mkdir(parents=True)
        self.file = self.directory / "ca.pem"
        self.file.write_bytes(self._certificate.public_bytes(Encoding.PEM))

    @cached_property
    def _key(self) -> ec.EllipticCurvePrivateKey:
        return ec.generate_private_key(ec.SECP256R1())

    @cached_property
    def _certificate(self) -> x509.Certificate:
        usage = dict.fromkeys(_USES, False) | {"key_cert_sign": True, "crl_sign": True}
        return (
            _begun(self._name, self._name, self._key.public_key())
            .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
            .add_extension(x509.KeyUsage(**usage), critical=True)
            .add_extension(x509.SubjectKeyIdentifier.from_public_key(self._key.public_key()), critical=False)
            .sign(self._key, hashes.SHA256())
        )

    def issue(self, name: str, hosts: Sequence[str] = (), *, password: bytes = b"") -> Certificate:
        """A certificate for these hosts, or of a client; its key under a password if one is given."""
        key = ec.generate_private_key(ec.SECP256R1())
        builder = _begun(name, self._name, key.public_key()).add_extension(
            x509.AuthorityKeyIdentifier.from_issuer_public_key(self._key.public_key()), critical=False
        )
        if hosts:
            builder = builder.add_extension(x509.SubjectAlternativeName([_host(h) for h in hosts]), critical=False)
        signed = builder.sign(self._key, hashes.SHA256()).public_bytes(Encoding.PEM)
        locked = BestAvailableEncryption(password) if password else NoEncryption()
        secret = key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, locked)
        made = Certificate(*(self.directory / f"{name}-{part}.pem" for part in ("certificate", "key", "both")))
        for path, content in ((made.certificate, signed), (made.key, secret), (made.both, secret + signed)):
            path.write_bytes(content)
            path.chmod(0o600)
        return made


_USES = (
    "digital_signature", "content_commitment", "key_encipherment", "data_encipherment", "key_agreement",
    "key_cert_sign", "crl_sign", "encipher_only", "decipher_only",
)  # fmt: skip


def _begun(name: str, issuer: str, key: ec.EllipticCurvePublicKey) -> x509.CertificateBuilder:
    now = datetime.now(UTC)
    return (
        x509.CertificateBuilder()
        .subject_name(_named(name))
        .issuer_name(_named(issuer))
        .public_key(key)
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - _DAY)
        .not_valid_after(now + _DAY)
    )


def _named(name: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])


def _host(name: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ip_address(name))
    except ValueError:
        return x509.DNSName(name)


def give_to_servers(certificate: Certificate) -> None:
    """Let PostgreSQL, which never runs as root, read its key where we are root."""
    if os.geteuid() == 0:
        users = {user.pw_name: user for user in pwd.getpwall()}
        owner = users.get("postgres") or users["nobody"]
        os.chown(certificate.key, owner.pw_uid, owner.pw_gid)
