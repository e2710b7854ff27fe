"""What the compiled core makes of netted rows is what `ChunkEncoder` makes of them: chunks and errors, bytewise."""

import json
import time
from array import array
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import pytest

from consumer import native
from consumer.native import Core
from consumer.native.net_rows import LineRules, NetRows
from consumer.tasks.encoding.chunk_encoder import ChunkEncoder
from consumer.tasks.encoding.compiled_rows import CompiledRows
from consumer.tasks.order import OrderTask
from consumer.tasks.shuffle_blocks import Block, decode_block, encode_block
from ordering.errors import CoreError
from ordering.events import TableName
from ordering.rows.identity import row_key
from ordering.rows.net_effect import KeyChange
from sinks.mysql.encoder import MysqlEncoder
from sinks.postgres.encoder import PostgresEncoder
from sinks.rows.chunk import Chunk
from sinks.rows.field_rules import zone_parts
from sinks.rows.schema import Column, Shape, TableSchema
from sinks.rows.tsv import TabbedRows
from sinks.rows.values import ValueRules
from tests.consumer.native.building import built
from tests.consumer.native.encode_fuzz import BODIES, MYSQL, POSTGRES, Type, check
from tests.consumer.native.test_core_equal import sanitized_run

SECONDS = 3.0
TABLE = TableName("d", "t")


