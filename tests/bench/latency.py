"""`python -m tests.bench.latency`: from a watermark in Kafka to its commit in MariaDB, while events keep coming.

A writer sends so many events a second and a watermark to every partition each 200 ms, as TiCDC does; a reader looks
every few milliseconds how far the target's checkpoint is. A watermark's latency counts from when Kafka has it.
"""

import argparse
import json
import random
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from uuid import uuid4

from consumer.embedded import KafkaBroker
from tests.bench.load import BASE_MS, Message, create_database, ddl_message, watermark
from tests.bench.measure import RECONCILER, Sending, drop_database, write_config
from tests.bench.tree import TreeSampler
from tests.embedded import MariaDbServer
from tests.service.cells import MariaDbCells
from tests.service.lab import environment, eventually
from tests.service.messages import encoded, row_value

PARTITIONS = 4
IDS = 50_000
_TICK_S = 0.2
_LOOK_S = 0.004
_START_S = 120.0
_CREATE = "CREATE TABLE `t` (`id` INT PRIMARY KEY,`v` INT,`s` VARCHAR(40))"


@dataclass(frozen=True)
class Latency:
    """Milliseconds from watermark to commit; `correct`: the table holds what was written last."""

    events: int
    watermarks: int
    p50_ms: int
    p99_ms: int
    max_ms: int
    first_mb: int
    """Resident memory of all processes after the warm-up, in the median of its first tenth."""
    last_mb: int
    """The same of the last tenth."""
    peak_mb: int
    cpu_percent: float
    """Of one core, all processes together, without the start; with a rate of 0, what a changefeed at rest takes."""
    correct: bool


class Writer:
    """Writes rows as an upstream would, and remembers what they are."""

    def __init__(self, sending: Sending, database: str, rate: int) -> None:
        self._sending, self._database = sending, database
        self._each = round(rate * _TICK_S)
        self._chance = random.Random(1)
        self._ticks = 0
        self.rows: dict[int, int] = {}
        self.sent: list[tuple[int, float]] = []
        """(watermark's TSO, when Kafka had it in every partition)."""

    def begin(self) -> None:
        """Make the table."""
        ddl = ddl_message(self._database, "CREATE", "t", _CREATE, BASE_MS - 1)
        self._sending.send([Message(0, create_database(self._database)), Message(0, ddl), *self._marks(BASE_MS << 18)])

    def write(self, seconds: float) -> None:
        """Write until so much time has passed; late ticks follow at once."""
        begun = time.monotonic()
        for tick in range(round(seconds / _TICK_S)):
            time.sleep(max(0.0, begun + tick * _TICK_S - time.monotonic()))
            self._ticks += 1
            ts = (BASE_MS + round(self._ticks * _TICK_S * 1000)) << 18
            self._sending.send([*(self._event(ts + i) for i in range(self._each)), *self._marks(ts + self._each)])
            self.sent.append((ts + self._each, time.monotonic()))

    def _marks(self, ts: int) -> Iterator[Message]:
        return (Message(partition, watermark(ts)) for partition in range(PARTITIONS))

    def _event(self, ts: int) -> Message:
        number, before = self._chance.randrange(IDS), None
        if number in self.rows:
            before = {"id": number, "v": self.rows[number], "s": "x" * 40}
        self.rows[number] = self._chance.randrange(1 << 30)
        new = {"id": number, "v": self.rows[number], "s": "x" * 40}
        value = row_value("UPDATE" if before else "INSERT", f"{self._database}.t", ts, new, before)
        return Message(number % PARTITIONS, encoded(value))


