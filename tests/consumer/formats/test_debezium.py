"""TiCDC's Debezium format, message by message."""

import json
from base64 import b64encode
from typing import Any

import pytest

from consumer.codec import canal_json
from consumer.formats.debezium.protocol import Debezium
from consumer.formats.joined import joined
from ordering.errors import AnotherProtocolError, InputError
from ordering.events import Position
from ordering.timestamps import ResolvedTs
from tests.simple_protocol import COMPRESSIONS, encoded

AT, LIMIT = Position("t", 1, 42), 1 << 20
TS = 433305438660591626
SOURCE = {"version": "2.4.0.Final", "connector": "TiCDC", "db": "d", "table": "t", "commit_ts": TS}
ID = {"tidb_type": "int", "type": "int32", "optional": False, "field": "id"}


def schema(*columns: dict[str, Any]) -> dict[str, Any]:
    images = [{"type": "struct", "field": name, "fields": [ID, *columns]} for name in ("before", "after")]
    return {"type": "struct", "fields": [*images, {"type": "struct", "field": "source", "fields": []}]}


def content(held: dict[str, Any], *columns: dict[str, Any], **changes: Any) -> bytes:
    value = {"payload": {"source": SOURCE, **held}, "schema": schema(*columns), **changes}
    return joined(encoded({"payload": {"id": 1}, "schema": {}}), encoded(value)) or b""


def row_of(value: bytes, **options: Any) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(Debezium(**options).canal(value, AT, LIMIT) or b"")
    return found


def read(kind: str, value: Any, **options: Any) -> Any:
    column = {"tidb_type": kind, "optional": True, "field": "x", **options.pop("column", {})}
    sent = content({"op": "c", "before": None, "after": {"id": 1, "x": value}}, column)
    return row_of(sent, **options)["data"][0]["x"]


def base64(value: bytes) -> str:
    return b64encode(value).decode()


MICRO = {"name": "io.debezium.time.MicroTimestamp"}
ENUM = {"parameters": {"allowed": "a,b\\,c,1,é"}}
TRICKY = {"parameters": {"allowed": "a\\,b,c'd"}}


@pytest.mark.parametrize(
    ("kind", "value", "text", "column"),
    [
        ("bigint unsigned", -1, "18446744073709551615", {}),
        ("bigint unsigned", -(2**63), "9223372036854775808", {}),
        ("bigint unsigned", 2**63 - 1, "9223372036854775807", {}),
        ("bigint", -(2**63), "-9223372036854775808", {}),
        ("tinyint", -1, "-1", {}),
        ("int unsigned", 4294967295, "4294967295", {}),
        ("year", 2026, "2026", {}),
        ("double", 1e300, "1" + "0" * 300, {}),
        ("float", 0.1, "0.1", {}),
        ("decimal", 12345678901.2345, "12345678901.2345", {}),
        ("decimal", 1.5, "1.5", {}),
        ("bit", True, "1", {}),
        ("bit", base64(b"\xff\x01"), "511", {}),
        ("varchar", "é", "é", {}),
        ("varbinary", base64(b"\0\xff"), "\0\xff", {}),
        ("text", "w6Q=", "w6Q=", {}),
        ("blob", "w6Q=", "\u00c3\u00a4", {}),
        ("date", -354285, "1000-01-01", {}),
        ("date", 2932896, "9999-12-31", {}),
        ("datetime", 1709208000500, "2024-02-29 12:00:00.500", {}),
        ("datetime", -1000, "1969-12-31 23:59:59", {}),
        ("datetime", 253402300799999999, "9999-12-31 23:59:59.999999", MICRO),
        ("timestamp", "2024-03-10T07:30:00.120Z", "2024-03-10 07:30:00.120", {}),
        ("timestamp", "1970-01-01T00:00:00Z", "0000-00-00 00:00:00", {}),
        ("time", -3020399000000, "-838:59:59", {}),
        ("time", -1, "-00:00:00.000001", {}),
        ("time", 45296700000, "12:34:56.700", {}),
        ("json", '{"a": 1.50}', '{"a": 1.50}', {}),
        ("vector", "[1,2]", "[1,2]", {}),
        ("enum", "b,c", "b,c", ENUM),
        ("enum", "1", "3", ENUM),
        ("enum", "", "0", ENUM),
        ("enum", "a,b", "a,b", {"parameters": {"allowed": "a\\\\,b"}}),
        ("enum", "c'd", "c'd", TRICKY),
        ("enum", "z", "z", ENUM),
        ("set", "a,b", "a,b", {"parameters": {"allowed": "b,a"}}),
        ("set", "a,1", "5", {"parameters": {"allowed": "a,b,1"}}),
        ("set", "", "0", {"parameters": {"allowed": "a,b"}}),
        ("int", None, None, {}),
    ],
)
def test_values(kind: str, value: Any, text: str | None, column: dict[str, Any]) -> None:
    assert read(kind, value, column=column) == text


def test_a_timestamp_comes_into_the_zone_of_the_config() -> None:
    assert read("timestamp", "2024-03-10T07:30:00Z", zone="Asia/Shanghai") == "2024-03-10 15:30:00"


@pytest.mark.parametrize(
    ("zone", "text"), [("America/New_York", "0001-01-01T00:00:00Z"), ("Asia/Shanghai", "9999-12-31T23:59:59Z")]
)
def test_a_timestamp_that_its_zone_can_not_show(zone: str, text: str) -> None:
    with pytest.raises(InputError, match="in none of the years") as caught:
        read("timestamp", text, zone=zone)
    assert caught.value.where == str(AT)


