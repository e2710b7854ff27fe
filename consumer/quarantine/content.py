"""What a message holds, quarantined or in Kafka, as the command line and the API show it."""

import base64
from typing import Any

import msgspec

from consumer.config.model import Config
from consumer.wiring import format_of
from ordering.errors import InputError, SourceError
from ordering.events import Position
from ordering.quarantine import Quarantined


def told_content(one: Quarantined, config: Config, most: int | None = None) -> dict[str, Any]:
    """Its bytes, and its value as it is read; at most so many bytes of each, where there is a limit."""
    return told_bytes(one.key, one.value, one.position, config, most)


def told_bytes(
    key: bytes | None, value: bytes | None, position: Position, config: Config, most: int | None = None
) -> dict[str, Any]:
    """The same of any message."""
    plain, fault = _plain(value, position, config)
    size = len(value or b"")
    return {
        "key": _base64(key, most),
        "value": _base64(value, most),
        "value_bytes": size,
        "is_whole": most is None or max(size, len(key or b""), len(plain or b"")) <= most,
        "decoded": None if plain is None else _read(plain, most),
        "fault": fault,
    }


def _plain(value: bytes | None, position: Position, config: Config) -> tuple[bytes | None, str]:
    """A value decompressed, in the form that is read, a line for each of its events; or why there is none."""
    try:
        found = list(format_of(config).shown(value, position, config.limits.message_bytes))
    except (InputError, SourceError) as error:
        return None, error.fact
    parts = [one for one in found if one is not None]
    return (b"\n".join(parts), "") if parts else (None, "the message has no value: a tombstone")


def _read(plain: bytes, most: int | None) -> str:
    """Text on indented lines, if it is JSON and short enough to be shown whole."""
    if most is None or len(plain) <= most:
        try:
            plain = msgspec.json.format(plain, indent=2)
        except (msgspec.DecodeError, RecursionError):
            return plain.decode("utf-8", "backslashreplace")
    return plain[:most].decode("utf-8", "backslashreplace")


def _base64(value: bytes | None, most: int | None) -> str | None:
    return None if value is None else base64.b64encode(value[:most]).decode()
