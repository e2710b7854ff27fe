"""`python -m tests.bench.read_ahead`: a backlog of several windows, with and without reading ahead, in turns.

All runs share one process and one Spark, which the first run warms up: it is not printed. A line a run, then the ratios
of the pairs: how many times as fast it is with reading ahead.
"""

import argparse
import statistics
import sys
import tempfile
import time
from contextlib import ExitStack, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from uuid import uuid4

import psutil
from pyspark import SparkContext

from consumer.config.model import Config, SparkSection, load_config
from consumer.embedded import KafkaBroker
from consumer.run.progress_log import Display
from consumer.run.runner import Runner
from consumer.spark.context import start_spark, stop_spark, warm_up
from consumer.tuning import MEASURED
from tests.bench.load import Load
from tests.bench.measure import Sending, drop_database, table_digest, write_config
from tests.bench.servers import SERVERS

MASTER = "local[2]"


@dataclass(frozen=True)
class Pairs:
    """Runs of one load into one target."""

    load: Load
    bootstrap: str
    topic: str
    uri: str
    place: Path
    window_rows: int
    spark: SparkContext

    def seconds(self, *, ahead: bool) -> float:
        """Processing of one run. Raises RuntimeError if a table is wrong."""
        changefeed = f"ahead-{uuid4().hex[:8]}"
        uri = f"{self.uri}/{changefeed}" if self.uri.startswith("sqlite") else self.uri
        runner = Runner(
            self._config(changefeed, uri), Display(), spark=self.spark, tuning=replace(MEASURED, reads_ahead=ahead)
        )
        before = _cpu_s()
        outcome = runner.run(once=True, started=time.monotonic())
        used = _cpu_s() - before
        expected = self.load.expected()
        found = {table: table_digest(uri, self.load.database, table) for table in expected}
        drop_database(uri, self.load.database)
        if found != expected:
            raise RuntimeError(f"{changefeed}: a table is wrong")
        print(f"{ahead=} processing_s={outcome.processing_s:.2f} cpu_s={used:.1f}", flush=True)
        return outcome.processing_s

    def _config(self, changefeed: str, uri: str) -> Config:
        extra = f'[limits]\nwindow-rows = {self.window_rows}\n[spark]\nmaster = "{MASTER}"'
        path = self.place / f"{changefeed}.toml"
        own = {"bootstrap": self.bootstrap, "topic": self.topic, "uri": uri, "extra": extra}
        return load_config(write_config(path, changefeed=changefeed, **own))


def _cpu_s() -> float:
    """CPU seconds of this process and what it has started: Spark, and the servers."""
    me, used = psutil.Process(), 0.0
    for process in [me, *me.children(recursive=True)]:
        with suppress(psutil.NoSuchProcess):  # a connection's process that ended meanwhile
            times = process.cpu_times()
            used += times.user + times.system
    return used


def main(words: list[str] | None = None) -> int:
    """Measure, and print."""
    parser = argparse.ArgumentParser(prog="python -m tests.bench.read_ahead", description=__doc__)
    parser.add_argument("--events", type=int, default=800_000)
    parser.add_argument("--window-rows", type=int, default=100_000)
    parser.add_argument("--pairs", type=int, default=5)
    parser.add_argument("--target", choices=[*SERVERS, "sqlite"], default="mysql")
    told = parser.parse_args(words)
    with ExitStack() as stack:
        place = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="ticdc-ahead-")))
        bootstrap = stack.enter_context(KafkaBroker(place / "kafka", lasting=True)).bootstrap
        uri = f"sqlite:///{place}/sqlite"
        if told.target != "sqlite":
            uri = stack.enter_context(SERVERS[told.target](place / "server")).uri
        load, topic = Load(told.events, database=f"ahead_{uuid4().hex[:8]}"), f"ahead-{uuid4().hex[:8]}"
        Sending(bootstrap, topic, load.partitions).send(load.messages())
        spark = start_spark("bench", SparkSection(master=MASTER), place)
        stack.callback(stop_spark, spark)
        warm_up(spark)
        pairs = Pairs(load, bootstrap, topic, uri, place, told.window_rows, spark)
        pairs.seconds(ahead=False)
        ratios = [_ratio(pairs, turn) for turn in range(told.pairs)]
    print(f"ratios {[round(ratio, 2) for ratio in ratios]}, median {statistics.median(ratios):.2f}")
    return 0


def _ratio(pairs: Pairs, turn: int) -> float:
    """Seconds without against seconds with; each begins every second time."""
    order = (False, True) if turn % 2 else (True, False)
    seconds = {ahead: pairs.seconds(ahead=ahead) for ahead in order}
    return seconds[False] / seconds[True]


if __name__ == "__main__":
    sys.exit(main())
