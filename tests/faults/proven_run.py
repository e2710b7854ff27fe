"""`python -m tests.faults.proven_run --minutes 120`: the proof in the background of a run that is killed, under load.

A bank and a history of tables with and without a key go on upstream, with DDLs, changed keys, and all that TiCDC sent
lately once more now and then; `reconciler run` follows with `[proof]` and is killed every few minutes. No proof may
call a table different. At the end the target equals the upstream and a proof calls all tables equal; then one cell or
row of each table is changed by hand, and the next proof has to name just these tables.

A line of JSON every half minute (`--log`) tells the memory (PSS) of the run's processes, and what was proven so far.
SIGTERM ends the disturbing early; what comes at the end comes then.
"""

import argparse
import json
import random
import signal
import sys
import tempfile
import threading
import time
from collections import Counter, deque
from collections.abc import Iterable, Iterator
from contextlib import ExitStack, closing
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Self
from uuid import uuid4

import psutil

from consumer.config.model import load_config
from consumer.demo.fake_ticdc.changefeed import Message
from consumer.demo.fake_ticdc.database import LOGICAL_BITS
from consumer.demo.fake_ticdc.producer import produce
from consumer.embedded import KafkaBroker
from consumer.proof.state import TableJudgement, state_of
from consumer.wiring import target_of
from ordering.events import TableName
from tests.embedded import MariaDbServer, PostgresServer
from tests.faults.random_kills import Upstream, Victim
from tests.faults.targets import View, comparable, view_of, wait_until
from tests.service.cells import MariaDbCells
from tests.service.lab import toml_of
from tests.service.messages import BASE, watermarks
from tests.service.postgres_cells import PostgresCells
from tests.service.proof_histories import History, is_sql

_BREATH_S = 0.25
_SAMPLE_S = 30.0
_PROVEN_WITHIN_S = 900.0
_KEPT_MESSAGES = 4_000
"""So many of the latest messages can come once more."""
_LONGEST_LIFE_S = 900.0
_INTERVAL_S = 60
SERVERS: dict[str, Any] = {"mysql": MariaDbServer, "postgresql": PostgresServer}


@dataclass
class Report:
    """What a run saw. `verdicts`: how often a table was called what; `different`: each false alarm."""

    target: str
    seconds: float = 0.0
    transactions: int = 0
    messages: int = 0
    kills: int = 0
    replays: int = 0
    ddls: int = 0
    verdicts: Counter[str] = field(default_factory=Counter)
    different: list[str] = field(default_factory=list)
    is_equal: bool = False
    proven_equal: list[str] = field(default_factory=list)
    changed: dict[str, str] = field(default_factory=dict)
    found: list[str] = field(default_factory=list)
    thirds_mb: dict[str, list[int]] = field(default_factory=dict)
    """Mean PSS of the run's processes in each third of the time."""

    @property
    def right(self) -> bool:
        """Whether nothing was called different but what was changed by hand, and all of that."""
        proven = self.is_equal and bool(self.proven_equal) and self.verdicts["equal"] > 0
        return proven and not self.different and sorted(self.found) == sorted(self.changed)


