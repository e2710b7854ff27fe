"""The config file: one TOML file, keys in TiCDC's spelling; unknown keys are errors.

Values may be `${ENV_VAR}` or `file:/run/secrets/NAME`, so that no secret stands in the file (`consumer.config_text`).
What stands below a key is its line in `docs/configuration.md`, which `python -m consumer.reference` makes.
"""

from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Annotated, Any, Literal, Self

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, ValidationError, model_validator

from consumer import config_checks as checks
from consumer.bodies.claims import opened
from consumer.bodies.locations import Place, place_of
from consumer.config_text import Values, read_text, values_of, with_rule_files
from consumer.topic_names import matcher
from ordering.errors import ConfigError

Consistency = Literal["snapshot", "transaction", "row"]
Bytes = Annotated[int, BeforeValidator(checks.number_of_bytes)]
Seconds = Annotated[float, Field(strict=False)]
Condition = Annotated[str, AfterValidator(checks.condition)]


def _kebab(name: str) -> str:
    return name.replace("_", "-")


class _Section(BaseModel):
    model_config = ConfigDict(
        extra="forbid", frozen=True, alias_generator=_kebab, strict=True, use_attribute_docstrings=True
    )


class ClaimCheck(_Section):
    """Where claim-check files may be, how to get there, and what the stores want to know."""

    locations: Annotated[list[str], AfterValidator(checks.places)] = []
    """Places that claim-check files may be in: `s3://`, `gs://`, `azure://`, `http://`, `file:///`; a location in a
    message that leads elsewhere is refused. See `docs/changefeed.md`."""
    map: Annotated[dict[str, str], AfterValidator(checks.moved)] = {}
    """Such places that are reached elsewhere: theirs = ours."""
    options: dict[str, str] = {}
    """What the stores want to know, by the names of the `obstore` library: credentials, `endpoint`, `region`,
    `allow-http`, `timeout`, ..."""

    @model_validator(mode="after")
    def _open(self) -> Self:
        """Open every store once, which connects to nothing: wrong schemes and options are found here."""
        for place in (*self.locations, *self.map.values()):
            if place not in self.map:
                self._try(place_of(place))
        return self

    def _try(self, place: Place) -> None:
        """Open a store. What the library says may quote an option's value, so only names are shown."""
        try:
            opened(place, self.options)
        except ValueError as error:
            named = ", ".join(sorted(self.options)) or "none"
            message = f"no store of {place.scheme}:// can be opened: wrong scheme, or a wrong option of: {named}"
            raise ValueError(message) from error


class Upstream(_Section):
    """The TiDB that holds what handle-key-only messages lack, and that `verify` compares with."""

    uri: Annotated[str, AfterValidator(checks.upstream)] = ""
    """`tidb://USER:PASSWORD@HOST:4000`; its user needs SELECT. Empty: none."""


class Source(_Section):
    """Where the messages are."""

    bootstrap_servers: Annotated[str, Field(min_length=1)]
    """Kafka's addresses: `host:port,host:port`."""
    topics: Annotated[list[str], Field(min_length=1), AfterValidator(checks.topics)]
    """Names, or one regular expression with `~` in front: `["~cdc_.*"]`. Topics that appear later are found."""
    protocol: Literal["canal-json"] = "canal-json"
    """The changefeed's `protocol`; nothing else is read."""
    start_ts: Annotated[int, Field(ge=0, lt=2**64)] = 0
    """Checkpoint of a new changefeed, a TSO: events at or below it are in the target already. 0: apply all that the
    topics hold. `reconciler load` sets it by itself."""
    unproven_beginning: Literal["error", "accept"] = "error"
    """Where retention deleted the beginning of a partition and nothing proves that all of it lies at or below
    `start-ts`: an error, or go on from what is left, because you know it; see `docs/recovery.md`."""
    time_zone: Annotated[str, AfterValidator(checks.zone)] = "UTC"
    """Zone in which TiCDC prints TIMESTAMP values (its server's `--tz`): a name, or `+08:00`."""
    kafka: Annotated[dict[str, str | int | bool], AfterValidator(checks.kafka)] = {}
    """Client properties by librdkafka's names: `"security.protocol"`, `"sasl.mechanism"`, `"ssl.ca.location"`, ...; see
    `docs/security.md`."""
    claim_check: ClaimCheck = ClaimCheck()
    upstream: Upstream = Upstream()


def _consistency(values: dict[str, Any]) -> Consistency:
    """The default: TiDB bounds its transactions, so a window may not fit into one."""
    return "row" if str(values.get("uri", "")).startswith("tidb:") else "snapshot"


