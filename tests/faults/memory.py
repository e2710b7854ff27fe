"""`python -m tests.faults.memory stuck|backlog|huge`: memory stays flat, whatever waits in Kafka.

`stuck`: one partition's watermarks stop while all events go on; nothing may be held in memory (R2), and all is applied
once they move. `backlog`: many windows in a row; the target equals the upstream at every checkpoint that is looked at,
and Kafka is read by Spark's tasks side by side, never by the driver. `huge`: see there.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import closing
from dataclasses import asdict, dataclass, field
from itertools import islice
from pathlib import Path
from statistics import mean
from typing import Any, Self
from uuid import uuid4

import psutil
import pymysql
from pymysql.constants import ER

from consumer.embedded import KafkaBroker
from tests.bench.load import Digest, Load, Mark, Message, digest_of, watermark
from tests.bench.measure import Sending, mysql_connection, table_digest, write_config
from tests.bench.tree import Sample, TreeSampler
from tests.embedded import MariaDbServer
from tests.faults.huge import Peaks, huge
from tests.faults.random_kills import Place, Victim
from tests.faults.targets import PROGRESS, view_of, wait_until

_APPLIED_WITHIN_S = 600.0
_SAMPLES_A_PORTION = 3


def growth(samples: list[Sample]) -> dict[str, float]:
    """By which part the last third's memory exceeds the first third's (what Python holds) or the middle's (all).

    At first Java's part grows whatever it does: it takes what garbage fills, up to its limit.
    """
    third = len(samples) // 3

    def grown(size: Callable[[Sample], int], before: list[Sample]) -> float:
        return round(mean(map(size, samples[-third:])) / mean(map(size, before)) - 1, 3)

    python = grown(lambda s: s.driver + s.workers, samples[:third])
    return {"python": python, "all": grown(lambda s: s.tree, samples[third:-third])}


def _parts(samples: list[Sample]) -> dict[str, list[int]]:
    """Mean MB of driver, JVM and workers in the three thirds."""
    third, names = len(samples) // 3, ("driver", "jvm", "workers")
    cuts = [samples[:third], samples[third:-third], samples[-third:]]
    return {name: [int(mean(getattr(s, name) for s in cut)) >> 20 for cut in cuts] for name in names}


@dataclass
class Stuck:
    """What a stuck watermark did."""

    events: int
    held_events: int
    samples: int
    growth: dict[str, float]
    thirds_mb: dict[str, list[int]]
    moved_meanwhile: bool
    correct: bool
    applied_after_s: float


def stuck_watermark(place: Place, *, warm: int, held: int, portions: int) -> Stuck:
    """Apply `warm` events, hold `held` more back, then let them go."""
    name = f"stuck-{uuid4().hex[:8]}"
    load = Load(warm + held, ids=max(1000, warm // 4), database=name.replace("-", "_"), watermark_every=500)
    sending = Sending(place.bootstrap, name, load.partitions)
    config = write_config(
        place.directory / f"{name}.toml", changefeed=name, bootstrap=place.bootstrap, topic=name, uri=place.uri
    )
    view, feed = view_of(place.uri, load.database, name), _Feed(load, sending)
    feed.send(warm)
    marked = feed.mark
    with Victim(config) as victim, TreeSampler(victim.process.pid, 0.2) as tree:
        wait_until(lambda: view.checkpoint() >= marked, "the first events are applied", _APPLIED_WITHIN_S)
        begun = len(tree.samples)
        for _ in range(portions):
            feed.send(held // portions, stuck=True)
            tree.wait_for(_SAMPLES_A_PORTION)
        feed.send(load.events, stuck=True)
        samples, moved = tree.samples[begun:], view.checkpoint() > marked
        released = tree.samples[-1].at
        sending.send([Message(0, watermark(feed.mark))])
        wait_until(lambda: view.checkpoint() >= feed.mark, "all is applied", _APPLIED_WITHIN_S)
        tree.wait_for(1)
        seconds = tree.samples[-1].at - released
    correct = table_digest(place.uri, load.database, load.table) == load.digest()
    view.drop()
    return Stuck(load.events, held, len(samples), growth(samples), _parts(samples), moved, correct, round(seconds, 1))


class _Feed:
    """Sends a load piece by piece; `mark` is the last watermark that came by."""

    def __init__(self, load: Load, sending: Sending) -> None:
        self.mark = 0
        self._load, self._sending, self._messages = load, sending, load.messages()

    def send(self, events: int, *, stuck: bool = False) -> None:
        """Send the next so many messages, up to a watermark, or what is left. `stuck`: partition 0 gets none."""
        self._sending.send(self._next(events, stuck=stuck))

    def _next(self, events: int, *, stuck: bool) -> Iterator[Message | Mark]:
        sent = 0
        for message in self._messages:
            if isinstance(message, Message):
                sent += 1
                yield message
                continue
            self.mark = message.ts
            # the watermark's own messages follow it, one a partition
            yield from islice(self._messages, 1 if stuck else 0, self._load.partitions)
            if sent >= events:
                return


@dataclass
class Backlog:
    """How a backlog was worked off."""

    events: int
    windows: int = 0
    checked: int = 0
    wrong: list[int] = field(default_factory=list)
    growth: dict[str, float] = field(default_factory=dict)
    thirds_mb: dict[str, list[int]] = field(default_factory=dict)
    peak_mb: dict[str, int] = field(default_factory=dict)
    topic_bytes: int = 0
    driver_bytes: int = 0
    readers: int = 0
    readers_at_once: int = 0
    processing_s: float = 0.0
    correct: bool = False


class Watcher:
    """While a backlog is worked off: digests of the target at its checkpoints, and who holds connections to Kafka."""

    def __init__(self, uri: str, load: Load, changefeed: str, pid: int, kafka_port: int) -> None:
        self.digests: dict[int, Digest] = {}
        self.readers: set[int] = set()
        self.at_once = 0
        self._uri, self._load, self._changefeed = uri, load, changefeed
        self._root, self._port = psutil.Process(pid), kafka_port
        self._stopping = threading.Event()
        self._failures: list[BaseException] = []
        self._threads = [
            threading.Thread(target=self._repeat, args=(work, seconds), daemon=True)
            for work, seconds in ((self._digest, 0.2), (self._look, 0.05))
        ]

    def __enter__(self) -> Self:
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stopping.set()
        for thread in self._threads:
            thread.join()
        if self._failures:
            raise self._failures[0]

    def _repeat(self, work: Callable[[], None], seconds: float) -> None:
        try:
            while not self._stopping.wait(seconds):
                work()
        except BaseException as error:  # noqa: BLE001 raised again at the end
            self._failures.append(error)

    def _digest(self) -> None:
        """Checkpoint and table in one read view."""
        with closing(mysql_connection(self._uri)) as connection, connection.cursor() as cursor:
            look = "SELECT COUNT(*) FROM information_schema.TABLES WHERE TABLE_SCHEMA = %s"
            if not cursor.execute(look, (self._load.database,)) or not cursor.fetchone()[0]:  # type: ignore[index]
                return
            cursor.execute("START TRANSACTION WITH CONSISTENT SNAPSHOT")
            cursor.execute(
                f"SELECT checkpoint_ts FROM {PROGRESS}.checkpoint WHERE changefeed = %s", (self._changefeed,)
            )
            (checkpoint,) = cursor.fetchone() or (0,)
            if checkpoint not in self.digests:
                place = f"`{self._load.database}`.`{self._load.table}`"
                try:
                    cursor.execute(f"SELECT id, k, c, pad FROM {place} ORDER BY id")
                except pymysql.err.OperationalError as error:
                    if error.args[0] == ER.TABLE_DEF_CHANGED:  # made in this moment: the next look's view has it
                        return
                    raise
                self.digests[int(checkpoint)] = digest_of(cursor)  # type: ignore[arg-type]

    def _look(self) -> None:
        holders = {process.pid for process in self._workers() if self._is_connected(process)}
        self.readers |= holders
        self.at_once = max(self.at_once, len(holders))

    def _workers(self) -> list[psutil.Process]:
        try:
            return [p for p in self._root.children(recursive=True) if p.name() != "java"]
        except psutil.Error:
            return []

    def _is_connected(self, process: psutil.Process) -> bool:
        try:
            return any(c.raddr and c.raddr.port == self._port for c in process.net_connections("tcp"))
        except psutil.Error:
            return False


def work_off(place: Place, *, events: int, window_rows: int) -> Backlog:
    """Let a backlog be worked off in windows of so many rows, looking on."""
    name = f"backlog-{uuid4().hex[:8]}"
    load = Load(events, database=name.replace("-", "_"), watermark_every=max(100, window_rows // 50))
    report = Backlog(events, topic_bytes=Sending(place.bootstrap, name, load.partitions).send(load.messages()))
    config = write_config(
        place.directory / f"{name}.toml",
        changefeed=name,
        bootstrap=place.bootstrap,
        topic=name,
        uri=place.uri,
        extra=f"[limits]\nwindow-rows = {window_rows}\n",
    )
    command = [sys.executable, "-m", "tests.faults.counted_run", str(config)]
    output = config.with_suffix(".log")
    with output.open("wb") as log:
        process = subprocess.Popen(command, stdout=log, stderr=log)
        port = int(place.bootstrap.rpartition(":")[2])
        with TreeSampler(process.pid) as tree, Watcher(place.uri, load, name, process.pid, port) as watcher:
            code = process.wait()
    lines = output.read_text(errors="replace").splitlines()
    if code != 0:
        raise RuntimeError(f"the run ended with {code}:\n" + "\n".join(lines[-20:]))
    _fill(report, json.loads(lines[-1]), tree, watcher)
    expected = load.digests(watcher.digests)
    report.wrong = [ts for ts, digest in watcher.digests.items() if digest != expected[ts]]
    report.correct = table_digest(place.uri, load.database, load.table) == load.digest()
    view_of(place.uri, load.database, name).drop()
    return report


def _fill(report: Backlog, told: dict[str, float], tree: TreeSampler, watcher: Watcher) -> None:
    report.windows, report.processing_s = int(told["windows"]), told["processing_s"]
    report.driver_bytes = int(told["driver_bytes"])
    report.checked = len(watcher.digests)
    report.readers, report.readers_at_once = len(watcher.readers), watcher.at_once
    end = tree.samples[-1].at
    working = [s for s in tree.samples if s.at > end - report.processing_s]
    report.growth, report.thirds_mb = growth(working), _parts(working)
    report.peak_mb = {part: tree.peak_mb(part) for part in ("driver", "jvm", "workers", "tree")}


def main() -> int:
    """Start servers, run one of them, and print JSON lines."""
    parser = argparse.ArgumentParser(prog="python -m tests.faults.memory", description=__doc__)
    parser.add_argument("what", choices=["stuck", "backlog", "huge"])
    parser.add_argument("--events", type=int, default=0)
    parser.add_argument("--rows", type=int, default=5_000_000, help="of the huge transaction")
    parser.add_argument("--small", action="store_true", help="huge: one window of small transactions instead")
    parser.add_argument("--consistency", nargs="+", default=["snapshot", "transaction", "row"])
    told = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="ticdc-memory-") as directory:
        place = Path(directory)
        with (
            KafkaBroker(place / "kafka") as broker,
            MariaDbServer(place / "mariadb", buffer_pool="1G", flush_at_commit=2) as mariadb,
        ):
            reports = list(_reports(told, Place(place, broker.bootstrap, mariadb.uri)))
    return 0 if all(report.correct for report in reports) else 1


def _reports(told: argparse.Namespace, where: Place) -> Iterator[Stuck | Backlog | Peaks]:
    if told.what == "stuck":
        found: Iterable[Any] = [stuck_watermark(where, warm=100_000, held=told.events or 500_000, portions=50)]
    elif told.what == "backlog":
        found = [work_off(where, events=told.events or 2_000_000, window_rows=100_000)]
    else:
        limits = f'[limits]\nwindow-rows = {2 * told.rows}\nwindow-bytes = "64GiB"\n' if told.small else ""
        found = huge(where, told.rows, told.consistency, small=told.small, limits=limits)
    for report in found:
        print(json.dumps(asdict(report) | {"loadavg": os.getloadavg()[0]}), flush=True)
        yield report


if __name__ == "__main__":
    sys.exit(main())
