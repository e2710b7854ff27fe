"""`python -m tests.bench.scaling`: reading, decoding and reducing on a standalone cluster of one and of two workers.

No target: what is measured is the part of the work that more executors take over. Each worker lends one core.
"""

import argparse
import statistics
import sys
import tempfile
import time
from contextlib import ExitStack
from pathlib import Path
from uuid import uuid4

from consumer.config.model import SparkSection
from consumer.embedded import KafkaBroker
from consumer.kafka.properties import reader_settings
from consumer.spark.context import start_spark, stop_spark, warm_up
from consumer.spark.jobs import SparkJobs
from tests.bench.limits import ranges_of, whole
from tests.bench.load import Load
from tests.bench.measure import Sending
from tests.cluster.standalone import Standalone


def seconds_with(workers: int, kafka: str, topic: str, runs: int, place: Path) -> float:
    """The median of some runs, once everything is warm."""
    with Standalone(place, workers=workers) as cluster:
        context = start_spark("scaling", SparkSection(**cluster.settings()))
        try:
            warm_up(context)
            jobs, ranges = SparkJobs(context, reader_settings(kafka, {})), tuple(ranges_of(kafka, topic))
            times = []
            for _ in range(runs + 1):
                begun = time.monotonic()
                reports = jobs.job(ranges, whole(ranges)).reports()
                times.append(time.monotonic() - begun)
            assert sum(report.stop - report.range.start for report in reports) == sum(r.stop - r.start for r in ranges)
        finally:
            stop_spark(context)
    return statistics.median(times[1:])


def main(words: list[str] | None = None) -> int:
    """Measure, and print a line for each size of the cluster."""
    parser = argparse.ArgumentParser(prog="python -m tests.bench.scaling", description=__doc__)
    parser.add_argument("--events", type=int, default=1_000_000)
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--kafka", default="", help="HOST:PORT of a broker; one is started otherwise")
    told = parser.parse_args(words)
    with ExitStack() as stack:
        place = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="ticdc-scaling-")))
        kafka = told.kafka or stack.enter_context(KafkaBroker(place / "kafka", lasting=True)).bootstrap
        topic, load = f"scaling-{uuid4().hex[:8]}", Load(told.events)
        Sending(kafka, topic, load.partitions).send(load.messages())
        found = {workers: seconds_with(workers, kafka, topic, told.runs, place / str(workers)) for workers in (1, 2)}
    for workers, seconds in found.items():
        print(f"workers={workers} read_decode_reduce_s={seconds:.2f} events_per_s={told.events / seconds:.0f}")
    print(f"ratio={found[1] / found[2]:.2f}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
