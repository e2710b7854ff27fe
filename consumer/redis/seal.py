"""Tells the ledger's own entries from what others write into Redis: an HMAC-SHA-256, cut to 128 bits (RFC 2104, 5).

The key is random, made once for each ledger, and kept in the target with the progress; it is shown nowhere. An entry's
seal is of the changefeed, the ledger's name, the window, the term in which it was recorded and the seal of its
fingerprints, so an entry that was made up, changed, cut short or moved is none. A ledger's fingerprints are of all
partitions: there is no entry of one of them.
"""

import hmac
import secrets
from collections.abc import Iterable
from dataclasses import dataclass, field

import orjson

_KEY_BYTES = 32
_SEAL_BYTES = 16
_TERM_BYTES = 6


def new_key() -> str:
    """A new random key."""
    return secrets.token_hex(_KEY_BYTES)


def new_term() -> str:
    """A new random name of a process's term, see `consumer.redis.terms`."""
    return secrets.token_hex(_TERM_BYTES)


@dataclass(frozen=True, slots=True)
class Seal:
    """Seals the entries of one ledger. Without a key nothing is sealed, and no seal is right."""

    key: str = field(repr=False)
    changefeed: str
    ledger: str

    def of_prints(self, parts: Iterable[bytes | memoryview]) -> str:
        """The seal of a window's fingerprints."""
        made = hmac.new(self.key.encode(), b"prints\n", "sha256")
        for part in parts:
            made.update(part)
        return made.digest()[:_SEAL_BYTES].hex()

    def of_entry(self, low: int, high: int, size: int, prints: str, term: str) -> str:
        """The seal of an entry: the window (low, high], with so many bytes of fingerprints, whose seal is `prints`.

        `term`: of the process that recorded it, see `consumer.redis.terms`.
        """
        told = orjson.dumps([self.changefeed, self.ledger, low, high, size, prints, term])
        return hmac.digest(self.key.encode(), b"entry\n" + told, "sha256")[:_SEAL_BYTES].hex()

    def fits(self, made: str, found: str) -> bool:
        """Whether a seal that was found is the one that is made here."""
        return bool(self.key) and hmac.compare_digest(made.encode(), found.encode(errors="replace"))
