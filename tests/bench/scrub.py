"""`python -m tests.bench.scrub --target T --rows N`: what it takes to read a table for a proof, without a pace.

The server makes the rows itself. Told are seconds of the clock and of CPU, of the server and of ours, for a table of
numbers, texts and a moment, and for the same rows with a JSON document in each of every tenth.
"""

import argparse
import json
import resource
import tempfile
import time
from contextlib import closing
from dataclasses import asdict, dataclass
from pathlib import Path

from consumer.proof.pieces import whole_sums
from ordering.events import TableName
from ordering.rows.content_sums import rows_in
from sinks.compare.canonical import canonical_rows
from sinks.registry import open_target
from sinks.rows.values import ValueRules
from tests.bench.measure import execute
from tests.bench.servers import SERVERS

NAME = TableName("scrubbed", "t")
_COLUMNS = "id BIGINT PRIMARY KEY, k INT NOT NULL, n DECIMAL(12,2), s VARCHAR(60), at TIMESTAMP"
_VALUES = "i, i % 1000, i / 100.0, CONCAT('a text of some length, number ', i), {moment}, {document}"
_DOCUMENT = "CASE WHEN i % 10 = 0 THEN {made} END"
_MAKE = {
    "mysql": (
        "CREATE DATABASE scrubbed",
        f"CREATE TABLE scrubbed.t ({_COLUMNS} NULL, j JSON)",
        "INSERT INTO scrubbed.t SELECT " + _VALUES.format(
            moment="FROM_UNIXTIME(1700000000 + i)", document=_DOCUMENT.format(made="CONCAT('{\"a\": ', i, '.5}')")
        ) + " FROM (SELECT seq AS i FROM scrubbed.seq_1_to_{rows}) AS x",
    ),
    "postgresql": (
        "CREATE SCHEMA scrubbed",
        f"CREATE TABLE scrubbed.t ({_COLUMNS}, j JSONB)",
        "INSERT INTO scrubbed.t SELECT " + _VALUES.format(
            moment="to_timestamp(1700000000 + i)", document=_DOCUMENT.format(made="('{\"a\": ' || i || '.5}')::jsonb")
        ) + " FROM generate_series(1, {rows}) AS i",
        "ANALYZE scrubbed.t",
    ),
}  # fmt: skip


@dataclass(frozen=True)
class Cost:
    """Seconds of one reading."""

    rows: int
    documents: bool
    wall: float
    server_cpu: float
    own_cpu: float


def server_cpu(pid: int) -> float:
    """Of a process and those that it has begun, those that have ended too."""
    total, waiting = 0, [pid]
    while waiting:
        one = waiting.pop()
        try:
            fields = Path(f"/proc/{one}/stat").read_text().rpartition(")")[2].split()
            children = Path(f"/proc/{one}/task/{one}/children").read_text().split()
        except FileNotFoundError:
            continue
        total += sum(map(int, fields[11:15]))
        waiting += map(int, children)
    return total / 100


def measured(kind: str, rows: int, *, documents: bool) -> Cost:
    """Make the table and read it once."""
    with tempfile.TemporaryDirectory() as place, SERVERS[kind](Path(place)) as server:
        for sql in _MAKE[kind]:
            made = sql if documents else sql.replace(", j JSON)", ")").replace(", j JSONB)", ")")
            if "CASE WHEN i" in made and not documents:
                made = (
                    made[: made.index(", CASE WHEN i")]
                    + made[made.index(" FROM (" if kind == "mysql" else " FROM gen") :]
                )
            execute(server.uri, made.replace("{rows}", str(rows)))
        with closing(open_target(server.uri, ValueRules())) as target:
            reader = target.reader()
            reader.begin()
            table = canonical_rows(reader.catalog().tables[NAME], reader, ValueRules())
            own, cpu, begun = _own_cpu(), server_cpu(server.pid), time.monotonic()
            sums = whole_sums(table, reader)
            wall = time.monotonic() - begun
            assert sums is not None
            assert rows_in(sums) == rows
            used, own = server_cpu(server.pid) - cpu, _own_cpu() - own
            return Cost(rows, documents, *(round(one, 2) for one in (wall, used, own)))


def _own_cpu() -> float:
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_utime + used.ru_stime


def main() -> None:
    """Measure and tell, a line of JSON for each."""
    asked = argparse.ArgumentParser()
    asked.add_argument("--target", choices=sorted(_MAKE), required=True)
    asked.add_argument("--rows", type=int, default=10_000_000)
    told = asked.parse_args()
    for documents in (False, True):
        print(
            json.dumps({"target": told.target, **asdict(measured(told.target, told.rows, documents=documents))}),
            flush=True,
        )


if __name__ == "__main__":
    main()
