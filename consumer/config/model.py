"""The config file: one TOML file, keys in TiCDC's spelling; unknown keys are errors.

Values may be `${ENV_VAR}` or `file:/run/secrets/NAME`, so that no secret stands in the file (`consumer.config.text`).
What stands below a key is its line in `docs/configuration.md`, which `python -m consumer.reference` makes.
"""

from pathlib import Path
from typing import Annotated, Any, Literal, Self

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    ValidationError,
    ValidationInfo,
    field_validator,
    model_validator,
)
from pydantic_core import PydanticCustomError

from consumer.config import validators as checks
from consumer.config.faults import in_quotes, said_of
from consumer.config.file_sections import CsvSection
from consumer.config.table_sections import FilterSection, Section, SinkSection
from consumer.config.text import Values, read_text, values_of, with_rule_files
from consumer.kafka.topic_names import matcher
from consumer.large_messages.locations import StorePlace, place_of
from consumer.large_messages.store import check_opens
from consumer.native import Wanted
from ordering.errors import ConfigError

Consistency = Literal["snapshot", "transaction", "row"]
Bytes = Annotated[int, BeforeValidator(checks.number_of_bytes)]
Seconds = Annotated[float, Field(strict=False)]


class ClaimCheckSection(Section):
    """Where claim-check files may be, how they are reached, and the settings of the stores."""

    locations: Annotated[list[str], AfterValidator(checks.places)] = []
    """The only places that claim-check files are read from: `s3://`, `gs://`, `azure://`, `http://`, `file:///`. A
    message with another location is refused. See `docs/large-rows.md`."""
    map: Annotated[dict[str, str], AfterValidator(checks.moved)] = {}
    """Locations that this machine reaches under another path or address: `"LOCATION IN MESSAGES" = "LOCATION HERE"`."""
    options: dict[str, str] = {}
    """Settings of the stores, named as in the `obstore` library: credentials, `endpoint`, `region`,
    `allow-http`, `timeout`, ..."""

    @model_validator(mode="after")
    def _open(self) -> Self:
        """Open every store once, which connects to nothing: wrong schemes and options are found here."""
        for place in (*self.locations, *self.map.values()):
            if place not in self.map:
                self._try(place_of(place))
        return self

    def _try(self, place: StorePlace) -> None:
        """Open a store. What the library says may quote an option's value, so only names are shown."""
        try:
            check_opens(place, self.options)
        except ValueError as error:
            named = ", ".join(sorted(self.options)) or "none"
            message = f"no store of {place.scheme}:// can be opened: wrong scheme, or a wrong option of: {named}"
            raise ValueError(message) from error


class UpstreamSection(Section):
    """The upstream TiDB: `verify` compares with it, and it provides what messages lack.

    Messages may lack rows (handle-key-only), values from `DEFAULT CURRENT_TIMESTAMP`, the database of a name in a
    RENAME.
    """

    uri: Annotated[str, AfterValidator(checks.upstream)] = ""
    """`tidb://USER:PASSWORD@HOST:4000`; its user needs SELECT. Empty: none."""


