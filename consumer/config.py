"""The config file: one TOML file, keys in TiCDC's spelling; unknown keys are errors.

Values may be `${ENV_VAR}` or `file:/run/secrets/NAME`, so that no secret stands in the file.
"""

import re
import tomllib
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any, Literal, Self, TypeVar
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, ValidationError, model_validator

from consumer.bodies.claims import opened
from consumer.bodies.locations import place_of
from consumer.filters.events import condition_or_none, ignored_events, ignored_sql
from consumer.filters.tables import table_filter, with_files
from consumer.kafka_rules import faults
from consumer.kafka_settings import Settings
from consumer.redis_uri import check_redis_uri
from consumer.secrecy import take_variable
from consumer.topic_names import matcher
from ordering.errors import ConfigError
from sinks.uri import parse_target_uri, parse_upstream_uri

Consistency = Literal["snapshot", "transaction", "row"]
_UNITS = {"": 1, "b": 1, "kib": 1 << 10, "mib": 1 << 20, "gib": 1 << 30, "kb": 10**3, "mb": 10**6, "gb": 10**9}
_NO_FILES = ("source.claim-check.locations", "source.claim-check.map.")
"""Keys whose values may begin with `file:` and mean a place, not a secret."""
T = TypeVar("T")
_VARIABLE = re.compile(r"\$\{([A-Za-z_][A-Za-z0-9_]*)\}")


def _bytes(value: Any) -> Any:
    """`"1GiB"` as bytes."""
    if not isinstance(value, str):
        return value
    match = re.fullmatch(r"\s*(\d+)\s*([A-Za-z]*)\s*", value)
    if match is None or match[2].lower() not in _UNITS:
        message = 'must be a number of bytes such as "1GiB" or "512MiB"'
        raise ValueError(message)
    return int(match[1]) * _UNITS[match[2].lower()]


def _zone(value: str) -> str:
    if re.fullmatch(r"[+-]\d{2}:\d{2}", value):
        return value
    try:
        ZoneInfo(value)
    except (ZoneInfoNotFoundError, ValueError) as error:
        message = "must be a time zone such as Asia/Shanghai, UTC or +08:00"
        raise ValueError(message) from error
    return value


def _target(value: str) -> str:
    try:
        parse_target_uri(value)
    except ConfigError as error:
        raise ValueError(f"{error.fact.removeprefix('target.uri ')}; {error.hint}") from error
    return value


def _topics(value: list[str]) -> list[str]:
    return _fine(value, matcher)


def _rules(value: list[str]) -> list[str]:
    return _fine(value, table_filter)


def _matcher(value: list[str]) -> list[str]:
    return _fine(value, lambda rules: table_filter(rules, key="matcher"))


def _events(value: list[str]) -> list[str]:
    return _fine(value, ignored_events)


def _sql(value: list[str]) -> list[str]:
    return _fine(value, ignored_sql)


def _condition(value: str) -> str:
    return _fine(value, lambda text: condition_or_none(text, "expression"))


def _no_start_ts(value: list[int]) -> list[int]:
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


def _upstream(value: str) -> str:
    if value:
        try:
            parse_upstream_uri(value)
        except ConfigError as error:
            raise ValueError(f"{error.fact.removeprefix('source.upstream.uri ')}; {error.hint}") from error
    return value


def _redis(value: str) -> str:
    return _fine(value, check_redis_uri)


def _places(value: list[str]) -> list[str]:
    for place in value:
        try:
            place_of(place)
        except ValueError as error:
            message = f"{place!r} {error}"
            raise ValueError(message) from error
    return value


def _moved(value: dict[str, str]) -> dict[str, str]:
    _places([*value, *value.values()])
    return value


def _consistency(values: dict[str, Any]) -> Consistency:
    """The default: TiDB bounds its transactions, so a window may not fit into one."""
    return "row" if str(values.get("uri", "")).startswith("tidb:") else "snapshot"


def _kafka(value: Settings) -> Settings:
    if wrong := faults(value):
        raise ValueError("; ".join(wrong))
    return value


def _kebab(name: str) -> str:
    return name.replace("_", "-")


class _Section(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, alias_generator=_kebab, strict=True)


