"""The Simple protocol in JSON: what becomes of each kind of message, and what is said of broken ones."""

import json
from base64 import b64encode
from pathlib import Path
from typing import Any

import msgspec
import pytest

from consumer.codec import canal_json
from consumer.codec.row_images import TableKeys
from consumer.formats.message_format import Untaken
from consumer.formats.sent_schema import read_schema
from consumer.formats.simple.checksum import row_checksum
from consumer.formats.simple.protocol import Simple
from consumer.large_messages.claim_check import Claims
from consumer.large_messages.reference import BodyReference
from consumer.tasks.order import ReadTask
from consumer.tasks.read_spec import ReadSpec
from consumer.tasks.report import Report
from ordering.errors import InputError
from ordering.events import Partition, TableName
from ordering.quarantine import Marks
from ordering.timestamps import CheckpointTs, ResolvedTs
from ordering.window import Range, Window
from tests.consumer.formats.messages import (
    AT,
    COLUMNS,
    FORMAT,
    LIMIT,
    SCHEMA,
    bootstrap,
    column,
    ddl,
    image,
    row,
    table_schema,
    value,
    without,
)  # fmt: skip
from tests.simple_protocol import COMPRESSIONS, encoded
from tests.simulation.log import FakeLog


def canal(message: dict[str, Any], known: Simple = FORMAT) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(known.canal(value(message), AT, LIMIT) or b"")
    return found


def test_a_row_is_read_with_its_schema() -> None:
    now = {"id": "1", "name": "ä<b>", "raw": "\x00\x01\xff", "at": "2026-01-02 03:04:05", "big": "18446744073709551615"}
    found = canal(row("UPDATE"))
    assert found["data"] == found["old"] == [now]
    assert (found["type"], found["pkNames"], found["_tidb"]) == ("UPDATE", ["id"], {"commitTs": 9})
    assert found["mysqlType"] == dict(COLUMNS)
    assert canal(row("DELETE"))["data"] == [now]
    assert canal(row(data=image(at=None, raw=None)))["data"] == [now | {"at": None, "raw": None}]


@pytest.mark.parametrize(
    ("zone", "there"), [("UTC", "2026-01-01 19:04:05.25"), ("Asia/Tokyo", "2026-01-02 04:04:05.25")]
)
def test_a_moment_comes_into_the_changefeeds_zone(zone: str, there: str) -> None:
    moment = {"location": "Asia/Shanghai", "value": "2026-01-02 03:04:05.25"}
    found = canal(row(data=image(at=moment)), Simple(zone).knowing([SCHEMA]))
    assert found["data"][0]["at"] == there
    zero = {"location": "Asia/Shanghai", "value": "0000-00-00 00:00:00"}
    assert canal(row(data=image(at=zero)), Simple(zone).knowing([SCHEMA]))["data"][0]["at"] == zero["value"]


def test_a_table_without_odd_types_keeps_its_bytes() -> None:
    message = value(without(row(), "data"))[:-1] + b',"data":{ "id" : "1","name":"\\u00e4"}}'
    plain = SCHEMA.__class__("d", "t", 7, COLUMNS[:2], ("id",))
    found = Simple().knowing([plain]).canal(message, AT, LIMIT)
    assert found is not None
    assert b'{ "id" : "1","name":"\\u00e4"}' in found


def test_schemas_come_in_messages() -> None:
    log = FakeLog()
    for message in (row(), bootstrap(), row("UPDATE"), ddl()):
        log.add("t", 0, value(message))
    known = Simple()
    reader = known.reading(log.get(), LIMIT)
    spans = [(p, 0, 4) for p in log.held]
    taken: list[str] = []
    for _, run in reader.read(spans):
        for message in run:
            try:
                taken.append(json.loads(message.value())["type"])
            except Untaken as untaken:
                taken.append("waits" if untaken.row else "schema")
    assert taken == ["waits", "schema", "UPDATE", "ALTER"]
    assert [schema.version for schema in known.learned(reader)] == [7, 5]
    assert known.learned(reader)[0] == SCHEMA


def test_a_ddl_names_its_table_or_its_database() -> None:
    found = canal(ddl())
    assert (found["isDdl"], found["database"], found["table"], found["_tidb"]) == (True, "d", "t", {"commitTs": 9})
    database = without(ddl(type="QUERY", sql="CREATE DATABASE IF NOT EXISTS `a``b` CHARACTER SET utf8"), "tableSchema")
    assert canal(without(database, "preTableSchema"))["database"] == "a`b"
    assert canal(ddl(preTableSchema=None, tableSchema=None, sql="drop schema d2"))["database"] == "d2"


