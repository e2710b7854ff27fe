"""`python -m tests.faults.answers_run --kills 20 --target mysql`: what is told of applied windows, with leaders killed.

Two `reconciler serve` stand by for each other. Whoever leads is killed (SIGKILL) again and again, at random moments,
and started anew. Meanwhile others wait for commits, by `consumer.wait_for`, by `/wait` of either process, and by the
view `applied`. After each kill, and after each takeover, the audit table has each commit up to C in just one line.
Nobody is told early, and each is told in the end. A line of JSON is printed.
"""

import argparse
import json
import random
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import asdict, dataclass, field
from pathlib import Path
from uuid import uuid4

import httpx

from consumer.config.model import config_from
from consumer.demo.fake_ticdc.changefeed import Message
from consumer.demo.fake_ticdc.producer import produce
from consumer.embedded import KafkaBroker
from consumer.library.wait import wait_for
from consumer.operate.audit import audit_of
from ordering.errors import ReconcilerError
from tests.faults.answers import DATABASE, Told, made, reader_of, wrong_lines
from tests.faults.random_kills import TARGETS, Place, started
from tests.faults.targets import View, view_of, wait_until
from tests.service.lab import PARTITIONS, toml_of
from tests.service.messages import at, insert, watermarks
from tests.serving.lab import HEADERS, Serving

_WITHIN_S = 240.0
_PER_BATCH = 8
_BREATH_S = 0.2
_ASK_S = 5
_MANY = 100_000
_WAITERS = 6


@dataclass
class Report:
    """What was seen."""

    target: str
    consistency: str
    kills: int = 0
    commits: int = 0
    lines: int = 0
    unnamed: int = 0
    """Lines of rows whose tables a crash has taken."""
    answers: dict[str, int] = field(default_factory=dict)
    again: dict[str, int] = field(default_factory=dict)
    early: list[str] = field(default_factory=list)
    wrong: list[str] = field(default_factory=list)
    seconds: float = 0.0

    @property
    def right(self) -> bool:
        """Whether all that was told was right, and all was told."""
        kinds = {"library", "http", "view"}
        return self.lines > 0 and not self.early and not self.wrong and kinds <= set(self.answers)


class Sender:
    """Sends commits until it is told to stop, some of them once more."""

    def __init__(self, bootstrap: str, topic: str, chance: random.Random) -> None:
        self._topic, self._chance = topic, chance
        self.number = 0
        self._stopping, self._last = threading.Event(), 0
        self._failure: BaseException | None = None
        self._thread = threading.Thread(target=self._run, args=(bootstrap,), daemon=True)

    def start(self) -> None:
        """Make the table, and begin."""
        self._thread.start()

    def finish(self, number: int) -> None:
        """Send up to this commit at least, and stop."""
        self._last = number
        self._stopping.set()
        self._thread.join()
        if self._failure is not None:
            raise self._failure

    def _run(self, bootstrap: str) -> None:
        try:
            messages = (one._replace(topic=self._topic) for some in self._parts() for one in some)
            produce(messages, bootstrap, partitions=PARTITIONS, config={"linger.ms": 0})
        except BaseException as error:  # noqa: BLE001 raised again in `finish`
            self._failure = error

    def _parts(self) -> Iterator[list[Message]]:
        yield made()
        while not (self._stopping.wait(_BREATH_S) and self.number >= self._last):
            first = max(1, self.number + 1 - (9 if self._chance.random() < 0.3 else 0))  # some come again
            last = self.number + self._chance.randrange(1, _PER_BATCH)
            rows = [insert(f"{DATABASE}.t", n, n % PARTITIONS, id=n, v=n, s="x") for n in range(first, last + 1)]
            self.number = last  # before they are there: who reads it asks for later ones
            yield [*rows, *watermarks(last)]


class Pair:
    """Two processes that serve one changefeed; each can be killed."""

    def __init__(self, folders: list[Path], stack: ExitStack) -> None:
        self._folders, self._stack = folders, stack
        self.all = [stack.enter_context(Serving(folder)) for folder in folders]

    def again(self, number: int) -> None:
        """Start one anew."""
        self.all[number] = self._stack.enter_context(Serving(self._folders[number]))

    def leader(self, view: View) -> int:
        """Which one leads, once one leads and the other one stands by."""
        found: list[tuple[int, int]] = []

        def ready() -> bool:
            pids = [one.process.pid for one in self.all]
            found[:] = [(pid, epoch) for pid, epoch in view.instances() if pid in pids]
            return len(found) == len(pids) and [epoch > 0 for _, epoch in found] == [True, False]

        wait_until(ready, "one leads and the other one stands by", _WITHIN_S)
        return [one.process.pid for one in self.all].index(found[0][0])

    def ask(self, name: str, number: int) -> Callable[[int], bool]:
        """Waits by HTTP; if one does not answer, the next question goes to the other one."""
        turn = [number]

        def asked(tso: int) -> bool:
            turn[0] += 1
            serving = self.all[turn[0] % len(self.all)]
            try:
                url = f"{serving.url}api/v2/changefeeds/{name}/wait"
                answer = httpx.get(url, params={"tso": tso, "timeout": _ASK_S}, headers=HEADERS, timeout=60)
            except httpx.HTTPError:
                time.sleep(0.1)
                return False
            found = answer.json()
            return answer.status_code == 200 and bool(found["covered"]) and int(found["checkpoint_ts"]) >= tso

        return asked


