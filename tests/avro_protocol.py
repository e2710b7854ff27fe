"""Canal-JSON messages written once more in TiCDC's Avro protocol, after TiCDC's encoder, with schemas in a registry.

A tool for tests, not TiCDC's own bytes: schemas, names and values follow pingcap/ticdc, `pkg/sink/codec/avro`; the
values are those that TiCDC's Canal-JSON encoder wrote. What Canal-JSON does not tell is chosen: columns of the key are
NOT NULL and all others nullable, a DECIMAL has as many digits behind its point as its values. Members of ENUM and SET
are read out of CREATE TABLE.
"""

import json
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from struct import pack
from typing import Any

from consumer.ddl.avro_names import avro_name
from consumer.demo.fake_ticdc.changefeed import Message
from tests.open_protocol import ACTIONS
from tests.simple_protocol import Body, canal_body, encoded, is_binary

Register = Callable[[str, str], int]
"""Subject and schema -> the schema's number."""
NAMES = {
    **dict.fromkeys(("tinyint", "smallint", "mediumint", "int"), "INT"), "bigint": "BIGINT", "float": "FLOAT",
    "double": "DOUBLE", "bit": "BIT", "decimal": "DECIMAL", "enum": "ENUM", "set": "SET", "json": "JSON",
    "date": "DATE", "datetime": "DATETIME", "timestamp": "TIMESTAMP", "time": "TIME", "year": "YEAR",
    "vector": "TiDBVECTORFloat32",
}  # fmt: skip
_MEMBERS = re.compile(r"`?(\w+)`?\s+(?:enum|set)\s*(\((?:\s*'(?:[^']|'')*'\s*,?)+\))", re.IGNORECASE)
_KINDS = {"INSERT": "c", "UPDATE": "u", "DELETE": "d"}
Members = dict[tuple[str, str], tuple[str, ...]]


def long(number: int) -> bytes:
    """An Avro `int` or `long`."""
    rest = ((number << 1) ^ (number >> 63)) & (2**64 - 1)
    found = bytearray()
    while rest > 0x7F:
        found.append(rest & 0x7F | 0x80)
        rest >>= 7
    return bytes((*found, rest))


def sized(value: bytes) -> bytes:
    """Avro `bytes`, or a `string`."""
    return long(len(value)) + value


