"""Messages of TiCDC's other protocols: each form is recognized by each format, and the setting that mends it is named.

The forms follow the encoders of pingcap/ticdc and pingcap/tiflow, `pkg/sink/codec`.
"""

from typing import Any, NamedTuple

import pytest

from consumer.codec import canal_json
from consumer.formats.avro.protocol import Avro
from consumer.formats.canal_json import CANAL_JSON
from consumer.formats.message_format import MessageFormat
from consumer.formats.open_protocol import OpenProtocol
from consumer.formats.simple.protocol import Simple
from ordering.errors import AnotherProtocolError, InputError
from ordering.events import Position
from tests.open_protocol import packed
from tests.service.messages import row_value
from tests.simple_protocol import COMPRESSIONS, encoded

AT, LIMIT = Position("t", 1, 42), 1 << 20
FORMATS: dict[str, MessageFormat] = {
    "canal-json": CANAL_JSON, "simple": Simple(), "open-protocol": OpenProtocol(), "avro": Avro(),
}  # fmt: skip
SWITCH = "protocol=canal-json&enable-tidb-extension=true"
AVRO = 'source.protocol = "avro"'


class Form(NamedTuple):
    """A message, the protocol that it is of, and what the hint has to name."""

    protocol: str
    value: bytes
    names: str
    key: bytes | None = None


CANAL = row_value("INSERT", "d.t", 9 << 18, {"id": 1})
SOURCE: dict[str, Any] = {"version": "2.4.0.Final", "connector": "TiCDC", "name": "default", "db": "d", "table": "t"}
PAYLOAD: dict[str, Any] = {"source": {**SOURCE, "commit_ts": 7}, "op": "c", "before": None, "after": {"id": 1}}
SCHEMA = {"type": "struct", "optional": False, "name": "default.d.t.Envelope", "version": 1, "fields": []}
OPEN_KEY = encoded({"ts": 7, "scm": "d", "tbl": "t", "t": 1})
OPEN_ROW = encoded({"u": {"id": {"t": 3, "h": True, "f": 11, "v": 1}}})
MAXWELL = {"database": "d", "table": "t", "type": "insert", "ts": 1767225600, "data": {"id": 1}}
CLASSIC_KEY = b"\0\0\0\0\0\0\0\1" + b"\0\0\0\0\0\0\0\2{}"
FORMS = {
    "canal-json": Form("canal-json", encoded(CANAL), 'source.protocol = "canal-json"'),
    "canal-json without the extension": Form(
        "", encoded({k: v for k, v in CANAL.items() if k != "_tidb"}), "enable-tidb-extension=true"
    ),
    "simple": Form("simple", b'{"version":1,"type":"WATERMARK","commitTs":7,"buildTs":7}', '= "simple"'),
    "simple row": Form("simple", b'{"version":1,"database":"d","table":"t","type":"DELETE"}', '= "simple"'),
    "simple in avro": Form("simple", bytes((22, 0, 0)) + b"\2" * 30, '= "simple"'),
    "open-protocol": Form("open-protocol", packed([(OPEN_KEY, OPEN_ROW)])[1], '= "open-protocol"',
                          packed([(OPEN_KEY, OPEN_ROW)])[0]),
    "open-protocol, lz4": Form("open-protocol", packed([(OPEN_KEY, COMPRESSIONS["lz4"](OPEN_ROW))])[1],
                               '= "open-protocol"', packed([(OPEN_KEY, b"")])[0]),
    "open-protocol, resolved": Form("open-protocol", bytes(8), '= "open-protocol"',
                                    packed([(b'{"ts":7,"t":3}', b"")])[0]),
    "debezium": Form("debezium", encoded({"payload": PAYLOAD, "schema": SCHEMA}), SWITCH, b'{"payload":{"id":1}}'),
    "debezium without schema": Form("debezium", encoded({"payload": PAYLOAD}), SWITCH),
    "debezium, schema first": Form("debezium", encoded({"schema": SCHEMA, "payload": PAYLOAD}), SWITCH),
    "debezium watermark": Form("debezium", encoded({"payload": {"source": SOURCE, "op": "m"}}), SWITCH),
    "debezium, lz4": Form("debezium", COMPRESSIONS["lz4"](encoded({"payload": PAYLOAD, "schema": SCHEMA})), SWITCH),
    "debezium, snappy": Form("debezium", COMPRESSIONS["snappy"](encoded({"payload": PAYLOAD})), SWITCH),
    "avro or debezium-avro": Form("avro", b"\0\0\0\0\7\2\2a", AVRO, b"\0\0\0\0\6\2"),
    "avro, a large number": Form("avro", b"\0\0\1\x86\xa0\2\2abcdefgh", AVRO),
    "avro of Glue": Form("", b"\3\0" + bytes(range(16)) + b"\2\2a",
                         "schema-registry instead of glue-schema-registry-config"),
    "avro watermark": Form("avro", b"\2" + (7 << 40).to_bytes(8, "big"), AVRO),
    "avro DELETE with its commitTs": Form("avro", b"\3" + (7 << 40).to_bytes(8, "big"), AVRO),
    "avro DDL": Form("avro", b'\1{"query":"CREATE TABLE t (id INT)","type":3}', AVRO),
    "maxwell": Form("maxwell", encoded(MAXWELL), SWITCH, CLASSIC_KEY),
    "maxwell, several": Form("maxwell", encoded(MAXWELL) * 2, SWITCH, CLASSIC_KEY),
    "maxwell DDL": Form("maxwell", encoded({"database": "d", "table": "t", "type": "table-create"}), SWITCH),
    "canal": Form("canal", b"\x10\1\x18\7\x2a\3\x0a\1a", SWITCH),
    "csv": Form("csv", b'"I","t","d",433305438660591626,1,"x"\r\n', SWITCH),
    "csv without quotes": Form("csv", b"D,t,d,433305438660591626,1\n", SWITCH),
}  # fmt: skip


PAIRS = [(form, protocol) for form in FORMS for protocol in FORMATS if FORMS[form].protocol != protocol]


@pytest.mark.parametrize(("form", "protocol"), PAIRS)
def test_each_form_is_recognized_by_each_format(form: str, protocol: str) -> None:
    found = FORMS[form]
    names = found.names if protocol == "canal-json" or found.protocol else "canal-json"
    with pytest.raises(AnotherProtocolError) as caught:
        read(FORMATS[protocol], found.key, found.value)
    assert names in caught.value.hint
    assert str(caught.value.where) == str(AT)
    assert caught.value.exit_code == InputError.exit_code


def read(message_format: MessageFormat, key: bytes | None, value: bytes) -> None:
    for event in message_format.shown(message_format.content(key, value), AT, LIMIT):
        canal_json.decode(event, AT)


@pytest.mark.parametrize(
    "value", [b"hello", b"{}", b'{"hello":"world"}', b"[1,2]", b"I am,no,line", b"\x10\1\x18", b"\2"]
)
def test_what_nobody_knows_is_not_named(value: bytes) -> None:
    for message_format in (Simple(), OpenProtocol(), Avro()):
        with pytest.raises(InputError) as caught:
            read(message_format, None, value)
        assert type(caught.value) is InputError