@pytest.mark.parametrize(
    "sql",
    [
        "ALTER DATABASE COLLATE = utf8mb4_general_ci",
        "ALTER SCHEMA /* x */ CHARACTER SET = utf8mb4",
        "alter database default collate utf8mb4_bin",
        "/* x */ ALTER DATABASE charset utf8mb4",
    ],
)
def test_a_ddl_that_names_no_database_is_about_none_that_is_known(sql: str) -> None:
    """The option's word was taken for the database, which no filter takes in: the DDL was left out, exit 0."""
    sent = ddl(type="ALTER", sql=sql, preTableSchema=None, tableSchema=None)
    with pytest.raises(InputError, match="which database it is about") as told:
        canal(sent)
    assert told.value.where == str(AT)
    named = {**sent, "sql": "ALTER DATABASE `CHARACTER` COLLATE = utf8mb4_general_ci"}
    assert canal(named)["database"] == "CHARACTER"


@pytest.mark.parametrize("compression", COMPRESSIONS)
def test_watermarks_are_found(compression: str) -> None:
    # the number of bytes decides what a snappy block begins with: 123 is a brace
    for padding in range(64):
        mark = {"version": 1, "type": "WATERMARK", "commitTs": 433305438660591626, "buildTs": 1, "x": "y" * padding}
        sent = COMPRESSIONS[compression](value(mark))
        assert FORMAT.watermark_in(sent, LIMIT) == ResolvedTs(433305438660591626)
        found = canal_json.decode(FORMAT.canal(sent, AT, LIMIT), AT)
        assert found.tidb is not None
        assert (found.type, found.tidb.watermark_ts) == (canal_json.WATERMARK, 433305438660591626)
    assert FORMAT.watermark_in(COMPRESSIONS[compression](value(row(data={"id": "WATERMARK"}))), LIMIT) is None


def test_rows_that_are_elsewhere_say_so() -> None:
    part = {"id": "1"}
    assert canal(row(data=part, handleKeyOnly=True))["_tidb"] == {"commitTs": 9, "onlyHandleKey": True}
    claimed = canal(row(data=part, handleKeyOnly=True, claimCheckLocation="/a/b.json"))["_tidb"]
    assert claimed == {"commitTs": 9, "onlyHandleKey": False, "claimCheckLocation": "/a/b.json"}


def test_people_see_a_message_without_its_schema() -> None:
    shown = json.loads(Simple().shown(value(row()), AT, LIMIT)[0] or b"")
    assert shown["data"][0]["raw"] == "AAH/"
    assert shown["data"][0]["at"] == "UTC 2026-01-02 03:04:05"
    assert json.loads(Simple().shown(value(bootstrap()), AT, LIMIT)[0] or b"")["type"] == "BOOTSTRAP"


def test_a_checksum_that_agrees_is_none_of_our_business() -> None:
    values = {
        "id": b"1",
        "name": "ä<b>".encode(),
        "raw": b"\0\1\xff",
        "at": b"2026-01-02 03:04:05",
        "big": b"18446744073709551615",
    }
    current = row_checksum(COLUMNS, values)
    tokyo = {"location": "Asia/Tokyo", "value": "2026-01-02 12:04:05"}
    for checksum in (current, 0):
        canal(
            row(data=image(at=tokyo), checksum={"version": 2, "corrupted": False, "current": checksum, "previous": 0})
        )
    part = {"id": "1"}  # nobody knows it of a part
    canal(row(data=part, handleKeyOnly=True, checksum={"version": 1, "corrupted": False, "current": 5, "previous": 0}))
    canal(row(data=part, checksum={"version": 1, "corrupted": False, "current": 5, "previous": 0}))


def test_the_checksum_of_a_vector_is_of_its_length_and_numbers() -> None:
    from zlib import crc32  # noqa: PLC0415

    columns = [("v", "vector"), ("w", "vector")]
    raw = b"\2\0\0\0" + bytes.fromhex("0000c0bf") + bytes.fromhex("f9021550") + bytes(4)
    assert row_checksum(columns, {"v": b"[-1.5,1e10]", "w": b"[]"}) == crc32(raw)


@pytest.mark.parametrize(
    ("kind", "text"), [("float", "1e39"), ("vector", "[1,-1e300]"), ("vector", "[1"), ("int", "x")]
)
def test_a_value_that_has_no_checksum_is_told_with_its_position(kind: str, text: str) -> None:
    sent = table_schema(columns=[column("id", "int"), column("x", kind)])
    format_ = Simple().knowing([read_schema(msgspec.Raw(encoded(sent)), "here")])
    message = value(row(data={"id": "1", "x": text}, checksum={"current": 5, "previous": 0}))
    with pytest.raises(InputError) as caught:
        format_.canal(message, AT, LIMIT)
    assert "offset=42" in caught.value.where


