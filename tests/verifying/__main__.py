"""python -m tests.verifying [--rows N] [--threads N]: how long `verify` takes for MariaDB against PostgreSQL.

Loads the same rows into both, compares them, changes one cell, and looks for it.
"""

import argparse
import tempfile
import time
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import psycopg
import pymysql

from consumer.config.model import config_from
from consumer.verify.report import VerifyOutcome
from consumer.verify.run import Verification, VerifyOptions
from tests.embedded import MariaDbServer, PostgresServer

COLUMNS = {
    "id": ("BIGINT PRIMARY KEY", "bigint PRIMARY KEY"),
    "customer": ("INT UNSIGNED NOT NULL", "bigint NOT NULL"),
    "amount": ("DECIMAL(12,2)", "numeric(12,2)"),
    "ratio": ("DOUBLE", "double precision"),
    "note": ("VARCHAR(64)", "character varying(64)"),
    "placed": ("DATETIME(3)", "timestamp(3) without time zone"),
    "seen": ("TIMESTAMP NULL", "timestamp(0) with time zone"),
    "mark": ("CHAR(4)", "character varying(4)"),
}
_BATCH = 500_000
_START = datetime(2026, 1, 1, tzinfo=UTC)


def line(n: int) -> str:
    """A row as both databases load it."""
    placed = _START + timedelta(milliseconds=n * 37)
    note = "\\N" if n % 11 == 0 else f"order {n} — naïve ✓"
    fields = (
        n, n * 7919 % 4_000_000_000, f"{n * 31 % 9_999_999}.{n % 100:02}", n / 8, note,
        placed.strftime("%Y-%m-%d %H:%M:%S.") + f"{placed.microsecond // 1000:03}",
        placed.strftime("%Y-%m-%d %H:%M:%S"), "paid" if n % 3 else "open",
    )  # fmt: skip
    return "\t".join(map(str, fields)) + "\n"


def files(rows: int, directory: Path) -> Iterator[Path]:
    """The rows, some in a file; each is gone when the next is asked for."""
    path = directory / "rows.tsv"
    for first in range(1, rows + 1, _BATCH):
        with path.open("w", encoding="utf-8") as file:
            file.writelines(line(n) for n in range(first, min(rows + 1, first + _BATCH)))
        yield path
    path.unlink()


def load(rows: int, directory: Path, mariadb: MariaDbServer, postgres: PostgresServer) -> None:
    """The same rows into both."""
    mine = pymysql.connect(
        host="127.0.0.1", port=mariadb.port, user="root", password="root", local_infile=True,
        autocommit=True, charset="utf8mb4",
    )  # fmt: skip
    with psycopg.connect(postgres.uri, autocommit=True) as theirs, mine, mine.cursor() as cursor:
        cursor.execute("SET time_zone = '+00:00'")
        cursor.execute("CREATE DATABASE large CHARACTER SET utf8mb4 COLLATE utf8mb4_bin")
        told = [", ".join(f"{name} {kinds[at]}" for name, kinds in COLUMNS.items()) for at in (0, 1)]
        cursor.execute(f"CREATE TABLE large.t ({told[0]})")
        theirs.execute("SET timezone = 'UTC'")
        theirs.execute("CREATE SCHEMA large")
        theirs.execute(f"CREATE TABLE large.t ({told[1]})".encode())
        for path in files(rows, directory):
            cursor.execute(f"LOAD DATA LOCAL INFILE '{path}' INTO TABLE large.t CHARACTER SET utf8mb4")
            with theirs.cursor() as copying, copying.copy("COPY large.t FROM STDIN") as copy:
                copy.write(path.read_bytes())
        theirs.execute("VACUUM ANALYZE large.t")


def compared(mariadb: MariaDbServer, postgres: PostgresServer, threads: int) -> VerifyOutcome:
    """One verification."""
    values = {
        "changefeed": "large",
        "source": {"bootstrap-servers": "127.0.0.1:1", "topics": ["none"]},
        "target": {"uri": postgres.uri},
    }
    options = VerifyOptions(against=mariadb.uri, threads=threads, tables=("large.*",))
    return Verification(config_from(values, "tests.verifying"), options).run()


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=10_000_000)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--directory", type=Path)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(dir=options.directory) as place:
        directory = Path(place)
        with (
            MariaDbServer(directory / "mariadb", flush_at_commit=2) as mariadb,
            PostgresServer(directory / "postgres") as postgres,
        ):
            begun = time.monotonic()
            load(options.rows, directory, mariadb, postgres)
            print(f"loaded {options.rows:,} rows into both in {time.monotonic() - begun:.1f} s", flush=True)
            equal = compared(mariadb, postgres, options.threads)
            print(*equal.lines(), sep="\n", flush=True)
            assert equal.is_equal
            with psycopg.connect(postgres.uri, autocommit=True) as connection:
                row = options.rows * 2 // 3
                connection.execute("UPDATE large.t SET note = note || '!' WHERE id = %s", (row,))
            changed = compared(mariadb, postgres, options.threads)
            print(*changed.lines(), sep="\n", flush=True)
            (found,) = changed.tables[0].differences
            assert found.key(changed.tables[0].comparison) == {"id": str(row)}
            assert [pair.left.name for pair, *_ in found.changed(changed.tables[0].comparison)] == ["note"]


if __name__ == "__main__":
    main()
