"""TIMESTAMP texts become UTC, whatever the clocks of their zone do; members are told by number or name."""

from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sinks.rows.schema import Shape
from sinks.rows.values import member_name, member_number, set_mask, set_names, utc_of
from sinks.sqlite.ddl.schema_text import Check, checked, checks_in

ZONES = ["UTC", "+00:00", "+08:00", "-03:30", "Asia/Shanghai", "America/New_York", "Australia/Lord_Howe"]
MOMENTS = st.datetimes(datetime(1970, 1, 2), datetime(2038, 1, 18))  # noqa: DTZ001 made aware below
FORMAT = "%Y-%m-%d %H:%M:%S.%f"


@given(MOMENTS, st.sampled_from(ZONES[4:]))
def test_moments_come_back(moment: datetime, zone: str) -> None:
    instant = moment.replace(tzinfo=UTC)
    local = instant.astimezone(ZoneInfo(zone))
    found = datetime.strptime(utc_of(zone)(local.strftime(FORMAT)), FORMAT).replace(tzinfo=UTC)
    if local.fold:  # the text is that of an earlier moment too, and is taken for it
        assert timedelta(0) < instant - found <= timedelta(hours=1)
    else:
        assert found == instant


@pytest.mark.parametrize("zone", ZONES)
def test_the_zero_date_is_no_moment(zone: str) -> None:
    assert utc_of(zone)("0000-00-00 00:00:00.000") == "0000-00-00 00:00:00.000"


def test_offsets_and_fractions() -> None:
    assert utc_of("+08:00")("2026-01-02 03:04:05.5") == "2026-01-01 19:04:05.5"
    assert utc_of("-03:30")("2026-01-02 03:04:05") == "2026-01-02 06:34:05"


def test_an_hour_that_comes_twice_is_the_first() -> None:
    assert utc_of("America/New_York")("2024-11-03 01:30:00.000001") == "2024-11-03 05:30:00.000001"


def test_an_hour_that_is_skipped_is_refused() -> None:
    with pytest.raises(ValueError, match="no time in America/New_York"):
        utc_of("America/New_York")("2024-03-10 02:30:00")


MEMBERS = ("a", "B", "7", "it's")


def test_members_by_number_and_by_name() -> None:
    assert [member_number(MEMBERS, text) for text in ("0", "1", "4", "B", "it's", "")] == [0, 1, 4, 2, 4, 0]
    assert [member_name(MEMBERS, text) for text in ("0", "3", "a")] == ["", "7", "a"]
    assert [set_mask(MEMBERS, text) for text in ("0", "15", "a,it's", "")] == [0, 15, 9, 0]
    assert [set_names(MEMBERS, text) for text in ("0", "10", "a,B")] == ["", "B,it's", "a,B"]


@pytest.mark.parametrize("text", ["5", "-1", "c", "7.0"])
def test_what_is_no_member(text: str) -> None:
    with pytest.raises(ValueError, match="members"):
        member_number(MEMBERS, text)
    with pytest.raises(ValueError, match="members"):
        set_mask(MEMBERS, text if text != "5" else "16")


NAMES = st.text(st.characters(codec="utf-8", exclude_characters="\0,"), min_size=1, max_size=8)


@given(NAMES, st.lists(NAMES, min_size=1, max_size=64, unique=True), st.sampled_from([Shape.ENUM, Shape.SET]))
def test_checks_of_sqlite_tell_the_members(column: str, members: list[str], shape: Shape) -> None:
    sql = f"CREATE TABLE t (x TEXT DEFAULT 'CHECK (', y {checked(column, shape, tuple(members))}, z INT CHECK (z > 0))"
    assert list(checks_in(sql)) == [Check(column, shape, tuple(members))]
