"""What a value of the config has to be, beyond its type: each function gives it back, or raises ValueError.

They connect to nothing and open nothing. Their texts name no value that may be a secret.
"""

import re
from collections.abc import Callable
from typing import Any, TypeVar
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from consumer import topic_names
from consumer.bodies.locations import place_of
from consumer.filters.events import condition_or_none, ignored_events, ignored_sql
from consumer.filters.tables import table_filter
from consumer.kafka_rules import faults
from consumer.kafka_settings import Settings
from consumer.redis_uri import check_redis_uri
from ordering.errors import ConfigError
from sinks.uri import parse_target_uri, parse_upstream_uri

_UNITS = {"": 1, "b": 1, "kib": 1 << 10, "mib": 1 << 20, "gib": 1 << 30, "kb": 10**3, "mb": 10**6, "gb": 10**9}
T = TypeVar("T")


def number_of_bytes(value: Any) -> Any:
    """`"1GiB"` as bytes."""
    if not isinstance(value, str):
        return value
    match = re.fullmatch(r"\s*(\d+)\s*([A-Za-z]*)\s*", value)
    if match is None or match[2].lower() not in _UNITS:
        message = 'must be a number of bytes such as "1GiB" or "512MiB"'
        raise ValueError(message)
    return int(match[1]) * _UNITS[match[2].lower()]


def zone(value: str) -> str:
    """A time zone by its name or offset."""
    if re.fullmatch(r"[+-]\d{2}:\d{2}", value):
        return value
    try:
        ZoneInfo(value)
    except (ZoneInfoNotFoundError, ValueError) as error:
        message = "must be a time zone such as Asia/Shanghai, UTC or +08:00"
        raise ValueError(message) from error
    return value


def target(value: str) -> str:
    """A target's URI, which is not connected to."""
    try:
        parse_target_uri(value)
    except ConfigError as error:
        raise ValueError(f"{error.fact.removeprefix('target.uri ')}; {error.hint}") from error
    return value


def topics(value: list[str]) -> list[str]:
    """Names of topics, or one expression."""
    return _fine(value, topic_names.matcher)


def rules(value: list[str]) -> list[str]:
    """Rules of a table filter."""
    return _fine(value, table_filter)


def matcher(value: list[str]) -> list[str]:
    """Rules of an event filter's tables."""
    return _fine(value, lambda rules: table_filter(rules, key="matcher"))


def events(value: list[str]) -> list[str]:
    """Kinds of events by TiCDC's names."""
    return _fine(value, ignored_events)


def sql(value: list[str]) -> list[str]:
    """Regular expressions over statements."""
    return _fine(value, ignored_sql)


def condition(value: str) -> str:
    """A condition over a row's columns."""
    return _fine(value, lambda text: condition_or_none(text, "expression"))


def no_start_ts(value: list[int]) -> list[int]:
    """Nothing: messages hold no start TSO."""
    if value:
        message = "messages do not tell at which TSO their transaction began: set it in the changefeed upstream"
        raise ValueError(message)
    return value


def _fine(value: T, read: Callable[[T], object]) -> T:
    """The value, once what reads it later has nothing against it."""
    try:
        read(value)
    except ConfigError as error:
        raise ValueError("; ".join(filter(None, (error.fact, error.hint)))) from error
    return value


def upstream(value: str) -> str:
    """The upstream's URI, or nothing."""
    if value:
        try:
            parse_upstream_uri(value)
        except ConfigError as error:
            raise ValueError(f"{error.fact.removeprefix('source.upstream.uri ')}; {error.hint}") from error
    return value


def redis(value: str) -> str:
    """Redis's URI, or nothing."""
    return _fine(value, check_redis_uri)


def places(value: list[str]) -> list[str]:
    """Places of claim-check files, by URIs."""
    for place in value:
        try:
            place_of(place)
        except ValueError as error:
            message = f"{place!r} {error}"
            raise ValueError(message) from error
    return value


def moved(value: dict[str, str]) -> dict[str, str]:
    """Places by the places that the messages name."""
    places([*value, *value.values()])
    return value


def kafka(value: Settings) -> Settings:
    """Client properties that both clients follow."""
    if wrong := faults(value):
        raise ValueError("; ".join(wrong))
    return value
