"""What a value of the config has to be, beyond its type: each function gives it back, or raises ValueError.

They connect to nothing and open nothing. Their texts name no value that may be a secret.
"""

import re
from collections.abc import Callable, Mapping
from typing import Any, TypeVar
from urllib.parse import SplitResult, urlsplit
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from consumer.config.redis_uri import check_redis_uri
from consumer.filters.columns import name_rules
from consumer.filters.events import condition_or_none, ignored_events, ignored_sql
from consumer.filters.origins import LONGEST
from consumer.filters.tables import table_filter
from consumer.formats.debezium.columns import LOSSES
from consumer.go_regex import compiled
from consumer.kafka import topic_names
from consumer.kafka.properties import Settings
from consumer.kafka.property_rules import faults
from consumer.large_messages.locations import place_of, shown
from consumer.large_messages.store import check_opens
from ordering.errors import ConfigError
from sinks.uri import parse_target_uri, parse_upstream_uri, warehouse_of

_UNITS = {"": 1, "b": 1, "kib": 1 << 10, "mib": 1 << 20, "gib": 1 << 30, "kb": 10**3, "mb": 10**6, "gb": 10**9}
_PORTS = 65536
_STORES = ("s3", "gs", "azure", "file")
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
    """A target's URI, which is not connected to; its scheme in small letters, by which others tell what it is."""
    try:
        parse_target_uri(value)
    except ConfigError as error:
        raise ValueError(_joined(error, "target.uri ")) from error
    scheme, colon, rest = value.partition(":")
    return f"{scheme.lower()}{colon}{rest}"


def addresses(value: str) -> str:
    """Kafka's addresses; "" for none."""
    for one in value.split(",") if value else ():
        host, _, port = one.strip().rpartition(":") if ":" in one else (one.strip(), "", "9092")
        if "://" in one or not host or not port.isdecimal() or not 0 < int(port) < _PORTS:
            message = f"must be addresses as in host:port,host:port; {one.strip()[:100]!r} is none"
            raise ValueError(message)
    return value


def watermark_api(value: str) -> str:
    """The address of TiCDC's API, or nothing. The value may hold a login, so it is not quoted."""
    parts = _server(value) if value else urlsplit("")
    if parts is None or parts.path.rstrip("/"):
        message = 'must be the address of a TiCDC server and nothing behind it, as in "http://ticdc:8300"'
        raise ValueError(message)
    return value


def schema_registry(value: str) -> str:
    """The address of a schema registry, or nothing. The value may hold a login, so it is not quoted."""
    if value and _server(value) is None:
        message = 'must be the address of a schema registry, as in "http://registry:8081"'
        raise ValueError(message)
    return value


def authorities(value: str) -> str:
    """A file or directory of authorities, or nothing."""
    if value and (not value.startswith("/") or "\0" in value):
        message = "must be the absolute path of a PEM file, or of a directory of such"
        raise ValueError(message)
    return value


def _server(value: str) -> SplitResult | None:
    """The parts of an HTTP server's address; None for what is none, or has a query or fragment."""
    try:
        parts = urlsplit(value)
        port = 1 if parts.port is None else parts.port
    except ValueError:
        return None
    odd = parts.scheme not in ("http", "https") or not parts.hostname or not 0 < port < _PORTS
    return None if odd or parts.query or parts.fragment else parts


def topics(value: list[str]) -> list[str]:
    """Names of topics, or one expression; none where there is no Kafka."""
    return _fine(value, topic_names.matcher) if value else value


def topic(value: str) -> str:
    """The name of a topic, or nothing."""
    return _fine(value, topic_names.topic_name)


def rules(value: list[str]) -> list[str]:
    """Rules of a table filter."""
    return _fine(value, table_filter)


def columns(value: list[str]) -> list[str]:
    """Rules for columns."""
    return _fine(value, lambda texts: name_rules(texts, "columns"))


def matcher(value: list[str]) -> list[str]:
    """Rules of an event filter's tables."""
    return _fine(value, lambda rules: table_filter(rules, key="matcher"))


def target_name(value: str) -> str:
    """What a schema or table is called in the target, with placeholders."""
    if not re.fullmatch(r"(?:[^{}\0]|\{schema\}|\{table\})*", value):
        message = f"must be text with {{schema}} and {{table}} as the only placeholders: {value[:100]!r} is none"
        raise ValueError(message)
    return value


