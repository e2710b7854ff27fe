"""Cases that compare the compiled core's chunks with those of Python: random tables, rows and values, for two dialects.

    python -m tests.consumer.native.encode_fuzz [--first SEED] [--cases N] [--library PATH]

Each case is told by its seed. Chunks have to be the same bytewise, errors in type, text and row.
"""

import json
import random
import sys
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, NamedTuple

from consumer.large_messages.claim_check import Claims
from consumer.large_messages.fetch import Bodies
from consumer.large_messages.reference import reference
from consumer.tasks.encoding.chunk_encoder import RowError
from consumer.tasks.encoding.compiled_rows import CompiledRows
from consumer.tasks.order import OrderTask
from consumer.tasks.shuffle_blocks import Block, decode_block, encode_block
from ordering.errors import ReconcilerError
from ordering.events import Position, RowOp, TableName
from ordering.rows.identity import row_key
from ordering.rows.net_effect import KeyChange
from sinks.mysql.encoder import MysqlEncoder
from sinks.postgres.encoder import PostgresEncoder
from sinks.rows.chunk import Encoder
from sinks.rows.schema import Column, Shape, TableSchema
from sinks.rows.values import ValueRules
from tests.consumer.native.fuzzing import compared

Type = tuple[str, Shape, tuple[str, ...], tuple[str, ...]]
"""A column's type and shape, its members, and values as TiCDC sends them."""

_WHOLE = ("0", "1", "-7", "42", "9223372036854775807", "-9223372036854775808", "18446744073709551615")
_TEXTS = (
    "",
    "a",
    "plain text",
    "it's",
    "tab\there",
    "line\nend",
    "back\\slash",
    "\\N",
    "é",
    "中文",
    "😀",
    "cr\r",
    "x" * 300,
)
_DECIMALS = ("0", "1.50", "-0.01", "12345678901234567890.123", "99999999.99", "7", "-3.000")
_REALS = ("0", "1.5", "-2.25", "0.1", "3.4028235e+38", "1e-10", "1.1754944e-38", "123456.79", "16777216", "1e20")
_DOUBLES = (
    "0",
    "1.5",
    "0.1",
    "-123456.789",
    "3.141592653589793",
    "1e100",
    "2.2250738585072014e-308",
    "0.30000000000000004",
)
_DAYS = ("2026-01-02", "1970-01-01", "9999-12-31", "2024-02-29")
_MOMENTS = ("2026-01-02 03:04:05", "1999-12-31 23:59:59", "2024-02-29 12:00:00", "2037-06-15 00:00:00")
_FINE = ("2026-01-02 03:04:05.123456", "2026-07-02 03:04:05.000001", "1970-01-02 00:00:00.5", "2026-03-29 01:59:59.999")
_SPANS = ("00:00:00", "-838:59:59", "12:34:56", "1:2:3")
_BYTES = ("", "\x00\x01ÿ", "abc", "\\", "é\n", "".join(map(chr, range(256))))
_JSONS = ("{}", '{"a": 1, "b": [1, 2.5e3, null, true]}', '"text"', "[]", "-0.5", '{"é": "\\u00e9\\n"}', ' [ "x" , 1 ] ')
_MEMBERS = ("a", "b,c", "é\t", "d\\")
_UUIDS = ("123e4567-e89b-12d3-a456-426614174000", "00000000-0000-0000-0000-000000000000")

