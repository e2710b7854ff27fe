"""The clock under which a server gives rows that are there what upstream's rows got: defaults of the moment.

A server computes such a default itself, out of its session's `timestamp` and `time_zone`. Upstream computed all of a
statement's from one moment, in the zone of a session that no message tells: its values do, once it was asked for them.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta

from ordering.events import DdlEvent
from sinks.ddl.model import ColumnDef
from sinks.ddl.rows.default_values import at_moment, is_today, is_volatile
from sinks.mysql.ddl.rehearsal import Settings
from sinks.rows.values import utc_of, zone_of

_FORM = "%Y-%m-%d %H:%M:%S.%f"
_WITHIN_A_MICROSECOND = 0.25e-6
"""Between two microseconds as a float tells them: whether a server cuts or rounds, it is the one."""
_UTC = "+00:00"
UNABLE = "no clock gives the server all of what upstream's rows show"


def clock(columns: Sequence[ColumnDef], told: Mapping[str, str | None], zone: str) -> Settings | None:
    """Settings of a session in which the columns' defaults are what upstream told; None if there are none such.

    `zone`: of TIMESTAMPs in what was told.
    """
    columns = [column for column in columns if not is_today(column)]
    texts = {column.name: told.get(column.name.lower()) for column in columns}
    if not columns or not all(texts.values()) or not all(map(is_volatile, columns)):
        return None
    finest = max(columns, key=lambda column: column.type.number(0, 0))
    fraction = _moment(str(texts[finest.name])).microsecond
    instants = [c for c in columns if c.type.base == "timestamp"]
    if not instants:
        moment = _moment(str(texts[finest.name])).replace(tzinfo=UTC)
        return _settings(columns, texts, moment, _UTC, zone)
    moment = _moment(utc_of(zone)(str(texts[instants[0].name]))).replace(tzinfo=UTC, microsecond=fraction)
    local = [_moment(str(texts[c.name])) for c in columns if c.type.base == "datetime"]
    zones = [zone, *(_offset(found - moment.replace(tzinfo=None, microsecond=found.microsecond)) for found in local)]
    return next(filter(None, (_settings(columns, texts, moment, session, zone) for session in zones)), None)


def _settings(
    columns: Sequence[ColumnDef], texts: Mapping[str, str | None], moment: datetime, session: str, zone: str
) -> Settings | None:
    """The settings that say so, if they give the columns these texts."""

    def shown(column: ColumnDef) -> str:
        there = zone_of(zone if column.type.base == "timestamp" else session)
        return at_moment(column, moment.astimezone(there).strftime(_FORM))

    if any(shown(column) != texts[column.name] for column in columns):
        return None
    return {"timestamp": moment.timestamp() + _WITHIN_A_MICROSECOND, "time_zone": session}


def _moment(text: str) -> datetime:
    return datetime.fromisoformat(text)


def _offset(difference: timedelta) -> str:
    minutes = round(difference.total_seconds() / 60)
    return f"{'-' if minutes < 0 else '+'}{abs(minutes) // 60:02}:{abs(minutes) % 60:02}"


def reproducible(ddl: DdlEvent, columns: Sequence[ColumnDef], zone: str, *, fixed: bool) -> DdlEvent:
    """The DDL without what upstream told, if the server can't be made to give rows just that.

    `fixed`: whether the rest of the statement needs the session to be in `zone`.
    """
    if not ddl.shown:
        return ddl
    found = clock(columns, dict(ddl.shown), zone)
    if found is not None and (not fixed or zone_of(str(found["time_zone"])) == zone_of(zone)):
        return ddl
    return replace(ddl, shown=(), unshown=UNABLE)
