"""`python -m tests.bench.peers`: Flink and this program, in turns on one topic; results in a file, a table from it.

Servers with their default durability: each commit is on the disk. Each run begins with an empty target, and its table
is compared with the load. *Processing* begins when Flink's source runs, or when ours is ready. Run nothing else
meanwhile. `--table` prints the table of the last results, which docs/performance.md holds.
"""

import argparse
import json
import os
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from statistics import median
from uuid import uuid4

from consumer.embedded import KafkaBroker
from tests.bench.load import Load
from tests.bench.measure import Sending, drop_database, made_table, measured_run, table_digest, write_config
from tests.bench.peers import flink
from tests.bench.servers import DURABLE
from tests.bench.tree import TreeSampler

RESULTS = Path(__file__).with_name("results.json")
_NAMES = {"mysql": "MariaDB", "postgresql": "PostgreSQL"}
_BEGUN = re.compile(r"^(\d{13}) .*Source: source.* switched from INITIALIZING to RUNNING", re.MULTILINE)


@dataclass(frozen=True)
class Measured:
    """One run; seconds, and megabytes of all its processes together."""

    who: str
    target: str
    processing_s: float
    wall_s: float
    peak_mb: int
    cpu_s: float
    loadavg: float
    correct: bool


@dataclass(frozen=True)
class Turns:
    """What all runs share."""

    place: Path
    load: Load
    bootstrap: str
    topic: str

    def ours(self, kind: str, uri: str) -> Measured:
        """One run of this program, into a target without a table."""
        name = f"turn-{uuid4().hex[:8]}"
        config = write_config(
            self.place / f"{name}.toml", changefeed=name, bootstrap=self.bootstrap, topic=self.topic, uri=uri
        )
        found = measured_run(name, config, self.load, uri)
        drop_database(uri, self.load.database)
        return Measured(
            "ours",
            kind,
            found.processing_s,
            found.wall_s,
            found.tree_peak_mb,
            found.cpu_s,
            found.loadavg,
            found.correct,
        )

    def flink(self, kind: str, uri: str) -> Measured:
        """One run of Flink, into an empty table."""
        log = self.place / f"flink-{uuid4().hex[:8]}.log"
        command = [sys.executable, "-m", "tests.bench.peers.flink", self.bootstrap, self.topic, self.load.database, uri]
        with made_table(uri, self.load.database, self.load.table), log.open("wb") as output:
            begun, at = time.monotonic(), time.time()
            process = subprocess.Popen(command, stdout=output, stderr=output)
            with TreeSampler(process.pid) as tree:
                code = process.wait()
            wall_s = time.monotonic() - begun
            said = log.read_text(errors="replace")
            if code != 0 or not (started := _BEGUN.search(said)):
                raise RuntimeError(f"Flink ended with {code}:\n" + "\n".join(said.splitlines()[-20:]))
            found = table_digest(uri, self.load.database, self.load.table)
        correct = found == self.load.expected()[self.load.table]
        start_s = int(started[1]) / 1000 - at
        return Measured(
            "flink", kind, round(wall_s - start_s, 2), round(wall_s, 2), tree.peak_mb("tree"), round(tree.cpu_s, 1),
            round(os.getloadavg()[0], 2), correct,
        )  # fmt: skip


def main(words: Sequence[str] | None = None) -> int:
    """Measure, keep the results, print the table."""
    parser = argparse.ArgumentParser(prog="python -m tests.bench.peers", description=__doc__)
    parser.add_argument("--events", type=int, default=1_000_000)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--targets", nargs="+", choices=list(DURABLE), default=list(DURABLE))
    parser.add_argument("--results", type=Path, default=RESULTS)
    parser.add_argument("--table", action="store_true", help="only print the table of the last results")
    told = parser.parse_args(words)
    if not told.table:
        runs = list(_measured(told.events, told.rounds, told.targets))
        told.results.write_text(json.dumps({**_about(told.events), "runs": [asdict(run) for run in runs]}, indent=1))
    print(table_of(json.loads(told.results.read_text())))
    return 0


def _measured(events: int, rounds: int, targets: Sequence[str]) -> Iterator[Measured]:
    flink.libraries()
    load = Load(events, database=f"bench_{uuid4().hex[:8]}")
    with ExitStack() as stack:
        place = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="ticdc-peers-")))
        bootstrap = stack.enter_context(KafkaBroker(place / "kafka", lasting=True)).bootstrap
        uris = {kind: stack.enter_context(DURABLE[kind](place / kind)).uri for kind in targets}
        topic = f"peers-{uuid4().hex[:8]}"
        Sending(bootstrap, topic, load.partitions).send(load.messages())
        turns = Turns(place, load, bootstrap, topic)
        for _ in range(rounds):
            for kind, uri in uris.items():
                for run in (turns.flink, turns.ours):
                    found = run(kind, uri)
                    print(found, file=sys.stderr, flush=True)
                    yield found


def _about(events: int) -> dict[str, object]:
    """Where and with what the runs were made."""
    return {
        "date": datetime.now(UTC).date().isoformat(),
        "cores": os.cpu_count(),
        "events": events,
        "ours": version("ticdc-reconciler"),
        "flink": flink.LIBRARIES.partition("==")[2],
    }


def table_of(results: dict[str, list[dict[str, float | str]]]) -> str:
    """The table in Markdown: medians, and the ratio of Flink's to ours."""
    lines = ["| target | | Flink | this | ratio |", "|---|---|---|---|---|"]
    kinds = {"processing_s": ("processing", "s"), "wall_s": ("wall", "s"), "cpu_s": ("CPU of all processes", "s"),
             "peak_mb": ("memory of all processes", "MB")}  # fmt: skip
    for target in dict.fromkeys(str(run["target"]) for run in results["runs"]):
        for number, (key, (what, unit)) in enumerate(kinds.items()):
            flinks, ours = (
                median(float(r[key]) for r in results["runs"] if r["target"] == target and r["who"] == who)
                for who in ("flink", "ours")
            )
            shown = [f"{value:,.0f}" if unit == "MB" else f"{value:.1f}" for value in (flinks, ours)]
            first = _NAMES[target] if number == 0 else ""
            lines.append(f"| {first} | {what} | {shown[0]} {unit} | {shown[1]} {unit} | {flinks / ours:.1f} |")
    return "\n".join(lines)


if __name__ == "__main__":
    sys.exit(main())
