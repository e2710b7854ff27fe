"""Columns of one table: a value is read as its type tells it, or the query fails."""

from datetime import UTC

import numpy as np
import pytest
from pyspark.sql import types as t

from consumer.spark_source.columns import TypedRows
from consumer.spark_source.slices import INSERT, FeedChange
from ordering.errors import InputError
from ordering.events import Position, RowOp, TableName


def read(kind: t.DataType, text: str) -> object:
    rows = TypedRows(t.StructType([t.StructField("v", kind)]), UTC)
    image = {"v": text}
    change = FeedChange(TableName("d", "t"), INSERT, 7, RowOp.WRITE, {}, None, image, Position("t", 0, 1))
    return rows(change)[0]


@pytest.mark.parametrize(
    ("kind", "text", "value"),
    [
        (t.DoubleType(), "0.1", 0.1),
        (t.DoubleType(), "1e30", 1e30),
        (t.DoubleType(), "-0", 0.0),
        (t.DoubleType(), "12.50", 12.5),
        (t.DoubleType(), "9007199254740992", 2.0**53),
        (t.FloatType(), "0.1", float(np.float32(0.1))),
        (t.FloatType(), "3.4028235e38", float(np.finfo(np.float32).max)),
        (t.BooleanType(), "1", True),
        (t.BooleanType(), "0", False),
    ],
)
def test_values_that_a_type_holds(kind: t.DataType, text: str, value: object) -> None:
    assert read(kind, text) == value


@pytest.mark.parametrize(
    ("kind", "text"),
    [
        (t.DoubleType(), "9007199254740993"),
        (t.DoubleType(), "12345678901234567.89"),
        (t.DoubleType(), "1e400"),
        (t.DoubleType(), "nan"),
        (t.FloatType(), "16777217"),
        (t.FloatType(), "1e39"),
        (t.FloatType(), "0.12345678901"),
        (t.BooleanType(), "2"),
        (t.BooleanType(), "-1"),
        (t.ByteType(), "x"),
    ],
)
def test_values_that_it_would_change(kind: t.DataType, text: str) -> None:
    with pytest.raises(InputError, match="can't be read as its type"):
        read(kind, text)