def test_the_checksum_is_tidbs() -> None:
    # CRC-32 of what TiDB's appendDatumForChecksum writes, put down byte by byte
    columns = [
        ("a", "int"),
        ("b", "float"),
        ("c", "varchar"),
        ("d", "bit"),
        ("e", "decimal"),
        ("f", "double"),
        ("g", "year"),
    ]
    values = {"a": b"-1", "b": b"0.1", "c": b"x", "d": b"5", "e": b"1.50", "f": b"inf", "g": None}
    from zlib import crc32  # noqa: PLC0415

    raw = (
        b"\xff" * 8 + bytes.fromhex("000000a09999b93f") + b"\1\0\0\0x" + b"\5" + bytes(7) + b"\4\0\0\x001.50" + bytes(8)
    )
    assert row_checksum(columns, values) == crc32(raw)


BROKEN: dict[str, tuple[bytes | None, str]] = {
    "a tombstone": (None, "tombstone"),
    "nothing": (b"", "empty"),
    "no JSON": (b'{"type":', "not valid JSON"),
    "not even nearly": (b"\xff\xfe\xfd", "can't be decompressed"),
    "Avro of another schema": (b"\x16\x02\x00abc", "not valid JSON"),
    "a broken lz4 frame": (COMPRESSIONS["lz4"](value(row()))[:-9], "can't be decompressed"),
    "a broken snappy block": (COMPRESSIONS["snappy"](value(row()))[:-9], "can't be decompressed"),
    "a list": (b"[1]", "not of the Simple protocol"),
    "Canal-JSON": (b'{"id":0,"database":"d","table":"t","type":"INSERT","_tidb":{"commitTs":9}}', "version 0"),
    "a later version": (value(row(version=2)), "version 2"),
    "an unknown type": (value(row(type="UPSERT")), "unknown type 'UPSERT'"),
    "a commitTs that is text": (value(row(commitTs="9")), "not of the Simple protocol"),
    "a commitTs of 64 bits": (value(row(commitTs=2**63)), "not of the Simple protocol"),
    "no commitTs": (value(without(row(), "commitTs")), "lacks commitTs"),
    "no schemaVersion": (value(without(row(), "schemaVersion")), "lacks schemaVersion"),
    "INSERT without data": (value(without(row(), "data")), "INSERT lacks data"),
    "UPDATE without old": (value(without(row("UPDATE"), "old")), "UPDATE lacks old"),
    "DELETE without old": (value(without(row("DELETE"), "old")), "DELETE lacks old"),
    "data that is null": (value(row(data=None)), "can't be read with schema version 7"),
    "data that is a list": (value(row(data=[image()])), "can't be read with schema version 7"),
    "a value that is a number": (value(row(data=image(id=1))), "can't be read with schema version 7"),
    "a value that is nested": (value(row(data=image(name={"a": {}}))), "can't be read with schema version 7"),
    "a column that the schema lacks": (value(row(data=image(more="1"))), "its schema lacks column 'more'"),
    "bytes that are no base64": (value(row(data=image(raw="A*"))), "no base64"),
    "a TIMESTAMP without a zone": (value(row(data=image(at="2026-01-02 03:04:05"))), "has no zone"),
    "a zone in a text": (value(row(data=image(name={"location": "UTC", "value": "x"}))), "has a zone"),
    "a zone that nobody knows": (
        value(row(data=image(at={"location": "Mars", "value": "2026-01-02 03:04:05"}))), "the zone 'Mars'",
    ),
    "a zone that is a path": (value(row(data=image(at={"location": "../x", "value": "2026-01-02 03:04:05"}))), "../x"),
    "a TIMESTAMP that is none": (value(row(data=image(at={"location": "UTC", "value": "soon"}))), "soon"),
    "a wrong checksum": (value(row(checksum={"current": 5, "previous": 0})), "differs from its checksum"),
    "a wrong old checksum": (value(row("DELETE", checksum={"current": 0, "previous": 5})), "differs from its checksum"),
    "a corrupted row": (value(row(checksum={"corrupted": True})), "marked a row of d.t as corrupted"),
    "a BOOTSTRAP without schema": (value(without(bootstrap(), "tableSchema")), "lacks tableSchema"),
    "a schema without version": (value(bootstrap(tableSchema=table_schema(version=0))), "lacks its version"),
    "a schema that names a column twice": (
        value(bootstrap(tableSchema=table_schema(columns=[column("id", "int")] * 2))), "names a column twice",
    ),
    "a key that the schema lacks": (
        value(bootstrap(tableSchema=table_schema(columns=[column("x", "int")]))), "column 'id' in its primary key",
    ),
    "a schema that is a text": (value(bootstrap(tableSchema="t")), "schema of a table can't be read"),
    "another schema of that version": (
        value(bootstrap(tableSchema=table_schema(columns=[column("id", "bigint")]))), "two schemas of version 7",
    ),
    "a DDL without sql": (value(ddl(sql="")), "DDL lacks sql"),
    "a DDL without commitTs": (value(ddl(commitTs=0)), "DDL lacks commitTs"),
    "too long": (value(row(data=image(name="x" * LIMIT))), "limits.message-bytes"),
    "nested deeply": (b'{"version":1,"data":' + b"[" * 100_000, "nested too deeply"),
    "a row of a schema that never came": (value(row(schemaVersion=8)), "no schema of version 8"),
}  # fmt: skip


