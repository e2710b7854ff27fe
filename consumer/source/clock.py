"""Watermarks of the future: all that comes after one counts as applied, so the clock bounds what is believed.

A message of another changefeed, or a TSO of a PD whose clock had jumped, can carry one.
"""

import time

from consumer.config.model import LimitsSection
from ordering.errors import InputError
from ordering.timestamps import physical_ms, utc_text


def check_clock(ts: int, limits: LimitsSection, where: str) -> None:
    """Raise InputError for a watermark that lies further ahead than is allowed."""
    if physical_ms(ts) > 1000 * (time.time() + limits.clock_ahead_seconds):
        raise InputError(
            f"a watermark says {ts} ({utc_text(ts)} UTC), which is in the future by this machine's clock",
            where=where,
            hint="compare this machine's clock with upstream's, and look whether something else writes to the topic, or"
            " source.watermark-from names another cluster's TiCDC; if upstream's clock had jumped, set"
            " limits.clock-ahead-seconds so that it is allowed",
        )
