"""Expiry of an Iceberg target's snapshots, counted back from the checkpoint."""

from contextlib import closing
from typing import TYPE_CHECKING, cast

from consumer.config.model import Config
from consumer.wiring import target_of
from ordering.errors import ConfigError
from ordering.timestamps import LOGICAL_BITS

if TYPE_CHECKING:
    from sinks.iceberg.expiry import Expired
    from sinks.iceberg.session import LakeSession

_HOUR_MS = 3_600_000


def expire_snapshots(config: Config, keep_hours: int) -> "Expired":
    """Expire what only reads of more than so many hours before the checkpoint need. Raises TargetError, ConfigError."""
    with closing(target_of(config)) as target:
        from sinks.iceberg.expiry import expire  # noqa: PLC0415 its libraries are an extra

        applied = target.applied(config.changefeed)
        if applied is None:
            raise ConfigError(f"the catalog knows no changefeed {config.changefeed!r}", where="changefeed")
        since = max(applied - (keep_hours * _HOUR_MS << LOGICAL_BITS), 0)
        return expire(cast("LakeSession", target.session.db), since)