@pytest.fixture(autouse=True)
def _this_core(core: Core, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(native, "LIBRARY", core.path)


def test_random_buckets_agree() -> None:
    """As many as fit some seconds, other ones each day: a failure names its seed."""
    first, until = int(time.time() // 86_400) * 10_000_000, time.monotonic() + SECONDS
    rows = cases = 0
    while time.monotonic() < until or not rows:
        rows += check(first + cases)
        cases += 1
    assert rows >= cases


@pytest.mark.soak
def test_a_million_random_buckets_agree() -> None:
    for seed in range(1_000_000):
        check(seed)


@pytest.mark.by_turns
def test_it_encodes_within_its_bounds(tmp_path: Path) -> None:
    sanitized_run(tmp_path, 250, "encode_fuzz")


@pytest.mark.soak
def test_it_encodes_within_its_bounds_for_long(tmp_path: Path) -> None:
    sanitized_run(tmp_path, 200_000, "encode_fuzz")


def bucket_of(rows: list[dict[str, str | None]], names: Sequence[str]) -> list[Block]:
    """Rows that are written, whose key is the first column; and one that is gone."""
    halves: list[KeyChange] = [
        (row_key(TABLE, [row[names[0]]]), 9, json.dumps(row, ensure_ascii=False, separators=(",", ":")).encode(), 0)
        for row in rows
    ]
    halves.append((row_key(TABLE, ["77"]), 8, b"", 0))
    return [decode_block(encode_block(0, {"d\0t": [names[0]]}, halves))]


def chunks_of(
    encoder: TabbedRows, columns: Sequence[Column], rows: list[dict[str, str | None]], *, compiled: bool
) -> list[Chunk]:
    names = tuple(column.name for column in columns)
    schema = TableSchema(TABLE, tuple(columns), names[:1], (names[:1],))
    task = OrderTask({TABLE: schema}, encoder, BODIES, whole_transactions=False, native=compiled)  # type: ignore[arg-type]
    netted = task.netted(bucket_of(rows, names))
    assert isinstance(netted, CompiledRows) is compiled
    return list(task.chunks_of(netted, {"d\0t": names[:1]}))


LEFT_TO_PYTHON = {"geometry", "money", "name", "numeric(5,-2)"}
"""Types without a rule: TiDB's GEOMETRY does not exist, nobody should have the others."""
LEFT_VALUES = {"a", "", "ab ", "abcd", "0000-00-00", "32", "750", "700"}
"""Members by name, and what a column refuses or leaves to the config."""


def usual(kinds: tuple[Type, ...]) -> list[tuple[Column, tuple[str, ...]]]:
    """Columns, with those of their values that go into them and come from TiDB."""
    found = []
    for kind, shape, members, values in kinds:
        texts = shape is Shape.TEXT or shape is Shape.BYTES
        if kind not in LEFT_TO_PYTHON:
            fitting = tuple(value for value in values if texts or value not in LEFT_VALUES)
            found.append((Column("v", kind, shape, members=members), fitting))
    return found


def takes(encoder: TabbedRows, column: Column, value: str) -> bool:
    try:
        encoder.encode([column], [[value]])  # type: ignore[attr-defined]
    except ValueError:
        return False
    return True


@pytest.mark.parametrize(
    ("encoder", "column", "values"),
    [
        pytest.param(encoder, *one, id=f"{type(encoder).__name__} {one[0].type} {one[0].shape.value}")
        for encoder, kinds in (
            (MysqlEncoder(ValueRules("Europe/Berlin")), MYSQL),
            (MysqlEncoder(ValueRules()), MYSQL),
            (PostgresEncoder(ValueRules("America/New_York")), POSTGRES),
        )
        for one in usual(kinds)
    ],
)
def test_what_is_usual_is_encoded(
    monkeypatch: pytest.MonkeyPatch, encoder: TabbedRows, column: Column, values: tuple[str, ...]
) -> None:
    """Else nothing would be gained, and the tests above would tell nothing."""
    columns = (Column("id", "bigint", Shape.INTEGER, nullable=False), column)
    rows: list[dict[str, str | None]] = [
        {"id": str(n), "v": value}
        for n, value in enumerate([*values, None])
        if value is None or takes(encoder, column, value)
    ]
    assert len(rows) > 1
    wanted = chunks_of(encoder, columns, rows, compiled=False)

    def refused(*_: object) -> Any:
        raise AssertionError("left to Python")

    monkeypatch.setattr(ChunkEncoder, "slice_chunks", refused)
    assert chunks_of(encoder, columns, rows, compiled=True) == wanted


@pytest.mark.parametrize(
    "zone",
    ["Europe/Berlin", "America/New_York", "Australia/Lord_Howe", "Asia/Kathmandu", "Africa/Casablanca", "Asia/Gaza",
     "Pacific/Apia", "America/Sao_Paulo", "Africa/Monrovia", "Asia/Tehran", "Pacific/Kwajalein", "Antarctica/Troll"],
)  # fmt: skip
def test_clock_changes_are_those_of_python(zone: str) -> None:
    """Around each change that the table knows, and at noon of each 10th day: the same text, or left to Python."""
    encoder, there = MysqlEncoder(ValueRules(zone)), ZoneInfo(zone)
    columns = (Column("id", "bigint", Shape.INTEGER), Column("v", "timestamp", Shape.TIMESTAMP))
    begin = datetime(1970, 1, 2, 12, tzinfo=UTC)
    parts = zone_parts(there)
    assert parts, "it has no table"
    shown = [begin.replace(tzinfo=None) + timedelta(days=10 * n) for n in range(2_480)]
    for part in parts[:-1]:
        change = datetime(1970, 1, 1) + timedelta(seconds=part.end)  # noqa: DTZ001 what clocks show
        shown += [change + timedelta(minutes=15 * n, seconds=-1) for n in range(-12, 13)]
    texts = [f"{one:%Y-%m-%d %H:%M:%S}" for one in shown if one.year >= 1970]
    rows: list[dict[str, str | None]] = [
        {"id": str(n), "v": text} for n, text in enumerate(texts) if takes(encoder, columns[1], text)
    ]
    assert chunks_of(encoder, columns, rows, compiled=True) == chunks_of(encoder, columns, rows, compiled=False)


def test_a_crash_is_an_error_that_names_the_table(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(native._State, "crashed", False)
    monkeypatch.setattr(native, "LIBRARY", built(tmp_path, "-DCORE_FAULT=37"))
    columns = (Column("id", "bigint", Shape.INTEGER), Column("v", "text", Shape.TEXT))
    rows: list[dict[str, str | None]] = [{"id": "1", "v": "x" * n} for n in range(37 - len('{"id":"1","v":""}') + 1)]
    with pytest.raises(CoreError, match=r"encoded rows of table d\.t") as raised:
        chunks_of(MysqlEncoder(ValueRules()), columns, rows[-1:], compiled=True)
    assert "spark.native = false" in raised.value.hint
    assert native.chosen("auto").core is None, "what it holds may be broken"
    chunks_of(MysqlEncoder(ValueRules()), columns, rows[-1:], compiled=False)


@pytest.mark.parametrize("more", [b"9\t9\n", b"\n", b"\t"])
@pytest.mark.usefixtures("core")
def test_lines_that_hold_other_rows_are_refused(more: bytes, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever the core may let through: no value becomes another row, or another column."""
    made = NetRows.lines

    def spoilt(self: NetRows, some: "array[int]", rules: LineRules, *, images: bool) -> bytes | None:
        lines = made(self, some, rules, images=images)
        return lines and lines[:-1] + more + b"\n"

    monkeypatch.setattr(NetRows, "lines", spoilt)
    columns = (Column("id", "bigint", Shape.INTEGER), Column("v", "text", Shape.TEXT))
    with pytest.raises(CoreError, match=r"made other rows of table d\.t"):
        chunks_of(MysqlEncoder(ValueRules()), columns, [{"id": "1", "v": "x"}], compiled=True)
