"""`python -m tests.faults.handovers --count 500 --target mysql`: leaders that are stopped, killed or ended.

Instances of one changefeed, each with a JVM of its own, follow a live upstream. Again and again the leader is taken
out: SIGSTOP (and SIGCONT once another one leads, or while it takes over), SIGKILL, or SIGTERM. Told is how long it took
until the epoch had risen and until the checkpoint moved again. A trigger in the target writes down who saved what; see
`audit`.
"""

import argparse
import json
import os
import random
import signal
import sys
import tempfile
import time
from contextlib import ExitStack
from dataclasses import dataclass, field
from math import ceil
from pathlib import Path
from statistics import median

import psutil

from consumer.embedded import KafkaBroker, RedisServer
from ordering.errors import LeadershipLostError
from tests.faults.audit import Audit, Verdict, audit_of, judged
from tests.faults.drivers import Drivers
from tests.faults.random_kills import Place, Report, started, under_load
from tests.faults.targets import View, wait_until

_WITHIN_S = 240.0
_TOLD_EVERY = 50
KINDS = {"stop": signal.SIGSTOP, "kill": signal.SIGKILL, "end": signal.SIGTERM}
_CODES = {"stop": LeadershipLostError.exit_code, "kill": -signal.SIGKILL, "end": 0}


@dataclass
class Times:
    """Seconds from the signal until another instance led, and until the checkpoint moved."""

    led: list[float] = field(default_factory=list)
    moved: list[float] = field(default_factory=list)

    def told(self) -> dict[str, float]:
        """The distribution."""
        led, moved = sorted(self.led), sorted(self.moved)
        if not led:
            return {}
        p95 = ceil(0.95 * (len(led) - 1))
        return {
            "count": len(led),
            "led_median_s": round(median(led), 2),
            "led_p95_s": round(led[p95], 2),
            "led_max_s": round(led[-1], 2),
            "moved_median_s": round(median(moved), 2),
            "moved_p95_s": round(moved[p95], 2),
            "moved_max_s": round(moved[-1], 2),
        }


@dataclass
class Slot:
    """A place for one instance at a time."""

    drivers: Drivers
    config: Path
    trace: Path
    pid: int = 0

    def start(self) -> None:
        """Start one."""
        self.pid = self.drivers.start(self.config, self.trace)