class SourceSection(Section):
    """Where the messages come from."""

    storage: Annotated[str, AfterValidator(checks.storage)] = ""
    """The directory of the changefeed's storage sink, instead of Kafka: `s3://BUCKET/PREFIX`, `gs://`, `azure://` or
    `file:///DIR`, without parameters. See `docs/storage.md`."""
    bootstrap_servers: Annotated[str, AfterValidator(checks.addresses), Field(validate_default=True)] = ""
    """Kafka's addresses: `host:port,host:port`. Required, as `topics` is, unless `storage` is set."""
    topics: Annotated[list[str], AfterValidator(checks.topics), Field(validate_default=True)] = []
    """Names, or one regular expression with `~` in front: `["~cdc_.*"]`. It has to match a whole name. Topics that
    appear later are found."""
    storage_options: dict[str, str] = {}
    """Settings of that store, named as in the `obstore` library: credentials, `endpoint`, `region`, ..."""
    csv: CsvSection = CsvSection()
    protocol: Annotated[
        Literal["canal-json", "simple", "open-protocol", "avro", "debezium", "csv"],
        BeforeValidator(checks.read_protocol),
    ] = "canal-json"
    """The changefeed's `protocol`: `"canal-json"`; from Kafka also `"open-protocol"`, `"simple"`, `"avro"` and
    `"debezium"`; from files also `"csv"`. See `docs/changefeed.md`."""
    archive: Annotated[str, AfterValidator(checks.storage)] = ""
    """The directory to which another TiCDC changefeed writes the same tables as files. If retention has deleted the
    messages that are needed next, these files are read instead of the topics, until the topics hold everything that
    follows. See `docs/storage.md`."""
    archive_options: dict[str, str] = {}
    """Settings of that store, as `storage-options`."""
    archive_protocol: Literal["canal-json", "csv"] = "canal-json"
    """The `protocol` of the changefeed that writes the archive: `"canal-json"` or `"csv"`."""
    archive_csv: CsvSection = CsvSection()
    lossy_values: Literal["refuse", "stop", "accept"] = "refuse"
    """Only for `protocol = "debezium"`, in which TiCDC loses values. `"refuse"`: do not read this protocol; `"stop"`:
    end with an error at a value that a float may have changed; `"accept"`: write the value in the message. See
    `docs/changefeed.md`."""
    schema_registry: Annotated[str, AfterValidator(checks.schema_registry)] = ""
    """Only for `protocol = "avro"`: address of the Confluent schema registry that the changefeed's sink names
    (`"http://registry:8081"`, `USER:PASSWORD@` if it asks for a login). See `docs/changefeed.md`."""
    schema_registry_ca: Annotated[str, AfterValidator(checks.authorities)] = ""
    """For a registry with `https://`: PEM file, or directory, of the authorities to trust. Empty: the system's."""
    avro_enable_watermark: bool = False
    """Only for `protocol = "avro"`: whether the changefeed's sink URI has `avro-enable-watermark=true`, without which
    topics have neither watermarks nor DDLs. See `docs/changefeed.md`."""
    watermark_from: Annotated[str, AfterValidator(checks.watermark_api)] = ""
    """Address of the TiCDC server (`"http://ticdc:8300"`, `USER:PASSWORD@` if it asks for a login), whose API reports
    the changefeed's checkpoint. It is used as a watermark for topics that hold no watermarks, or no longer get any.
    See `docs/changefeed.md`."""
    watermark_changefeed: str = ""
    """The changefeed's id in TiCDC. Empty: as `changefeed`."""
    watermark_keyspace: Annotated[str, Field(min_length=1)] = "default"
    """Its keyspace (before v8.5.4: namespace)."""
    start_ts: Annotated[int, Field(ge=0, lt=2**64)] = 0
    """Checkpoint of a new changefeed, a TSO: events at or below it are already in the target. 0: apply everything that
    the topics hold. After `reconciler load` it is not needed."""
    unproven_beginning: Literal["error", "accept"] = "error"
    """What to do if retention deleted the beginning of a partition and nothing proves that all of it lies at or below
    `start-ts`: end with an error, or continue with what is left, because you know that nothing is missing. The same if
    `progress rewind` finds that a retired topic is gone. See `docs/recovery.md`."""
    equal_rows: Literal["error", "count"] = "error"
    """What to do if equal rows of a table without a key and of one commitTs arrive again in another batch of Kafka:
    end with an error, or count each of them as a row, although TiCDC may have sent one row twice. See
    `docs/keyless-tables.md`."""
    ignored_watermarks: list[Annotated[str, Field(pattern=r"^[^/]+/\d+/\d+$")]] = []
    """Watermarks that do not count, `"TOPIC/PARTITION/OFFSET"`: other programs wrote them. See `docs/recovery.md`."""
    time_zone: Annotated[str, AfterValidator(checks.zone)] = "UTC"
    """Zone in which TiCDC prints TIMESTAMP values (its server's `--tz`): a name, or `+08:00`.

    When clocks are set back there, an hour occurs twice. Times in it are taken as the first of the two, with a warning
    at the start, because messages do not say which one is meant."""
    kafka: Annotated[dict[str, str | int | bool], AfterValidator(checks.kafka)] = {}
    """Client properties, named as in librdkafka: `"security.protocol"`, `"sasl.mechanism"`, `"ssl.ca.location"`, ...;
    see `docs/security.md`."""
    claim_check: ClaimCheckSection = ClaimCheckSection()
    upstream: UpstreamSection = UpstreamSection()

    @field_validator("bootstrap_servers", "topics")
    @classmethod
    def _there(cls, value: str | list[str], info: ValidationInfo) -> str | list[str]:
        """Required, unless there are files."""
        if not value and info.data.get("storage") == "":
            raise PydanticCustomError("missing", "missing")
        return value

    @model_validator(mode="after")
    def _of_one_kind(self) -> Self:
        """Either Kafka or files, with a protocol that TiCDC writes there."""
        if not self.storage:
            checks.kafka_source(self.protocol, self.lossy_values)
            if self.protocol == "avro":
                asked = bool(self.watermark_from)
                checks.avro_source(self.schema_registry, has_watermarks=self.avro_enable_watermark, is_asked_for=asked)
            if self.archive:
                checks.store_opens("archive", self.archive, self.archive_options)
            return self
        checks.no_archive(self.archive)
        checks.storage_source(bool(self.bootstrap_servers or self.topics or self.kafka), self.protocol)
        checks.store_opens("storage", self.storage, self.storage_options)
        return self

    @property
    def topics_may_lack(self) -> bool:
        """Whether `unproven-beginning` accepts what topics lack: with an archive it is about that."""
        return self.unproven_beginning == "accept" and not self.archive