def extraction(value: str) -> str:
    """What is read out of a name: its groups are what is taken."""
    if value and not _compiled(value).groups:
        message = f"must have a group, (...), around what is taken of the name: {value[:100]!r} has none"
        raise ValueError(message)
    return value


def _compiled(text: str) -> Any:
    try:
        return compiled(text, whose="it")
    except ConfigError as error:
        raise ValueError(_joined(error)) from error


def origin_text(value: str) -> str:
    """The name of a column that tells whose a row is, or what it holds in all rows of a changefeed."""
    if len(value) > LONGEST or "\0" in value or value != value.strip():
        message = f"must be a text of at most {LONGEST} characters, without blanks around it"
        raise ValueError(message)
    return value


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
        raise ValueError(_joined(error)) from error
    return value


def _joined(error: ConfigError, key: str = "") -> str:
    """Fact and hint of an error about a key, without the key."""
    fact = error.fact.removeprefix(key)
    return "; ".join(filter(None, (fact, error.hint)))


def upstream(value: str) -> str:
    """The upstream's URI, or nothing."""
    if value:
        try:
            parse_upstream_uri(value)
        except ConfigError as error:
            raise ValueError(_joined(error, "source.upstream.uri ")) from error
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
            message = f"{shown(place)} {error}"
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


def storage(value: str) -> str:
    """The directory of a storage sink, which is not opened; "" for none."""
    if not value:
        return value
    try:
        place = place_of(value)
    except ValueError as error:
        hint = ": parameters belong to the options of the store" if "?" in value else ""
        message = f"{shown(value)} is no directory of a store: it {error}{hint}"
        raise ValueError(message) from None
    if place.scheme not in _STORES:
        message = f"{place.scheme}:// is no store that is read: s3, gs, azure or file"
        raise ValueError(message)
    return value.rstrip("/")


def store_opens(key: str, uri: str, options: Mapping[str, str]) -> None:
    """Open a store once, which connects to nothing. The library may quote a value, so only names are shown."""
    _opens(key, uri, f"source.{key}-options", options)


def warehouse(uri: str, options: Mapping[str, str]) -> None:
    """A warehouse in an object store can be opened; options of another one would mean nothing."""
    place = warehouse_of(uri)
    if place:
        _opens("uri", place, "target.warehouse-options", options)
    elif options:
        message = "warehouse-options is of an Iceberg warehouse at s3://, and target.uri names none"
        raise ValueError(message)


def _opens(key: str, uri: str, section: str, options: Mapping[str, str]) -> None:
    try:
        check_opens(place_of(uri), options)
    except ValueError as error:
        named = ", ".join(sorted(options)) or "none"
        message = f"{key}: no store of {place_of(uri).scheme}:// can be opened with {section} {named}"
        raise ValueError(message) from error


_UNREAD_PROTOCOLS = {
    "debezium-avro": "topics have no watermarks there",
    "canal": "Canal's protobuf has neither commitTs nor watermarks",
    "maxwell": "it has neither commitTs nor watermarks",
    "craft": "TiCDC has given it up",
}


def read_protocol(value: Any) -> Any:
    """Say why a protocol of TiCDC is not read; what is none of them is left to pydantic."""
    why = _UNREAD_PROTOCOLS.get(value) if isinstance(value, str) else None
    if why:
        message = (
            f"is of a protocol that is not read: {why}. Set protocol=canal-json&enable-tidb-extension=true,"
            " protocol=simple or protocol=open-protocol in the changefeed's sink URI, and the same here"
        )
        raise ValueError(message)
    return value


def kafka_source(protocol: str, lossy_values: str) -> None:
    """What a source of topics needs."""
    if protocol == "csv":
        message = 'protocol = "csv" is of files: set source.storage'
        raise ValueError(message)
    if protocol == "debezium" and lossy_values == "refuse":
        message = (
            'protocol = "debezium" loses values before they reach Kafka: ' + "; ".join(LOSSES) + ". Accept that by"
            ' lossy-values = "stop" (a value with more digits than a float keeps ends the run) or "accept" (it is'
            " written as the message holds it); or set protocol=canal-json&enable-tidb-extension=true, protocol=simple"
            " or protocol=open-protocol in the changefeed's sink URI"
        )
        raise ValueError(message)


