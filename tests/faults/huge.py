"""Transactions, or windows, of millions of rows: what they need of memory, in each consistency.

The rows go to Kafka once; then a run for each consistency applies them to a target, and the highest resident sizes of
the driver, its JVM and Spark's largest worker are told. What does not fit into memory lies in files meanwhile: Spark's
shuffle, and the driver's spool, as large as the rows.
"""

import json
import sqlite3
import subprocess
import zlib
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from urllib.parse import urlsplit
from uuid import uuid4

import psycopg
from pymysql.cursors import SSCursor

from tests.bench.load import Change, Load, Mark, Message, watermark
from tests.bench.measure import RECONCILER, Sending, mysql_connection, write_config
from tests.bench.tree import TreeSampler
from tests.faults.random_kills import Place
from tests.faults.targets import view_of

_AT = 1_700_000_000_000 << 18
_TRANSACTION = 5
"""Rows of a small one."""


class Huge(Load):
    """Nothing but inserts: all in one transaction, or (`small`) in many within one window."""

    def __init__(self, rows: int, *, small: bool) -> None:
        super().__init__(rows, ids=rows, database=f"huge_{uuid4().hex[:8]}")
        self._small, self.checksum = small, 0

    def messages(self) -> Iterator[Message | Mark]:
        """See `Load.messages`; with watermarks behind the DDLs, as TiCDC sends them, so that those are read alone."""
        messages = super().messages()
        yield from islice(messages, 2)
        yield from (Message(partition, watermark(_AT)) for partition in range(self.partitions))
        yield from messages

    def changes(self) -> Iterator[Change | Mark]:
        """See `Load.changes`; sums up what the table is to hold."""
        self.checksum = 0
        mask = (1 << 65) - 1
        for number in range(1, self.events + 1):
            bits = number * 0x9E3779B97F4A7C15F39CC0605CEDC835 & (1 << 130) - 1
            row = (number % 1000, bits, bits & mask)
            text = f"{number}|{row[0]}|{self.text(row[1], 10)}|{self.text(row[2], 5)}"
            self.checksum += zlib.crc32(text.encode())
            yield Change(_AT + 1 + (number // _TRANSACTION if self._small else 0), number, None, row)
        yield Mark(_AT + self.events)


@dataclass(frozen=True)
class Peaks:
    """A run's highest sizes in MB, of single processes but for `tree`."""

    consistency: str
    rows: int
    windows: int
    processing_s: float
    driver_mb: int
    jvm_mb: int
    worker_mb: int
    tree_mb: int
    correct: bool


def huge(place: Place, rows: int, consistencies: list[str], *, small: bool, limits: str = "") -> Iterator[Peaks]:
    """Send the rows, and apply them in each of the consistencies."""
    load = sent(place.bootstrap, rows, small=small)
    for consistency in consistencies:
        yield applied(place, load, consistency, limits)


def sent(bootstrap: str, rows: int, *, small: bool) -> Huge:
    """Send the rows, to a topic with the database's name."""
    load = Huge(rows, small=small)
    Sending(bootstrap, load.database, load.partitions).send(load.messages())
    return load


def applied(place: Place, load: Huge, consistency: str, limits: str = "") -> Peaks:
    """Apply the rows to a target, and drop them there."""
    name = f"{load.database}_{consistency}"
    config = write_config(
        place.directory / f"{name}.toml",
        changefeed=name,
        bootstrap=place.bootstrap,
        topic=load.database,
        uri=place.uri,
        extra=f'consistency = "{consistency}"\n{limits}',
    )
    output = config.with_suffix(".log")
    with output.open("wb") as log:
        process = subprocess.Popen([RECONCILER, "run", str(config), "--once", "--json"], stdout=log, stderr=log)
        with TreeSampler(process.pid) as tree:
            code = process.wait()
    lines = output.read_text(errors="replace").splitlines()
    if code != 0:
        raise RuntimeError(f"the run ended with {code}:\n" + "\n".join(lines[-20:]))
    told = json.loads(lines[-1])
    correct = told["events"] == load.events and _held(place.uri, load) == (load.events, load.checksum)
    view_of(place.uri, load.database, name).drop()
    sizes = {part: tree.peak_mb(part) for part in ("driver", "jvm", "worker", "tree")}
    return Peaks(
        consistency,
        load.events,
        int(told["windows"]),
        told["processing_s"],
        *(sizes[part] for part in ("driver", "jvm", "worker", "tree")),
        correct,
    )


def _held(uri: str, load: Huge) -> tuple[int, int]:
    """How many rows the table has, and their checksum."""
    count = checksum = 0
    for row in _rows(uri, load):
        count += 1
        checksum += zlib.crc32("|".join(map(str, row)).encode())
    return count, checksum


def _rows(uri: str, load: Huge) -> Iterator[tuple[object, ...]]:
    select = f"SELECT id, k, c, pad FROM {load.database}.{load.table}"
    if uri.startswith("sqlite"):
        file = Path(urlsplit(uri).path[1:]) / f"{load.database}.sqlite"
        with closing(sqlite3.connect(file)) as connection:
            yield from connection.execute(select.replace(f"{load.database}.", ""))
    elif uri.startswith("postgresql"):
        with psycopg.connect(uri) as connection, connection.cursor("rows") as cursor:
            yield from cursor.execute(select.encode())
    else:
        with closing(mysql_connection(uri)) as connection, connection.cursor(SSCursor) as cursor:
            cursor.execute(select)
            yield from cursor
