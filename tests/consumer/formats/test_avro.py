"""TiCDC's Avro protocol, message by message."""

import json
from struct import pack
from typing import Any

import pytest

from consumer.codec import canal_json
from consumer.formats.avro.protocol import Avro
from consumer.formats.avro.registry import SchemaRegistry
from consumer.formats.joined import joined
from ordering.errors import AnotherProtocolError, BodyMissingError, InputError, ReconcilerError
from ordering.events import Position
from ordering.timestamps import ResolvedTs
from tests.avro_protocol import long, sized
from tests.service.schema_registry import FakeRegistry

AT, LIMIT = Position("t", 1, 42), 1 << 20
TS = 433305438660591626
ID = {"name": "id", "type": {"type": "int", "connect.parameters": {"tidb_type": "INT"}}}
EXTENSION = [
    {"name": "_tidb_op", "type": "string"}, {"name": "_tidb_commit_ts", "type": "long"},
    {"name": "_tidb_commit_physical_time", "type": "long"},
]  # fmt: skip
KEY = {"type": "record", "name": "t", "namespace": "default.d", "fields": [ID]}


def column(kind: str, sent: str, **more: Any) -> dict[str, Any]:
    parameters = {"tidb_type": kind, **more.pop("parameters", {})}
    return {"name": "x", "type": ["null", {"type": sent, "connect.parameters": parameters, **more}]}


def schema(*fields: dict[str, Any], **changes: Any) -> dict[str, Any]:
    return {**KEY, "fields": [ID, *fields, *EXTENSION], **changes}


class Held:
    """A format with a registry in this process."""

    def __init__(self, registry: FakeRegistry) -> None:
        self.registry = registry
        self.format = Avro(SchemaRegistry(registry.url))

    def sent(self, of: Any, content: bytes, key: bytes | None = None) -> bytes:
        """A message of a value with this schema, under the key 1."""
        head = pack(">BI", 0, self.registry.register("t-value", json.dumps(of)))
        return joined(self.key() if key is None else key, head + content) or b""

    def key(self, of: Any = None, content: bytes | None = None) -> bytes:
        number = self.registry.register("t-key", json.dumps(KEY if of is None else of))
        return pack(">BI", 0, number) + (long(1) if content is None else content)

    def canal(self, sent: bytes) -> dict[str, Any]:
        found: dict[str, Any] = json.loads(self.format.canal(sent, AT, LIMIT) or b"")
        return found

    def read(self, field: dict[str, Any], value: bytes | None) -> Any:
        branch = long(0) if value is None else long(1) + value
        return self.canal(self.sent(schema(field), long(1) + branch + behind("c")))["data"][0]["x"]

    def fails(self, sent: bytes | None, kind: type[ReconcilerError] = InputError) -> ReconcilerError:
        with pytest.raises(kind) as caught:
            self.format.canal(sent, AT, LIMIT)
        assert str(AT) in caught.value.where
        return caught.value


def behind(op: str, ts: int = TS) -> bytes:
    return sized(op.encode()) + long(ts) + long(ts >> 18)


@pytest.fixture
def held(registry: FakeRegistry) -> Held:
    return Held(registry)


