"""Texts that databases make of floats stand for one value each: equal texts are taken for equal values."""

import math
import random
import struct
from contextlib import closing

import pytest

from ordering.events import TableName
from sinks.compare.value_forms import real_text
from sinks.registry import open_target
from sinks.rows.values import ValueRules
from tests.service.cells import MariaDbCells
from tests.service.postgres_cells import PostgresCells

pytestmark = pytest.mark.service
COUNT = 3_000


def numbers() -> list[tuple[float, float]]:
    """64-bit floats of every size, with 32-bit ones beside them."""
    chance = random.Random(1)
    doubles = [struct.unpack("d", chance.randbytes(8))[0] for _ in range(COUNT)]
    doubles += [chance.uniform(-1e6, 1e6) for _ in range(COUNT)]
    doubles += [5e-324, -2.2250738585072014e-308, -1.7976931348623157e308]
    floats = [struct.unpack("f", chance.randbytes(4))[0] for _ in doubles]
    pairs = zip(doubles, floats, strict=True)
    return [(d, f) for d, f in pairs if math.isfinite(d) and math.isfinite(f)]


@pytest.mark.parametrize("kind", ["mariadb", "tidb", "postgres"])
def test_texts_of_floats_read_back(kind: str, request: pytest.FixtureRequest, database_prefix: str) -> None:
    uri = request.getfixturevalue(f"{kind}_server").uri
    values = numbers()
    types = ("double precision", "real") if kind == "postgres" else ("DOUBLE", "FLOAT")
    cells = PostgresCells(uri) if kind == "postgres" else MariaDbCells(uri)
    with closing(cells), closing(open_target(uri, ValueRules())) as target:
        cells.query(f"CREATE SCHEMA {database_prefix}")
        cells.query(f"CREATE TABLE {database_prefix}.t (id INT PRIMARY KEY, d {types[0]}, f {types[1]})")
        for start in range(0, len(values), 1_000):
            rows = (f"({start + n}, '{d!r}', '{f!r}')" for n, (d, f) in enumerate(values[start : start + 1_000]))
            cells.query(f"INSERT INTO {database_prefix}.t VALUES {', '.join(rows)}")
        reader = target.reader()
        table = reader.catalog().tables[TableName(database_prefix, "t")]
        traits = [(column, reader.trait(column)) for column in table.columns[1:]]
        texts = ", ".join(reader.text(trait.form, column) for column, trait in traits if trait)
        found = reader.query(f"SELECT id, {texts} FROM {database_prefix}.t")
        assert len(found) == len(values) > COUNT
        for at, double, single in found:
            assert float(double) == values[at][0]
            assert struct.pack("f", float(single)) == struct.pack("f", values[at][1])
        cells.drop([database_prefix])


def test_our_own_texts_of_floats_read_back() -> None:
    for double, _ in numbers():
        assert float(real_text(double)) == double
    assert [real_text(n) for n in (0.1, 100.0, 1e15, -0.0001)] == ["0.1", "100", "1000000000000000.0", "-0.0001"]
