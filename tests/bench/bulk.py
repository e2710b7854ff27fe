"""`python -m tests.bench.bulk`: rows that are only inserted, in each consistency, against LOAD DATA of the same rows.

All in one run on one MariaDB: LOAD DATA over one and over two connections, then the reconciler, with 1, 2 and 4 writers
in `row`. `transaction` gets a tenth of the rows: it commits each upstream transaction, of 1 to 6 rows, by itself.
"""

import argparse
import json
import tempfile
import time
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from contextlib import ExitStack, closing, contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from uuid import uuid4

from consumer.embedded import KafkaBroker, MariaDbServer
from tests.bench.load import Change, Load, create_statement
from tests.bench.measure import Sending, measured_run, mysql_connection, write_config

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
    parser.add_argument("--runs", type=int, default=1)
    told = parser.parse_args()
    with ExitStack() as stack:
        place = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="ticdc-bulk-")))
        kafka = stack.enter_context(KafkaBroker(place / "kafka"))
        mariadb = stack.enter_context(MariaDbServer(place / "mariadb", flush_at_commit=2, buffer_pool="1G"))
        for rate in _rates(place, kafka.bootstrap, mariadb.uri, told.rows, told.runs):
            print(json.dumps(asdict(rate)), flush=True)


def _rates(place: Path, bootstrap: str, uri: str, rows: int, runs: int) -> Iterator[Rate]:
    loads = {size: Load(size, ids=size, database=f"bulk_{uuid4().hex[:8]}") for size in {rows, rows // 10}}
    for load in loads.values():
        Sending(bootstrap, load.database, load.partitions).send(load.messages())
    for _ in range(runs):
        yield from (_load_data(place, loads[rows], uri, connections) for connections in (1, 2))
        for consistency, writers in RUNS:
            load = loads[rows // 10 if consistency == "transaction" else rows]
            yield _reconciled(place, load, bootstrap, uri, consistency, writers)


def _load_data(place: Path, load: Load, uri: str, connections: int) -> Rate:
    files = [place / f"part-{i}.tsv" for i in range(connections)]
    with ExitStack() as stack:
        open_files = [stack.enter_context(file.open("w")) for file in files]
        for change in load.changes():
            if isinstance(change, Change):
                open_files[change.id % connections].write(load.line(change))
    with _table(load, uri), ProcessPoolExecutor(connections) as pool:
        list(pool.map(_nothing, range(connections)))
        begun = time.monotonic()
        list(pool.map(_sent, files, [uri] * connections, [load.place] * connections))
        seconds = time.monotonic() - begun
    return Rate(f"LOAD DATA, connections={connections}", load.events, round(seconds, 2), round(load.events / seconds))


def _nothing(number: int) -> int:
    """Starts a process before the clock does."""
    return number


@contextmanager
def _table(load: Load, uri: str) -> Iterator[None]:
    with closing(mysql_connection(uri)) as connection, connection.cursor() as cursor:
        cursor.execute(f"CREATE DATABASE `{load.database}`")
        cursor.execute(create_statement(load.place))
        yield
        cursor.execute(f"DROP DATABASE `{load.database}`")


def _sent(file: Path, uri: str, place: str) -> None:
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
        with closing(mysql_connection(uri)) as connection, connection.cursor() as cursor:
            cursor.execute(f"DROP DATABASE IF EXISTS `{load.database}`")
    what = f"{consistency}, writers={writers}" if consistency == "row" else consistency
    return Rate(what, load.events, result.processing_s, result.events_per_s, result.correct)


if __name__ == "__main__":
    main()
