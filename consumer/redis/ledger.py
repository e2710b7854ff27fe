"""Redis's record of what was applied: proves duplicates, finds late events; losing it loses nothing (R9).

Per window and part one value: sorted 64-bit fingerprints of every event's halves, also of those that the net effect
swallowed. A window is listed once its commit is known; it counts as covered while all its values are there. Keys carry
the changefeed and the identity of its progress: a progress that begins again, as with a new topic, has its own ledger.
Redis is others' to write to: what does not carry this ledger's seal (`consumer.redis.seal`) covers nothing. Nor does a
window that a process recorded behind the checkpoint at which a later one began (`consumer.redis.terms`): the target
was restored from a backup, or Redis holds what a target has that is no longer there, and what was applied then has to
be applied again.
"""

import re
from collections import OrderedDict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import msgspec
import numpy as np
import redis
import structlog

from consumer.redis.client import AnswerTooLongError
from consumer.redis.fingerprints import Fingerprints, distinct
from consumer.redis.ledger_connection import LedgerConnection
from consumer.redis.ledger_sizes import MEASURED, LedgerSizes
from consumer.redis.seal import Seal
from consumer.redis.terms import Terms, is_within

_EXPIRE_S = 7 * 24 * 3600
_LOADED = 8
_MOST_BYTES = 1 << 29
"""What a window may take before none of it is believed."""
_LAST_TSO = 2**63 - 1
_NAME = re.compile(rb"([0-9]{1,19})-([0-9]{1,19})")
_WRONG_TYPE = "WRONGTYPE"
log = structlog.get_logger()


@dataclass(frozen=True, slots=True)
class Judgement:
    """What the ledger knows of events at or below the checkpoint; `late` indexes those that it never saw applied."""

    proven: int
    unproven: int
    late: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class _Window:
    low: int
    high: int
    prints: Fingerprints