@pytest.mark.parametrize("name", BROKEN)
def test_what_is_wrong_is_told_with_its_position(name: str) -> None:
    sent, fact = BROKEN[name]
    with pytest.raises(InputError) as caught:
        FORMAT.canal(sent, AT, LIMIT)
    assert fact in caught.value.fact
    assert caught.value.where == "topic=t partition=1 offset=42"
    assert FORMAT.watermark_in(sent, LIMIT) is None
    if fact.startswith("nested") or sent is None or len(sent) < 100_000:
        assert len(caught.value.fact) < 900


def test_a_claim_check_file_is_of_the_same_format(tmp_path: Path) -> None:
    keys = TableKeys(TableName("d", "t"), ("id",))
    whole = value(row())
    wrapped = encoded({"key": "", "value": b64encode(COMPRESSIONS["snappy"](whole)).decode()})
    for number, content in enumerate((whole, wrapped, COMPRESSIONS["lz4"](whole))):
        (tmp_path / f"{number}.json").write_bytes(content)
        claims = Claims((f"file://{tmp_path}",), {}, {}, LIMIT, FORMAT)
        reference = BodyReference(f"file://{tmp_path}/{number}.json", *AT)
        image_ = json.loads(claims.image(reference, keys, keys.key(b'{"id":"1"}'), 9))
        assert image_["raw"] == "\x00\x01\xff"


def test_a_task_that_reads_for_the_quarantine_goes_on_behind_what_is_broken() -> None:
    log = FakeLog()
    sent = [sent for sent, _ in BROKEN.values() if sent is None or len(sent) < LIMIT]
    for content in (value(bootstrap()), *sent, value(row())):
        log.add("t", 0, content)
    part = Range(Partition("t", 0), 0, len(sent) + 2, 0)
    for tolerant in (True, False):
        window = Window(CheckpointTs(0), CheckpointTs(0), ResolvedTs(99), ResolvedTs(99), (part,))
        spec = ReadSpec(window, {}, lambda *_: True, 1, LIMIT, marks=Marks(tolerant), format=FORMAT)
        records = list(ReadTask(spec, log)([(0, (part,))]))
        if not tolerant:
            assert any(isinstance(found, InputError) for _, found in records)
            continue
        (report,) = (found for _, found in records if isinstance(found, Report))
        assert [one.offset for one in report.unreadable] == list(range(1, len(sent)))
        assert [one.row.version for one in report.awaited] == [8]
        assert (report.released, report.read) == (1, len(sent) + 2)


@pytest.mark.parametrize(
    ("indexes", "key"),
    [
        ((("PRIMARY", True, "id"),), ("id",)),
        ((("primary", True, "id"),), ("id",)),
        ((("u", False, "name"), ("primary", True, "id")), ("id",)),
        ((("u", False, "name"), ("v", False, "id"), ("primary", True, "name")), ()),
        ((("u", False, "id"), ("PRIMARY", True, "id")), ("id",)),
    ],
)
def test_the_implicit_primary_key_of_a_table_without_one_is_none(
    indexes: tuple[tuple[str, bool, str], ...], key: tuple[str, ...]
) -> None:
    sent = [
        {"name": name, "unique": True, "primary": primary, "nullable": False, "columns": [column_]}
        for name, primary, column_ in indexes
    ]
    assert read_schema(msgspec.Raw(encoded(table_schema(indexes=sent))), "here").key == key
