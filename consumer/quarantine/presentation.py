"""Messages that were quarantined, as the command line and the API tell of them and name them."""

from typing import Any

from ordering.errors import ConfigError
from ordering.events import Position
from ordering.quarantine import Quarantined
from ordering.timestamps import utc_text


def told_message(one: Quarantined) -> dict[str, Any]:
    """A message as programs see it."""
    return {
        "message": place_of(one.position),
        **one.position._asdict(),
        "state": one.state.value,
        "about": one.about,
        "reason": one.reason,
        "commit_ts": one.commit_ts,
        "commit_time": utc_text(one.commit_ts or 0),
        "timestamp": one.timestamp,
        "note": one.note,
        "updated_at": one.updated_at,
    }


def place_of(position: Position) -> str:
    """TOPIC/PARTITION/OFFSET."""
    return f"{position.topic}/{position.partition}/{position.offset}"


def position_of(text: str) -> Position:
    """Read TOPIC/PARTITION/OFFSET. Raises ConfigError."""
    parts = text.split("/")
    if len(parts) != len(Position._fields) or not all(part.isascii() and part.isdigit() for part in parts[1:]):
        raise ConfigError(f"{text!r} is no TOPIC/PARTITION/OFFSET", hint="as `reconciler quarantine list` prints it")
    return Position(parts[0], int(parts[1]), int(parts[2]))