@dataclass(frozen=True, slots=True)
class _Entry:
    low: int
    high: int
    parts: int
    size: int
    prints: str
    """The seal of its fingerprints."""
    term: str

    def is_possible(self, part: int) -> bool:
        """Whether a window can be listed so: a size that Redis may hold in all, and the parts that it makes."""
        whole, rest = divmod(self.size, 8)
        known = 0 <= self.low <= self.high < _LAST_TSO
        return known and rest == 0 and 0 <= self.size <= _MOST_BYTES and self.parts == -(-whole // part)


def _name(window: _Window | _Entry) -> str:
    return f"{window.low}-{window.high}"


class _Told(msgspec.Struct):
    """An entry as it is written; `prints` is the seal of its fingerprints, `seal` the entry's own."""

    parts: int
    bytes: int
    prints: str
    term: str
    seal: str


_told = msgspec.json.Decoder(_Told).decode


def _entry(name: bytes, value: bytes, seal: Seal, part: int) -> _Entry | None:
    """An entry of the index; None for what is none, or was not written by this ledger: such a thing covers nothing."""
    match = _NAME.fullmatch(name)
    try:
        told = _told(value)
    except (msgspec.DecodeError, ValueError, RecursionError):
        return None
    if match is None:
        return None
    entry = _Entry(int(match[1]), int(match[2]), told.parts, told.bytes, told.prints, told.term)
    if not entry.is_possible(part):
        return None
    made = seal.of_entry(entry.low, entry.high, entry.size, entry.prints, entry.term)
    return entry if seal.fits(made, told.seal) else None


def _values(client: "redis.Redis", names: list[str], part: int) -> Iterator[bytes | None]:
    """The values under these names, one at a time: the answer to one MGET would have no limit. None: there is none.

    Empty, what no ledger writes, stands for one that is too long for any.
    """
    for name in names:
        try:
            value: bytes | None = client.get(name)  # type: ignore[assignment]
        except AnswerTooLongError:
            value = b""
        yield value
        if value is None or len(value) != 8 * part:
            return  # the last, or none of ours


class Ledger(LedgerConnection):
    """The ledger of one changefeed. No method raises for Redis's sake: it answers "not covered" instead.

    `key` is what its entries are sealed with, `terms` are those of this target's past, the last one its own; without
    them it covers nothing.
    """

    def __init__(
        self,
        uri: str,
        changefeed: str,
        identity: str,
        key: str,
        terms: Terms = (),
        *,
        sizes: LedgerSizes = MEASURED,
    ) -> None:
        super().__init__(uri, changefeed, identity)
        self._sizes = sizes
        self._seal = Seal(key, changefeed, identity)
        self._terms = terms
        self._is_told = False
        """Whether it was said since the last window that there is something of others."""
        self._loaded: OrderedDict[_Entry, Fingerprints] = OrderedDict()
        self._last: _Window | None = None
        self._bytes: int | None = None
        """What Redis holds of this ledger; None: whatever earlier processes left is not summed up yet."""

    def record(self, low: int, high: int, prints: Fingerprints) -> None:
        """List the window (low, high] as covered, with the fingerprints of all its halves; after its commit.

        Small neighbours are kept as one entry, so that hours of live windows stay covered.
        """
        new, replaced = _Window(low, high, distinct(prints)), self._last
        if (
            replaced is not None
            and replaced.high == low
            and len(replaced.prints) + len(new.prints) <= self._sizes.merged
        ):
            new = _Window(replaced.low, high, distinct(np.concatenate([replaced.prints, new.prints])))
        else:
            replaced = None
        self._last, self._is_told = new, False
        self._with_redis(lambda client: self._write(client, new, replaced), None)

    def _write(self, client: "redis.Redis", new: "_Window", replaced: "_Window | None") -> None:
        part_size = self._sizes.part
        parts = [new.prints[i : i + part_size] for i in range(0, len(new.prints), part_size)]
        pipe = client.pipeline(transaction=False)
        size, prints = int(new.prints.nbytes), self._seal.of_prints(part.data for part in parts)
        term = self._terms[-1].name if self._terms else ""
        seal = self._seal.of_entry(new.low, new.high, size, prints, term)
        entry = _Told(len(parts), size, prints, term, seal)
        # listed first: a value that no list names would be outside of the cap, an entry without values covers nothing
        pipe.hset(self._index, _name(new), msgspec.json.encode(entry))
        for i, part in enumerate(parts):
            pipe.set(self._part(new.low, new.high, i), part.tobytes(), ex=_EXPIRE_S)
        if replaced is not None:
            pipe.hdel(self._index, _name(replaced))
            pipe.delete(self._part(replaced.low, replaced.high, 0))
        pipe.expire(self._index, _EXPIRE_S)
        pipe.hlen(self._index)
        try:
            listed = pipe.execute()[-1]
        except redis.ResponseError as error:
            if _WRONG_TYPE in str(error):
                client.delete(self._index)  # no list: what others put in its place would keep each window out
            raise
        if self._bytes is not None:
            self._bytes += size
        if self._bytes is None or listed > self._sizes.kept_windows or self._bytes > self._sizes.kept_bytes:
            self._trim(client)

    def judge(self, events: Fingerprints) -> Judgement:
        """Judge events at or below the checkpoint: rows of (fingerprint, another that proves it, commitTs, offset)."""
        if not len(events):
            return Judgement(0, 0, ())
        covered = np.zeros(len(events), dtype=bool)
        found = np.zeros(len(events), dtype=bool)
        for entry in self._with_redis(self._entries, []):
            inside = (events[:, 2] > entry.low) & (events[:, 2] <= entry.high)
            if not inside.any():
                continue
            prints = self._fingerprints(entry)
            if prints is None:
                continue
            covered |= inside
            found |= inside & (np.isin(events[:, 0], prints) | np.isin(events[:, 1], prints))
        late = np.flatnonzero(covered & ~found)
        return Judgement(int(found.sum()), int((~covered).sum()), tuple(int(i) for i in late))

    def flush_memory(self) -> None:
        """Forget what was loaded; for tests and after a changed leader."""
        self._loaded.clear()

    @property
    def _index(self) -> str:
        return f"{self._prefix}:windows"

    def _part(self, low: int, high: int, i: int) -> str:
        return f"{self._prefix}:window:{low}-{high}:{i}"

    def _entries(self, client: "redis.Redis") -> list[_Entry]:
        """What is listed, in order, at most twice as many as are kept. Nothing if too much is listed."""
        found = (entry for entry in self._listed(client).values() if entry is not None)
        return sorted(found, key=lambda e: (e.high, e.low))[-2 * self._sizes.kept_windows :]

    def _listed(self, client: "redis.Redis") -> dict[bytes, _Entry | None]:
        """The fields of the index, each with what it means."""
        if client.hlen(self._index) > self._sizes.most_listed:
            return {}
        try:
            index: Mapping[bytes, bytes] = client.hgetall(self._index)  # type: ignore[assignment]
        except AnswerTooLongError:
            self._bytes = None  # the next window sums up again, and deletes it
            return {}
        found = {name: _entry(name, value, self._seal, self._sizes.part) for name, value in index.items()}
        if None in found.values():
            self._tell_of_others()
        lost = {name for name, one in found.items() if one and not is_within(self._terms, one.term, one.high)}
        if lost:
            self._tell(
                "redis holds windows of processes that went on further than the checkpoint of a later one; they cover"
                " nothing",
                hint="the target was restored from a backup: what was applied since is applied again",
            )
        return {name: None if name in lost else one for name, one in found.items()}

    def _tell_of_others(self) -> None:
        self._tell(
            "redis holds entries that this changefeed's ledger did not write; they cover nothing",
            hint="look who else may write to Redis; after `progress import`, or after an upgrade from a version without"
            " seals, this is said once of the old ones",
        )

    def _tell(self, fact: str, hint: str) -> None:
        """Say, once a window, what in Redis does not count."""
        if not self._is_told:
            log.warning(fact, index=self._index, hint=hint)
        self._is_told = True

    def _fingerprints(self, entry: _Entry) -> Fingerprints | None:
        """A window's fingerprints, or None if one of its values is gone or another's: then nothing is covered."""
        if entry not in self._loaded:
            names = [self._part(entry.low, entry.high, i) for i in range(entry.parts)]
            values = self._with_redis(lambda client: list(_values(client, names, self._sizes.part)), [None])
            if None in values:
                return None
            if not self._are_own(entry, values):
                self._tell_of_others()
                return None
            self._loaded[entry] = np.frombuffer(b"".join(values), dtype=np.uint64)
            while len(self._loaded) > _LOADED:
                self._loaded.popitem(last=False)
        self._loaded.move_to_end(entry)
        return self._loaded[entry]

    def _are_own(self, entry: _Entry, values: list[Any]) -> bool:
        """Whether these are the values that an entry was written with."""
        whole = all(isinstance(value, bytes) for value in values) and sum(map(len, values)) == entry.size
        return whole and self._seal.fits(self._seal.of_prints(values), entry.prints)

    def _trim(self, client: "redis.Redis") -> None:
        """Drop the oldest windows above the cap; the last one always stays."""
        size, kept = 0, 0
        pipe = client.pipeline(transaction=False)
        listed = self._listed(client)
        if not listed:
            pipe.delete(self._index)  # more than this ledger ever lists
        for name in (name for name, entry in listed.items() if entry is None):
            pipe.hdel(self._index, name)
        found = (entry for entry in listed.values() if entry is not None)
        for entry in sorted(found, key=lambda e: (e.high, e.low), reverse=True):
            if kept and (kept >= self._sizes.kept_windows or size + entry.size > self._sizes.kept_bytes):
                pipe.delete(*(self._part(entry.low, entry.high, i) for i in range(max(1, entry.parts))))
                pipe.hdel(self._index, _name(entry))
            else:
                size, kept = size + entry.size, kept + 1
        pipe.execute()
        self._bytes = size
