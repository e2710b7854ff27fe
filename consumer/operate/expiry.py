"""Expiry of an Iceberg target's snapshots, counted back from the lowest checkpoint in its catalog.

A catalog may have several changefeeds, and its tables are expired together: a join may be over tables of any.
"""

from contextlib import closing
from typing import TYPE_CHECKING, cast

import structlog

from consumer.config.model import Config
from consumer.wiring import target_of
from ordering.errors import ConfigError
from ordering.timestamps import LOGICAL_BITS, utc_text

if TYPE_CHECKING:
    from sinks.iceberg.expiry import Expired
    from sinks.iceberg.session import LakeSession

log = structlog.get_logger()
_HOUR_MS = 3_600_000


def expire_snapshots(config: Config, keep_hours: int) -> "Expired":
    """Expire what only reads of more than so many hours before the checkpoint need. Raises TargetError, ConfigError."""
    with closing(target_of(config)) as target:
        from sinks.iceberg.expiry import expire  # noqa: PLC0415 its libraries are an extra

        lake = cast("LakeSession", target.session.db)
        slowest = target.session.books.progress.slowest(among=lake.database.changefeeds())
        if slowest is None or target.applied(config.changefeed) is None:
            raise ConfigError(f"the catalog knows no changefeed {config.changefeed!r}", where="changefeed")
        changefeed, applied = slowest
        if changefeed != config.changefeed:
            log.warning(
                "another changefeed of the catalog is further behind: what it needs stays",
                changefeed=changefeed,
                checkpoint=utc_text(applied),
            )
        since = max(applied - (keep_hours * _HOUR_MS << LOGICAL_BITS), 0)
        return expire(lake, since)
