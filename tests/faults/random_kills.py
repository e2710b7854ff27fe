"""`python -m tests.faults.random_kills --kills 200 --target mysql`: kill -9 at random moments under live load.

A bank goes on upstream while `reconciler run` follows it and is killed, again and again, at moments counted from the
first movement of the checkpoint after each start. All the time a reader adds up the target's balances in one
consistent read. At the end the target equals the upstream, and no read ever saw a wrong total.
"""

import argparse
import json
import os
import random
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, nullcontext, suppress
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Self
from uuid import uuid4

import psutil

from consumer.demo.fake_ticdc.bank import Bank
from consumer.demo.fake_ticdc.changefeed import Changefeed
from consumer.demo.fake_ticdc.database import LOGICAL_BITS, Entry
from consumer.demo.fake_ticdc.producer import produce
from consumer.embedded import KafkaBroker, die_with_parent
from tests.bench.measure import RECONCILER, write_config
from tests.embedded import MariaDbServer, PostgresServer, TidbServer
from tests.faults.targets import View, comparable, view_of, wait_until

_MOVES_WITHIN_S = 240.0
_ENDS_WITHIN_S = 180.0
_BREATHS_PER_S = 50
_MOST_AHEAD = 2_000
_DDL = 0.003


@dataclass
class Report:
    """What a run of kills saw."""

    target: str
    kills: int = 0
    reads: int = 0
    wrong: list[tuple[int, int]] = field(default_factory=list)
    transactions: int = 0
    seconds: float = 0.0
    equal: bool = False
    audited: bool = True

    @property
    def right(self) -> bool:
        """Whether nothing was lost, doubled or half seen."""
        return self.equal and not self.wrong and (self.reads > 0 or not self.audited)


