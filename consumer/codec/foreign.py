"""What a message is that is not of the protocol that was expected, and what to set: TiCDC's other protocols.

Facts of their forms: pingcap/ticdc and pingcap/tiflow, `pkg/sink/codec`. Only what no message of another protocol can
begin with counts as recognized; of anything else nobody says more than that it can't be read.
"""

import re

from consumer.codec.compression import BadCompressionError, decompressed, is_compressed
from ordering.errors import AnotherProtocolError, InputError

_DEBEZIUM = re.compile(rb'\s*\{\s*"(?:payload"\s*:\s*\{|schema"\s*:\s*\{\s*"(?:type|fields|optional))')
_CANAL, _SIMPLE = b'"pkNames"', re.compile(rb'^\{"version":\d+,|"(?:schemaVersion|tableSchema|buildTs)":')
_MAXWELL = re.compile(
    rb'\{"database":"(?:[^"\\]|\\.)*","table":"(?:[^"\\]|\\.)*",'
    rb'"(?:type":"(?:insert|update|delete|(?:table|database)-[a-z]+)"|def":|old":\{"database")'
)
_CANAL_PACKET = re.compile(rb"\x10\x01\x18\x07(?:\x22|\x2a|$)")
"""A packet of Canal's protobuf: version 1, type MESSAGES, and its body."""
_CSV = re.compile(rb'(?:"[IUD]"|[IUD]),("?)[^,"\r\n]+\1,("?)[^,"\r\n]+\2,')
SIMPLE_AVRO = tuple(bytes((22, kind, kind)) for kind in (0, 2, 4, 6))
"""How a message of the Simple protocol begins in Avro: a branch, its kind, and its payload's. Nothing else begins so:
no JSON, no lz4 frame, and no snappy block of either (its second byte would tell how many bytes it stores)."""
_AVRO_HEADER, _GLUE_HEADER, _LENGTH = 5, b"\3\0", 8
_GLUE_SIZE = 18
_AVRO_MARK, _AVRO_DDL = re.compile(rb"[\2\3].{8}", re.DOTALL), b'\1{"query":'
_HEAD = 4096
EXTENSION_HINT = "add enable-tidb-extension=true to the changefeed's sink URI, and begin with a new topic"
OURS = (
    "set protocol=canal-json&enable-tidb-extension=true, protocol=simple or protocol=open-protocol in its sink URI;"
    " begin with a new topic"
)
GLUE_HINT = (
    "AWS Glue's registry is not read: set schema-registry instead of glue-schema-registry-config in the changefeed's"
    f" sink; or {OURS}"
)
FOREIGN_AVRO = f"the changefeed writes Debezium's format in Avro (debezium-avro), which is not read: {OURS}"
_AVRO = (
    'the changefeed writes Avro: set source.protocol = "avro" and source.schema-registry, and'
    " enable-tidb-extension=true&avro-enable-watermark=true in its sink URI; or Debezium's format in Avro, which is not"
    f" read: {OURS}"
)


SET_ASIDE = "to go on without such messages, see `reconciler help quarantine`"


def refused(fact: str, value: bytes, where: str, otherwise: str) -> InputError:
    """The error about a message that can't be read; `otherwise`: what to do where it is of no known protocol."""
    hint = foreign_hint(value)
    return AnotherProtocolError(fact, where=where, hint=hint) if hint else InputError(fact, where=where, hint=otherwise)


def plain_or_itself(value: bytes, limit: int) -> bytes:
    """What is compressed in a message as a whole, for a format that compresses no whole messages itself."""
    try:
        return decompressed(value, limit) if value and is_compressed(value) else value
    except BadCompressionError:
        return value


def foreign_hint(value: bytes) -> str:
    """What to set where a plain message is of another protocol; "" where it is of none that TiCDC has."""
    head = value[:_HEAD]
    return _of_json(head) if head.startswith(b"{") or _DEBEZIUM.match(head) else _of_bytes(value, head)


def _of_json(head: bytes) -> str:
    if _DEBEZIUM.match(head):
        return (
            "the changefeed writes Debezium's format, in which DECIMAL and NULL lose what they were: set"
            f' source.protocol = "debezium" and accept that (source.lossy-values); or {OURS}'
        )
    if _CANAL in head:
        return 'the changefeed writes Canal-JSON: set source.protocol = "canal-json"'
    if _SIMPLE.search(head):
        return 'the changefeed writes the Simple protocol: set source.protocol = "simple"'
    if _MAXWELL.match(head):
        return f"the changefeed writes Maxwell's format, which has neither commitTs nor watermarks: {OURS}"
    return ""


def _of_bytes(value: bytes, head: bytes) -> str:
    if head.startswith(SIMPLE_AVRO):
        return 'the changefeed writes the Simple protocol: set source.protocol = "simple"'
    if _is_open(value):
        return 'the changefeed writes the Open Protocol: set source.protocol = "open-protocol"'
    if _is_avro(value):
        return GLUE_HINT if is_of_glue(value) else _AVRO
    if _CANAL_PACKET.match(head):
        return f"the changefeed writes Canal's protobuf, which has neither commitTs nor watermarks: {OURS}"
    if _CSV.match(head):
        return f"these are lines of CSV, which TiCDC writes to files alone (source.storage): {OURS}"
    return ""


def _is_open(value: bytes) -> bool:
    """A length in 8 bytes, which a number of a schema would make a huge one, and what it is of."""
    return len(value) >= _LENGTH and int.from_bytes(value[:_LENGTH], "big") <= len(value) - _LENGTH


def is_of_glue(value: bytes) -> bool:
    """Whether a message names a schema of AWS Glue's registry."""
    return value.startswith(_GLUE_HEADER) and len(value) > _GLUE_SIZE


def _is_avro(value: bytes) -> bool:
    """Avro and Debezium-Avro look alike: a schema's number, or Glue's id, and Avro; or the marks of their own."""
    if is_of_glue(value):
        return True
    if _AVRO_MARK.fullmatch(value) or value.startswith(_AVRO_DDL):
        return True
    return len(value) >= _AVRO_HEADER and value[:1] == b"\0"