def _consistency(values: dict[str, Any]) -> Consistency:
    """The default: TiDB bounds its transactions, so a window may not fit into one."""
    return "row" if str(values.get("uri", "")).startswith("tidb:") else "snapshot"


class TargetSection(Section):
    """Where the rows are written, and how."""

    uri: Annotated[str, AfterValidator(checks.target)]
    """`sqlite:////DIRECTORY`, `mysql://USER:PASSWORD@HOST:3306`, `mariadb://...`, `tidb://...`,
    `postgresql://USER:PASSWORD@HOST:5432/DATABASE` or `iceberg+sqlite:////CATALOG?warehouse=/DIRECTORY` or
    `iceberg+postgresql://...?warehouse=s3://BUCKET/PREFIX`; characters of a password that URIs reserve are
    percent-encoded. See `docs/targets.md` and `docs/iceberg.md`."""
    warehouse_options: dict[str, str] = {}
    """Settings of the store of an Iceberg warehouse at `s3://`, named as in the `obstore` library: credentials,
    `endpoint`, `region`, `timeout`, ..."""
    consistency: Annotated[Consistency, Field(default_factory=_consistency)]
    """What readers of the target may see; see `docs/concepts.md`. For TiDB, which limits the size of transactions, the
    default is `"row"`."""
    invalid_dates: Literal["error", "null"] = "error"
    """What to do with zero and partial dates if the target can't hold them (PostgreSQL): end with an error, or write
    NULL."""
    volatile_defaults: Literal["error", "commit-time"] = "commit-time"
    """Which value existing rows get when a column with a default such as CURRENT_TIMESTAMP is added and
    `source.upstream` can't provide upstream's value: the DDL's commit time, which is later than upstream's value by as
    long as the DDL took, with a note in the DDL log; or end with an error."""
    on_drift: Literal["warn", "stop"] = "warn"
    """What to do if the target lacks rows that upstream has, or has rows that upstream does not have: count and log
    them, or stop before the window is committed; see `docs/guarantees.md`."""
    cdc_write_source: Annotated[int, Field(ge=0, le=15)] = 0
    """1 to 15: the mark of everything that is written into TiDB, so that changefeeds of that cluster with `bdr-mode`
    do not send it back; see `docs/ddl-operations.md`. 0: no mark."""
    concurrent_indexes: bool = False
    """Whether PostgreSQL builds indexes by `CREATE INDEX CONCURRENTLY`, outside of the transaction, so that others can
    write at the same time."""
    audit: bool = False
    """Whether to list the applied windows in `ticdc_reconciler.audit`: range of commitTs, rows per table, duration and
    epoch; see `docs/proof.md`."""
    audit_days: Annotated[int, Field(ge=1, le=3650)] = 30
    """For how many days the list is kept."""

    @model_validator(mode="after")
    def _marked(self) -> Self:
        if self.cdc_write_source and not self.uri.startswith("tidb:"):
            message = "cdc-write-source is of TiDB alone: other targets know no source of a write"
            raise ValueError(message)
        checks.warehouse(self.uri, self.warehouse_options)
        if self.uri.startswith("iceberg") and self.consistency == "row":
            message = 'consistency = "row" is not of Iceberg: its tables change in one transaction'
            raise ValueError(message)
        if self.uri.startswith("iceberg") and self.audit:
            message = "audit is not of Iceberg: its snapshots tell what was written when"
            raise ValueError(message)
        if self.uri.startswith("iceberg") and self.on_drift == "stop":
            message = 'on-drift = "stop" is not of Iceberg: it is not counted which rows were there'
            raise ValueError(message)
        return self