class TargetSection(_Section):
    """Where the rows go, and how."""

    uri: Annotated[str, AfterValidator(checks.target)]
    """`sqlite:////DIRECTORY`, `mysql://USER:PASSWORD@HOST:3306`, `mariadb://...`, `tidb://...` or
    `postgresql://USER:PASSWORD@HOST:5432/DATABASE`; characters of a password that URIs reserve are percent-encoded. See
    `docs/targets.md`."""
    consistency: Annotated[Consistency, Field(default_factory=_consistency)]
    """What readers of the target may see: see `docs/concepts.md`. Into TiDB, which bounds its transactions, the default
    is `"row"`."""
    invalid_dates: Literal["error", "null"] = "error"
    """Zero and partial dates where the target has none (PostgreSQL): an error, or NULL."""
    volatile_defaults: Literal["error", "commit-time"] = "commit-time"
    """What rows get that are there when a column with a default of the moment is added: the DDL's commit time, which is
    later than upstream's value by as long as the DDL took, with a note in the DDL log; or an error."""
    on_drift: Literal["warn", "stop"] = "warn"
    """Where the target turns out to lack rows that upstream has, or to hold some that it has not: count and log them,
    or stop before the window is committed; see `docs/guarantees.md`."""
    cdc_write_source: Annotated[int, Field(ge=0, le=15)] = 0
    """1 to 15: the mark of what is written into TiDB, so that its own changefeeds with `bdr-mode` do not send it back;
    see `docs/ddl-operations.md`. 0: none."""
    concurrent_indexes: bool = False
    """Whether PostgreSQL builds indexes by `CREATE INDEX CONCURRENTLY`, outside of the transaction, so that others may
    write meanwhile."""

    @model_validator(mode="after")
    def _marked(self) -> Self:
        if self.cdc_write_source and not self.uri.startswith("tidb:"):
            message = "cdc-write-source is of TiDB alone: other targets know no source of a write"
            raise ValueError(message)
        return self


class Redis(_Section):
    """The ledger and live status."""

    uri: Annotated[str, AfterValidator(checks.redis)] = "redis://127.0.0.1:6379/0"
    """`redis://` or `rediss://` (TLS); `""`: without Redis, duplicates are then dropped unproven. Least rights:
    `docs/security.md`."""


class Spark(BaseModel):
    """`master`, and any `spark.*` setting."""

    model_config = ConfigDict(extra="allow", frozen=True, strict=True, use_attribute_docstrings=True)
    master: str = "local[*]"
    """A Spark master. Other keys of the section are settings of Spark: `"spark.driver.memory" = "2g"`."""

    @model_validator(mode="after")
    def _are_settings(self) -> Self:
        for key, value in (self.model_extra or {}).items():
            if not key.startswith("spark.") or not isinstance(value, str | int | float):
                message = f'{key!r} is neither master nor a setting of Spark, as in "spark.driver.memory" = "2g"'
                raise ValueError(message)
        return self

    @property
    def settings(self) -> dict[str, str]:
        """The settings besides the master, as Spark takes them."""
        return {key: _spark_text(value) for key, value in (self.model_extra or {}).items()}


class Limits(_Section):
    """What bounds a window, and how long to wait: for what failed, for a silent leader, for a watermark."""

    window_rows: Annotated[int, Field(ge=1)] = 1_000_000
    """A window ends before it holds more row messages, between two transactions; a transaction with more is a window of
    its own."""
    window_bytes: Annotated[Bytes, Field(ge=1)] = 1 << 30
    """The same in bytes of messages."""
    message_bytes: Annotated[Bytes, Field(ge=1, lt=1 << 31)] = 64 << 20
    """Largest message, content of a compressed one, or claim-check file: beyond it is an error."""
    writers: Annotated[int, Field(ge=1)] = 2
    """Connections that write at once in `row` consistency, and processes of `load`; not more than Spark's task slots
    are used."""
    retry_seconds: Annotated[Seconds, Field(ge=0)] = 60.0
    """How long to try again after the last success, also at the start."""
    lease_seconds: Annotated[Seconds, Field(ge=1, le=3600)] = 6.0
    """A leader that shows no sign of life for so long is taken over from; see `docs/high-availability.md`."""
    stalled_seconds: Annotated[Seconds, Field(gt=0)] = 60.0
    """A watermark that holds the others back and stands still for so long is warned of, again and again."""


