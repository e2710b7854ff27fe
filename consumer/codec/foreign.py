"""What a message is that is not of the protocol that was expected, and what to set: TiCDC's other protocols."""

import re

_DEBEZIUM = re.compile(rb'\s*\{\s*"(?:payload"\s*:\s*\{|schema"\s*:\s*\{\s*"(?:type|fields|optional))')
_CANAL, _SIMPLE = b'"pkNames"', re.compile(rb'^\{"version":\d+,|"(?:schemaVersion|tableSchema|buildTs)":')
SIMPLE_AVRO = tuple(bytes((22, kind, kind)) for kind in (0, 2, 4, 6))
"""How a message of the Simple protocol begins in Avro: a branch, its kind, and its payload's. Nothing else begins so:
no JSON, no lz4 frame, and no snappy block of either (its second byte would tell how many bytes it stores)."""
_AVRO_HEADER, _LENGTH = 5, 8
_OURS = "set protocol=canal-json, simple or open-protocol in its sink URI; begin with a new topic"
_SIMPLE_SENT = 'the changefeed writes the Simple protocol: set source.protocol = "simple"'


def foreign_hint(value: bytes) -> str:
    """What to set where a message is of another protocol; "" where it is of none that TiCDC has."""
    if _DEBEZIUM.match(value):
        return f"the changefeed writes Debezium's format, in which DECIMAL and NULL lose what they were: {_OURS}"
    head = value[:4096]
    is_json = head.startswith(b"{")
    if is_json and _CANAL in head:
        return 'the changefeed writes Canal-JSON: set source.protocol = "canal-json"'
    if head.startswith(SIMPLE_AVRO) or (is_json and _SIMPLE.search(head)):
        return _SIMPLE_SENT
    if value == bytes(_LENGTH) or (value.startswith(bytes(4)) and value[_LENGTH : _LENGTH + 1] == b"{"):
        return 'the changefeed writes the Open Protocol: set source.protocol = "open-protocol"'
    if len(value) >= _AVRO_HEADER and value[:1] == b"\0":
        return f"the changefeed writes Avro, whose DELETEs and topics lack commitTs and watermarks: {_OURS}"
    return ""
