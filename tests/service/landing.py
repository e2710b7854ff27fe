"""Values on their way through a target without Kafka and Spark: DDL, encoder, one unit, and what a reader finds.

`TYPES` holds a strategy for each type of the upstream: pairs of a message's text and the oracle's text of one value.
"""

import json
import struct
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import date, datetime, timedelta
from decimal import Decimal
from typing import Any

from hypothesis import strategies as st

from ordering.events import DdlEvent, Position, RowOp, TableName
from ordering.progress import Progress
from ordering.timestamps import BEGINNING, CommitTs
from sinks.bookkeeping.progress_rows import Lease
from sinks.rows.chunk import Chunk
from sinks.rows.spool import Spool
from sinks.target import Target
from tests.service.cells import Cells

Sent = str
Held = str
Pair = tuple[Sent, Held]
ENUM = ("a", "B", "c,d", "中", "", "it's", "back\\slash\\", "]::text", "%s")
SET = ("x", "y", "z", "中", "w w", "it's")


def same(texts: st.SearchStrategy[str]) -> st.SearchStrategy[Pair]:
    return texts.map(lambda text: (text, text))


def integers(low: int, high: int) -> st.SearchStrategy[Pair]:
    return same((st.integers(low, high) | st.sampled_from([low, high, 0])).map(str))


def decimals(digits: int, scale: int) -> st.SearchStrategy[Pair]:
    most = 10**digits - 1
    whole = st.integers(-most, most) | st.sampled_from([most, -most, 0, 1, -1])

    def spelled(number: int) -> str:
        text = str(abs(number)).zfill(scale + 1)
        point = f"{text[:-scale]}.{text[-scale:]}" if scale else text
        return f"-{point}" if number < 0 else point

    return same(whole.map(spelled))


def plain(number: float) -> str:
    """As messages spell a float: never with an exponent."""
    return format(Decimal(repr(number)), "f")


def shortest(number: float) -> str:
    """The shortest text that reads back as the same 32-bit float."""
    for digits in range(1, 10):
        text = f"{number:.{digits}g}"
        if struct.pack("f", float(text)) == struct.pack("f", number):
            break
    return format(Decimal(text), "f")


def texts(length: int) -> st.SearchStrategy[Pair]:
    letters = st.characters(exclude_categories=("Cs",), exclude_characters="\0")
    return same(
        st.text(letters, max_size=length) | st.sampled_from(["", " ", "\\N", "\\.", "a\tb\nc\r\\", "%s", "NULL"])
    )


def binaries(length: int, *, padded: bool = False) -> st.SearchStrategy[Pair]:
    values = st.binary(max_size=length) | st.sampled_from([b"", b"\0", bytes(range(256))[-length:]])
    if padded:
        values = values.map(lambda value: value.ljust(length, b"\0"))
    return values.map(lambda value: (value.decode("latin-1"), f"0x{value.hex()}"))


def moments(digits: int, low: datetime, high: datetime) -> st.SearchStrategy[Pair]:
    def spelled(moment: datetime) -> str:
        text = moment.strftime("%Y-%m-%d %H:%M:%S").rjust(19, "0")
        return text + (f".{moment.microsecond:06}"[: digits + 1] if digits else "")

    return same(st.datetimes(low, high).map(spelled))


def times(digits: int) -> st.SearchStrategy[Pair]:
    most = timedelta(hours=838, minutes=59, seconds=59)

    def spelled(span: timedelta) -> str:
        size, sign = abs(span), "-" if span < timedelta(0) else ""
        seconds, unit = size.days * 86_400 + size.seconds, f"{size.microseconds:06}"
        whole = f"{sign}{seconds // 3600:02}:{seconds // 60 % 60:02}:{seconds % 60:02}"
        return whole + (f".{unit[:digits]}" if digits else "")

    return same((st.timedeltas(-most, most) | st.sampled_from([most, -most, timedelta(0)])).map(spelled))


def jsons() -> st.SearchStrategy[Pair]:
    letters = st.characters(exclude_categories=("Cs",), exclude_characters="\0")
    leaves = st.none() | st.booleans() | st.integers(-(2**63), 2**64 - 1) | st.text(letters, max_size=8)
    leaves |= st.floats(allow_nan=False, allow_infinity=False)
    values = st.recursive(leaves, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(letters), inner))
    return same(values.map(lambda value: json.dumps(value, ensure_ascii=False)))


def members() -> st.SearchStrategy[Pair]:
    return st.integers(0, len(ENUM)).map(lambda n: (str(n), ENUM[n - 1] if n else ""))


def sets() -> st.SearchStrategy[Pair]:
    masks = st.integers(0, 2 ** len(SET) - 1)
    return masks.map(lambda mask: (str(mask), ",".join(m for i, m in enumerate(SET) if mask >> i & 1)))


def quoted(names: Sequence[str]) -> str:
    """As TiDB prints members: their backslashes as they are."""
    return ",".join("'" + name.replace("'", "''") + "'" for name in names)


