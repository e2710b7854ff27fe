"""One measured run: load into Kafka, `reconciler run --once --json` into a target, table against the load's digest."""

import json
import os
import sqlite3
import subprocess
import sys
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Protocol
from urllib.parse import urlsplit

import psycopg
import pymysql
from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient, NewTopic
from pymysql.cursors import SSCursor

from tests.bench.load import Digest, Mark, Message, create_statement, digest_of
from tests.bench.tree import TreeSampler
from tests.cluster.standalone import environment
from tests.service.lab import toml_of

_ANSWER_S = 60.0
Sections = Mapping[str, Mapping[str, Any]]
"""Of a config, by their names."""
RECONCILER = str(Path(sys.executable).with_name("reconciler"))


@dataclass(frozen=True)
class Result:
    """One comparable line."""

    name: str
    target: str
    events: int
    processing_s: float
    wall_s: float
    events_per_s: int
    driver_peak_mb: int
    jvm_peak_mb: int
    tree_peak_mb: int
    cpu_s: float
    loadavg: float
    correct: bool
    start_s: float = 0.0
    """From the start of the command until Spark, Kafka and target are ready."""
    ddl_s: float = 0.0
    """Executing the load's DDLs took this long."""

    def line(self) -> str:
        """As `name=value` pairs."""
        return " ".join(f"{name}={value}" for name, value in asdict(self).items())


class AnyLoad(Protocol):
    """What can be sent, reconciled and checked."""

    events: int
    partitions: int
    database: str

    def messages(self) -> Iterator[Message | Mark]:
        """The messages in the order of sending."""
        ...

    def expected(self) -> dict[str, Digest]:
        """What each table holds at the end."""
        ...


class Sending:
    """A topic made for a load, and a producer that keeps each partition's order."""

    def __init__(self, bootstrap: str, topic: str, partitions: int) -> None:
        self.topic = topic
        admin = AdminClient({"bootstrap.servers": bootstrap})
        settings = {"retention.ms": "-1", "max.message.bytes": "10485760"}
        admin.create_topics([NewTopic(topic, partitions, 1, config=settings)])[topic].result(_ANSWER_S)
        self._failed: list[str] = []
        self._producer = Producer(
            {"bootstrap.servers": bootstrap, "enable.idempotence": True, "linger.ms": 20, "batch.size": 1 << 20}
        )

    def send(self, messages: Iterable[Message | Mark]) -> int:
        """Send messages; returns how many bytes, once all are acknowledged."""
        size = 0
        for message in messages:
            if isinstance(message, Message):
                self._send(message)
                size += len(message.value)
        if self._producer.flush(_ANSWER_S) or self._failed:
            raise RuntimeError(f"Kafka did not take all messages: {self._failed[:3]}")
        return size

    def _send(self, message: Message) -> None:
        while True:
            try:
                self._producer.produce(
                    self.topic, message.value, partition=message.partition, on_delivery=self._delivered
                )
            except BufferError:
                self._producer.poll(1)
            else:
                self._producer.poll(0)
                return

    def _delivered(self, error: object, _message: object) -> None:
        if error is not None:
            self._failed.append(str(error))


def table_digest(uri: str, database: str, table: str) -> Digest:
    """Digest what a target's table holds."""
    with closing(target_rows(uri, database, table)) as rows:
        return digest_of(rows)


def target_rows(uri: str, database: str, table: str) -> Iterator[tuple[object, ...]]:
    """Stream a table in id order."""
    parts = urlsplit(uri)
    if parts.scheme == "sqlite":
        with closing(sqlite3.connect(Path(parts.path[1:]) / f"{database}.sqlite")) as connection:
            yield from connection.execute(f'SELECT * FROM "{table}" ORDER BY id')
        return
    if parts.scheme == "postgresql":
        with psycopg.connect(uri) as postgres, postgres.cursor("rows") as rows:
            rows.execute(f'SELECT * FROM "{database}"."{table}" ORDER BY id'.encode())
            yield from rows
        return
    with closing(mysql_connection(uri)) as connection, connection.cursor(SSCursor) as cursor:
        cursor.execute(f"SELECT * FROM `{database}`.`{table}` ORDER BY id")
        yield from cursor