@pytest.mark.parametrize("number", [1234567890.1234567, 12345678901234568, 0.12345678901234568, 1.2345678901234567e20])
def test_a_decimal_of_more_digits_than_a_float_keeps(number: float) -> None:
    with pytest.raises(InputError, match="DECIMAL") as caught:
        read("decimal", number)
    assert caught.value.where == str(AT)
    assert "lossy-values" in caught.value.hint
    assert float(read("decimal", number, accepts=True)) == number


@pytest.mark.parametrize(
    ("kind", "value"),
    [
        ("int unsigned", -1), ("tinyint unsigned", -1), ("int", "1"), ("int", 1.5), ("varchar", 1), ("blob", "?"),
        ("bigint unsigned", 2**64), ("date", 10**10), ("datetime", 10**20), ("timestamp", "2024-03-10 07:30:00"),
        ("timestamp", 1), ("enum", "7"), ("set", "8"), ("geometry", "x"), ("date", "2024-01-01"), ("bit", 1),
        ("double", "NaN"), ("time", 1e300),
    ],
)  # fmt: skip
def test_values_that_are_none_of_their_type(kind: str, value: Any) -> None:
    with pytest.raises(InputError, match=r"d\.t") as caught:
        read(kind, value, accepts=True)
    assert caught.value.where == str(AT)


@pytest.mark.parametrize("compression", COMPRESSIONS)
def test_events(compression: str) -> None:
    compress = COMPRESSIONS[compression]
    key = compress(encoded({"payload": {"id": 1}}))

    def sent(payload: dict[str, Any]) -> dict[str, Any]:
        value = {"payload": {"source": SOURCE, **payload}, "schema": schema()}
        return row_of(joined(key, compress(encoded(value))) or b"")

    update = sent({"op": "u", "before": {"id": 2}, "after": {"id": 1}})
    assert (update["type"], update["old"], update["data"]) == ("UPDATE", [{"id": "2"}], [{"id": "1"}])
    assert (update["pkNames"], update["_tidb"], update["mysqlType"]) == (["id"], {"commitTs": TS}, {"id": "int"})
    delete = sent({"op": "d", "after": None, "before": {"id": 1}})
    assert (delete["type"], delete["old"], delete["data"]) == ("DELETE", None, [{"id": "1"}])
    alone = sent({"op": "u", "after": {"id": 1}})
    assert (alone["type"], alone["old"], alone["_tidb"]["onlyNew"]) == ("UPDATE", [{}], True)
    ddl = sent({"ddl": "CREATE TABLE `t` (`id` INT)", "databaseName": "d"})
    assert (ddl["isDdl"], ddl["database"], ddl["table"]) == (True, "d", "t")


def test_watermarks() -> None:
    mark = content({"op": "m"})
    assert Debezium().watermark_in(mark, LIMIT) == ResolvedTs(TS)
    assert canal_json.decode(Debezium().canal(mark, AT, LIMIT), AT).type == canal_json.WATERMARK
    row = content({"op": "c", "after": {"id": 1, "x": '"op":"m"'}}, {"tidb_type": "text", "field": "x"})
    assert Debezium().watermark_in(row, LIMIT) is None


ROW = {"op": "c", "before": None, "after": {"id": 1}}
UNUSABLE: dict[str, tuple[bytes, str]] = {
    "no schema": (content(ROW, schema=None), "debezium-disable-schema=false"),
    "no extension": (content({**ROW, "after": {"id": 1, "x": 1}}, {"field": "x"}), "enable-tidb-extension=true"),
    "another connector": (content(ROW, payload={"source": {"connector": "mysql"}, "op": "c"}), "TiCDC's messages"),
}
BROKEN: dict[str, bytes | None] = {
    "tombstone": None,
    "no JSON": joined(b"{}", b'{"payload":'),
    "no key": joined(None, encoded({"payload": {"source": SOURCE, **ROW}, "schema": schema()})),
    "no commit_ts": content(ROW, payload={"source": {**SOURCE, "commit_ts": 0}, **ROW}),
    "unknown op": content({"op": "r", "after": {"id": 1}}),
    "neither op nor ddl": content({}),
    "no row": content({"op": "c", "before": None, "after": None}),
    "two rows": content({"op": "c", "before": {"id": 1}, "after": {"id": 1}}),
    "unknown column": content({"op": "c", "before": None, "after": {"id": 1, "y": 1}}),
    "large": content({"op": "c", "before": None, "after": {"id": 1, "x": "x" * LIMIT}}),
}


@pytest.mark.parametrize("name", UNUSABLE)
def test_what_the_changefeed_lacks_is_named(name: str) -> None:
    sent, hint = UNUSABLE[name]
    with pytest.raises(AnotherProtocolError) as caught:
        Debezium().canal(sent, AT, LIMIT)
    assert hint in caught.value.hint
    assert caught.value.where == str(AT)


@pytest.mark.parametrize("name", BROKEN)
def test_what_is_wrong_is_told_with_its_position(name: str) -> None:
    with pytest.raises(InputError) as caught:
        Debezium().canal(BROKEN[name], AT, LIMIT)
    assert type(caught.value) is InputError
    assert caught.value.where == str(AT)
    assert Debezium().watermark_in(BROKEN[name], LIMIT) is None