class Campaign:
    """One changefeed whose leaders are killed."""

    def __init__(self, place: Place, consistency: str, seed: int) -> None:
        self._name = f"told-{uuid4().hex[:8]}"
        self._place, self._chance = place, random.Random(seed)
        self._values = {
            "changefeed": self._name,
            "source": {"bootstrap-servers": place.bootstrap, "topics": [self._name]},
            "target": {"uri": place.uri, "consistency": consistency, "audit": True},
            "redis": {"uri": ""},
            "limits": {"lease-seconds": 6, "retry-seconds": 0.5},
        }
        self._config = config_from(self._values, self._name)
        self._view = view_of(place.uri, DATABASE, self._name)
        self._sender = Sender(place.bootstrap, self._name, self._chance)
        self.report = Report(place.uri.partition(":")[0], consistency)

    def run(self, kills: int) -> Report:
        """Kill so many leaders."""
        begun_at, report, view = time.monotonic(), self.report, self._view
        with ExitStack() as stack:
            stack.callback(view.drop)
            self._sender.start()
            pair = Pair(self._folders(), stack)
            asks = {
                "library": [self._library] * _WAITERS,
                "http": [pair.ask(self._name, number) for number in range(_WAITERS)],
            }
            told = stack.enter_context(Told(self._place.uri, self._name, lambda: self._sender.number, asks))
            wait_until(lambda: view.checkpoint() > 0, "one leads", _WITHIN_S)
            for _ in range(kills):
                self._kill(pair)
                report.kills += 1
            self._sender.finish(told.stop_asking() + 1)
            report.commits = self._sender.number
            wait_until(lambda: view.checkpoint() >= at(report.commits), "all is applied", _WITHIN_S)
            told.finish(_WITHIN_S)
            for one in pair.all:
                one.ended()
            self._check(at_end=True)
            if reader_of(self._place.uri).rows(report.commits) != report.commits:
                report.wrong.append("rows are missing at the end")
        report.answers, report.again, report.early = dict(told.answers), dict(told.again), told.early
        report.seconds = round(time.monotonic() - begun_at, 1)
        return report

    def _folders(self) -> list[Path]:
        folders = [self._place.directory / f"{self._name}-{side}" for side in "ab"]
        for folder in folders:
            folder.mkdir()
            (folder / "_serve.toml").write_text('[spark]\nmaster = "local[1]"\n')
            (folder / f"{self._name}.toml").write_text(toml_of(self._values))
        return folders

    def _kill(self, pair: Pair) -> None:
        view, leads = self._view, pair.leader(self._view)
        before = view.checkpoint()
        wait_until(lambda: view.checkpoint() > before, "the checkpoint moves", _WITHIN_S)
        time.sleep(self._chance.uniform(0, 1))  # the random moment
        pair.all[leads].process.kill()
        pair.all[leads].process.wait()
        self._check()
        at_kill = view.checkpoint()
        wait_until(lambda: view.checkpoint() > at_kill, "the other one goes on", _WITHIN_S)
        self._check()
        pair.again(leads)

    def _library(self, tso: int) -> bool:
        try:
            return wait_for(self._config, tso, _ASK_S).covered
        except ReconcilerError:
            return False  # the target knows nothing of it yet

    def _check(self, *, at_end: bool = False) -> None:
        low = self._view.checkpoint()
        lines = audit_of(self._config, _MANY)[::-1]
        commits = [at(number) for number in range(1, self._sender.number + 1)]
        if self.report.consistency == "transaction" and not at_end:
            low = 0
        self.report.wrong += wrong_lines(lines, commits, low, self._view.checkpoint())
        self.report.lines = len(lines)
        self.report.unnamed = sum(line["rows_by_table"] is None for line in lines)


def main() -> int:
    """Start servers, kill, and print a JSON line."""
    parser = argparse.ArgumentParser(prog="python -m tests.faults.answers_run", description=__doc__)
    parser.add_argument("--kills", type=int, default=20)
    parser.add_argument("--target", choices=TARGETS, default="mysql")
    parser.add_argument("--consistency", choices=["snapshot", "transaction", "row"], default="snapshot")
    parser.add_argument("--seed", type=int, default=1)
    told = parser.parse_args()
    with ExitStack() as stack:
        place = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="ticdc-told-")))
        broker = stack.enter_context(KafkaBroker(place / "kafka"))
        uri = started(told.target, place, stack)
        campaign = Campaign(Place(place, broker.bootstrap, uri), told.consistency, told.seed)
        report = campaign.run(told.kills)
    print(json.dumps(asdict(report) | {"right": report.right}))
    return 0 if report.right else 1


if __name__ == "__main__":
    sys.exit(main())
