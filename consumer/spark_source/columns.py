"""The columns of the data source: of all changes with rows as JSON, or those of one table.

Of one table a query names columns and types itself (`schema("id BIGINT, ...")`); names that begin with `_` and are
told below hold what is known of the change. The row of a DELETE is the one that went.
"""

from collections.abc import Callable, Iterable, Iterator
from datetime import date, datetime, tzinfo
from decimal import Context, Decimal
from itertools import islice
from typing import Any

import msgspec
import numpy as np
import pyarrow as pa
from pyspark.sql import types as t
from pyspark.sql.pandas.types import to_arrow_schema

from consumer.spark_source.slices import DDL, FeedChange
from consumer.tasks.report import RawDdl
from ordering.errors import ConfigError, InputError

CHANGES = t.StructType([
    t.StructField("database", t.StringType(), nullable=False),
    t.StructField("table", t.StringType(), nullable=False),
    t.StructField("kind", t.StringType(), nullable=False),
    t.StructField("commit_ts", t.LongType(), nullable=False),
    t.StructField("op_order", t.IntegerType(), nullable=False),
    t.StructField("key", t.StringType()),
    t.StructField("before", t.StringType()),
    t.StructField("after", t.StringType()),
    t.StructField("sql", t.StringType()),
    t.StructField("topic", t.StringType(), nullable=False),
    t.StructField("partition", t.IntegerType(), nullable=False),
    t.StructField("offset", t.LongType(), nullable=False),
])  # fmt: skip
"""`op_order`: 0 a delete, 1 a write, 2 a DDL; sorted by (commit_ts, op_order) changes are as upstream made them."""

_DDL_ORDER = 2
_EXACT = Context(prec=100)
"""Python's own context keeps 28 digits."""
_BATCH_ROWS = 10_000
FACTS: dict[str, Callable[[FeedChange], Any]] = {
    "_kind": lambda change: change.kind,
    "_commit_ts": lambda change: change.commit_ts,
    "_op_order": lambda change: int(change.op),
    "_topic": lambda change: change.position.topic,
    "_partition": lambda change: change.position.partition,
    "_offset": lambda change: change.position.offset,
}
_encode = msgspec.json.Encoder().encode
Row = tuple[Any, ...]


def batches(rows: Iterable[Row], schema: t.StructType) -> Iterator[pa.RecordBatch]:
    """The rows as Spark takes them fastest."""
    shape, rest = to_arrow_schema(schema), iter(rows)
    while some := list(islice(rest, _BATCH_ROWS)):
        columns = zip(*some, strict=True)
        arrays = [pa.array(column, field.type) for column, field in zip(columns, shape, strict=True)]
        yield pa.RecordBatch.from_arrays(arrays, schema=shape)


def change_row(change: FeedChange) -> Row:
    """A change as a row of `CHANGES`."""
    told = (*change.table, change.kind, change.commit_ts, int(change.op))
    return (*told, *map(_json, (change.key, change.before, change.after)), None, *change.position)


def ddl_row(ddl: RawDdl) -> Row:
    """A DDL as a row of `CHANGES`."""
    told = (ddl.database, ddl.table, DDL, ddl.commit_ts, _DDL_ORDER)
    return (*told, None, None, None, ddl.sql, *ddl.position)


def _json(image: object) -> str | None:
    return None if image is None else _encode(image).decode()


class TypedRows:
    """Changes of one table as rows of a schema that the query names. Raises ConfigError for a type that is not known.

    `zone`: of TIMESTAMP values in messages.
    """

    def __init__(self, schema: t.StructType, zone: tzinfo) -> None:
        self._columns = [(field.name, _reader(field, zone)) for field in schema.fields]

    def __call__(self, change: FeedChange) -> Row:
        """The row. Raises InputError for a value that its type can't hold, and a column that the message lacks."""
        image = change.before if change.after is None else change.after
        return tuple(
            FACTS[name](change) if name in FACTS else _read(read, name, image or {}, change)
            for name, read in self._columns
        )


def _read(read: Callable[[str], Any], name: str, image: dict[str, str | None], change: FeedChange) -> Any:
    try:
        text = image[name]
        return None if text is None else read(text)
    except (KeyError, ArithmeticError, ValueError):
        what = "can't be read as its type" if name in image else "is missing"
        raise InputError(
            f"column {name!r} of {change.table} {what}",
            where=str(change.position),
            hint="declare it as STRING, or leave it out of schema(...) where a DDL has added or dropped it",
        ) from None


_READERS: dict[type[t.DataType], Callable[[str], Any]] = {
    t.StringType: str,
    **dict.fromkeys((t.ByteType, t.ShortType, t.IntegerType, t.LongType), int),
    t.FloatType: lambda text: _real(text, np.float32),
    t.DoubleType: lambda text: _real(text, np.float64),
    t.BooleanType: lambda text: {"0": False, "1": True}[text],
    t.BinaryType: lambda text: text.encode("latin-1"),
    t.DateType: date.fromisoformat,
    t.TimestampNTZType: datetime.fromisoformat,
}
"""From TiCDC's text to a value of the type."""


def _reader(field: t.StructField, zone: tzinfo) -> Callable[[str], Any]:
    kind = field.dataType
    if isinstance(kind, t.DecimalType):
        return lambda text: _decimal(text, kind.scale)
    if isinstance(kind, t.TimestampType):
        return lambda text: datetime.fromisoformat(text).replace(tzinfo=zone)
    if type(kind) in _READERS:
        return _READERS[type(kind)]
    fact = f"column {field.name!r} can't be read as {kind.simpleString()}"
    raise ConfigError(fact, hint="declare it as STRING, and cast it")


def _real(text: str, kind: type[np.floating[Any]]) -> float:
    """The value, which has to be told by the type's shortest digits: nothing is rounded, and nothing is infinite."""
    value = kind(text)
    if not np.isfinite(value) or Decimal(str(value)) != Decimal(text):
        raise ValueError(text)
    return float(value)


def _decimal(text: str, scale: int) -> Decimal:
    """The value, which has to fit: nothing is rounded."""
    value = Decimal(text)
    exact = value.quantize(Decimal(1).scaleb(-scale), context=_EXACT)
    if exact != value:
        raise ValueError(text)
    return exact