def avro_source(registry: str, *, has_watermarks: bool, is_asked_for: bool) -> None:
    """What Avro needs. `is_asked_for`: whether watermarks come from outside."""
    if not registry:
        message = 'protocol = "avro" needs schema-registry, the address in the changefeed\'s sink (schema-registry)'
        raise ValueError(message)
    if not has_watermarks and not is_asked_for:
        message = (
            'protocol = "avro": topics have neither watermarks nor DDLs, and DELETEs no commitTs, unless'
            " enable-tidb-extension=true&avro-enable-watermark=true stand in the changefeed's sink URI. Add them, begin"
            " with a new topic, and say so by avro-enable-watermark = true here; or set source.watermark-from, with"
            " enable-tidb-extension=true&avro-include-before-value=true upstream"
        )
        raise ValueError(message)


def storage_source(is_kafka: bool, protocol: str) -> None:
    """What a source of files must not have."""
    if is_kafka:
        message = "storage excludes bootstrap-servers, topics and [source.kafka]: rows come from one place"
        raise ValueError(message)
    if protocol not in ("canal-json", "csv"):
        message = f"protocol = {protocol!r} is not written to files: TiCDC's storage sink has canal-json and csv"
        raise ValueError(message)


def no_archive(archive: str) -> None:
    """Files have no archive."""
    if archive:
        message = "archive is read in the place of topics, and storage excludes these: name one of both"
        raise ValueError(message)


def csv_rules(delimiter: str, quote: str, null: str, terminator: str, *, include_commit_ts: bool) -> None:
    """CSV in which each value can be told from the others."""
    if not include_commit_ts:
        message = "include-commit-ts must be true, also in [sink.csv] of the changefeed: else nothing can be ordered"
        raise ValueError(message)
    if any(c in delimiter for c in "\r\n\\") or (quote and quote in delimiter):
        message = f"delimiter = {delimiter!r} holds a line end, a backslash or the quote"
        raise ValueError(message)
    if re.search(r"[0-9.eE+-]", delimiter):
        message = f"delimiter = {delimiter!r} can't be told from numbers"
        raise ValueError(message)
    if _BARE.fullmatch(null) or delimiter in null or (quote and quote in null):
        message = f"null = {null!r} can't be told from values"
        raise ValueError(message)
    if _BARE.fullmatch(terminator) or (quote and (quote in terminator or quote.isalnum() or quote in "+-.\r\n")):
        message = f"terminator = {terminator!r} and quote = {quote!r} can't be told from values, or from each other"
        raise ValueError(message)
    if not quote:
        _csv_escapes(delimiter, null, terminator)


_BARE = re.compile(r"[+-]?[0-9.]+(?:[eE][+-]?[0-9]+)?|true|false", re.ASCII)
"""What stands without quotes and is not NULL."""


def _csv_escapes(delimiter: str, null: str, terminator: str) -> None:
    """CSV without quotes in which TiCDC's escapes tell each text from the others.

    It escapes CR, LF, the backslash and each byte of a delimiter within a text, but nothing else: not the terminator,
    nor a delimiter's beginning at a text's end. Bytes above 127 come out as characters of their number.
    """
    if re.search("[rn]", delimiter) or not delimiter.isascii():
        message = f'delimiter = {delimiter!r} can\'t be told from what a backslash escapes where quote is ""'
        raise ValueError(message)
    if any(delimiter.endswith(delimiter[:size]) for size in range(1, len(delimiter))):
        fact = f'delimiter = {delimiter!r} ends as it begins: where quote is "", a text that ends or begins so'
        message = f"{fact} can't be told from its neighbour"
        raise ValueError(message)
    if not null.startswith("\\") or null[1:2] in ("", "\\", "r", "n", *delimiter):
        message = (
            f'null = {null!r} can\'t be told from a text where quote is "": begin it with a backslash and a letter'
        )
        raise ValueError(message)
    if terminator and not set(terminator) & {"\r", "\n"}:
        message = f'terminator = {terminator!r} can\'t be told from a text where quote is "": it holds no line end'
        raise ValueError(message)