MYSQL: tuple[Type, ...] = (
    ("int(11)", Shape.INTEGER, (), _WHOLE), ("bigint(20) unsigned", Shape.INTEGER, (), _WHOLE),
    ("varchar(400)", Shape.TEXT, (), _TEXTS), ("varchar(3)", Shape.TEXT, (), ("a", "é😀", "abc", "abcd", "ab ")),
    ("char(9)", Shape.TEXT, (), ("a", "b c", "é")), ("text", Shape.TEXT, (), _TEXTS),
    ("longtext", Shape.TEXT, (), _TEXTS),
    ("decimal(30,3)", Shape.TEXT, (), _DECIMALS), ("decimal(10)", Shape.TEXT, (), ("0", "-7")),
    ("float", Shape.REAL, (), _REALS), ("double", Shape.REAL, (), _DOUBLES),
    ("double(12,3)", Shape.REAL, (), ("1.5", "0.125")),
    ("float(7,2)", Shape.REAL, (), ("1.5", "0.12")), ("date", Shape.DATE, (), _DAYS),
    ("datetime", Shape.DATETIME, (), (*_MOMENTS, "0000-00-00 00:00:00", "2026-00-00 00:00:00")),
    ("datetime(6)", Shape.DATETIME, (), _FINE), ("timestamp", Shape.TIMESTAMP, (), _MOMENTS),
    ("timestamp(6)", Shape.TIMESTAMP, (), _FINE), ("time", Shape.TIME, (), _SPANS),
    ("time(3)", Shape.TIME, (), ("01:02:03.5",)),
    ("year(4)", Shape.INTEGER, (), ("2026", "0", "1901")), ("blob", Shape.BYTES, (), _BYTES),
    ("varbinary(300)", Shape.BYTES, (), _BYTES), ("binary(3)", Shape.BYTES, (), ("abc", "\x00\x00\xff")),
    ("bit(64)", Shape.BIT, (), ("0", "1", "9223372036854775808", "18446744073709551615")),
    ("enum('a')", Shape.ENUM, _MEMBERS, ("0", "1", "4", "a", "")),
    ("set('a')", Shape.SET, _MEMBERS, ("0", "15", "5", "a")),
    ("json", Shape.JSON, (), _JSONS), ("uuid", Shape.TEXT, (), _UUIDS), ("geometry", Shape.BYTES, (), ("x",)),
)  # fmt: skip
POSTGRES: tuple[Type, ...] = (
    ("integer", Shape.INTEGER, (), _WHOLE), ("bigint", Shape.INTEGER, (), (*_WHOLE, "0000")),
    ("character varying(400)", Shape.TEXT, (), _TEXTS),
    ("character varying(3)", Shape.TEXT, (), ("a", "é😀", "abcd", "ab ")),
    ("character(9)", Shape.TEXT, (), ("a", "b c", "é")), ("text", Shape.TEXT, (), _TEXTS),
    ("name", Shape.TEXT, (), ("a", "é")),
    ("numeric(30,3)", Shape.TEXT, (), _DECIMALS), ("numeric(20,0)", Shape.TEXT, (), _WHOLE),
    ("numeric", Shape.TEXT, (), _DECIMALS),
    ("numeric(5,-2)", Shape.TEXT, (), ("0", "700", "750")), ("real", Shape.REAL, (), _REALS),
    ("double precision", Shape.REAL, (), _DOUBLES), ("date", Shape.DATE, (), (*_DAYS, "0000-00-00")),
    ("timestamp(0) without time zone", Shape.DATETIME, (), _MOMENTS),
    ("timestamp(6) without time zone", Shape.DATETIME, (), _FINE),
    ("timestamp(0) with time zone", Shape.TIMESTAMP, (), _MOMENTS),
    ("timestamp(6) with time zone", Shape.TIMESTAMP, (), _FINE),
    ("interval(3)", Shape.TIME, (), _SPANS), ("time(0) without time zone", Shape.TIME, (), _SPANS),
    ("bytea", Shape.BYTES, (), _BYTES),
    ("bit(64)", Shape.BIT, (), ("0", "1", "9223372036854775808")), ("bit(5)", Shape.BIT, (), ("0", "31", "32")),
    ("text", Shape.ENUM, _MEMBERS, ("0", "1", "4", "a", "")), ("text", Shape.SET, _MEMBERS, ("0", "15", "5", "a")),
    ("jsonb", Shape.JSON, (), _JSONS), ("uuid", Shape.TEXT, (), _UUIDS), ("boolean", Shape.TEXT, (), ("0", "1")),
    ("money", Shape.TEXT, (), ("1",)),
)  # fmt: skip
_HOSTILE = (
    "", " ", "\0", "a\0", "\t", "\n", "\\", "\\N", "-", "+1", "00", "007", "-0", "1.", ".5", ".", "1e5", "1E400",
    "NaN", "inf",
    "²", "\uff11", "1_0", "9" * 65, "9" * 66, "0." + "0" * 70 + "1", "1" * 401, "0x10", "2026-02-30", "2026-1-2",
    "2026-01-02 24:00:00",
    "2026-01-02 03:04:05.1234567891", "2026-01-02 03:04:60", "2026-01-02T03:04:05", "2026-01-02 00:00:00.000",
    "0000-00-00 00:00:00.0",
    "1969-12-31 23:00:00", "2038-01-19 03:14:07", "2026-03-29 02:30:00", "2026-10-25 02:30:00",
    "838:59:59.9999999999", "Ā", "{", "[1,]",
    '{"a":01}', "[" * 40 + "]" * 40, '"\\ud800"', "nul", "a ", "é ", "123E4567-e89b-12d3-a456-426614174000", "1e-400",
    "0" * 400,
    "17976931348623159" + "0" * 292,
)  # fmt: skip
_ZONES = (
    "UTC",
    "Europe/Berlin",
    "America/New_York",
    "Asia/Kolkata",
    "+08:00",
    "Australia/Lord_Howe",
    "Africa/Monrovia",
)
BODIES = Bodies(Claims((), {}, {}, 1 << 20), None)


class EncodeCase(NamedTuple):
    """A bucket of rows, and how they are encoded."""

    task: OrderTask
    blocks: list[Block]
    names: dict[str, tuple[str, ...]]
    rows: int


class _Table(NamedTuple):
    name: TableName
    schema: TableSchema
    values: list[tuple[str, ...]]
    sent: list[str]
    key: tuple[str, ...]


def _name(chance: random.Random, number: int) -> str:
    return chance.choice(("c", "é", "a b", 'q"', "b\\", "")) + str(number)