class RedisSection(Section):
    """The ledger and live status."""

    uri: Annotated[str, AfterValidator(checks.redis)] = "redis://127.0.0.1:6379/0"
    """`redis://` or `rediss://` (TLS). `""`: no Redis; duplicates are then dropped without proof. Least rights:
    `docs/security.md`."""


class SparkSection(BaseModel):
    """`master`, and any `spark.*` setting."""

    model_config = ConfigDict(extra="allow", frozen=True, strict=True, use_attribute_docstrings=True)
    master: str = "local[*]"
    """A Spark master. Other keys of the section are settings of Spark: `"spark.driver.memory" = "2g"`."""
    native: Wanted = "auto"
    """Whether tasks read with the compiled core: `"auto"`: if it was built, else in Python; `true`: always, else an
    error; `false`: never. The results are the same. See `docs/performance.md`."""

    @model_validator(mode="after")
    def _are_settings(self) -> Self:
        for key, value in (self.model_extra or {}).items():
            if not key.startswith("spark.") or not isinstance(value, str | int | float):
                told = 'is neither master, native nor a setting of Spark, as in "spark.driver.memory" = "2g"'
                raise ValueError(f"{key!r} {in_quotes(key, value) if isinstance(value, dict) else told}")
        return self

    @property
    def settings(self) -> dict[str, str]:
        """The settings besides the master, as Spark takes them."""
        return {key: _spark_text(value) for key, value in (self.model_extra or {}).items()}


class LimitsSection(Section):
    """The size of a window, and how long to wait: after an error, for a silent leader, for a watermark."""

    window_rows: Annotated[int, Field(ge=1)] = 1_000_000
    """Largest number of row messages in a window. A window ends between two transactions; a transaction with more rows
    is a window of its own."""
    window_bytes: Annotated[Bytes, Field(ge=1)] = 1 << 30
    """Largest size of the messages in a window, likewise."""
    message_bytes: Annotated[Bytes, Field(ge=1, lt=1 << 31)] = 64 << 20
    """Largest message, before and after decompression, and largest claim-check file. A larger one is an error."""
    writers: Annotated[int, Field(ge=1)] = 2
    """Number of connections that write in parallel in `row` consistency, and of processes of `load`. At most as many as
    Spark has task slots are used."""
    retry_seconds: Annotated[Seconds, Field(ge=0)] = 60.0
    """How long to retry after a temporary error, counted from the last success; also at the start."""
    lease_seconds: Annotated[Seconds, Field(ge=1, le=3600)] = 6.0
    """If a leader sends no heartbeat for this long, another instance takes over; see `docs/high-availability.md`."""
    stalled_seconds: Annotated[Seconds, Field(gt=0)] = 60.0
    """If the watermark that holds back the others does not rise for this long, a warning is logged, again and again."""
    clock_ahead_seconds: Annotated[Seconds, Field(ge=0)] = 86_400.0
    """A watermark further ahead of this machine's clock, or of the time at which Kafka took it, is an error, because
    later events below it would count as applied. So is an event further ahead. See `docs/recovery.md`."""


