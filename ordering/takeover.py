"""When a stand-by may take over from a leader that does not end: pure, told the time by who asks.

A leader shows signs of life in the target, and more often in Redis, whose lease runs out without them. It is given up
after `lease_s` without a sign in the target; after half of that where its lease in Redis has run out too. What is
compared is never a time of two machines: only whether a sign has changed since this stand-by last looked, by its own
clock, which must never go back (monotonic). Being wrong costs a hand-over and nothing else: the target's epoch decides
who may write.
"""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Sign:
    """What the target holds of the leader: its name, the epoch of its leadership, how often it said that it lives."""

    name: str
    epoch: int
    beats: int


@dataclass(slots=True)
class Watch:
    """What one stand-by has seen of the leader. `changes` counts its signs of life since the first look."""

    lease_s: float
    changes: int = 0
    _sign: Sign | None = None
    _since: float | None = None

    def silence(self, now_s: float, sign: Sign | None) -> float:
        """For how many seconds there was no new sign; 0 for one that is new. None is a sign that never changes."""
        if self._since is None or sign != self._sign:
            self.changes += self._since is not None
            self._sign, self._since = sign, now_s
        return now_s - self._since

    def is_gone(self, now_s: float, sign: Sign | None, leased: bool | None) -> bool:
        """Whether the leader may be taken over from. `leased`: what Redis says of its lease, None without Redis."""
        limit = self.lease_s / 2 if leased is False else self.lease_s
        return self.silence(now_s, sign) >= limit
