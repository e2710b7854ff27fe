"""`python -m tests.bench.loading`: `reconciler load` against the target's own bulk load of the same rows.

A line of JSON each: LOAD DATA (MariaDB) or COPY (PostgreSQL) of a tabbed file over one connection, then the loading of
a dump of SQL and of one of CSV with 1 and 2 workers.
"""

import argparse
import json
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack, closing
from pathlib import Path

import psycopg

from consumer.config.model import config_from
from consumer.load.run import Load, LoadOptions
from tests.bench.bulk import SERVERS
from tests.bench.measure import mysql_connection
from tests.embedded import MariaDbServer, PostgresServer
from tests.loading.dumping import METADATA, NAMES

FILES = 8
COLUMNS = "id BIGINT NOT NULL PRIMARY KEY, a INT, b VARCHAR(40), c DECIMAL(12,2), d DATETIME"
CREATED = (
    "CREATE TABLE `t` (\n  `id` bigint(20) NOT NULL,\n  `a` int(11),\n  `b` varchar(40),\n  `c` decimal(12,2),\n"
    "  `d` datetime,\n  PRIMARY KEY (`id`)\n);\n"
)


def main() -> None:
    """Measure, and print."""
    parser = argparse.ArgumentParser(prog="python -m tests.bench.loading", description=__doc__)
    parser.add_argument("--rows", type=int, default=400_000)
    parser.add_argument("--target", choices=sorted(SERVERS), default="mysql")
    told = parser.parse_args()
    with ExitStack() as stack:
        place = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="ticdc-loading-")))
        server = stack.enter_context(SERVERS[told.target](place / "server"))
        plain = _plain(server, place, told.rows)
        print(json.dumps({"what": "plain", "rows": told.rows, "seconds": round(plain, 2)}), flush=True)
        for form in ("sql", "csv"):
            _write(place / form, form, told.rows)
            for workers in (1, 2):
                spent = _loaded(server, place / form, f"{form}-{workers}", workers)
                told_ = {"what": f"load {form}", "workers": workers, "rows": told.rows, "seconds": round(spent, 2)}
                print(json.dumps({**told_, "times_plain": round(spent / plain, 2)}), flush=True)


def _rows(rows: int) -> Iterator[tuple[str, ...]]:
    for i in range(rows):
        yield str(i), str(i % 977), f"row number {i} of many", f"{i % 9999}.25", "2026-01-02 03:04:05"


def _write(place: Path, form: str, rows: int) -> None:
    place.mkdir()
    place.joinpath("metadata").write_text(METADATA.format(tso=463139414630400001))
    place.joinpath("d-schema-create.sql").write_text(f"{NAMES}CREATE DATABASE `d`;\n")
    place.joinpath("d.t-schema.sql").write_text(NAMES + CREATED)
    found = list(_rows(rows))
    for number in range(FILES):
        some = found[number::FILES]
        if form == "sql":
            text = ",\n".join(f"({i},{a},'{b}',{c},'{d}')" for i, a, b, c, d in some)
            data = f"{NAMES}INSERT INTO `t` VALUES\n{text};\n"
        else:
            text = "\r\n".join(f'{i},{a},"{b}",{c},"{d}"' for i, a, b, c, d in some)
            data = f'"id","a","b","c","d"\r\n{text}\r\n'
        place.joinpath(f"d.t.{number:09d}.{form}").write_text(data)


def _plain(server: MariaDbServer | PostgresServer, place: Path, rows: int) -> float:
    tabbed = place / "rows.txt"
    tabbed.write_text("".join("\t".join(row) + "\n" for row in _rows(rows)))
    if isinstance(server, PostgresServer):
        with psycopg.connect(server.uri, autocommit=True) as connection:
            connection.execute("CREATE SCHEMA plain")
            connection.execute(f"CREATE TABLE plain.t ({COLUMNS.replace('DATETIME', 'TIMESTAMP')})".encode())
            begun = time.monotonic()
            with connection.cursor().copy("COPY plain.t FROM STDIN") as copy, tabbed.open("rb") as data:
                while block := data.read(1 << 20):
                    copy.write(block)
            return time.monotonic() - begun
    with closing(mysql_connection(server.uri, local_infile=True)) as connection, connection.cursor() as cursor:
        cursor.execute("CREATE DATABASE plain")
        cursor.execute(f"CREATE TABLE plain.t ({COLUMNS})")
        begun = time.monotonic()
        cursor.execute(f"LOAD DATA LOCAL INFILE '{tabbed}' INTO TABLE plain.t")
        connection.commit()
        return time.monotonic() - begun


def _loaded(server: MariaDbServer | PostgresServer, dump: Path, changefeed: str, workers: int) -> float:
    values = {
        "changefeed": changefeed,
        "source": {"bootstrap-servers": "127.0.0.1:1", "topics": ["t"]},
        "target": {"uri": server.uri},
        "redis": {"uri": ""},
    }
    outcome = Load(config_from(values, "bench"), LoadOptions(dump, workers)).run()
    if isinstance(server, PostgresServer):
        with psycopg.connect(server.uri, autocommit=True) as connection:
            connection.execute("DROP SCHEMA d CASCADE")
    else:
        with closing(mysql_connection(server.uri)) as connection, connection.cursor() as cursor:
            cursor.execute("DROP DATABASE d")
    return outcome.seconds


if __name__ == "__main__":
    main()
