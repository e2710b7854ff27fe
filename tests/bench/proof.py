"""`python -m tests.bench.proof`: what `[proof]` costs a run, with and without it in turns on the same load.

The CPU that counts is that of the run and of its target's server, from where the run leads until all events are
applied: Spark's start is the same for both. `--seconds` goes on after that, to see what a proof reads at rest too.
"""

import argparse
import json
import os
import subprocess
import tempfile
import time
from collections.abc import Callable
from contextlib import ExitStack, closing
from dataclasses import asdict, dataclass
from pathlib import Path
from uuid import uuid4

from consumer.config.model import load_config
from consumer.embedded import KafkaBroker
from consumer.proof.state import state_of
from consumer.wiring import target_of
from sinks.target import Target
from tests.bench.load import Load, Mark
from tests.bench.measure import RECONCILER, Sending, drop_database, environment, write_config
from tests.bench.scrub import server_cpu
from tests.bench.servers import SERVERS
from tests.bench.tree import TreeSampler
from tests.service.lab import toml_of

_LOOK_S = 0.1


@dataclass(frozen=True)
class Cost:
    """Of one run. `verdicts`: what its proofs have found of the tables at the end."""

    proof: bool
    events: int
    wall_s: float
    cpu_s: float
    server_cpu_s: float
    verdicts: list[str]
    loadavg: float


@dataclass(frozen=True)
class _Bench:
    """What all runs share. `until`: the last watermark; `server`: the process of the target's server."""

    place: Path
    load: Load
    bootstrap: str
    topic: str
    until: int
    uri: str
    server: int
    seconds: float

    def run(self, *, proof: bool) -> Cost:
        """Run until all is applied, and `seconds` more. Raises RuntimeError if it ends before."""
        changefeed = f"bench-{uuid4().hex[:8]}"
        path = self.place / f"{changefeed}.toml"
        settings = {"spark": {"master": f"local[{os.cpu_count()}]"}, "proof": {"enabled": proof}}
        path = write_config(
            path,
            changefeed=changefeed,
            bootstrap=self.bootstrap,
            topic=self.topic,
            uri=self.uri,
            extra=toml_of(settings),
        )
        command = [RECONCILER, "run", str(path)]
        with path.with_suffix(".log").open("wb") as log, closing(target_of(load_config(path))) as target:
            process = subprocess.Popen(command, stdout=log, stderr=log, env=environment())
            try:
                return self._measured(process, target, changefeed, proof=proof)
            finally:
                process.terminate()
                process.wait()
                drop_database(self.uri, self.load.database)

    def _measured(self, process: "subprocess.Popen[bytes]", target: Target, changefeed: str, *, proof: bool) -> Cost:
        with TreeSampler(process.pid) as tree:
            self._wait(process, lambda: target.stored(changefeed) is not None)
            begun, cpu, server = time.monotonic(), tree.cpu_s, server_cpu(self.server)
            self._wait(process, lambda: (target.applied(changefeed) or 0) >= self.until)
            wall = time.monotonic() - begun
            self._wait(process, lambda: time.monotonic() - begun > wall + self.seconds)
            tree.wait_for(1)
            used, server = tree.cpu_s - cpu, server_cpu(self.server) - server
        kept = state_of(target.proofs.state(changefeed)) if proof else None
        verdicts = [] if kept is None else [f"{name} {one.verdict} {one.rows}" for name, one in kept.judged.items()]
        figures = (round(one, 2) for one in (wall, used, server))
        return Cost(proof, self.load.events, *figures, verdicts, round(os.getloadavg()[0], 1))

    def _wait(self, process: "subprocess.Popen[bytes]", is_so: Callable[[], bool]) -> None:
        while not is_so():
            if process.poll() is not None:
                raise RuntimeError(f"the run ended with {process.returncode}")
            time.sleep(_LOOK_S)


def main() -> None:
    """Measure, a line of JSON a run."""
    asked = argparse.ArgumentParser(prog="python -m tests.bench.proof", description=__doc__)
    asked.add_argument("--events", type=int, default=1_000_000)
    asked.add_argument("--load", choices=["update-heavy", "insert-only"], default="update-heavy")
    asked.add_argument("--target", choices=["mysql", "postgresql"], default="mysql")
    asked.add_argument("--runs", type=int, default=2)
    asked.add_argument("--seconds", type=float, default=0.0)
    told = asked.parse_args()
    with ExitStack() as stack:
        place = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="ticdc-proof-")))
        bootstrap = stack.enter_context(KafkaBroker(place / "kafka", lasting=True)).bootstrap
        server = stack.enter_context(SERVERS[told.target](place / "server"))
        ids = told.events if told.load == "insert-only" else 0
        load = Load(told.events, ids=ids, database=f"bench_{uuid4().hex[:8]}")
        topic = f"bench-{uuid4().hex[:8]}"
        Sending(bootstrap, topic, load.partitions).send(load.messages())
        until = max(one.ts for one in load.changes() if isinstance(one, Mark))
        bench = _Bench(place, load, bootstrap, topic, until, server.uri, server.pid, told.seconds)
        for proof in (False, True) * told.runs:
            print(json.dumps(asdict(bench.run(proof=proof))), flush=True)


if __name__ == "__main__":
    main()
