"""The list of applied windows, as `target.audit` keeps it."""

from contextlib import closing
from typing import Any

from consumer.config.model import Config
from consumer.wiring import target_of


def audit_of(config: Config, limit: int) -> list[dict[str, Any]]:
    """The latest windows, newest first. Changes nothing. Raises TargetError."""
    with closing(target_of(config)) as target:
        return [line.as_json() for line in target.audit.latest(config.changefeed, limit)]