class HistoryUpstream:
    """A history that goes on beside a bank, at the bank's clock, until it is told to stop.

    `repeat` sends the latest messages once more, as a restart of TiCDC does.
    """

    def __init__(self, bootstrap: str, topic: str, bank: Upstream, seed: int, per_second: int) -> None:
        self.history = History(random.Random(seed), keys=300, ddl_share=0.01)
        self.sent = self.ddls = self.replays = 0
        self._bank, self._per_second = bank, per_second
        self._latest: deque[list[Message]] = deque()
        self._stopping, self._repeat = threading.Event(), threading.Event()
        self._failure: BaseException | None = None
        self._thread = threading.Thread(target=self._send, args=(topic, bootstrap), daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.finish()

    @property
    def last_ts(self) -> int:
        """The last watermark."""
        return BASE + (self.history.number << LOGICAL_BITS)

    def repeat(self) -> None:
        """Send the latest messages once more, soon."""
        self._repeat.set()

    def finish(self) -> None:
        """Stop at a watermark above all that the bank has sent: call it when the bank has stopped."""
        self._stopping.set()
        self._thread.join()
        self.check()

    def check(self) -> None:
        """Raise what has ended the sending too early."""
        if self._failure is not None:
            raise self._failure

    def _send(self, topic: str, bootstrap: str) -> None:
        try:
            messages = (one._replace(topic=topic) for some in self._parts() for one in some)
            produce(messages, bootstrap, partitions=3)
        except BaseException as error:  # noqa: BLE001 raised again in `finish`
            self._failure = error

    def _parts(self) -> Iterator[list[Message]]:
        yield self.history.begun()
        begun = time.monotonic()
        while not self._stopping.wait(_BREATH_S):
            self._catch_up()
            if self._bank.is_ahead or self.sent > self._per_second * (time.monotonic() - begun):
                yield watermarks(self.history.number)
                continue
            yield self._kept(self.history.part())
            if self._repeat.is_set():
                self._repeat.clear()
                self.replays += 1
                yield from list(self._latest)
        self._catch_up()
        yield watermarks(self.history.number)

    def _catch_up(self) -> None:
        """Set the clock to the bank's, so that neither waits for the other's watermarks."""
        self.history.number = 1 + max(self.history.number, (self._bank.last_ts - BASE) >> LOGICAL_BITS)

    def _kept(self, some: list[Message]) -> list[Message]:
        self.sent += len(some)
        self.ddls += sum(b'"isDdl":true' in one.value for one in some)
        self._latest.append(some)
        while sum(map(len, self._latest)) > _KEPT_MESSAGES:
            self._latest.popleft()
        return some


class Watch:
    """Reads certificates and memory while the run goes on, and writes a line each time."""

    def __init__(self, config: Path, log: Path, report: Report) -> None:
        self._config, self._report, self._log = load_config(config), report, log.open("a")
        self._seen: set[str] = set()
        self._begun = time.monotonic()
        self._pss: list[dict[str, int]] = []
        self.is_over = False
        """Whether what differs from now on was changed by hand."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._log.close()

    def look(self, victim: Victim) -> None:
        """Count what was proven since the last look, and take the memory of the victim's processes."""
        self._proofs()
        pss = pss_of(victim.process.pid)
        if pss:
            self._pss.append(pss)
        line = {"at_s": round(time.monotonic() - self._begun), "pss_mb": pss, "kills": self._report.kills}
        line |= {"verdicts": dict(self._report.verdicts), "different": self._report.different}
        self._log.write(json.dumps(line) + "\n")
        self._log.flush()

    @property
    def certificates(self) -> int:
        """How many came so far."""
        return len(self._seen)

    def judged(self) -> dict[TableName, TableJudgement]:
        """What was found last of each table."""
        with closing(target_of(self._config)) as target:
            kept = state_of(target.proofs.state(self._config.changefeed))
        return {} if kept is None else dict(kept.judged)

    def thirds(self) -> dict[str, list[int]]:
        """Mean PSS in MB of each kind of process in each third of the time."""
        third = max(1, len(self._pss) // 3)
        cuts = [self._pss[at : at + third] for at in (0, third, 2 * third)]
        kinds = sorted({kind for one in self._pss for kind in one})
        return {kind: [sum(one.get(kind, 0) for one in cut) // max(1, len(cut)) for cut in cuts] for kind in kinds}

    def _proofs(self) -> None:
        with closing(target_of(self._config)) as target:
            found = target.proofs.certificates(self._config.changefeed, 1000)
        for one in reversed(found):
            if one not in self._seen:
                self._seen.add(one)
                self._count(json.loads(one))

    def _count(self, certificate: dict[str, Any]) -> None:
        for table in certificate["tables"]:
            self._report.verdicts[table["verdict"]] += 1
            if table["verdict"] == "different" and not self.is_over:
                name = f"{table['database']}.{table['table']}"
                self._report.different.append(f"{name} at {certificate['checkpoint_ts']}: {table['reason']}")


def pss_of(pid: int) -> dict[str, int]:
    """The proportional set size in MB of a process (`driver`), of Java below it, and of all else below it."""
    sizes: Counter[str] = Counter()
    try:
        for process in (psutil.Process(pid), *psutil.Process(pid).children(recursive=True)):
            role = "driver" if process.pid == pid else "jvm" if process.name() == "java" else "workers"
            sizes[role] += process.memory_full_info().pss
    except psutil.Error:  # one has ended meanwhile: the next look sees all
        return {}
    return {role: size >> 20 for role, size in sizes.items()}


@dataclass(frozen=True)
class Scene:
    """What a run's steps share."""

    config: Path
    view: View
    bank: Upstream
    history: HistoryUpstream
    watch: Watch
    report: Report
    cells: Any

    def disturb(self, until: float, chance: random.Random, stopping: threading.Event) -> None:
        """Kill the run every two to four minutes; every third life sees a replay."""
        while time.monotonic() < until and not stopping.is_set():
            with Victim(self.config) as victim:
                victim.moved(self.view, _PROVEN_WITHIN_S)
                if chance.random() < 0.4:
                    self.history.repeat()
                self._live(victim, min(until, time.monotonic() + chance.uniform(120, 240)), stopping)
            self.report.kills += 1

    def _live(self, victim: Victim, ends: float, stopping: threading.Event) -> None:
        """Look on until it is to be killed: not before it has proven something, however busy the machine is."""
        last, known = time.monotonic() + _LONGEST_LIFE_S, self.watch.certificates
        while not stopping.is_set() and (time.monotonic() < ends or self.watch.certificates == known):
            if time.monotonic() > last:
                return
            stopping.wait(min(max(0.1, ends - time.monotonic()), _SAMPLE_S))
            self.watch.look(victim)
            self.bank.check()
            self.history.check()

    def settle(self) -> None:
        """Let the run end its work, compare, wait until all is proven, and find what is changed by hand then."""
        self.bank.finish()
        self.history.finish()
        with Victim(self.config) as last:
            wait_until(lambda: self.view.checkpoint() >= self.bank.last_ts, "all is applied", _PROVEN_WITHIN_S)
            at = self.view.checkpoint()
            self.report.is_equal = self._equals_upstream()
            self._until(last, lambda found: all(one.verdict == "equal" and one.checkpoint_ts >= at for one in found))
            self.report.proven_equal = sorted(map(str, self.watch.judged()))
            self.watch.is_over = True
            self._change_by_hand()
            self._until(
                last, lambda found: sum(one.verdict == "different" for one in found) >= len(self.report.changed)
            )
            self.report.found = sorted(str(n) for n, one in self.watch.judged().items() if one.verdict == "different")
            last.stop()

    def _until(self, victim: Victim, is_so: Any) -> None:
        """Wait until the judgements of all tables are so, looking on."""

        def looked() -> bool:
            time.sleep(2)  # the poll's
            self.watch.look(victim)
            judged = self.watch.judged()
            return bool(judged) and is_so(judged.values())

        wait_until(looked, "the tables are proven", _PROVEN_WITHIN_S)

    def _equals_upstream(self) -> bool:
        is_bank_equal = self.view.state()[1] == comparable(self.bank.bank.database.snapshot())
        names = self.history.history.named
        expected = {names[name]: rows_of(rows.values()) for name, rows in self.history.history.rows.items()}
        found = {name: rows_of(rows) for name, (_, rows) in self.cells.tables(["d"]).items()}
        return is_bank_equal and {f"d.{name}": rows for name, rows in expected.items()} == found

    def _change_by_hand(self) -> None:
        """Change a cell of a random row in each table, a key's at times; a table without rows gets one."""
        chance = random.Random(1)
        for name in map(str, self.watch.judged()):
            database, _, table = name.partition(".")
            columns, rows = self.cells.tables([database])[name]
            statement = changed(chance, table, columns, rows)
            self.cells.run(database, statement)
            self.report.changed[name] = statement


def changed(chance: random.Random, table: str, columns: list[str], rows: list[dict[str, Any]]) -> str:
    """A statement that changes one cell of one row to another value of the same kind."""
    if not rows:
        number, text = ("1", "'1'")
        return f"INSERT INTO {table} ({columns[0]}) VALUES ({text if table.startswith('k') else number})"
    row = chance.choice(rows)
    column = chance.choice([name for name in columns if row[name] is not None])
    other = "'~'" if isinstance(row[column], str) else "987654"
    return f"UPDATE {table} SET {column} = {other} WHERE " + " AND ".join(
        is_sql(name, value.replace("'", "''") if isinstance(value := row[name], str) else value) for name in columns
    )


def rows_of(rows: Iterable[dict[str, Any]]) -> list[str]:
    """Rows in an order of their own, comparable."""
    return sorted(repr(sorted(row.items())) for row in rows)


def config_of(path: Path, bootstrap: str, uri: str) -> Path:
    """Write the config of a run that reads the bank's topic, which is named as the file, and the history's."""
    topics = [path.stem, f"{path.stem}-d"]
    sections = {
        "changefeed": path.stem,
        "source": {"bootstrap-servers": bootstrap, "topics": topics, "equal-rows": "count"},
        "redis": {"uri": ""},
        "target": {"uri": uri},
        "spark": {"master": "local[2]"},
        "filter": {"force-replicate": True},
        "proof": {"enabled": True, "rows-per-second": 5000, "interval-seconds": _INTERVAL_S},
    }
    path.write_text(toml_of(sections))
    return path


def play(place: Path, told: argparse.Namespace, report: Report) -> None:
    """All of it, on servers of its own."""
    chance, name = random.Random(told.seed), f"proven-{uuid4().hex[:8]}"
    with ExitStack() as stack:
        bootstrap = stack.enter_context(KafkaBroker(place / "kafka", lasting=True)).bootstrap
        uri = stack.enter_context(SERVERS[told.target](place / "server")).uri
        database = name.replace("-", "_")
        config = config_of(place / f"{name}.toml", bootstrap, uri)
        share = told.per_second / 2
        view = view_of(uri, database, name)
        bank = Upstream(bootstrap, name, view_of(uri, database, name), told.seed, per_second=max(50, int(share / 5)),
                        accounts=150, ddl=0.001)  # fmt: skip
        cells = stack.enter_context(closing(PostgresCells(uri) if told.target == "postgresql" else MariaDbCells(uri)))
        stack.enter_context(bank)
        history = stack.enter_context(HistoryUpstream(bootstrap, f"{name}-d", bank, told.seed, int(share)))
        watch = stack.enter_context(Watch(config, told.log, report))
        scene = Scene(config, view, bank, history, watch, report, cells)
        begun = time.monotonic()
        stopping = threading.Event()
        signal.signal(signal.SIGTERM, lambda *_: stopping.set())
        scene.disturb(begun + 60 * told.minutes, chance, stopping)
        scene.settle()
        report.seconds, report.thirds_mb = round(time.monotonic() - begun, 1), watch.thirds()
        report.transactions, report.messages = bank.transactions, history.sent
        report.replays, report.ddls = history.replays, history.ddls


def main() -> int:
    """Play, and print a JSON line; 1 if something was not right."""
    parser = argparse.ArgumentParser(prog="python -m tests.faults.proven_run", description=__doc__)
    parser.add_argument("--minutes", type=float, default=120)
    parser.add_argument("--target", choices=list(SERVERS), default="mysql")
    parser.add_argument("--per-second", type=int, default=300, help="messages, about")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--log", type=Path, default=Path("proven_run.jsonl"))
    told = parser.parse_args()
    report = Report(told.target)
    try:
        with tempfile.TemporaryDirectory(prefix="ticdc-proven-") as place:
            play(Path(place), told, report)
    finally:  # also what was seen before an error
        print(json.dumps(vars(report) | {"right": report.right}), flush=True)
    return 0 if report.right else 1


if __name__ == "__main__":
    sys.exit(main())
