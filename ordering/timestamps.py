"""TSO timestamps, one type per meaning.

A TSO is an unsigned 64-bit integer: physical milliseconds since 1970 shifted left by 18, plus a logical counter
(TiDB documentation, "TimeStamp Oracle"). A value passes 2^53, so it is never a float.
"""

from datetime import UTC, datetime, timedelta
from typing import NewType

CommitTs = NewType("CommitTs", int)
"""TSO of an upstream transaction; all its rows share it."""

ResolvedTs = NewType("ResolvedTs", int)
"""TSO up to which everything has been sent: of one partition (its watermark) or of all (their minimum)."""

CheckpointTs = NewType("CheckpointTs", int)
"""TSO up to which everything is in the target."""

BEGINNING = CheckpointTs(0)
"""Before every transaction."""

LOGICAL_BITS = 18
MAX_TSO = 2**64 - 1
LEAST_TSO = 1 << (34 + LOGICAL_BITS)
"""Of July 1970. What is below is no TSO but a time in seconds, ms or us."""
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def physical_ms(tso: int) -> int:
    """Milliseconds since 1970 of a TSO."""
    return tso >> LOGICAL_BITS


def utc_text(tso: int) -> str:
    """A TSO as UTC time for people, e.g. `2026-01-01 00:00:00.007`; `-` for 0."""
    if tso == 0:
        return "-"
    try:
        moment = _EPOCH + timedelta(milliseconds=physical_ms(tso))
    except OverflowError:
        return "beyond year 9999"
    return moment.strftime("%Y-%m-%d %H:%M:%S.") + f"{moment.microsecond // 1000:03d}"