class HandOvers:
    """Takes out one leader after the other; see `Disturb`."""

    def __init__(self, kinds: list[str], count: int, instances: int, seed: int) -> None:
        self._kinds, self._count, self._instances = kinds, count, instances
        self._chance = random.Random(seed)
        self.times = {kind: Times() for kind in KINDS}
        self.verdict = Verdict(0, 0, "nothing happened")

    def __call__(self, config: Path, view: View, report: Report) -> None:
        """Disturb."""
        audit = audit_of(view.uri, view.changefeed)
        with ExitStack() as stack:
            slots = [
                Slot(
                    stack.enter_context(Drivers(config.with_suffix(f".{n}.log"), os.environ)),
                    config,
                    config.with_suffix(f".{n}.trace"),
                )
                for n in range(self._instances)
            ]
            for number, slot in enumerate(slots):
                slot.start()
                if number == 0:
                    wait_until(lambda: view.checkpoint() > 0, "the first one leads", _WITHIN_S)
                    audit.begin()
            for number in range(self._count):
                self._hand_over(self._kinds[number % len(self._kinds)], slots, audit, view)
                report.kills += 1
                if report.kills % _TOLD_EVERY == 0:
                    times = {kind: times.told() for kind, times in self.times.items()}
                    print(f"{report.kills} hand-overs, {times}", file=sys.stderr, flush=True)
            self._ready(slots, view)
            for slot in slots:
                os.kill(slot.pid, signal.SIGTERM)
                if (code := slot.drivers.ended()) != 0:
                    raise RuntimeError(f"an instance ended with {code}:\n{slot.drivers.said()}")
        self.verdict = judged(audit.lines())
        audit.end()

    def _hand_over(self, kind: str, slots: list[Slot], audit: Audit, view: View) -> None:
        leader, before = self._ready(slots, view), view.checkpoint()
        wait_until(lambda: view.checkpoint() > before, "the checkpoint moves", _WITHIN_S)
        time.sleep(self._chance.uniform(0, 0.5))  # the random moment
        epoch, early = audit.epoch(), kind == "stop" and self._chance.random() < 0.2
        begun = time.monotonic()
        os.kill(leader.pid, KINDS[kind])
        at = view.checkpoint()
        if early:  # it goes on while another one takes over, or before
            time.sleep(self._chance.uniform(0, 3.0))
            os.kill(leader.pid, signal.SIGCONT)
            if audit.epoch() == epoch:  # nobody has noticed: it leads on
                return
        wait_until(lambda: audit.epoch() > epoch, f"another one leads after {kind}", _WITHIN_S)
        led = time.monotonic() - begun
        wait_until(lambda: view.checkpoint() > at, f"the checkpoint moves after {kind}", _WITHIN_S)
        if not early:
            self.times[kind].led.append(led)
            self.times[kind].moved.append(time.monotonic() - begun)
        if kind == "stop" and not early:
            time.sleep(self._chance.uniform(0, 0.5))
            os.kill(leader.pid, signal.SIGCONT)
        if not early:
            code = leader.drivers.ended()
            if code != _CODES[kind]:
                raise RuntimeError(f"{kind}: the leader ended with {code}:\n{leader.drivers.said()}")
            leader.start()

    def _ready(self, slots: list[Slot], view: View) -> Slot:
        """Wait until one leads and all others stand by; who leads."""
        pids, found = {slot.pid: slot for slot in slots}, [(0, 0)]

        def ready() -> bool:
            self._start_again(slots, pids)
            found[:] = [(pid, epoch) for pid, epoch in view.instances() if pid in pids]
            return len(found) == len(pids) and [epoch > 0 for _, epoch in found] == [True] + [False] * (len(pids) - 1)

        wait_until(ready, "one leads and all others stand by", _WITHIN_S)
        return pids[found[0][0]]

    def _start_again(self, slots: list[Slot], pids: dict[int, Slot]) -> None:
        """As a supervisor does: start those that have ended since another one leads."""
        for slot in slots:
            if not psutil.pid_exists(slot.pid):
                if (code := slot.drivers.ended()) != LeadershipLostError.exit_code:
                    raise RuntimeError(f"a leader that was stopped ended with {code}:\n{slot.drivers.said()}")
                del pids[slot.pid]
                slot.start()
                pids[slot.pid] = slot


def main() -> int:
    """Start servers, hand over, and print a JSON line."""
    parser = argparse.ArgumentParser(prog="python -m tests.faults.handovers", description=__doc__)
    parser.add_argument("--count", type=int, default=100)
    parser.add_argument("--target", choices=["mysql", "postgresql", "sqlite"], default="mysql")
    parser.add_argument("--consistency", choices=["snapshot", "transaction", "row"], default="snapshot")
    parser.add_argument("--kinds", nargs="+", choices=sorted(KINDS), default=["stop"])
    parser.add_argument("--instances", type=int, default=2)
    parser.add_argument("--lease-seconds", type=float, default=6.0)
    parser.add_argument("--without-redis", action="store_true")
    parser.add_argument("--seed", type=int, default=1)
    told = parser.parse_args()
    with ExitStack() as stack:
        place = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="ticdc-handovers-")))
        broker = stack.enter_context(KafkaBroker(place / "kafka"))
        uri = started(told.target, place, stack, flush_at_commit=2)
        redis = "" if told.without_redis else stack.enter_context(RedisServer(place / "redis")).uri
        extra = f'consistency = "{told.consistency}"\n[redis]\nuri = "{redis}"\n'
        extra += f"[limits]\nlease-seconds = {told.lease_seconds}\n"
        handing = HandOvers(told.kinds, told.count, told.instances, told.seed)
        where = Place(place, broker.bootstrap, uri, extra)
        report = under_load(where, handing, seed=told.seed, audited=told.consistency != "row")
    right = report.right and not handing.verdict.wrong
    out = vars(told) | {
        "right": right,
        "equal": report.equal,
        "looks": report.reads,
        "wrong_looks": len(report.wrong),
        "audit": vars(handing.verdict),
        "times": {kind: times.told() for kind, times in handing.times.items() if times.led},
        "transactions": report.transactions,
        "seconds": report.seconds,
    }
    print(json.dumps(out))
    return 0 if right else 1


if __name__ == "__main__":
    sys.exit(main())