class QuarantineSection(Section):
    """Whether messages that can't be used, and rows that the target refuses, are quarantined; else they end the run."""

    enabled: bool = False
    """Quarantine them; see `docs/quarantine.md`."""
    limit: Annotated[int, Field(ge=1)] = 100
    """More undecided messages than this end the run."""
    topic: Annotated[str, AfterValidator(checks.topic)] = ""
    """A Kafka topic to which they are also written. Empty: none."""


class ProofSection(Section):
    """Whether a run proves the tables in the background, continuously; see `docs/proof.md`."""

    enabled: bool = False
    """Prove them while this instance leads: compare the rows in the target with the events."""
    rows_per_second: Annotated[int, Field(ge=1)] = 2_000
    """The largest number of rows of the target and messages of Kafka, together, to read in a second."""
    interval_seconds: Annotated[Seconds, Field(gt=0)] = 3600.0
    """The time between two comparisons of a table."""


class Config(Section):
    """A whole config file."""

    changefeed: Annotated[str, Field(min_length=1, max_length=128, pattern=r"^[A-Za-z0-9]([A-Za-z0-9._-]*)$")]
    """Its id: letters, digits, `.`, `_`, `-`. It names the row of progress, the consumer group and the prefix in
    Redis."""
    source: SourceSection
    target: TargetSection
    redis: RedisSection = RedisSection()
    spark: SparkSection = SparkSection()
    limits: LimitsSection = LimitsSection()
    filter: FilterSection = FilterSection()
    sink: SinkSection = SinkSection()
    quarantine: QuarantineSection = QuarantineSection()
    proof: ProofSection = ProofSection()

    @model_validator(mode="after")
    def _apart(self) -> Self:
        """What is quarantined must not come back as input."""
        if self.quarantine.topic and matcher(self.source.topics)(self.quarantine.topic):
            message = f"quarantine.topic {self.quarantine.topic!r} is one of source.topics"
            raise ValueError(message)
        return self

    @model_validator(mode="after")
    def _routed_in_any_case(self) -> Self:
        """TiCDC spells one name in several ways, and every spelling has to lead to one table."""
        if self.sink.dispatchers and self.filter.case_sensitive:
            message = "sink.dispatchers match names in any case: filter.case-sensitive = true does not go with them"
            raise ValueError(message)
        return self

    @model_validator(mode="after")
    def _merged_in_databases(self) -> Self:
        """A shard's rows are deleted or changed by their origin, which files do not do."""
        if self.target.uri.startswith("iceberg") and any(one.merge for one in self.sink.dispatchers):
            message = "sink.dispatchers: merge is not of Iceberg: choose a database as target"
            raise ValueError(message)
        return self

    @model_validator(mode="after")
    def _of_single_events(self) -> Self:
        """What counts messages one by one can't be had where a message holds a batch of rows."""
        wanted = {"quarantine.enabled": self.quarantine.enabled, "filter.force-replicate": self.filter.force_replicate}
        found = [key for key, is_wanted in wanted.items() if is_wanted]
        if found and (self.source.protocol == "open-protocol" or self.source.storage or self.source.archive):
            message = f"{found[0]} needs messages of one row each: Canal-JSON or Simple, from Kafka without an archive"
            raise ValueError(message)
        if self.proof.enabled and self.target.uri.startswith("iceberg"):
            message = "proof.enabled is not of Iceberg: `prove` does not read its tables"
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
        fact = f"the config is wrong: {said_of(error, Config, found.secrets)}"
        raise ConfigError(fact, where=place, hint="`reconciler help configuration` lists all keys") from None


def _spark_text(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)
