"""The Open Protocol, message by message."""

import json
from typing import Any

import pytest

from consumer.codec import canal_json
from consumer.codec.foreign import foreign_hint
from consumer.formats.joined import joined
from consumer.formats.open_protocol import OpenProtocol
from consumer.formats.open_rows import unquoted
from ordering.errors import InputError
from ordering.events import Position
from ordering.timestamps import ResolvedTs
from tests.open_protocol import Bare, go_quoted, json_of, packed
from tests.simple_protocol import COMPRESSIONS, encoded

AT, LIMIT = Position("t", 1, 42), 1 << 20
KEY = {"ts": 433305438660591626, "scm": "d", "tbl": "t", "t": 1}


def column(kind: int, value: Any, flags: int = 64) -> dict[str, Any]:
    return {"t": kind, "f": flags, "v": value}


ID = {"id": {"t": 3, "h": True, "f": 11, "v": Bare("1")}}


def content(*events: tuple[dict[str, Any], Any], compression: str = "") -> bytes:
    compress = COMPRESSIONS[compression]
    key, value = packed([(encoded(key), compress(json_of(held)) if held is not None else b"") for key, held in events])
    return joined(key, value) or b""


def row_of(value: bytes) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(OpenProtocol().canal(value, AT, LIMIT) or b"")
    return found


@pytest.mark.parametrize(
    ("sent", "kind", "value"),
    [
        (column(8, Bare("18446744073709551615"), 128), "bigint unsigned", "18446744073709551615"),
        (column(8, Bare("-9223372036854775808")), "bigint", "-9223372036854775808"),
        (column(5, Bare("1e+21")), "double", "1000000000000000000000"),
        (column(4, Bare("-1.5e-7")), "float", "-0.00000015"),
        (column(5, Bare("0.1")), "double", "0.1"),
        (column(13, Bare("2026"), 128), "year", "2026"),
        (column(16, Bare("5"), 128), "bit", "5"),
        (column(247, Bare("2")), "enum", "2"),
        (column(246, "12345678901234567890.123456789"), "decimal", "12345678901234567890.123456789"),
        (column(15, 'a"b\\n\u00e4'), "varchar", 'a"b\\n\u00e4'),
        (column(15, "a\\x00\\xff\\n", 1), "varbinary", "a\x00\xff\n"),
        (column(252, "w6Q="), "text", "\u00e4"),
        (column(252, "w6Q=", 1), "blob", "\u00c3\u00a4"),
        (column(7, "2026-01-02 03:04:05"), "timestamp", "2026-01-02 03:04:05"),
        (column(245, '{"a": 1}'), "json", '{"a": 1}'),
        (column(3, None), "int", None),
    ],
)
def test_values_keep_all_that_they_are(sent: dict[str, Any], kind: str, value: str | None) -> None:
    found = row_of(content((KEY, {"u": {**ID, "x": sent}})))
    assert (found["mysqlType"]["x"], found["data"][0]["x"]) == (kind, value)
    assert (found["type"], found["pkNames"], found["_tidb"]) == ("INSERT", ["id"], {"commitTs": KEY["ts"]})


@pytest.mark.parametrize("value", [bytes(range(256)), "ä漢\u200b\ufffd\U0010ffff".encode(), b"\xe4\xbd", b"\\\"'\x7f"])
def test_go_quotes_are_undone(value: bytes) -> None:
    assert unquoted(go_quoted(value)) == value


def test_an_update_has_both_rows_and_a_delete_the_old_one() -> None:
    update = row_of(content((KEY, {"u": ID, "p": {"id": {**ID["id"], "v": Bare("2")}}})))
    assert (update["type"], update["data"], update["old"]) == ("UPDATE", [{"id": "1"}], [{"id": "2"}])
    delete = row_of(content((KEY, {"d": ID})))
    assert (delete["type"], delete["data"], delete["old"]) == ("DELETE", [{"id": "1"}], None)


NAMELESS = {"t": Bare("3"), "f": Bare("64"), "v": Bare("5")}


def test_an_old_value_without_its_column_s_name_is_left_out_and_missed() -> None:
    new = {**ID, "u": column(3, None), "v": column(3, Bare("1"))}
    found = row_of(content((KEY, {"u": new, "p": {**ID, **NAMELESS}})))
    assert (found["type"], found["old"], found["_tidb"]["onlyNew"]) == ("UPDATE", [{"id": "1"}], True)
    assert found["data"] == [{"id": "1", "u": None, "v": "1"}]
    alone = row_of(content((KEY, {"u": new, "p": NAMELESS})))
    assert (alone["type"], alone["old"], alone["_tidb"]["onlyNew"]) == ("UPDATE", [{}], True)


def test_rows_elsewhere_are_told() -> None:
    assert row_of(content(({**KEY, "ohk": True}, {"u": ID})))["_tidb"]["onlyHandleKey"] is True
    claim = row_of(content(({**KEY, "ohk": False, "ccl": "s3://b/c"}, {"u": ID})))
    assert claim["_tidb"]["claimCheckLocation"] == "s3://b/c"