class EventFilterSection(_Section):
    """Which events of some tables to leave out."""

    matcher: Annotated[list[str], Field(min_length=1), AfterValidator(checks.matcher)]
    """Rules for the tables that it is about; a statement about a database counts if a rule takes in any of it."""
    ignore_event: Annotated[list[str], AfterValidator(checks.events)] = []
    """Kinds of events by TiCDC's names: `all dml`, `all ddl`, `insert`, `create table`, `add column`, ..."""
    ignore_sql: Annotated[list[str], AfterValidator(checks.sql)] = []
    """DDLs whose text one of these expressions is found in, upper and lower case alike."""
    ignore_insert_value_expr: Condition = ""
    """INSERTs for which this SQL condition is true."""
    ignore_update_new_value_expr: Condition = ""
    """UPDATEs for whose new row this is true."""
    ignore_update_old_value_expr: Condition = ""
    """UPDATEs for whose old row this is true."""
    ignore_delete_value_expr: Condition = ""
    """DELETEs for which this is true."""


class Filter(_Section):
    """Which tables and events, in the spelling of a TiCDC changefeed (README, *Filters*)."""

    rules: Annotated[list[str], AfterValidator(checks.rules)] = ["*.*"]
    """TiCDC's table filter: `shop.*`, `!shop.tmp_*`, `/regex/.*`, `@FILE`; the last match decides."""
    case_sensitive: bool = False
    """Whether upper and lower case in rules and matchers are different."""
    ignore_txn_start_ts: Annotated[list[int], AfterValidator(checks.no_start_ts)] = []
    """Nothing else can be: messages do not tell it. Set it upstream."""
    event_filters: list[EventFilterSection] = []
    """Each `[[filter.event-filters]]` leaves out some events of some tables."""
    force_replicate: bool = False
    """Take rows of tables without a valid key, as a changefeed with the same setting sends them (README,
    *Tables without a key*)."""


class Quarantine(_Section):
    """Whether messages that can't be used, and rows that the target refuses, are set aside; else they end the run."""

    enabled: bool = False
    """Set them aside: `docs/quarantine.md`."""
    limit: Annotated[int, Field(ge=1)] = 100
    """So many messages that nobody has decided about, then the run ends."""
    topic: str = ""
    """A Kafka topic that gets them too."""


class Config(_Section):
    """A whole config file."""

    changefeed: Annotated[str, Field(min_length=1, max_length=128, pattern=r"^[A-Za-z0-9]([A-Za-z0-9._-]*)$")]
    """Its id: letters, digits, `.`, `_`, `-`. It names the row of progress, the consumer group and the prefix in
    Redis."""
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
    found = values_of(text, path)
    return _validated(Values(with_rule_files(found.values, path.parent), found.secrets), str(path))


def config_from(values: dict[str, Any], place: str) -> Config:
    """Validate the values of a config. Raises ConfigError."""
    return _validated(Values(values), place)


def _validated(found: Values, place: str) -> Config:
    try:
        return Config.model_validate(found.values)
    except ValidationError as error:
        fact = f"the config is wrong: {said_of(error, found.secrets)}"
        raise ConfigError(fact, where=place, hint="see the sample in README.md") from None


def said_of(error: ValidationError, secrets: Mapping[str, tuple[str, ...]] = MappingProxyType({})) -> str:
    """What is wrong, with the keys and without the values; `secrets`: by key, what references named."""
    return "; ".join(_fault(dict(fault), secrets) for fault in error.errors(include_url=False))


def _fault(fault: dict[str, Any], secrets: Mapping[str, tuple[str, ...]]) -> str:
    key = ".".join(str(part) for part in fault["loc"])
    if fault["type"] == "extra_forbidden":
        return f"unknown key {key!r}"
    if fault["type"] == "missing":
        return f"key {key!r} is missing"
    message = str(fault["msg"]).removeprefix("Value error, ")
    if _may_show_a_secret(key, message, secrets):
        message = "what its reference names is no valid value here (it is not shown)"
    return f"key {key!r}: {message}"


def _may_show_a_secret(key: str, message: str, secrets: Mapping[str, tuple[str, ...]]) -> bool:
    """Whether a message is about a value that a reference named, or holds such a value by chance.

    What is wrong with a value often quotes a part of it, so the text of the message can't be judged by itself. The
    validators of whole sections quote none.
    """
    if any(key == one or key.startswith(f"{one}.") for one in secrets):
        return True
    return any(secret and secret in message for named in secrets.values() for secret in named)


def _spark_text(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)