class Looking(threading.Thread):
    """Looks how far the checkpoint is; `seen` holds (checkpoint, when it was there)."""

    def __init__(self, uri: str, changefeed: str) -> None:
        super().__init__(daemon=True)
        self._cells, self._changefeed = MariaDbCells(uri), changefeed
        self.seen: list[tuple[int, float]] = [(0, 0.0)]
        self._ending = threading.Event()

    def run(self) -> None:
        """Look until `end`."""
        while not self._ending.wait(_LOOK_S):
            checkpoint = int(self._cells.progress(self._changefeed)["checkpoint_ts"])
            if checkpoint > self.seen[-1][0]:
                self.seen.append((checkpoint, time.monotonic()))

    def end(self) -> None:
        """Stop looking."""
        self._ending.set()
        self.join()

    def latencies_ms(self, sent: list[tuple[int, float]]) -> list[float]:
        """One a watermark."""
        found, seen = [], iter(self.seen)
        checkpoint, at = next(seen)
        for ts, when in sent:
            while checkpoint < ts:
                checkpoint, at = next(seen)
            found.append(max(0.0, at - when) * 1000)
        return found


@contextmanager
def _running(config: Path) -> Iterator[int]:
    with config.with_suffix(".log").open("wb") as log:
        process = subprocess.Popen([RECONCILER, "run", config], stdout=log, stderr=log, env=environment())
    try:
        yield process.pid
    finally:
        process.terminate()
        process.wait(_START_S)


def measured(kafka: str, uri: str, place: Path, *, rate: int, seconds: float, warm_s: float) -> Latency:
    """Run a changefeed live. What is written in the first seconds warms it up and is not counted."""
    name, database = f"live-{uuid4().hex[:8]}", f"live_{uuid4().hex[:8]}"
    writer = Writer(Sending(kafka, name, PARTITIONS), database, rate)
    writer.begin()
    config = write_config(place / f"{name}.toml", changefeed=name, bootstrap=kafka, topic=name, uri=uri)
    cells = MariaDbCells(uri)
    with _running(config) as pid:
        eventually("the table is made", lambda: f"{database}.t" in cells.tables([database]), _START_S)
        looking = Looking(uri, name)
        looking.start()
        writer.write(warm_s)
        with TreeSampler(pid, interval_s=0.5) as tree:
            tree.wait_for(1)
            before = tree.cpu_s
            writer.write(seconds)
            tree.wait_for(1)
            used = tree.cpu_s - before
        eventually("all is applied", lambda: looking.seen[-1][0] >= writer.sent[-1][0], _START_S)
        looking.end()
    counted = writer.sent[round(warm_s / _TICK_S) :]
    ms = sorted(looking.latencies_ms(counted))
    correct = {int(row["id"]): int(row["v"]) for row in cells.tables([database])[f"{database}.t"][1]} == writer.rows
    drop_database(uri, database)
    p50, p99 = statistics.median(ms), ms[round(0.99 * (len(ms) - 1))]
    events = round(len(writer.sent) * rate * _TICK_S)
    sizes = [sample.tree >> 20 for sample in tree.samples]
    tenth = max(1, len(sizes) // 10)
    first, last = statistics.median(sizes[:tenth]), statistics.median(sizes[-tenth:])
    times = (round(p50), round(p99), round(ms[-1]))
    sizes_mb = (round(first), round(last), max(sizes))
    return Latency(events, len(ms), *times, *sizes_mb, round(100 * used / seconds, 1), correct)


def main(words: list[str] | None = None) -> int:
    """Measure, and print one line of JSON."""
    parser = argparse.ArgumentParser(prog="python -m tests.bench.latency", description=__doc__)
    parser.add_argument("--rate", type=int, default=2_000, help="events a second")
    parser.add_argument("--seconds", type=float, default=60.0)
    parser.add_argument("--warm-seconds", type=float, default=10.0, help="not counted")
    parser.add_argument("--kafka", default="", help="HOST:PORT of a broker; one is started otherwise")
    parser.add_argument("--server", default="", help="the target's URI; one is started otherwise")
    told = parser.parse_args(words)
    with ExitStack() as stack:
        place = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="ticdc-latency-")))
        kafka = told.kafka or stack.enter_context(KafkaBroker(place / "kafka", lasting=True)).bootstrap
        uri = told.server or stack.enter_context(MariaDbServer(place / "mariadb")).uri
        found = measured(kafka, uri, place, rate=told.rate, seconds=told.seconds, warm_s=told.warm_seconds)
    print(json.dumps(asdict(found)))
    return 0 if found.correct else 1


if __name__ == "__main__":
    sys.exit(main())