@pytest.mark.parametrize("compression", COMPRESSIONS)
def test_watermarks_and_ddls(compression: str) -> None:
    mark = content(({"ts": 7, "t": 3}, None))
    assert OpenProtocol().watermark_in(mark, LIMIT) == ResolvedTs(7)
    ddl = content(({**KEY, "t": 2}, {"q": "ALTER TABLE `d`.`t` ADD COLUMN `x` INT", "t": 5}), compression=compression)
    found = canal_json.decode(OpenProtocol().canal(ddl, AT, LIMIT), AT)
    assert (found.is_ddl, found.type, found.database, found.table) == (True, "ALTER", "d", "t")
    assert found.sql.startswith("ALTER TABLE")
    assert OpenProtocol().watermark_in(ddl, LIMIT) is None


BROKEN: dict[str, tuple[bytes | None, str]] = {
    "tombstone": (None, "tombstone"),
    "no key": (joined(None, b"x" * 9) or b"", "it has no key"),
    "short key": (joined(b"\0" * 3, b"") or b"", "its key holds 3 bytes"),
    "version 2": (joined(*packed([(encoded(KEY), b"{}")], version=2)) or b"", "it is of version 2"),
    "cut key": (joined(packed([(encoded(KEY), b"{}")])[0][:-1], packed([(b"", b"{}")])[1]) or b"", "its key names"),
    "cut length": (joined(packed([(b"{}", b"")])[0] + b"\0", b"\0" * 8) or b"", "ends within a length"),
    "more values": (joined(packed([(b"{}", b"")])[0], b"\0" * 16) or b"", "holds 1 events, its value 2"),
    "no events": (joined(b"\0" * 7 + b"\1", b"") or b"", "holds 0 events"),
    "unknown type": (content(({**KEY, "t": 9}, {})), "unknown type 9"),
    "no row": (content((KEY, {})), "neither `u` nor `d`"),
    "no ts": (content(({**KEY, "ts": 0}, {"u": ID})), "lacks ts"),
    "no sql": (content(({**KEY, "t": 2}, {"q": ""})), "or its value q"),
    "unknown column type": (content((KEY, {"u": {"x": column(77, "1")}})), "unknown type 77"),
    "number as text": (content((KEY, {"u": {"x": column(3, "1")}})), "whole number"),
    "text as number": (content((KEY, {"u": {"x": column(15, Bare("1"))}})), "a text was expected"),
    "no base64": (content((KEY, {"u": {"x": column(252, "?")}})), "no base64"),
    "not quoted": (content((KEY, {"u": {"x": column(15, "\\q", 1)}})), "not quoted as Go does"),
    "key that is named like a part": (
        content((KEY, {"u": {"v": ID["id"]}, "p": {"t": Bare("3"), "f": Bare("64"), "v": Bare("5")}})),
        "a column of its key is called t, f or v",
    ),
    "value instead of a column": (content((KEY, {"u": ID, "p": {"id": Bare("1")}})), "can't be read"),
    "new value without a name": (content((KEY, {"u": {"t": Bare("3")}, "p": ID})), "can't be read"),
    "no JSON": (joined(*packed([(encoded(KEY), b'{"u":')])) or b"", "can't be read"),
    "no compression": (joined(*packed([(encoded(KEY), b"\x04\x22\x4d\x18zz")])) or b"", "decompressed"),
}


@pytest.mark.parametrize("name", BROKEN)
def test_what_is_wrong_is_told_with_its_position(name: str) -> None:
    sent, told = BROKEN[name]
    with pytest.raises(InputError) as caught:
        OpenProtocol().canal(sent, AT, LIMIT)
    assert told in caught.value.fact
    assert caught.value.where == str(AT)
    assert OpenProtocol().watermark_in(sent, LIMIT) is None


def test_a_batch_unpacks_to_no_more_than_a_message_may_hold() -> None:
    one = (KEY, {"u": {**ID, "x": column(15, "a" * 50_000)}})
    sent = content(*[one] * 10, compression="lz4")
    assert len(OpenProtocol().shown(sent, AT, 1 << 20)) == 10
    with pytest.raises(InputError, match=r"limits\.message-bytes"):
        OpenProtocol().shown(sent, AT, 1 << 18)


def test_a_number_does_not_fill_the_memory() -> None:
    with pytest.raises(InputError, match="a number was expected"):
        row_of(content((KEY, {"u": {**ID, "x": column(5, Bare("1e999999999"))}})))


def test_a_message_above_the_limit_is_refused() -> None:
    with pytest.raises(InputError, match=r"limits\.message-bytes is 10"):
        OpenProtocol().canal(content((KEY, {"u": ID})), AT, 10)


@pytest.mark.parametrize(
    ("value", "told"),
    [
        (b"\0\0\0\0\x07\x02ab", "Avro"),
        (b'{"payload":{"source":{}}}', "Debezium"),
        (b'{"schema":{"type":"struct"}}', "Debezium"),
        (b"\0\0\0\0\0\0\0\x05{abcd", "Open Protocol"),
        (b'{"version":1,"type":"WATERMARK"}', "Simple protocol"),
        (b'{"id":0,"database":"d","table":"t","pkNames":["id"]}', "Canal-JSON"),
        (b"something", ""),
    ],
)
def test_other_protocols_are_named(value: bytes, told: str) -> None:
    hint = foreign_hint(value)
    assert told in hint
    assert bool(hint) == bool(told)


@pytest.mark.parametrize("value", [b"\0\0\0\0\x07\x02ab", b'{"payload":{"source":{}}}'])
def test_canal_json_names_what_it_meets(value: bytes) -> None:
    with pytest.raises(InputError) as caught:
        canal_json.decode(value, AT)
    assert "source.protocol" in caught.value.hint or "sink URI" in caught.value.hint
