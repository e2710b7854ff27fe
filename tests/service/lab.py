"""One changefeed under test: its topic, its target, its runs, in this process (shared Spark) or as a command."""

import json
import os
import signal
import sqlite3
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Self

import psycopg
import pymysql
from confluent_kafka import Consumer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic
from pyspark import SparkContext

from consumer.codec.compression import decompressed, is_compressed
from consumer.config.model import Config, config_from
from consumer.demo.fake_ticdc.changefeed import Message
from consumer.demo.fake_ticdc.producer import produce, vector_messages
from consumer.operate.status import status_of
from consumer.run.progress_log import Display
from consumer.run.runner import Runner, RunOutcome
from consumer.tuning import MEASURED, Tuning
from ordering.errors import ReconcilerError
from sinks.steps import Observer
from tests.forked import forked
from tests.service.cells import VECTORS, MariaDbCells, SqliteCells
from tests.service.postgres_cells import PostgresCells

PARTITIONS = 3
DEADLINE_S = 180.0
"""For what takes seconds where nothing else runs; nothing is slower for it but a failure."""
ENDS_S = 300.0
"""For a command, with a Spark of its own."""
COMMAND = Path(sys.executable).parent / "reconciler"


def recorded(name: str) -> list[Message]:
    """The messages of a recording, e.g. `split.ts.raw`."""
    path = next(path for path in (VECTORS / f"{name}.jsonl", VECTORS / f"{name}.jsonl.gz") if path.exists())
    return list(vector_messages(path))


def body(message: Message) -> dict[str, Any]:
    """A message's JSON."""
    value = decompressed(message.value, 1 << 20) if is_compressed(message.value) else message.value
    found: dict[str, Any] = json.loads(value)
    return found


def is_row(message: Message) -> bool:
    """Whether it is a row event."""
    return body(message)["type"] in {"INSERT", "UPDATE", "DELETE"}


def is_watermark(message: Message) -> bool:
    """Whether it is a watermark."""
    return body(message)["type"] == "TIDB_WATERMARK"


def databases_of(messages: Iterable[Message]) -> set[str]:
    """The databases that messages name."""
    return {name for message in messages if (name := body(message)["database"])}


def eventually(what: str, true: Callable[[], bool], seconds: float = DEADLINE_S, pause_s: float = 0.05) -> None:
    """Look until it is true, or fail. `pause_s`: between two looks; longer where a look costs time itself."""
    limit = time.monotonic() + seconds
    while not true():
        assert time.monotonic() < limit, f"not within {seconds} s: {what}"
        time.sleep(pause_s)