ENUM = {"parameters": {"allowed": "a,b\\,c,1,é"}}
CASES: list[tuple[dict[str, Any], bytes, str]] = [
    (column("INT", "int"), long(-(2**31)), "-2147483648"),
    (column("INT UNSIGNED", "long"), long(2**32 - 1), "4294967295"),
    (column("BIGINT", "long"), long(-(2**63)), "-9223372036854775808"),
    (column("BIGINT UNSIGNED", "long"), long(-1), "18446744073709551615"),
    (column("BIGINT UNSIGNED", "string"), sized(b"18446744073709551615"), "18446744073709551615"),
    (column("FLOAT", "float"), pack("<f", 0.1), "0.1"),
    (column("DOUBLE", "double"), pack("<d", 1e300), "1" + "0" * 300),
    (column("BIT", "bytes"), sized(b"\x01\xff"), "511"),
    (column("DECIMAL", "string"), sized(b"-0.10"), "-0.10"),
    (column("DECIMAL", "bytes", logicalType="decimal", precision=10, scale=2), sized(b"\xff\x85"), "-1.23"),
    (column("DECIMAL", "bytes", logicalType="decimal", precision=10, scale=3), sized(b"\x00"), "0.000"),
    (column("DECIMAL", "bytes", logicalType="decimal", precision=10), sized(b"\x00\xff"), "255"),
    (column("TEXT", "string"), sized("é".encode()), "é"),
    (column("BLOB", "bytes"), sized(b"\0\xff"), "\0\xff"),
    (column("ENUM", "string", **ENUM), sized(b"b,c"), "b,c"),
    (column("ENUM", "string", **ENUM), sized(b"1"), "3"),
    (column("SET", "string", parameters={"allowed": "a,b,c"}), sized(b"a,c"), "a,c"),
    (column("SET", "string", parameters={"allowed": "a,b,c"}), sized(b""), "0"),
    (column("JSON", "string"), sized(b'{"a": 1}'), '{"a": 1}'),
    (column("DATE", "string"), sized(b"0000-00-00"), "0000-00-00"),
    (column("DATETIME", "string"), sized(b"2026-01-02 03:04:05.600"), "2026-01-02 03:04:05.600"),
    (column("TIMESTAMP", "string"), sized(b"2026-01-02 03:04:05"), "2026-01-02 03:04:05"),
    (column("TIME", "string"), sized(b"-838:59:59"), "-838:59:59"),
    (column("YEAR", "int"), long(2155), "2155"),
    (column("TiDBVECTORFloat32", "string"), sized(b"[1,2.5]"), "[1,2.5]"),
]


@pytest.mark.parametrize(("field", "value", "text"), CASES)
def test_values(held: Held, field: dict[str, Any], value: bytes, text: str) -> None:
    assert held.read(field, value) == text
    assert held.read(field, None) is None


def test_null_may_be_the_second_branch(held: Held) -> None:
    field = {**column("INT", "int"), "type": column("INT", "int")["type"][::-1]}
    for content, wanted in ((long(0) + long(7), "7"), (long(1), None)):
        assert held.canal(held.sent(schema(field), long(1) + content + behind("c")))["data"] == [
            {"id": "1", "x": wanted}
        ]


def test_a_row_names_its_table_key_and_types(held: Held) -> None:
    field = column("BIGINT UNSIGNED", "long")
    found = held.canal(held.sent(schema(field), long(1) + long(0) + behind("u")))
    assert found == {
        "database": "d", "table": "t", "pkNames": ["id"], "isDdl": False, "sql": "", "type": "UPDATE", "old": [{}],
        "mysqlType": {"id": "int", "x": "bigint unsigned"}, "data": [{"id": "1", "x": None}],
        "_tidb": {"commitTs": TS, "onlyNew": True},
    }  # fmt: skip
    assert held.canal(held.sent(schema(), long(1) + behind("c"), b""))["pkNames"] is None


def before_schema() -> dict[str, Any]:
    before = {"name": "_ticdc_before", "type": ["null", {**KEY, "name": "t_before"}], "default": None}
    return {**KEY, "fields": [ID, before, *EXTENSION]}


@pytest.mark.parametrize(
    ("op", "before", "kind", "data", "old"),
    [("c", None, "INSERT", "2", None), ("u", 1, "UPDATE", "2", "1"), ("d", 2, "DELETE", "2", None)],
)
def test_the_row_before(held: Held, op: str, before: int | None, kind: str, data: str, old: str | None) -> None:
    content = long(2) + (long(0) if before is None else long(1) + long(before)) + behind(op)
    found = held.canal(held.sent(before_schema(), content))
    assert (found["type"], found["data"], found["old"]) == (kind, [{"id": data}], old and [{"id": old}])


def test_a_delete_of_which_there_is_the_key(held: Held) -> None:
    found = held.canal(joined(held.key(), pack(">BQ", 3, TS)) or b"")
    assert (found["type"], found["data"], found["pkNames"]) == ("DELETE", [{"id": "1"}], ["id"])
    assert found["_tidb"] == {"commitTs": TS}


def test_watermarks_and_ddls(held: Held) -> None:
    mark = joined(None, pack(">BQ", 2, TS)) or b""
    assert held.format.watermark_in(mark, LIMIT) == ResolvedTs(TS)
    assert held.canal(mark) == {"type": "TIDB_WATERMARK", "_tidb": {"watermarkTs": TS}}
    told = {"query": "DROP TABLE t", "type": 4, "schema": "d", "table": "t", "commitTs": TS}
    found = canal_json.decode(held.format.canal(joined(None, b"\1" + json.dumps(told).encode()), AT, LIMIT), AT)
    assert (found.is_ddl, found.type, found.sql, found.database, found.table) == (
        True,
        "ERASE",
        "DROP TABLE t",
        "d",
        "t",
    )
    assert found.tidb is not None
    assert found.tidb.commit_ts == TS
    assert held.registry.asked == []


