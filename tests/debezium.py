"""Canal-JSON messages written once more in TiCDC's Debezium format, after TiCDC's encoder.

A tool for tests, not TiCDC's own bytes: field names and values follow pingcap/ticdc, `pkg/sink/codec/debezium`; the
values are those that TiCDC's Canal-JSON encoder wrote. A DDL goes to all partitions. `types` of what Canal-JSON names
by numbers (members) are told as they are: an ENUM's or SET's value comes as its number, which no schema explains.
"""

import re
from base64 import b64encode
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any
from zoneinfo import ZoneInfo

from consumer.demo.fake_ticdc.changefeed import Message
from tests.open_protocol import Bare, json_of
from tests.simple_protocol import COMPRESSIONS, Body, canal_body, is_binary

SOURCE: Body = {"version": "2.4.0.Final", "connector": "TiCDC", "name": "default", "ts_ms": Bare("0")}
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_NUMBERS = {"tinyint", "smallint", "mediumint", "int", "bigint", "year", "float", "double"}


def _moment(text: str) -> datetime | None:
    """A time; None of a zero or invalid one."""
    try:
        return datetime.fromisoformat(text).replace(tzinfo=UTC)
    except ValueError:
        return None


def value_of(kind: str, value: str | None, zone: str = "UTC") -> Any:
    """A value of Canal-JSON as TiCDC's Debezium encoder has it. Numbers come as `Bare`."""
    if value is None:
        return None
    base = re.split(r"[ (]", kind)[0]
    if base in _NUMBERS:
        number = int(value) if base == "bigint" else 0
        return Bare(number - 2**64 if number >= 2**63 else value)
    if base == "decimal":
        return Bare(repr(float(value)))
    if base == "bit":
        return b64encode(int(value).to_bytes(8, "little")).decode()
    if base in ("date", "datetime", "timestamp", "time"):
        return _time_of(base, value, zone)
    return b64encode(value.encode("latin-1")).decode() if is_binary(kind) else value


def _time_of(base: str, value: str, zone: str) -> Any:
    if base == "time":
        return Bare(_micros(value))
    found = _moment(value)
    if base == "timestamp":
        if found is None:
            return "1970-01-01T00:00:00Z"
        utc = found.replace(tzinfo=ZoneInfo(zone)).astimezone(UTC)
        return utc.strftime("%Y-%m-%dT%H:%M:%S") + value[19:] + "Z"
    unit = timedelta(days=1) if base == "date" else timedelta(microseconds=1)
    return None if found is None else Bare((found - _EPOCH) // unit)


def _micros(text: str) -> int:
    hours, minutes, seconds = text.lstrip("-").split(":")
    whole, _, rest = seconds.partition(".")
    found = (int(hours) * 3600 + int(minutes) * 60 + int(whole)) * 1_000_000 + int(rest.ljust(6, "0"))
    return -found if text.startswith("-") else found


def schema_of(body: Body) -> Body:
    """A row's schema, as far as it is read."""
    fields = []
    for name, kind in body["mysqlType"].items():
        base = re.split(r"[ (]", kind)[0]
        tidb = base + (" unsigned" if "unsigned" in kind and base not in ("year", "bit", "decimal") else "")
        told: Body = {"tidb_type": tidb, "type": "string", "optional": True}
        if base == "datetime":
            told["name"] = "io.debezium.time.MicroTimestamp"
        fields.append({**told, "field": name})
    images = [{"type": "struct", "optional": True, "field": one, "fields": fields} for one in ("before", "after")]
    return {"type": "struct", "optional": False, "version": Bare("1"), "fields": [*images, {"field": "source"}]}


@dataclass
class Debezium:
    """Writes the messages of one history anew. `zone`: TiCDC's."""

    messages: Sequence[Message]
    partitions: int = 3
    compression: str = ""
    old_values: bool = True
    zone: str = "UTC"

    def written(self) -> Iterator[Message]:
        """The history's messages."""
        compress = COMPRESSIONS[self.compression]
        for message in self.messages:
            body = canal_body(message.value)
            key, value = self.event(body)
            everywhere = range(self.partitions) if body["isDdl"] else [message.partition]
            for at in everywhere:
                yield message._replace(partition=at, value=compress(json_of(value)), key=compress(json_of(key)))

    def event(self, body: Body) -> tuple[Body, Body]:
        """Key and value of an event."""
        tidb = body["_tidb"]
        source = {**SOURCE, "db": body["database"] or "", "table": body["table"] or ""}
        source["commit_ts"] = Bare(tidb.get("commitTs") or tidb["watermarkTs"])
        if body["type"] == "TIDB_WATERMARK":
            return {"payload": {}}, {"payload": {"source": source, "op": "m"}, "schema": {"type": "struct"}}
        if body["isDdl"]:
            told = {"source": source, "databaseName": body["database"], "ddl": body["sql"], "tableChanges": None}
            return {"payload": {"databaseName": body["database"]}}, {"payload": told, "schema": {"type": "struct"}}
        now = self._image(body, body["data"][0])
        before = self._image(body, {**body["data"][0], **body["old"][0]}) if body["type"] == "UPDATE" else None
        key = {name: now[name] for name in body["pkNames"] or ()}
        told = {"source": source, "op": {"INSERT": "c", "UPDATE": "u", "DELETE": "d"}[body["type"]]}
        if body["type"] == "DELETE":
            told |= {"after": None, "before": now}
        else:
            told |= {"before": before, "after": now} if before is None or self.old_values else {"after": now}
        return {"payload": key, "schema": {"type": "struct"}}, {"payload": told, "schema": schema_of(body)}

    def _image(self, body: Body, image: Body) -> Body:
        return {name: value_of(body["mysqlType"][name], value, self.zone) for name, value in image.items()}


def as_debezium(messages: Iterable[Message], **options: Any) -> list[Message]:
    """The messages in TiCDC's Debezium format."""
    return list(Debezium(list(messages), **options).written())
