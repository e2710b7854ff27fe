"""What a message is that is not of the protocol that was expected, and what to set: TiCDC's other protocols."""

import re

_DEBEZIUM = re.compile(rb'\s*\{\s*"(?:payload"\s*:\s*\{|schema"\s*:\s*\{\s*"(?:type|fields|optional))')
_CANAL, _SIMPLE = b'"pkNames"', re.compile(rb'^\{"version":\d+,|"(?:schemaVersion|tableSchema|buildTs)":')
_AVRO_HEADER, _LENGTH = 5, 8
_OURS = "set protocol=canal-json, simple or open-protocol in its sink URI; begin with a new topic"


def foreign_hint(value: bytes) -> str:
    """What to set where a message is of another protocol; "" where it is of none that TiCDC has."""
    if _DEBEZIUM.match(value):
        return f"the changefeed writes Debezium's format, in which DECIMAL and NULL lose what they were: {_OURS}"
    if value.startswith(b"{"):
        head = value[:4096]
        if _CANAL in head:
            return 'the changefeed writes Canal-JSON: set source.protocol = "canal-json"'
        is_simple = _SIMPLE.search(head) is not None
        return 'the changefeed writes the Simple protocol: set source.protocol = "simple"' if is_simple else ""
    if value == bytes(_LENGTH) or (value.startswith(bytes(4)) and value[_LENGTH : _LENGTH + 1] == b"{"):
        return 'the changefeed writes the Open Protocol: set source.protocol = "open-protocol"'
    if len(value) >= _AVRO_HEADER and value[:1] == b"\0":
        return f"the changefeed writes Avro, whose DELETEs and topics lack commitTs and watermarks: {_OURS}"
    return ""
