"""What is shown of a message that was quarantined: its bytes, and its value as it is read, up to a limit."""

import base64
import json

import cramjam
import pytest

from consumer.config.model import Config
from consumer.quarantine.content import told_content
from ordering.events import Position
from ordering.quarantine import Quarantined

CONFIG = Config.model_validate({
    "changefeed": "c",
    "source": {"bootstrap-servers": "127.0.0.1:1", "topics": ["t"]},
    "target": {"uri": "sqlite:////tmp/none"},
    "redis": {"uri": ""},
})  # fmt: skip


def message(value: bytes | None, key: bytes | None = None) -> Quarantined:
    return Quarantined(Position("t", 0, 1), "refused", key=key, value=value)


def test_json_is_indented_and_every_byte_is_there() -> None:
    value = b'{"id":1,"data":[{"a":"99999999999999999999","b":"\\u202e<b>"}]}'
    told = told_content(message(value, b"k"), CONFIG, 1 << 16)
    assert base64.b64decode(told["value"]) == value
    assert base64.b64decode(told["key"]) == b"k"
    assert (told["value_bytes"], told["is_whole"], told["fault"]) == (len(value), True, "")
    assert told["decoded"].startswith('{\n  "id": 1,')
    assert json.loads(told["decoded"]) == json.loads(value)


@pytest.mark.parametrize(
    ("value", "decoded", "fault"),
    [
        (None, None, "the message has no value: a tombstone"),
        (b"{", "{", ""),
        (b"<\xff\x00", "<\\xff\x00", ""),
        (b"[" * 5000, "[" * 5000, ""),
    ],
)
def test_what_is_no_json_is_shown_as_it_is(value: bytes | None, decoded: str | None, fault: str) -> None:
    told = told_content(message(value), CONFIG, 1 << 16)
    assert (told["decoded"], told["fault"]) == (decoded, fault)


def test_no_more_than_the_limit_is_shown() -> None:
    value = b'{"a":"' + b"x" * 5000 + b'"}'
    told = told_content(message(value, b"k" * 900), CONFIG, 100)
    assert (len(base64.b64decode(told["value"])), len(base64.b64decode(told["key"])), len(told["decoded"])) == (
        100,
    ) * 3
    assert (told["value_bytes"], told["is_whole"]) == (len(value), False)


def test_a_compressed_message_is_read() -> None:
    value = bytes(cramjam.lz4.compress(b'{"id":1,"note":"' + b"x" * 400 + b'"}'))
    told = told_content(message(value), CONFIG, 1 << 16)
    assert told["decoded"].startswith('{\n  "id": 1,')
    broken = told_content(message(value[:-9]), CONFIG, 1 << 16)
    assert broken["decoded"] is None
    assert broken["fault"]