@dataclass
class Feed:
    """A changefeed with a topic and a target of its own."""

    spark: SparkContext
    bootstrap: str
    topic: str
    uri: str
    cells: SqliteCells | MariaDbCells | PostgresCells
    directory: Path
    settings: dict[str, dict[str, Any]] = field(default_factory=dict)
    tuning: Tuning = MEASURED

    @property
    def name(self) -> str:
        return f"feed-{self.topic}"

    def values(self) -> dict[str, Any]:
        """The config as the file holds it."""
        base: dict[str, dict[str, Any]] = {
            "source": {"bootstrap-servers": self.bootstrap, "topics": [self.topic]},
            "target": {"uri": self.uri},
            "redis": {"uri": ""},
            "limits": {"retry-seconds": 0.1},
            "spark": {"master": "local[2]"},
        }
        merged = {
            name: {k: v for k, v in {**base.get(name, {}), **self.settings.get(name, {})}.items() if v is not None}
            for name in {**base, **self.settings}
        }
        return {"changefeed": self.name, **merged}

    def with_(self, **sections: Mapping[str, Any]) -> "Feed":
        """The same with some settings changed; Python's names for sections and keys as in the file."""
        for name, values in sections.items():
            self.settings.setdefault(name, {}).update(values)
        return self

    @property
    def config(self) -> Config:
        return config_from(self.values(), "the test's config")

    def here(self, messages: Iterable[Message]) -> list[Message]:
        """Messages moved to this feed's topic; of several topics each keeps its name behind it."""
        return [m._replace(topic=self.topic_for(m.topic)) for m in messages]

    def topic_for(self, recorded_in: str) -> str:
        return self.topic if recorded_in == "ticdc" else f"{self.topic}.{recorded_in}"

    def send(self, messages: Iterable[Message]) -> list[Message]:
        """Produce messages of a recording to this feed's topics."""
        moved = self.here(messages)
        produce(moved, self.bootstrap, partitions=PARTITIONS, config={"linger.ms": 0})
        return moved

    def send_raw(self, partition: int, *values: bytes | None) -> None:
        """Produce values as they are."""
        produce([Message(self.topic, partition, v) for v in values], self.bootstrap, partitions=PARTITIONS)  # type: ignore[arg-type]

    def make_topic(self, partitions: int = PARTITIONS, topic: str | None = None, **settings: str) -> None:
        """Create a topic, and wait until brokers tell of it: their metadata comes later than the answer."""
        name = topic or self.topic
        self.admin_do(lambda admin: admin.create_topics([NewTopic(name, partitions, 1, config=settings)]))
        admin = AdminClient({"bootstrap.servers": self.bootstrap})

        def is_told() -> bool:
            found = admin.list_topics(name, timeout=10).topics[name]
            return not found.error and [one.leader >= 0 for one in found.partitions.values()] == [True] * partitions

        eventually("the topic is there", is_told)

    def admin_do(self, ask: Callable[[AdminClient], Mapping[Any, Any]]) -> None:
        """Ask the cluster and wait for the answers."""
        admin = AdminClient({"bootstrap.servers": self.bootstrap})
        for future in ask(admin).values():
            future.result(30)

    def delete_topic(self, topic: str | None = None) -> None:
        name = topic or self.topic
        self.admin_do(lambda admin: admin.delete_topics([name]))
        admin = AdminClient({"bootstrap.servers": self.bootstrap})
        eventually("the topic is gone", lambda: name not in admin.list_topics(timeout=10).topics)

    def delete_records(self, partition: int, before: int) -> None:
        """Delete what lies before an offset, as retention does."""
        place = TopicPartition(self.topic, partition, before)
        self.admin_do(lambda admin: admin.delete_records([place]))

    def commit_as_a_group(self, group: str) -> None:
        """Commit an offset as any consumer does."""
        consumer = Consumer({"bootstrap.servers": self.bootstrap, "group.id": group})
        consumer.commit(offsets=[TopicPartition(self.topic, 0, 1)], asynchronous=False)
        consumer.close()

    def by_tasks(self) -> Self:
        """The same with rows that tasks write in `row` consistency, however few there are."""
        self.tuning = replace(self.tuning, small_window=0)
        return self

    def reached(self, ts: int) -> bool:
        """Whether the target's checkpoint is at least this."""
        try:
            return int(self.cells.progress(self.name)["checkpoint_ts"]) >= ts
        except (IndexError, psycopg.Error, pymysql.Error, sqlite3.Error, TypeError):
            return False  # the row is not there yet

    def make_database(self, database: str, statements: str) -> None:
        """Make a database in the target by hand, with tables that no DDL of a message makes."""
        if isinstance(self.cells, MariaDbCells):
            self.cells.query(f"CREATE DATABASE `{database}`")
        self.cells.run(database, statements)

    def once(self, observe: Observer = lambda _: None) -> RunOutcome:
        """`run --once` in this process. Raises ReconcilerError."""
        runner = Runner(self.config, Display(), observe, spark=self.spark, tuning=self.tuning)
        return runner.run(once=True, started=time.monotonic())

    def failing(self, kind: type[ReconcilerError] = ReconcilerError) -> ReconcilerError:
        """The error with which `run --once` ends."""
        try:
            outcome = self.once()
        except kind as error:
            return error
        raise AssertionError(f"no {kind.__name__}, but {outcome}")

    def status(self) -> dict[str, Any]:
        return status_of(self.config)

    def checkpoint(self) -> int:
        return int(self.cells.progress(self.name)["checkpoint_ts"])

    def file(self) -> Path:
        """The config as a file."""
        path = self.directory / f"{self.name}.toml"
        path.write_text(toml_of(self.values()))
        return path

    def command(self, *arguments: str, seconds: float = ENDS_S) -> "subprocess.CompletedProcess[str]":
        """`reconciler ARGUMENTS`, to its end."""
        return reconciler(*arguments, seconds=seconds)

    @contextmanager
    def running(self) -> Iterator["subprocess.Popen[bytes]"]:
        """`reconciler run`, stopped at the end if it still runs."""
        log = self.directory / f"{self.name}.log"
        with log.open("wb") as output:
            process = subprocess.Popen([COMMAND, "run", self.file()], stdout=output, stderr=output, env=environment())
            try:
                yield process
            finally:
                if process.poll() is None:
                    process.send_signal(signal.SIGTERM)
                    process.wait(DEADLINE_S)

    def log(self) -> str:
        """What the running one has said."""
        return (self.directory / f"{self.name}.log").read_text()


def environment(**more: str) -> dict[str, str]:
    """Ours, for a machine whose own name does not resolve."""
    return {**os.environ, "SPARK_LOCAL_IP": "127.0.0.1", **more}


def reconciler(*arguments: str, seconds: float = ENDS_S, **more: str) -> "subprocess.CompletedProcess[str]":
    """The command with its exit code and both outputs; forked from a process that has loaded it, where that can be."""
    if threading.current_thread() is not threading.main_thread():
        return started_reconciler(*arguments, seconds=seconds, **more)
    return forked("consumer.cli.main", COMMAND.name, arguments, environment(**more), seconds)


def started_reconciler(*arguments: str, seconds: float = ENDS_S, **more: str) -> "subprocess.CompletedProcess[str]":
    """The command as users start it: for what is about its start."""
    return subprocess.run(
        [COMMAND, *arguments], capture_output=True, text=True, timeout=seconds, check=False, env=environment(**more)
    )


def toml_of(values: Mapping[str, Any]) -> str:
    """A config file: values first, then the sections."""
    flat = [f"{key} = {json.dumps(value)}" for key, value in values.items() if not isinstance(value, Mapping)]
    sections = []
    for name, section in values.items():
        if isinstance(section, Mapping):
            sections += [f"[{name}]", *(f"{json.dumps(key)} = {json.dumps(value)}" for key, value in section.items())]
    return "\n".join([*flat, *sections]) + "\n"