UNUSABLE: dict[str, tuple[bytes | None, bytes | None, str]] = {
    "a DELETE without its commitTs": (b"\0\0\0\0\1\2", None, "avro-enable-watermark=true"),
    "an empty value": (b"\0\0\0\0\1\2", b"", "avro-enable-watermark=true"),
    "a DELETE without a key": (None, pack(">BQ", 3, TS), "primary key"),
    "Glue": (b"k", b"\3\0" + bytes(17), "glue-schema-registry-config"),
    "canal-json": (None, b'{"id":0,"pkNames":["id"],"isDdl":false}', 'protocol = "canal-json"'),
    "a DDL of a name that Avro has not": (
        None, b'\1{"query":"DROP TABLE x","type":4,"schema":"d","table":"a-b","commitTs":7}', "canal-json",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", UNUSABLE)
def test_what_can_not_be_ordered_is_refused(held: Held, name: str) -> None:
    key, value, hint = UNUSABLE[name]
    assert hint in held.fails(joined(key, value), AnotherProtocolError).hint


def test_a_schema_without_the_extension(held: Held) -> None:
    error = held.fails(held.sent(KEY, long(1)), AnotherProtocolError)
    assert "enable-tidb-extension=true" in error.hint


def test_debezium_in_avro(held: Held) -> None:
    names = ("before", "after", "source", "op")
    error = held.fails(held.sent({**KEY, "fields": [{"name": n, "type": "string"} for n in names]}, b""))
    assert "debezium-avro" in error.hint


ROW = long(1) + behind("c")
BROKEN: dict[str, tuple[Any, bytes]] = {
    "nothing behind the number": (schema(), b""), "cut": (schema(), ROW[:-1]), "longer": (schema(), ROW + b"\0"),
    "an unknown operation": (schema(), long(1) + behind("x")), "no commitTs": (schema(), long(1) + behind("c", 0)),
    "a negative commitTs": (schema(), long(1) + behind("c", -1)),
    "a DELETE without the row before": (schema(), long(1) + behind("d")),
    "an INSERT with a row before": (before_schema(), long(1) + long(1) + long(1) + behind("c")),
    "an UPDATE that lacks the row before": (before_schema(), long(1) + long(0) + behind("u")),
    "another branch": (schema(column("INT", "int")), long(1) + long(2) + behind("c")),
    "a number without an end": (schema(), b"\xff" * 12), "a text beyond the end": (schema(), long(1) + long(1000)),
    "a negative length": (schema(), long(1) + long(-5)),
    "no UTF-8": (schema(column("TEXT", "string")), long(1) + long(1) + sized(b"\xff") + behind("c")),
    "a negative unsigned": (schema(column("INT UNSIGNED", "long")), long(1) + long(1) + long(-1) + behind("c")),
    "a long DECIMAL": (
        schema(column("DECIMAL", "bytes", logicalType="decimal", scale=0)),
        long(1) + long(1) + sized(b"\1" * 29) + behind("c"),
    ),
    "an empty DECIMAL": (
        schema(column("DECIMAL",
        "bytes", logicalType="decimal", scale=0)), long(1) + long(1) + sized(b"") + behind("c"),
    ),
    "a long BIT": (schema(column("BIT", "bytes")), long(1) + long(1) + sized(b"\1" * 9) + behind("c")),
    "NaN": (schema(column("DOUBLE", "double")), long(1) + long(1) + pack("<d", float("nan")) + behind("c")),
    "a member like a number": (
        schema(column("ENUM", "string", parameters={"allowed": "a"})), long(1) + long(1) + sized(b"7") + behind("c"),
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", BROKEN)
def test_what_is_wrong_is_told_with_its_position(held: Held, name: str) -> None:
    assert type(held.fails(held.sent(*BROKEN[name]))) is InputError


def marks_that_are_none() -> dict[str, bytes | None]:
    long_ddl = b'\1{"query":"","type":4,"commitTs":7}'
    return {
        "a tombstone": None, "a short watermark": joined(None, b"\2\1"),
        "a watermark of 0": joined(None, pack(">BQ", 2, 0)),
        "a watermark beyond": joined(None, pack(">BQ", 2, 2**63)), "a DDL that is none": joined(None, b"\1{"),
        "a DDL without a statement": joined(None, long_ddl), "a DDL without commitTs": joined(None, b'\1{"query":"x"}'),
        "a DELETE of 0": joined(b"\0\0\0\0\1\2", pack(">BQ", 3, 0)),
        "a key of four bytes": joined(b"\0\0\0\1", pack(">BQ", 3, TS)),
        "another key": joined(b"{}", pack(">BQ", 3, TS)), "too large": joined(None, b"\0" * (LIMIT + 1)),
        "a watermark with a key": joined(b"k", pack(">BQ", 2, TS)),
    }  # fmt: skip


@pytest.mark.parametrize("name", marks_that_are_none())
def test_marks_that_are_none(held: Held, name: str) -> None:
    sent = marks_that_are_none()[name]
    held.fails(sent)
    assert held.format.watermark_in(sent, LIMIT) is None


SCHEMAS: dict[str, Any] = {
    "no record": {"type": "string"}, "a list": [], "a number": 7, "no fields": {**KEY, "fields": None},
    "no name": {**KEY, "name": ""}, "a name with a dot": {**KEY, "name": "a.b"},
    "a field without a name": schema({"type": "int"}),
    "a field twice": schema(ID), "a field with an odd name": schema({**column("INT", "int"), "name": "a-b"}),
    "no TiDB type": schema({"name": "x", "type": "int"}), "an unknown TiDB type": schema(column("POINT", "string")),
    "a type that is sent otherwise": schema(column("INT", "string")), "a union of three": schema({"name": "x",
    "type": ["null", "int", "long"]}),
    "a union without null": schema({"name": "x", "type": ["int", "long"]}),
    "a record in a column": schema({"name": "x", "type": KEY}),
    "an array": schema({"name": "x", "type": {"type": "array", "items": "int"}}),
    "a scale beyond": schema(column("DECIMAL", "bytes", logicalType="decimal", scale=10**9)),
    "a scale that is none": schema(column("DECIMAL", "bytes", logicalType="decimal", scale="2")),
    "a column behind the extension": {**KEY, "fields": [*EXTENSION, ID]},
    "a commitTs of another type": {**KEY, "fields": [ID, EXTENSION[0], {"name": "_tidb_commit_ts", "type": "string"}]},
    "a row before of other columns": {**KEY, "fields": [
        ID, {"name": "_ticdc_before", "type": ["null", {**KEY, "fields": [{**ID, "name": "y"}]}]}, *EXTENSION]},
    "a row before that is no record": {**KEY, "fields": [ID, {"name": "_ticdc_before", "type": ["null",
    "int"]}, *EXTENSION]},
    "many columns": schema(*({**ID, "name": f"c{n}"} for n in range(5_000))),
}  # fmt: skip


@pytest.mark.parametrize("name", SCHEMAS)
def test_schemas_that_ticdc_does_not_write(held: Held, name: str) -> None:
    error = held.fails(held.sent(SCHEMAS[name], ROW))
    assert "schema" in error.fact
    assert "source.schema-registry = " in error.where


def test_a_key_of_another_table(held: Held) -> None:
    held.fails(held.sent(schema(), ROW, held.key({**KEY, "name": "u"})))
    held.fails(held.sent(schema(), ROW, held.key(schema(), ROW)))
    held.fails(joined(held.key({**KEY, "fields": []}, b""), pack(">BQ", 3, TS)))


def test_a_schema_that_is_not_there(held: Held) -> None:
    error = held.fails(joined(None, pack(">BI", 0, 4711) + ROW), BodyMissingError)
    assert "4711" in error.fact
    assert error.exit_code == InputError.exit_code


def test_a_damaged_row_that_ticdc_marked(held: Held) -> None:
    told = [*EXTENSION, {"name": "_tidb_row_level_checksum", "type": "string"}, {"name": "_tidb_corrupted",
    "type": "boolean"},
            {"name": "_tidb_checksum_version", "type": "int"}]  # fmt: skip
    of = {**KEY, "fields": [ID, *told]}
    assert held.canal(held.sent(of, ROW + sized(b"77") + b"\0" + long(1)))["data"] == [{"id": "1"}]
    assert "corrupted" in held.fails(held.sent(of, ROW + sized(b"77") + b"\1" + long(1))).fact