def _table(chance: random.Random, number: int, types: Sequence[Type]) -> _Table:
    picked = [chance.choice(types) for _ in range(chance.randint(1, 6))]
    keys = chance.randint(1, min(2, len(picked)))
    columns = [
        Column(
            _name(chance, i), kind, shape, nullable=i >= keys and chance.random() < 0.7,
            generated=i >= keys and chance.random() < 0.05, members=members, folds=chance.random() < 0.02,
        )
        for i, (kind, shape, members, _) in enumerate(picked)
    ]  # fmt: skip
    names = tuple(column.name for column in columns)
    uniques = (names[:keys], *([(names[-1],)] if chance.random() < 0.1 else []))
    name = TableName("d", f"t{number}")
    schema = TableSchema(name, tuple(columns), names[:keys], uniques)
    sent = [*names, *(["extra"] if chance.random() < 0.02 else [])]
    if chance.random() < 0.3:
        chance.shuffle(sent)
    key = tuple(chance.sample(names[:keys], keys))
    return _Table(name, schema, [values for *_, values in picked], sent, key)


def _value(chance: random.Random, table: _Table, name: str, faults: float) -> str | None:
    at = next((i for i, column in enumerate(table.schema.columns) if column.name == name), None)
    drawn = chance.random()
    if drawn < faults:
        return chance.choice(_HOSTILE)
    column = None if at is None else table.schema.columns[at]
    if drawn < faults + 0.1 and column is not None and column.nullable:
        return None
    return chance.choice(table.values[at] if at is not None else _TEXTS)


def _image(chance: random.Random, row: dict[str, str | None], faults: float) -> bytes:
    image = json.dumps(row, ensure_ascii=chance.random() < 0.2, separators=(",", ":")).encode("utf-8", "surrogatepass")
    if chance.random() < faults / 4:
        at = chance.randrange(len(image))
        return image[:at] + chance.choice((b"", b'"', b"\xff", b"\\u0000", b",", b" ", b"1")) + image[at + 1 :]
    return image


def _halves(chance: random.Random, table: _Table, faults: float) -> list[KeyChange]:
    halves = []
    for _ in range(chance.choice((1, 3, 9))):
        row = {name: _value(chance, table, name, faults) for name in table.sent}
        if chance.random() < faults / 4:
            row = dict(chance.sample(list(row.items()), len(row)))
        key = row_key(table.name, [row[name] or "" for name in table.key])
        written = chance.random() < 0.7
        order = chance.randrange(1, 1 << chance.choice((3, 60))) << 1 | written
        image = _image(chance, row, faults) if written else b""
        if written and chance.random() < faults / 20:
            image = reference("", Position("t", 0, 1))
        halves.append((key, order, image, chance.choice((0, 1, order % 97))))
    return halves


def case_of(seed: int) -> EncodeCase:
    """The case of a seed."""
    chance = random.Random(seed)
    rules = ValueRules(chance.choice(_ZONES), chance.choice(("error", "null")))
    mysql = chance.random() < 0.5
    encoder: Encoder = MysqlEncoder(rules) if mysql else PostgresEncoder(rules)
    tables = [_table(chance, n, MYSQL if mysql else POSTGRES) for n in range(chance.choice((1, 1, 2, 5)))]
    faults = chance.choice((0.0, 0.0, 0.0, 0.02, 0.3))
    names = {f"d\0{table.name.table}": table.key for table in tables}
    blocks, rows = [], 0
    for number in range(chance.randint(1, 3)):
        halves = [half for table in tables for half in _halves(chance, table, faults)]
        chance.shuffle(halves)
        rows += len(halves)
        blocks.append(decode_block(encode_block(number, {name: list(key) for name, key in names.items()}, halves)))
    task = OrderTask(
        {table.name: table.schema for table in tables}, encoder, BODIES,
        only=chance.choice((None, None, RowOp.DELETE, RowOp.WRITE)), again=chance.random() < 0.2,
        judged=chance.random() < 0.5, whole_transactions=False, chunk_rows=chance.choice((2, 5, 20_000)),
    )  # fmt: skip
    return EncodeCase(task, blocks, names, rows)


def outcome_of(case: EncodeCase, *, compiled: bool) -> tuple[list[Any], str]:
    """The chunks, and the error that ended them."""
    found: list[Any] = []
    try:
        rows = replace(case.task, native=compiled).netted(case.blocks)
        if isinstance(rows, CompiledRows) or not compiled:
            found.extend(case.task.chunks_of(rows, case.names))
        else:
            return outcome_of(case, compiled=False)
    except RowError as error:
        return found, f"{error.error!r} {error.row}"
    except ReconcilerError as error:
        return found, repr(error)
    return found, ""


def check(seed: int) -> int:
    """Raise AssertionError unless both agree; how many rows there were."""
    case = case_of(seed)
    found, wanted = outcome_of(case, compiled=True), outcome_of(case, compiled=False)
    assert found == wanted, f"case {seed}: {found!r}\nis not {wanted!r}"[:6_000]
    return case.rows


def main() -> int:
    """Compare many cases."""
    return compared(__doc__, lambda _: check)


if __name__ == "__main__":
    sys.exit(main())