@dataclass
class Column:
    """One column: its name, its Avro type, whether it is nullable, and how NULL stands in the union."""

    name: str
    kind: str
    nullable: bool
    schema: Body
    members: tuple[str, ...] = ()

    @property
    def null_first(self) -> bool:
        return sum(map(ord, self.name)) % 3 > 0

    def field(self) -> Body:
        union = ["null", self.schema] if self.null_first else [self.schema, "null"]
        return {"name": avro_name(self.name), "type": union if self.nullable else self.schema}

    def value(self, text: str | None) -> bytes:
        if text is None:
            return long(0 if self.null_first else 1)
        return (long(1 if self.null_first else 0) if self.nullable else b"") + self._plain(text)

    def _plain(self, text: str) -> bytes:
        sent, base = self.schema["type"], base_of(self.kind)
        if sent in ("int", "long"):
            number = int(text)
            return long(number - 2**64 if number >= 2**63 else number)
        if sent in ("float", "double"):
            return pack("<f" if sent == "float" else "<d", float(text))
        if base == "bit":
            return sized(int(text).to_bytes(8, "big").lstrip(b"\0") or b"\0")
        if base == "decimal" and sent == "bytes":
            number = int(text.replace(".", ""))
            return sized(number.to_bytes(number.bit_length() // 8 + 1, "big", signed=True))
        if base in ("enum", "set"):
            return sized(self._member(base, int(text)).encode())
        return sized(text.encode("latin-1" if sent == "bytes" else "utf-8"))

    def _member(self, base: str, number: int) -> str:
        if base == "enum":
            return self.members[number - 1] if number else ""
        return ",".join(self.members[bit] for bit in range(number.bit_length()) if number >> bit & 1)


def base_of(kind: str) -> str:
    """A type's name alone."""
    return re.split(r"[ (]", kind)[0]


def escaped(member: str) -> str:
    """TiCDC's `EscapeEnumAndSetOptions`."""
    return member.replace(",", "\\,").replace("\\'", "'").replace("''", "'")


def _members_of(text: str) -> tuple[str, ...]:
    """Members as TiDB spells them in the statements that TiCDC sends: a quote is doubled, a backslash is itself."""
    return tuple(name.replace("''", "'") for name in re.findall(r"'((?:[^']|'')*)'", text))


@dataclass
class Avro:
    """Writes the messages of one history anew.

    `deletes`: `marked` (their commitTs is their value), `before` (`avro-include-before-value`) or `bare` (null).
    """

    messages: Sequence[Message]
    register: Register
    partitions: int = 3
    deletes: str = "marked"
    strings: bool = False
    """Both handling modes `string`; else `precise` and `long`."""
    marks: bool = True
    """`avro-enable-watermark`."""
    extension: bool = True
    _members: Members = field(default_factory=dict)
    _scales: dict[tuple[str, str, str], int] = field(default_factory=dict)

    def written(self) -> Iterator[Message]:
        """The history's messages."""
        bodies = [canal_body(message.value) for message in self.messages]
        for body in bodies:
            self._learn(body)
        for message, body in zip(self.messages, bodies, strict=True):
            is_mark = body["isDdl"] or body["type"] == "TIDB_WATERMARK"
            if is_mark and not self.marks:
                continue
            key, value = self.event(body, message.topic)
            for at in range(self.partitions) if body["isDdl"] else [message.partition]:
                yield message._replace(partition=at, value=value, key=key)

    def _learn(self, body: Body) -> None:
        if body["isDdl"]:
            found = _MEMBERS.findall(body["sql"])
            self._members |= {(body["table"], column): _members_of(text) for column, text in found}
            return
        for image in [*(body["data"] or ()), *(body["old"] or ())]:
            for name, text in image.items():
                if text is not None and base_of(body["mysqlType"][name]) == "decimal":
                    at = body["database"], body["table"], name
                    self._scales[at] = max(self._scales.get(at, 0), len(text.partition(".")[2]))

    def event(self, body: Body, topic: str = "t") -> tuple[bytes | None, Any]:
        """Key and value of an event."""
        tidb = body["_tidb"]
        if body["type"] == "TIDB_WATERMARK":
            return None, pack(">BQ", 2, tidb["watermarkTs"])
        if body["isDdl"]:
            told = {"query": body["sql"], "type": ACTIONS[body["type"]], "schema": body["database"] or ""}
            return None, b"\1" + encoded({**told, "table": body["table"] or "", "commitTs": tidb["commitTs"]})
        now, subject = body["data"][0], topic.replace(".", "_")
        before = {"UPDATE": {**now, **(body["old"] or [{}])[0]}, "DELETE": now}.get(body["type"])
        columns = [self._column(body, name) for name in now]
        key = [one for one in columns if one.name in (body["pkNames"] or ())]
        sent_key = self._enveloped(f"{subject}-key", self._record(body, key), image_of(key, now)) if key else None
        if body["type"] == "DELETE" and self.deletes != "before":
            return sent_key, pack(">BQ", 3, tidb["commitTs"]) if self.deletes == "marked" else None
        fields, rest = self._extension(body, columns, before)
        schema = self._record(body, columns)
        schema["fields"] += fields
        return sent_key, self._enveloped(f"{subject}-value", schema, image_of(columns, now) + rest)

    def _extension(self, body: Body, columns: list[Column], before: Body | None) -> tuple[list[Body], bytes]:
        fields: list[Body] = []
        rest = b""
        if self.deletes == "before":
            record = self._record(body, columns) | {"name": f"{avro_name(body['table'])}_before"}
            fields.append({"name": "_ticdc_before", "type": ["null", record], "default": None})
            rest += long(0) if before is None else long(1) + image_of(columns, before)
        if self.extension:
            commit_ts = body["_tidb"]["commitTs"]
            kinds = {
                "_tidb_op": ("string", ""),
                "_tidb_commit_ts": ("long", 0),
                "_tidb_commit_physical_time": ("long", 0),
            }
            fields += [{"name": name, "type": kind, "default": empty} for name, (kind, empty) in kinds.items()]
            rest += sized(_KINDS[body["type"]].encode()) + long(commit_ts) + long(commit_ts >> 18)
        return fields, rest

    def _record(self, body: Body, columns: list[Column]) -> Body:
        names = {"name": avro_name(body["table"]), "namespace": f"default.{avro_name(body['database'])}"}
        return {"type": "record", **names, "fields": [one.field() for one in columns]}

    def _enveloped(self, subject: str, schema: Body, content: bytes) -> bytes:
        text = json.dumps(schema, ensure_ascii=False, separators=(",", ":"))
        return pack(">BI", 0, self.register(subject, text)) + content

    def _column(self, body: Body, name: str) -> Column:
        kind = body["mysqlType"][name]
        base, nullable = base_of(kind), name not in (body["pkNames"] or ())
        if base not in NAMES:
            tidb = "BLOB" if is_binary(kind) else "TEXT"
            return Column(name, kind, nullable, _type("bytes" if tidb == "BLOB" else "string", tidb))
        tidb = NAMES[base] + (" UNSIGNED" if "unsigned" in kind and NAMES[base] in ("INT", "BIGINT") else "")
        if base in ("enum", "set"):
            members = self._members.get((body["table"], name), ())
            return Column(name, kind, nullable, _type("string", tidb, allowed=",".join(map(escaped, members))), members)
        if base == "decimal" and not self.strings:
            told = {
                "logicalType": "decimal",
                "precision": 65,
                "scale": self._scales.get((body["database"], body["table"], name), 0),
            }
            return Column(name, kind, nullable, _type("bytes", tidb) | told)
        sent = {
            "INT": "int", "INT UNSIGNED": "long" if base == "int" else "int", "BIGINT": "long", "FLOAT": "float",
            "BIGINT UNSIGNED": "string" if self.strings else "long", "DOUBLE": "double", "BIT": "bytes", "YEAR": "int",
        }.get(tidb, "string")  # fmt: skip
        return Column(name, kind, nullable, _type(sent, tidb))


def image_of(columns: Iterable[Column], row: Body) -> bytes:
    """A row's values."""
    return b"".join(one.value(row[one.name]) for one in columns)


def _type(sent: str, tidb: str, **parameters: str) -> Body:
    return {"type": sent, "connect.parameters": {"tidb_type": tidb, **parameters}}


def as_avro(messages: Iterable[Message], register: Register, **options: Any) -> list[Message]:
    """The messages in TiCDC's Avro protocol."""
    return list(Avro(list(messages), register, **options).written())
