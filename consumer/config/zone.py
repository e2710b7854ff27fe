"""The zone in which TIMESTAMP values are read stays the same: with two, a table is wrong without an error.

It is kept with the progress. What else a config says of values decides only what is refused (`invalid-dates`), or
what a DDL fills in, once and with a note (`volatile-defaults`).
"""

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from itertools import pairwise

import structlog

from ordering.errors import InputError
from ordering.progress import Progress
from sinks.rows.values import zone_of

log = structlog.get_logger()
_LOOKED_AHEAD_DAYS = 2 * 366


def repeats_an_hour(zone: str, now: datetime) -> bool:
    """Whether the zone's clocks are put back within the next two years. `now`: with a zone."""
    days = (now + timedelta(days) for days in range(_LOOKED_AHEAD_DAYS))
    offsets = (moment.astimezone(zone_of(zone)).utcoffset() or timedelta() for moment in days)
    return any(later < earlier for earlier, later in pairwise(offsets))


def told_of_repeats(zone: str) -> str:
    """What a user has to know of a zone whose clocks are put back; "" of another one."""
    if not repeats_an_hour(zone, datetime.now(UTC)):
        return ""
    return (
        f"source.time-zone = {zone!r}: its clocks are put back once a year, and messages do not say which of the two"
        " hours a TIMESTAMP means: the first is taken, so some may be an hour early. TiCDC's server with --tz UTC is"
        " exact"
    )


def warn_of_repeats(zone: str) -> None:
    """Log it, once for each run."""
    if told := told_of_repeats(zone):
        log.warning(told)


def zone_name(zone: str) -> str:
    """A name of a zone that is the same for each spelling of UTC and of an offset."""
    return str(zone_of(zone))


def in_zone(progress: Progress, zone: str, changefeed: str) -> Progress:
    """The progress, that knows of `source.time-zone`. Raises InputError where rows were read in another zone."""
    kept = progress.time_zone
    if kept and kept != zone_name(zone) and not progress.untouched:
        raise InputError(
            f"source.time-zone is {zone_name(zone)!r}, and this changefeed's rows were read in {kept!r}:"
            " TIMESTAMP values would be of two zones",
            where=f"changefeed {changefeed}",
            hint="use the old zone; `reconciler help recovery` describes how to go on if TiCDC's --tz was changed",
        )
    return replace(progress, time_zone=zone_name(zone))


def check_load_zone(progress: Progress, zone: str, changefeed: str) -> None:
    """Raise InputError if a load that goes on has another zone than the one with which it began."""
    kept = progress.time_zone
    if kept and kept != zone_name(zone):
        raise InputError(
            f"the load began with the time zone {kept!r} and can't continue with {zone_name(zone)!r}",
            where=f"changefeed {changefeed}",
            hint="use the zone with which it began (--time-zone), or start over (`reconciler help load`)",
        )
