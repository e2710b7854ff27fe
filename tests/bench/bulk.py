"""`python -m tests.bench.bulk`: rows that are only inserted, in each consistency, against the target's own bulk load.

All in one run on one server: LOAD DATA (MariaDB) or COPY (PostgreSQL) over one and over two connections, then the
reconciler, with 1, 2 and 4 writers in `row`. `transaction` gets a tenth of the rows: it commits each upstream
transaction, of 1 to 6 rows, by itself.
"""

import argparse
import json
import tempfile
import time
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from contextlib import ExitStack, closing
from dataclasses import asdict, dataclass
from pathlib import Path
from uuid import uuid4

import psycopg

from consumer.embedded import KafkaBroker
from tests.bench.load import Change, Load
from tests.bench.measure import Sending, drop_database, made_table, measured_run, mysql_connection, write_config
from tests.bench.servers import SERVERS

RUNS = (("transaction", 1), ("snapshot", 1), ("row", 1), ("row", 2), ("row", 4))


@dataclass(frozen=True)
class Rate:
    """What wrote how many rows in which time."""

    what: str
    rows: int
    seconds: float
    rows_per_s: int
    correct: bool = True


def main() -> None:
    """Measure, and print a JSON line each."""
    parser = argparse.ArgumentParser(prog="python -m tests.bench.bulk", description=__doc__)
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--target", choices=["mysql", "postgresql"], default="mysql")
    parser.add_argument("--runs", type=int, default=1)
    told = parser.parse_args()
    with ExitStack() as stack:
        place = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="ticdc-bulk-")))
        kafka = stack.enter_context(KafkaBroker(place / "kafka", lasting=True))
        server = stack.enter_context(SERVERS[told.target](place / told.target))
        for rate in _rates(place, kafka.bootstrap, server.uri, told.rows, told.runs):
            print(json.dumps(asdict(rate)), flush=True)


def _rates(place: Path, bootstrap: str, uri: str, rows: int, runs: int) -> Iterator[Rate]:
    loads = {size: Load(size, ids=size, database=f"bulk_{uuid4().hex[:8]}") for size in {rows, rows // 10}}
    for load in loads.values():
        Sending(bootstrap, load.database, load.partitions).send(load.messages())
    for _ in range(runs):
        yield from (_loaded(place, loads[rows], uri, connections) for connections in (1, 2))
        for consistency, writers in RUNS:
            load = loads[rows // 10 if consistency == "transaction" else rows]
            yield _reconciled(place, load, bootstrap, uri, consistency, writers)


def _loaded(place: Path, load: Load, uri: str, connections: int) -> Rate:
    files = [place / f"part-{i}.tsv" for i in range(connections)]
    with ExitStack() as stack:
        open_files = [stack.enter_context(file.open("w")) for file in files]
        for change in load.changes():
            if isinstance(change, Change):
                open_files[change.id % connections].write(load.line(change))
    with made_table(uri, load.database, load.table), ProcessPoolExecutor(connections) as pool:
        list(pool.map(_nothing, range(connections)))
        begun = time.monotonic()
        list(pool.map(_sent, files, [uri] * connections, [load.place] * connections))
        seconds = time.monotonic() - begun
    verb = "COPY" if uri.startswith("postgresql") else "LOAD DATA"
    return Rate(f"{verb}, connections={connections}", load.events, round(seconds, 2), round(load.events / seconds))


def _nothing(number: int) -> int:
    """Starts a process before the clock does."""
    return number


def _sent(file: Path, uri: str, place: str) -> None:
    if uri.startswith("postgresql"):
        table = place.replace("`", '"')
        sql = f"COPY {table} FROM STDIN".encode()
        with psycopg.connect(uri) as postgres, postgres.cursor().copy(sql) as copy, file.open("rb") as source:
            while block := source.read(1 << 20):
                copy.write(block)
        return
    with closing(mysql_connection(uri, local_infile=True)) as connection, connection.cursor() as cursor:
        cursor.execute(f"LOAD DATA LOCAL INFILE '{file}' INTO TABLE {place} CHARACTER SET utf8mb4")


def _reconciled(place: Path, load: Load, bootstrap: str, uri: str, consistency: str, writers: int) -> Rate:
    name = f"{load.database}-{uuid4().hex[:6]}"
    slots = f'[spark]\nmaster = "local[{writers}]"\n' if writers > 2 else ""
    config = write_config(
        place / f"{name}.toml",
        changefeed=name,
        bootstrap=bootstrap,
        topic=load.database,
        uri=uri,
        extra=f'consistency = "{consistency}"\n[limits]\nwriters = {writers}\n{slots}',
    )
    try:
        result = measured_run(name, config, load, uri)
    finally:
        drop_database(uri, load.database)
    what = f"{consistency}, writers={writers}" if consistency == "row" else consistency
    return Rate(what, load.events, result.processing_s, result.events_per_s, result.correct)


if __name__ == "__main__":
    main()