FIRST, LAST = datetime(1000, 1, 1), datetime(9999, 12, 31, 23, 59, 59, 999999)  # noqa: DTZ001 DATETIME has no zone
EPOCH, END = datetime(1970, 1, 1, 0, 0, 1), datetime(2038, 1, 19, 3, 14, 7)  # noqa: DTZ001 in the source's zone
FLOATS = st.floats(width=32, allow_nan=False, allow_infinity=False).map(shortest)
DOUBLES = st.floats(allow_nan=False, allow_infinity=False).map(plain)
DATES = st.dates(date(1000, 1, 1), date(9999, 12, 31)).map(str)
BITS = {n: same(st.integers(0, 2**n - 1).map(str)) for n in (1, 7, 8, 20, 63, 64)}
TYPES: dict[str, st.SearchStrategy[Pair]] = {
    "TINYINT": integers(-128, 127),
    "TINYINT UNSIGNED": integers(0, 255),
    "TINYINT(1)": integers(-128, 127),
    "SMALLINT": integers(-(2**15), 2**15 - 1),
    "SMALLINT UNSIGNED": integers(0, 2**16 - 1),
    "MEDIUMINT": integers(-(2**23), 2**23 - 1),
    "MEDIUMINT UNSIGNED": integers(0, 2**24 - 1),
    "INT": integers(-(2**31), 2**31 - 1),
    "INT UNSIGNED": integers(0, 2**32 - 1),
    "BIGINT": integers(-(2**63), 2**63 - 1),
    "BIGINT UNSIGNED": integers(0, 2**64 - 1),
    "YEAR": same(st.just("0") | st.integers(1901, 2155).map(str)),
    "FLOAT": same(FLOATS),
    "FLOAT UNSIGNED": same(FLOATS.map(lambda text: text.lstrip("-"))),
    "DOUBLE": same(DOUBLES),
    "DECIMAL(10,0)": decimals(10, 0),
    "DECIMAL(10,4)": decimals(10, 4),
    "DECIMAL(65,30)": decimals(65, 30),
    "DECIMAL(65,0)": decimals(65, 0),
    "CHAR(10)": texts(10).map(lambda pair: (pair[0].rstrip(" "), pair[0].rstrip(" "))),
    "VARCHAR(20)": texts(20),
    "TEXT": texts(300),
    "LONGTEXT": texts(300),
    "BINARY(8)": binaries(8, padded=True),
    "VARBINARY(64)": binaries(64),
    "BLOB": binaries(300),
    "DATE": same(DATES),
    "DATETIME": moments(0, FIRST, LAST),
    "DATETIME(3)": moments(3, FIRST, LAST),
    "DATETIME(6)": moments(6, FIRST, LAST),
    "TIMESTAMP": moments(0, EPOCH, END),
    "TIMESTAMP(6)": moments(6, EPOCH, END),
    "TIME": times(0),
    "TIME(6)": times(6),
    **{f"BIT({n})": pairs for n, pairs in BITS.items()},
    f"ENUM({quoted(ENUM)})": members(),
    f"SET({quoted(SET)})": sets(),
    "JSON": jsons(),
}


def kind_of(declared: str) -> str:
    """A type as oracles spell it."""
    return declared if declared.startswith(("ENUM", "SET")) else declared.lower().replace("unsigned", "UNSIGNED")


@dataclass
class Landing:
    """A target with a database of its own, and a reader."""

    target: Target
    cells: Cells
    database: str
    progress: Progress = field(default_factory=lambda: Progress.first(BEGINNING, "", ""))
    _ts: int = 0

    def __post_init__(self) -> None:
        self.target.connect()
        self.lease = Lease(self.database, self.target.claim(self.database, self.progress).epoch)
        self.ddl("CREATE DATABASE `" + self.database.replace("`", "``") + "`")

    def ddl(self, sql: str, table: str = "") -> None:
        """Execute a DDL."""
        self._ts += 1
        position = Position("topic", 0, self._ts)
        event = DdlEvent(position, CommitTs(self._ts), "QUERY", self.database, table, sql)
        self.target.execute_ddl(event, self.progress, self.lease, lambda _: None)

    def write(self, table: str, columns: Sequence[str], rows: Sequence[Sequence[str | None]]) -> None:
        """Apply rows as one unit; those that are there are replaced."""
        self.put(RowOp.WRITE, table, columns, rows)

    def put(self, half: RowOp, table: str, columns: Sequence[str], rows: Sequence[Sequence[str | None]]) -> None:
        """Apply a unit of writes or of deletes by key."""
        with Spool() as spool:
            spool.add(self.chunk(half, table, columns, rows))
            self.apply(spool)

    def chunk(self, half: RowOp, table: str, columns: Sequence[str], rows: Sequence[Sequence[str | None]]) -> Chunk:
        """Rows, encoded for the target."""
        schema = self.target.catalog().tables[TableName(self.database, table)]
        kept = [column for name in columns if (column := schema.column(name))]
        return Chunk(schema.name, half, tuple(columns), len(rows), self.target.encoder.encode(kept, rows))

    def apply(self, spool: Spool) -> None:
        """Apply a unit."""
        self.target.apply(spool, self.progress, self.lease, lambda _: None)

    def read(self, table: str) -> list[dict[str, Any]]:
        """The rows by id."""
        return sorted(self.cells.tables([self.database])[f"{self.database}.{table}"][1], key=lambda row: int(row["id"]))

    def lands(self, declared: str, pairs: Sequence[Pair]) -> None:
        """Write values; each has to be found as the upstream holds it. Fewer rows than before stay behind unseen."""
        rows = [[str(i), None if i == 0 else pairs[i - 1][0]] for i in range(len(pairs) + 1)]
        self.write("t", ["id", "v"], rows)
        found = [row["v"] for row in self.read("t")[: len(rows)]]
        assert found == [None, *(self.cells.expected(kind_of(declared), held) for _, held in pairs)]