class Upstream:
    """A bank that goes on until it is told to stop; its messages go to a topic as they come into being.

    It never runs further ahead of the target than so many transactions: on a slow machine the load is slow too.
    """

    def __init__(
        self,
        bootstrap: str,
        topic: str,
        view: View,
        seed: int,
        *,
        per_second: int,
        accounts: int = 10,
        ddl: float = _DDL,
    ) -> None:
        self.bank = Bank(seed, accounts=accounts, ddl=ddl, name=view.database)
        self.transactions, self.last_ts, self._per_second = 0, 0, per_second
        self.is_ahead = False
        self._view, self._stopping = view, threading.Event()
        feed = Changefeed(seed=seed, topic=topic, default_topic=topic, watermark_every=8, restart_every=40)
        self._failure: BaseException | None = None
        self._thread = threading.Thread(target=self._send, args=(feed, bootstrap), daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.finish()

    def _send(self, feed: Changefeed, bootstrap: str) -> None:
        try:
            produce(feed.messages(self._entries()), bootstrap, partitions=feed.partitions)
        except BaseException as error:  # noqa: BLE001 raised again in `finish`
            self._failure = error

    def _entries(self) -> Iterator[Entry]:
        log = self.bank.database.log
        while True:
            yield from log
            self.last_ts = log[-1].commit_ts if log else self.last_ts
            log.clear()
            if self._stopping.wait(1 / _BREATHS_PER_S):
                return
            self.is_ahead = self._ahead() > _MOST_AHEAD
            if self.is_ahead:
                continue
            self.bank.run(self._per_second // _BREATHS_PER_S)
            self.transactions += self._per_second // _BREATHS_PER_S

    def _ahead(self) -> int:
        """How many transactions the target lies behind, about."""
        behind = max(self._view.checkpoint(), self.bank.opened_ts)
        return ((self.last_ts >> LOGICAL_BITS) - (behind >> LOGICAL_BITS)) // self.bank.database.clock.step_ms

    def finish(self) -> None:
        """Stop, and wait until the last watermark has been sent."""
        self._stopping.set()
        self._thread.join()
        self.check()

    def check(self) -> None:
        """Raise what has ended the sending too early."""
        if self._failure is not None:
            raise self._failure


class Auditor:
    """Adds up the target's balances, over and over."""

    def __init__(self, view: View, bank: Bank, report: Report) -> None:
        self._view, self._bank, self._report = view, bank, report
        self._tables = [table.name for table in bank.accounts]
        self._stopping = threading.Event()
        self._failure: BaseException | None = None
        self._thread = threading.Thread(target=self._run, daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stopping.set()
        self._thread.join()
        if self._failure is not None:
            raise self._failure

    def _run(self) -> None:
        try:
            while not self._stopping.wait(0.01):
                self._read()
        except BaseException as error:  # noqa: BLE001 raised again at the end
            self._failure = error

    def _read(self) -> None:
        found = self._view.totals(self._tables)
        if found is None or found[0] < self._bank.opened_ts:
            return
        self._report.reads += 1
        if found[1] != self._bank.total:
            self._report.wrong.append(found)


def lives(process: psutil.Process) -> bool:
    """Whether a process runs; a zombie does not."""
    try:
        return process.is_running() and process.status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


def python_workers(tree: list[psutil.Process]) -> list[psutil.Process]:
    """The forks of Spark's daemon."""
    parents = {}
    for process in tree:
        with suppress(psutil.NoSuchProcess):  # it has ended since the tree was listed
            if "consumer.spark.daemon" in " ".join(process.cmdline()):
                parents[process] = process.ppid()
    daemons = {process.pid for process in parents}
    return [process for process, parent in parents.items() if parent in daemons]


def jvm(tree: list[psutil.Process]) -> list[psutil.Process]:
    """Spark's JVM."""
    found = []
    for process in tree:
        with suppress(psutil.NoSuchProcess):
            if process.name() == "java":
                found.append(process)
    return found


def archive_builders(tree: list[psutil.Process]) -> list[psutil.Process]:
    """What makes Spark's class archive once, at a low priority: it goes on whatever becomes of the run."""
    found = []
    for process in tree:
        with suppress(psutil.NoSuchProcess):  # it has ended since the tree was listed
            if "consumer.spark.build_class_archive" in process.cmdline():
                found += [process, *process.children(recursive=True)]
    return found


class Victim:
    """`reconciler run` in a process of its own; it dies with this process."""

    def __init__(self, config: Path) -> None:
        self._log = config.with_suffix(".log").open("ab")
        command = [
            sys.executable,
            "-I",
            "-S",
            die_with_parent.__file__,
            str(os.getpid()),
            RECONCILER,
            "run",
            str(config),
        ]
        self.process = subprocess.Popen(command, stdout=self._log, stderr=subprocess.STDOUT)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.kill()
        self._log.close()

    @property
    def tree(self) -> list[psutil.Process]:
        """The driver's descendants: the JVM and the Python workers."""
        return [process for process in psutil.Process(self.process.pid).children(recursive=True) if lives(process)]

    def part(self, choose: Callable[[list[psutil.Process]], list[psutil.Process]]) -> list[psutil.Process]:
        """Some of the tree, once there are any: between two jobs a worker may be replaced."""
        found: list[psutil.Process] = []

        def looked() -> bool:
            found[:] = choose(self.tree)
            return bool(found)

        wait_until(looked, f"{choose.__name__} runs")
        return found

    def moved(self, view: View, within_s: float = _MOVES_WITHIN_S) -> None:
        """Return once the checkpoint has moved. Raises if the process ends before."""
        before = view.checkpoint()

        def moved() -> bool:
            if self.process.poll() is not None:
                raise RuntimeError(f"reconciler run ended with {self.process.returncode}: see {self._log.name}")
            return view.checkpoint() > before

        wait_until(moved, "the checkpoint moves", within_s)

    def kill(self) -> None:
        """SIGKILL to the driver; what it started has to end by itself."""
        if self.process.poll() is not None:
            return
        tree = self.tree
        staying = archive_builders(tree)
        orphans = [process for process in tree if process not in staying]
        self.process.send_signal(signal.SIGKILL)
        self.process.wait()
        wait_until(lambda: not any(map(lives, orphans)), f"all of {orphans} end with their driver", _ENDS_WITHIN_S)

    def stop(self) -> int:
        """SIGTERM; the exit code."""
        self.process.send_signal(signal.SIGTERM)
        return self.process.wait(_ENDS_WITHIN_S)


@dataclass(frozen=True)
class Place:
    """Where a run takes place: Kafka, a target, room for files."""

    directory: Path
    bootstrap: str
    uri: str
    extra: str = ""


Disturb = Callable[[Path, View, Report], None]
"""Disturbs a changefeed, given by its config and the view of its target, while the upstream goes on."""


def under_load(place: Place, disturb: Disturb, *, seed: int, per_second: int = 150, audited: bool = True) -> Report:
    """Disturb the following of a live upstream, let it finish, and compare; see the module.

    `audited`: a reader looks on. In `row` consistency it may see halves, so nobody looks.
    """
    name = f"kills-{uuid4().hex[:8]}"
    uri = f"{place.uri}/{name}" if place.uri.startswith("sqlite") else place.uri
    path, database = place.directory / f"{name}.toml", name.replace("-", "_")
    config = write_config(path, changefeed=name, bootstrap=place.bootstrap, topic=name, uri=uri, extra=place.extra)
    report, begun = Report(uri.partition(":")[0], audited=audited), time.monotonic()
    view = view_of(uri, database, name)
    with ExitStack() as left:
        left.callback(view.drop)  # other tests compare all that their server holds
        upstream = left.enter_context(
            Upstream(place.bootstrap, name, view_of(uri, database, name), seed, per_second=per_second)
        )
        auditor = Auditor(view_of(uri, database, name), upstream.bank, report)
        with auditor if audited else nullcontext():
            disturb(config, view, report)
            upstream.finish()
            _finish(config, view, upstream)
        report.equal = view.state()[1] == comparable(upstream.bank.database.snapshot())
        report.transactions = upstream.transactions
    report.seconds = round(time.monotonic() - begun, 1)
    return report


def kills(count: int, seed: int) -> Disturb:
    """Kill the driver so many times at random moments, each time with a JVM and workers that have to end with it."""
    chance = random.Random(seed)

    def disturb(config: Path, view: View, report: Report) -> None:
        for _ in range(count):
            with Victim(config) as victim:
                victim.moved(view)
                for choose in (jvm, python_workers):
                    victim.part(choose)
                time.sleep(chance.uniform(0, 2.5))  # the random moment
            report.kills += 1

    return disturb


def _finish(config: Path, view: View, upstream: Upstream) -> None:
    """Run undisturbed until all is applied, and stop in good order."""
    with Victim(config) as last:
        wait_until(lambda: view.checkpoint() > upstream.last_ts, "all is applied", _MOVES_WITHIN_S)
        if (code := last.stop()) != 0:
            raise RuntimeError(f"SIGTERM ended it with {code}")


TARGETS = ("mysql", "postgresql", "sqlite", "tidb")


def started(target: str, place: Path, stack: ExitStack, *, flush_at_commit: int = 1) -> str:
    """The URI of a target, whose server runs as long as the stack lasts."""
    if target == "mysql":
        return stack.enter_context(MariaDbServer(place / "mariadb", flush_at_commit=flush_at_commit)).uri
    if target == "postgresql":
        return stack.enter_context(PostgresServer(place / "postgres")).uri
    if target == "tidb":
        return stack.enter_context(TidbServer(place / "tidb")).uri
    return f"sqlite:///{place}"


def main() -> int:
    """Start servers, kill, and print a JSON line."""
    parser = argparse.ArgumentParser(prog="python -m tests.faults.random_kills", description=__doc__)
    parser.add_argument("--kills", type=int, default=200)
    parser.add_argument("--target", choices=TARGETS, default="mysql")
    parser.add_argument("--consistency", choices=["snapshot", "transaction", "row"], default="snapshot")
    parser.add_argument("--seed", type=int, default=1)
    told = parser.parse_args()
    with ExitStack() as stack:
        place = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="ticdc-kills-")))
        broker = stack.enter_context(KafkaBroker(place / "kafka"))
        uri = started(told.target, place, stack)
        where = Place(place, broker.bootstrap, uri, f'consistency = "{told.consistency}"\n')
        killing, audited = kills(told.kills, told.seed), told.consistency != "row"
        report = under_load(where, killing, seed=told.seed, audited=audited)
    print(json.dumps(asdict(report) | {"right": report.right}))
    return 0 if report.right else 1


if __name__ == "__main__":
    sys.exit(main())