class ClaimCheck(_Section):
    """Where claim-check files may be, how to get there, and what the stores want to know."""

    locations: Annotated[list[str], AfterValidator(_places)] = []
    map: Annotated[dict[str, str], AfterValidator(_moved)] = {}
    options: dict[str, str] = {}

    @model_validator(mode="after")
    def _open(self) -> Self:
        """Open every store once, which connects to nothing: wrong schemes and options are found here."""
        for place in (*self.locations, *self.map.values()):
            if place not in self.map:
                opened(place_of(place), self.options)
        return self


class Upstream(_Section):
    """The TiDB that rows are fetched from where a message holds the handle key only."""

    uri: Annotated[str, AfterValidator(_upstream)] = ""


class Source(_Section):
    """Where the messages are."""

    bootstrap_servers: Annotated[str, Field(min_length=1)]
    topics: Annotated[list[str], Field(min_length=1), AfterValidator(_topics)]
    protocol: Literal["canal-json"] = "canal-json"
    start_ts: Annotated[int, Field(ge=0, lt=2**64)] = 0
    time_zone: Annotated[str, AfterValidator(_zone)] = "UTC"
    kafka: Annotated[dict[str, str | int | bool], AfterValidator(_kafka)] = {}
    claim_check: ClaimCheck = ClaimCheck()
    upstream: Upstream = Upstream()


class TargetSection(_Section):
    """Where the rows go, and how."""

    uri: Annotated[str, AfterValidator(_target)]
    consistency: Annotated[Consistency, Field(default_factory=_consistency)]
    invalid_dates: Literal["error", "null"] = "error"
    volatile_defaults: Literal["error", "commit-time"] = "error"
    cdc_write_source: Annotated[int, Field(ge=0, le=15)] = 0
    concurrent_indexes: bool = False

    @model_validator(mode="after")
    def _marked(self) -> Self:
        if self.cdc_write_source and not self.uri.startswith("tidb:"):
            message = "cdc-write-source is of TiDB alone: other targets know no source of a write"
            raise ValueError(message)
        return self


class Redis(_Section):
    """The ledger and live status; "" = without."""

    uri: Annotated[str, AfterValidator(_redis)] = "redis://127.0.0.1:6379/0"


class Spark(BaseModel):
    """`master`, and any `spark.*` setting."""

    model_config = ConfigDict(extra="allow", frozen=True, strict=True)
    master: str = "local[*]"

    @property
    def settings(self) -> dict[str, str]:
        """The settings besides the master, as Spark takes them."""
        return {key: _spark_text(value) for key, value in (self.model_extra or {}).items()}


class Limits(_Section):
    """What bounds a window, and how long to wait: for what failed, for a silent leader, for a watermark."""

    window_rows: Annotated[int, Field(ge=1)] = 1_000_000
    window_bytes: Annotated[int, BeforeValidator(_bytes), Field(ge=1)] = 1 << 30
    message_bytes: Annotated[int, BeforeValidator(_bytes), Field(ge=1, lt=1 << 31)] = 64 << 20
    writers: Annotated[int, Field(ge=1)] = 2
    retry_seconds: Annotated[float, Field(ge=0, strict=False)] = 60.0
    lease_seconds: Annotated[float, Field(ge=1, le=3600, strict=False)] = 6.0
    stalled_seconds: Annotated[float, Field(gt=0, strict=False)] = 60.0


Condition = Annotated[str, AfterValidator(_condition)]


class EventFilterSection(_Section):
    """Which events of some tables to leave out."""

    matcher: Annotated[list[str], Field(min_length=1), AfterValidator(_matcher)]
    ignore_event: Annotated[list[str], AfterValidator(_events)] = []
    ignore_sql: Annotated[list[str], AfterValidator(_sql)] = []
    ignore_insert_value_expr: Condition = ""
    ignore_update_new_value_expr: Condition = ""
    ignore_update_old_value_expr: Condition = ""
    ignore_delete_value_expr: Condition = ""


class Filter(_Section):
    """Which tables and events, in the spelling of a TiCDC changefeed."""

    rules: Annotated[list[str], AfterValidator(_rules)] = ["*.*"]
    case_sensitive: bool = False
    ignore_txn_start_ts: Annotated[list[int], AfterValidator(_no_start_ts)] = []
    event_filters: list[EventFilterSection] = []
    force_replicate: bool = False


class Quarantine(_Section):
    """Whether messages that can't be used, and rows that the target refuses, are set aside; else they end the run."""

    enabled: bool = False
    limit: Annotated[int, Field(ge=1)] = 100
    topic: str = ""