def mysql_connection(uri: str, *, local_infile: bool = False) -> "pymysql.Connection":
    """Connect to the server of a target's URI."""
    parts = urlsplit(uri)
    return pymysql.connect(
        host=parts.hostname or "",
        port=parts.port or 3306,
        user=parts.username,
        password=parts.password or "",
        autocommit=True,
        local_infile=local_infile,
    )


def execute(uri: str, sql: str) -> None:
    """Execute a statement in the server of a target's URI."""
    if uri.startswith("postgresql"):
        with psycopg.connect(uri) as postgres:
            postgres.execute(sql.encode())
        return
    with closing(mysql_connection(uri)) as connection, connection.cursor() as cursor:
        cursor.execute(sql)


@contextmanager
def made_table(uri: str, database: str, table: str) -> Iterator[None]:
    """Meanwhile the table of a load is there, in a database of its own."""
    create, of_postgres = create_statement(f"`{database}`.`{table}`"), uri.startswith("postgresql")
    if of_postgres:
        create = create.replace("_UTF8MB4", "").replace("CHAR(", "VARCHAR(").replace("`", '"')
    execute(uri, f'CREATE SCHEMA "{database}"' if of_postgres else f"CREATE DATABASE `{database}`")
    execute(uri, create)
    yield
    drop_database(uri, database)


def drop_database(uri: str, database: str) -> None:
    """Drop what a run has left in a server."""
    if uri.startswith("postgresql"):
        execute(uri, f'DROP SCHEMA IF EXISTS "{database}" CASCADE')
    elif not uri.startswith("sqlite"):
        execute(uri, f"DROP DATABASE IF EXISTS `{database}`")


def write_config(
    path: Path,
    *,
    changefeed: str,
    bootstrap: str,
    topic: str,
    uri: str,
    extra: str = "",
    source: Sections | None = None,
) -> Path:
    """Write the smallest config that reads a topic into a target; `extra` goes on in its section [target].

    `source`: sections that say instead where to read.
    """
    where = {"bootstrap-servers": bootstrap, "topics": [topic]}
    redis = "" if "[redis]" in extra else '[redis]\nuri = ""\n'
    read = toml_of(source or {"source": where})
    path.write_text(f'changefeed = "{changefeed}"\n{read}\n{redis}[target]\nuri = "{uri}"\n{extra}\n')
    return path


def measured_run(name: str, config: Path, load: AnyLoad, uri: str, others: Sequence[int] = ()) -> Result:
    """Run the reconciler once on a config, and compare. Raises RuntimeError if it fails.

    `others`: processes whose memory and CPU seconds count too, with their children: a cluster's.
    """
    begun = time.monotonic()
    output = config.with_suffix(".log")
    with output.open("wb") as log:
        process = subprocess.Popen(
            [RECONCILER, "run", str(config), "--once", "--json"], stdout=log, stderr=log, env=environment()
        )
        with TreeSampler(process.pid, others=others) as tree:
            code = process.wait()
    wall_s = time.monotonic() - begun
    lines = output.read_text(errors="replace").splitlines()
    if code != 0:
        raise RuntimeError(f"reconciler run ended with {code}:\n" + "\n".join(lines[-20:]))
    told = json.loads(lines[-1])
    processing_s = float(told["processing_s"])
    expected = load.expected()
    found = {table: table_digest(uri, load.database, table) for table in expected}
    correct = told["events"] == load.events and found == expected
    return Result(
        name=name,
        target=urlsplit(uri).scheme,
        events=load.events,
        processing_s=processing_s,
        wall_s=round(wall_s, 2),
        events_per_s=round(load.events / processing_s),
        driver_peak_mb=tree.peak_mb("driver"),
        jvm_peak_mb=tree.peak_mb("jvm"),
        tree_peak_mb=tree.peak_mb("tree"),
        cpu_s=round(tree.cpu_s, 1),
        loadavg=round(os.getloadavg()[0], 2),
        correct=correct,
        start_s=float(told["start_s"]),
        ddl_s=_executing_s(config),
    )


def _executing_s(config: Path) -> float:
    command = [RECONCILER, "ddl", "list", str(config), "--json", "--limit", "1000"]
    told = json.loads(subprocess.run(command, check=True, capture_output=True, env=environment()).stdout)
    return sum(line["duration_ms"] or 0 for line in told) / 1000
