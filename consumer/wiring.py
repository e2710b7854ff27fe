"""From a config to what works by it: where a source's format, readers and names are chosen.

Targets are chosen in `sinks.registry`, sources in `consumer.source.port`.
"""

from consumer.config.changefeed_filter import read_filter
from consumer.config.model import Config
from consumer.config.routes import names_of, read_routes
from consumer.filters.selected_columns import SelectedColumns
from consumer.formats.avro.protocol import Avro
from consumer.formats.avro.registry import SchemaRegistry
from consumer.formats.canal_json import CANAL_JSON, CanalJson
from consumer.formats.debezium.protocol import Debezium
from consumer.formats.known_schemas import KnownSchemas
from consumer.formats.message_format import MessageFormat
from consumer.formats.open_protocol import OpenProtocol
from consumer.formats.simple.protocol import Simple
from consumer.kafka.properties import reader_settings
from consumer.kafka.reader import KafkaReaders, Readers
from consumer.large_messages.claim_check import Claims
from consumer.large_messages.fetch import Bodies
from consumer.storage.csv_file import CsvRules
from consumer.storage.place import StorageRoot
from consumer.storage.reader import FileReaders
from consumer.storage.warehouse import WarehouseStore
from ordering.errors import ConfigError
from ordering.progress import Progress
from sinks.registry import open_target
from sinks.rows.values import ValueRules
from sinks.target import Target
from sinks.uri import parse_upstream_uri, warehouse_of


def target_of(config: Config) -> Target:
    """The target of a changefeed, not yet connected."""
    target, names = config.target, names_of(read_routes(config.sink))
    warehouse = warehouse_of(target.uri)
    return open_target(
        target.uri,
        values_of(config),
        target.cdc_write_source,
        concurrent_indexes=target.concurrent_indexes,
        names=names,
        objects=WarehouseStore(warehouse, target.warehouse_options) if warehouse else None,
    )


def check_is_database(uri: str, command: str) -> None:
    """Raise ConfigError where a command can't work with a kind of target, before anything is read."""
    if uri.startswith("iceberg"):
        hint = "docs/iceberg.md says what to do instead, at Limits"
        raise ConfigError(
            f"`{command}` is not of Iceberg: it works with databases alone", where="target.uri", hint=hint
        )


def values_of(config: Config) -> ValueRules:
    """How a changefeed's values are read."""
    target = config.target
    return ValueRules(config.source.time_zone, target.invalid_dates, target.volatile_defaults)


def archive_of(config: Config) -> Config:
    """The config of a changefeed that reads the archive of this one as its source."""
    source = config.source
    files = {
        "storage": source.archive,
        "storage_options": source.archive_options,
        "protocol": source.archive_protocol,
        "csv": source.archive_csv,
    }
    none = {"bootstrap_servers": "", "topics": [], "kafka": {}, "watermark_from": "", "archive": ""}
    return config.model_copy(update={"source": source.model_copy(update={**files, **none})})


def reading(config: Config, progress: Progress) -> Config:
    """The config of what is read at this progress: of the topics or files that it names, or of its archive.

    Raises ConfigError where the archive that is read is not the one that is named.
    """
    if not progress.archived:
        return config
    archive = config.source.archive
    if not (archive and progress.archived.startswith(f"{archive}: ")):
        fact = f"the changefeed reads on from an archive, and source.archive is now {archive!r}"
        raise ConfigError(fact, where=progress.archived, hint="set it back until the topics are read again")
    return archive_of(config)


def format_of(config: Config) -> MessageFormat:
    """How the changefeed's messages are read: by `source.protocol`, with the columns that it takes of them."""
    columns = read_routes(config.sink).columns
    if not columns:
        return _format_of(config)
    return SelectedColumns(_format_of(config), columns.within(read_filter(config.filter).tables))


def _format_of(config: Config) -> MessageFormat:
    if config.source.storage:
        return CanalJson(sends_batches=True)  # a file counts as a message
    protocol = config.source.protocol
    if protocol == "simple":
        return Simple(config.source.time_zone, native=config.spark.native)
    if protocol == "avro":
        return Avro(registry_of(config))
    if protocol == "debezium":
        return Debezium(config.source.time_zone, accepts=config.source.lossy_values == "accept")
    return OpenProtocol() if protocol == "open-protocol" else CANAL_JSON


def registry_of(config: Config) -> SchemaRegistry:
    """Where the schemas of Avro are."""
    return SchemaRegistry(config.source.schema_registry, config.source.schema_registry_ca, tuple(config.source.topics))


def storage_of(config: Config) -> StorageRoot:
    """The directory of files that a changefeed reads."""
    return StorageRoot(config.source.storage, config.source.storage_options)


def readers_of(config: Config) -> Readers:
    """What tasks read with."""
    source = config.source
    if not source.storage:
        return KafkaReaders(reader_settings(source.bootstrap_servers, source.kafka))
    csv = source.csv
    rules = CsvRules(csv.delimiter, csv.quote, csv.null, csv.terminator, csv.binary_encoding_method)
    return FileReaders(storage_of(config), rules if source.protocol == "csv" else None, config.spark.native)


def schemas_of(config: Config, target: Target) -> KnownSchemas:
    """What a changefeed knows of upstream's schemas, of which its target keeps some."""
    found = format_of(config)
    return KnownSchemas(found, target.schemas.all(config.changefeed) if found.keeps_schemas else ())


def bodies_of(config: Config) -> Bodies:
    """What a config says of them."""
    section, uri = config.source.claim_check, config.source.upstream.uri
    claims = Claims(
        tuple(section.locations), section.map, section.options, config.limits.message_bytes, format_of(config)
    )
    if not uri:
        return Bodies(claims, None)
    from consumer.large_messages.handle_key_only import UpstreamRows  # noqa: PLC0415 it brings a driver

    upstream = UpstreamRows(parse_upstream_uri(uri), config.source.time_zone)
    return Bodies(claims, upstream, read_routes(config.sink).columns)
