"""`python -m tests.bench`: servers, load, run, check, a line a run. Exit code 1 if a table is wrong.

Loads: `update-heavy` (sysbench-like, a tenth as many rows as events), `insert-only`, `shop` (40 tables, transactions of
1 and of 1,000 rows), `wide` (100 columns, 5 KB), `many` (1,000 CREATE TABLEs, then INSERTs into all of them).
`--limits` measures in the same run what reading alone takes, and reading with decoding and reducing.
"""

import argparse
import json
import os
import sys
import tempfile
import time
from contextlib import ExitStack
from dataclasses import asdict, dataclass
from datetime import date
from pathlib import Path
from uuid import uuid4

from consumer.embedded import KafkaBroker
from consumer.native import Wanted, chosen
from tests.bench.limits import measured_limits
from tests.bench.load import Load
from tests.bench.measure import AnyLoad, Result, Sending, drop_database, measured_run, write_config
from tests.bench.servers import SERVERS
from tests.bench.tables import Many, Shop, Wide
from tests.cluster.standalone import Standalone
from tests.service.lab import toml_of

HISTORY = Path(__file__).with_name("history.jsonl")
MODES = {"auto": ("auto",), "true": (True,), "false": (False,), "both": (True, False)}
LOADS = ("update-heavy", "insert-only", "shop", "wide", "many")


def _arguments(words: list[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.bench", description=__doc__)
    parser.add_argument("--events", type=int, default=1_000_000)
    parser.add_argument("--load", choices=LOADS, default=LOADS[0])
    parser.add_argument("--ids", type=int, default=0, help="rows of update-heavy's table; else a tenth of the events")
    parser.add_argument("--ddls", type=int, default=0, help="DDLs spread over update-heavy")
    parser.add_argument("--tables", type=int, default=1000, help="tables of `many`")
    parser.add_argument("--target", choices=[*SERVERS, "sqlite"], default="mysql")
    parser.add_argument("--kafka", default="", help="HOST:PORT of a broker; one is started otherwise")
    parser.add_argument("--server", default="", help="the target's URI; one is started otherwise")
    parser.add_argument("--runs", type=int, default=1, help="runs on the same load, each into an empty target")
    parser.add_argument("--limits", action="store_true", help="measure reading alone, and with decoding and reducing")
    parser.add_argument(
        "--native", choices=MODES, default="auto", help="spark.native; both: with and without, in turns"
    )
    parser.add_argument("--workers", type=int, default=0, help="so many one-core workers of a standalone cluster")
    parser.add_argument("--record", action="store_true", help=f"append the results to {HISTORY.name}")
    parser.add_argument("--name", default="ticdc-reconciler")
    parser.add_argument("--json", action="store_true", help="print JSON lines")
    return parser.parse_args(words)


def main(words: list[str] | None = None) -> int:
    """Measure, and print a line a run."""
    told = _arguments(words)
    if told.native != "false":
        chosen(True)  # with a core that can't be used, figures would be Python's
    with ExitStack() as stack:
        place = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="ticdc-bench-")))
        bootstrap = told.kafka or stack.enter_context(KafkaBroker(place / "kafka", lasting=True)).bootstrap
        uri = told.server or f"sqlite:///{place}/sqlite"
        if told.target != "sqlite" and not told.server:
            uri = stack.enter_context(SERVERS[told.target](place / "server")).uri
        load = _load(told)
        cluster = stack.enter_context(Standalone(place / "cluster", told.workers)) if told.workers else None
        topic = _sent(load, bootstrap)
        bench = _Bench(f"{told.name} {told.load}", place, load, bootstrap, topic, uri, cluster)
        results = [bench.run(mode) for _ in range(told.runs) for mode in MODES[told.native]]
        for result in results:
            print(json.dumps(asdict(result)) if told.json else result.line())
        if told.record:
            _record(results, told.workers)
        if told.limits:
            for mode in MODES[told.native]:
                limits = measured_limits(bootstrap, bench.topic, mode)
                print(json.dumps(limits.as_json()) if told.json else limits.line())
    return 0 if all(result.correct for result in results) else 1


def _record(results: list[Result], workers: int) -> None:
    """Append to the history, one line a run: figures of different machines and days are not to be compared."""
    with HISTORY.open("a") as history:
        for result in results:
            told = {"date": date.today().isoformat(), "cores": os.cpu_count(), "workers": workers, **asdict(result)}  # noqa: DTZ011 of the machine
            history.write(json.dumps(told) + "\n")


def _load(told: argparse.Namespace) -> AnyLoad:
    database = f"bench_{uuid4().hex[:8]}"
    match told.load:
        case "shop":
            return Shop(told.events, database=database)
        case "wide":
            return Wide(told.events, database=database)
        case "many":
            return Many(told.events, count=told.tables, database=database)
    ids = told.events if told.load == "insert-only" else told.ids
    return Load(told.events, ids=ids, database=database, ddls=told.ddls)


def _sent(load: AnyLoad, bootstrap: str) -> str:
    topic, begun = f"bench-{uuid4().hex[:8]}", time.monotonic()
    size = Sending(bootstrap, topic, load.partitions).send(load.messages())
    seconds = time.monotonic() - begun
    print(f"{load.events} events, {size >> 20} MB sent to topic {topic} in {seconds:.1f} s", file=sys.stderr)
    return topic


@dataclass(frozen=True)
class _Bench:
    """What all runs share."""

    name: str
    place: Path
    load: AnyLoad
    bootstrap: str
    topic: str
    uri: str
    cluster: Standalone | None

    def run(self, native: Wanted = "auto") -> Result:
        """Run into an empty target, and leave nothing of it in a server that may be somebody's."""
        changefeed = f"bench-{uuid4().hex[:8]}"
        uri = f"{self.uri}/{changefeed}" if self.uri.startswith("sqlite") else self.uri
        path = self.place / f"{changefeed}.toml"
        settings = self.cluster.settings() if self.cluster else {"master": f"local[{os.cpu_count()}]"}
        spark = toml_of({"spark": {**settings, "native": native}})
        config = write_config(
            path, changefeed=changefeed, bootstrap=self.bootstrap, topic=self.topic, uri=uri, extra=spark
        )
        try:
            name = self.name if native == "auto" else f"{self.name} native={native}"
            return measured_run(name, config, self.load, uri, self.cluster.processes() if self.cluster else [])
        finally:
            drop_database(uri, self.load.database)


if __name__ == "__main__":
    sys.exit(main())
