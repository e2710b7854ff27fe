"""`python -m tests.bench.safety`: what it costs that every UPDATE is written so that it may be written again.

All rows of a table with a secondary index are updated in a column without one, as sysbench's `oltp_update_non_index`
does: as the reconciler writes a window (rows that are there are replaced, in one transaction with the progress), and,
in turns with it, by the plain way that is wrong after a crash: load into a temporary table, UPDATE by a join.
"""

import argparse
import json
import statistics
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing, contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path

import psycopg

from ordering.events import RowOp, TableName
from ordering.progress import Progress
from ordering.timestamps import CheckpointTs
from sinks.bookkeeping.progress_rows import Lease
from sinks.registry import open_target
from sinks.rows.chunk import Chunk
from sinks.rows.spool import Spool
from sinks.rows.values import ValueRules
from sinks.target import Target
from tests.bench.measure import execute, made_table, mysql_connection
from tests.bench.servers import SERVERS

FIRST = Progress.first(CheckpointTs(0), "", "")
NAME = TableName("safety", "sbtest1")
COLUMNS = ("id", "k", "c", "pad")
_CHUNK = 20_000


@dataclass(frozen=True)
class Cost:
    """Medians, in seconds, of writing all rows once."""

    target: str
    rows: int
    safe_s: float
    plain_s: float


class Rows:
    """The table's rows; each turn gives them other texts."""

    def __init__(self, count: int) -> None:
        self.count, self.turn = count, 0

    def next(self) -> Iterator[list[str]]:
        """The rows as they are to be next."""
        self.turn += 1
        for number in range(1, self.count + 1):
            text = f"{self.turn * 1_000_003 + number:011d}"
            yield [str(number), str(number % 1000), "-".join([text] * 9), "-".join([text] * 5)]


def main() -> None:
    """Measure, and print a JSON line."""
    parser = argparse.ArgumentParser(prog="python -m tests.bench.safety", description=__doc__)
    parser.add_argument("--rows", type=int, default=100_000)
    parser.add_argument("--target", choices=["mysql", "postgresql"], default="mysql")
    parser.add_argument("--runs", type=int, default=5)
    told = parser.parse_args()
    with ExitStack() as stack:
        place = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="ticdc-safety-")))
        server = stack.enter_context(SERVERS[told.target](place / told.target))
        print(json.dumps(asdict(measured(server.uri, told.target, Rows(told.rows), told.runs))))


def measured(uri: str, kind: str, rows: Rows, runs: int) -> Cost:
    """Write the rows in turns by both ways, after each has done it once."""
    with _table(uri), closing(open_target(uri, ValueRules())) as target:
        target.connect()
        lease = Lease("safety", target.claim("safety", FIRST).epoch)
        safe, plain = (lambda: _safe(target, lease, rows)), (lambda: _plain(uri, rows))
        for way in (safe, plain):
            way()
        found = [(safe(), plain()) for _ in range(runs)]
    seconds = [round(statistics.median(some), 2) for some in zip(*found, strict=True)]
    return Cost(kind, rows.count, *seconds)


@contextmanager
def _table(uri: str) -> Iterator[None]:
    with made_table(uri, *NAME):
        execute(uri, f"CREATE INDEX k_1 ON {NAME.database}.{NAME.table} (k)")
        yield


def _safe(target: Target, lease: Lease, rows: Rows) -> float:
    schema, some = target.catalog().tables[NAME], list(rows.next())
    columns = [column for name in COLUMNS if (column := schema.column(name)) is not None]
    with Spool() as spool:
        for start in range(0, len(some), _CHUNK):
            part = some[start : start + _CHUNK]
            spool.add(Chunk(NAME, RowOp.WRITE, COLUMNS, len(part), target.encoder.encode(columns, part)))
        return _seconds(lambda: target.apply(spool, FIRST, lease, lambda _: None))


def _plain(uri: str, rows: Rows) -> float:
    lines = "".join("\t".join(row) + "\n" for row in rows.next())
    with tempfile.NamedTemporaryFile("w", prefix="ticdc-safety-") as file:
        file.write(lines)
        file.flush()
        return _plain_postgres(uri, lines) if uri.startswith("postgresql") else _plain_mysql(uri, file.name)


def _plain_mysql(uri: str, path: str) -> float:
    place, sets = f"`{NAME.database}`.`{NAME.table}`", ", ".join(f"t.{name} = s.{name}" for name in COLUMNS[1:])
    with closing(mysql_connection(uri, local_infile=True)) as connection, connection.cursor() as cursor:

        def write() -> None:
            cursor.execute("BEGIN")
            cursor.execute(f"CREATE TEMPORARY TABLE {NAME.database}.s AS SELECT * FROM {place} LIMIT 0")
            cursor.execute(f"LOAD DATA LOCAL INFILE '{path}' INTO TABLE {NAME.database}.s CHARACTER SET utf8mb4")
            cursor.execute(f"UPDATE {NAME.database}.s s STRAIGHT_JOIN {place} t ON t.id = s.id SET {sets}")
            cursor.execute("COMMIT")

        return _seconds(write)


def _plain_postgres(uri: str, lines: str) -> float:
    place, sets = f"{NAME.database}.{NAME.table}", ", ".join(f"{name} = s.{name}" for name in COLUMNS[1:])
    with psycopg.connect(uri) as postgres, postgres.cursor() as cursor:

        def write() -> None:
            cursor.execute(f"CREATE TEMPORARY TABLE s ON COMMIT DROP AS SELECT * FROM {place} WITH NO DATA".encode())
            with cursor.copy(b"COPY s FROM STDIN") as copy:
                copy.write(lines)
            cursor.execute(b"ANALYZE s")
            cursor.execute(f"UPDATE {place} t SET {sets} FROM s WHERE t.id = s.id".encode())
            postgres.commit()

        return _seconds(write)


def _seconds(work: Callable[[], object]) -> float:
    begun = time.monotonic()
    work()
    return time.monotonic() - begun


if __name__ == "__main__":
    main()