class Config(_Section):
    """A whole config file."""

    changefeed: Annotated[str, Field(min_length=1, max_length=128, pattern=r"^[A-Za-z0-9]([A-Za-z0-9._-]*)$")]
    source: Source
    target: TargetSection
    redis: Redis = Redis()
    spark: Spark = Spark()
    limits: Limits = Limits()
    filter: Filter = Filter()
    quarantine: Quarantine = Quarantine()

    @model_validator(mode="after")
    def _apart(self) -> Self:
        """What is set aside must not come back as input."""
        if self.quarantine.topic and matcher(self.source.topics)(self.quarantine.topic):
            message = f"quarantine.topic {self.quarantine.topic!r} is one of source.topics"
            raise ValueError(message)
        return self


def load_config(path: Path) -> Config:
    """Read a config file. Raises ConfigError naming file, key and what is wrong with it."""
    return config_of(read_text(path), path)


def config_of(text: str, path: Path) -> Config:
    """The config that a text is; `path` is where it lies, or is to lie. Raises ConfigError."""
    return config_from(_with_rule_files(values_of(text, str(path)), path.parent), str(path))


def read_text(path: Path) -> str:
    """A config file's text. Raises ConfigError."""
    try:
        return path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(f"can't read the config file {path}: {error}", hint="`reconciler run CONFIG.toml`") from error


def values_of(text: str, place: str) -> dict[str, Any]:
    """The values of a TOML text, references replaced by what they name. Raises ConfigError."""
    try:
        values = tomllib.loads(text)
    except (tomllib.TOMLDecodeError, RecursionError) as error:
        raise ConfigError(f"{place} is not valid TOML: {error}") from error
    found: dict[str, Any] = _expanded(values, "")
    return found


def _with_rule_files(values: dict[str, Any], folder: Path) -> dict[str, Any]:
    """The values with the rules of `@file` in their place. Raises ConfigError."""
    section = values.get("filter")
    if not isinstance(section, dict):
        return values
    event_filters = section.get("event-filters")
    for one in event_filters if isinstance(event_filters, list) else []:
        if isinstance(one, dict) and isinstance(one.get("matcher"), list):
            one["matcher"] = with_files(one["matcher"], folder, "filter.event-filters.matcher")
    if isinstance(section.get("rules"), list):
        section["rules"] = with_files(section["rules"], folder, "filter.rules")
    return values


def config_from(values: dict[str, Any], place: str) -> Config:
    """Validate the values of a config. Raises ConfigError."""
    try:
        return Config.model_validate(values)
    except ValidationError as error:
        fact = f"the config is wrong: {said_of(error)}"
        raise ConfigError(fact, where=place, hint="see the sample in README.md") from None


def said_of(error: ValidationError) -> str:
    """What is wrong, with the keys and without the values."""
    return "; ".join(_fault(dict(fault)) for fault in error.errors(include_url=False))


def _fault(fault: dict[str, Any]) -> str:
    key = ".".join(str(part) for part in fault["loc"])
    if fault["type"] == "extra_forbidden":
        return f"unknown key {key!r}"
    if fault["type"] == "missing":
        return f"key {key!r} is missing"
    return f"key {key!r}: {fault['msg'].removeprefix('Value error, ')}"


def _expanded(value: Any, key: str) -> Any:
    if isinstance(value, dict):
        return {name: _expanded(inner, f"{key}.{name}" if key else name) for name, inner in value.items()}
    if isinstance(value, list):
        return [_expanded(inner, key) for inner in value]
    if not isinstance(value, str):
        return value
    if value.startswith("file:") and not key.startswith(_NO_FILES):
        return secret_file(Path(value.removeprefix("file:")), key)
    return _VARIABLE.sub(lambda match: _variable(match[1], key), value)


def _variable(name: str, key: str) -> str:
    value = take_variable(name, key)
    if value is None:
        raise ConfigError(
            f"the environment variable {name} is not set", where=f"key {key!r}", hint=f"export {name}=..."
        )
    return value


def secret_file(path: Path, key: str) -> str:
    """The secret that a file holds, without its last line end. Raises ConfigError."""
    try:
        return path.read_text(encoding="utf-8").rstrip("\n")
    except OSError as error:
        raise ConfigError(f"can't read the secret file {path}: {error.strerror}", where=f"key {key!r}") from error


def _spark_text(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)
