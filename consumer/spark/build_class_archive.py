"""Makes the archive of Java classes (`class_archive`): `python -m consumer.spark.build_class_archive`.

Starts Spark, has it do what a window does, and lets the JVM write down what it has loaded.
"""

import os
import select
import subprocess
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path

from pyspark import SparkContext

from consumer.config.model import SparkSection
from consumer.runtime import logs
from consumer.runtime.file_locks import try_lock
from consumer.runtime.scratch import scratch_directory
from consumer.spark.class_archive import MAKING, place_to_make
from consumer.spark.context import ensure_java, start_spark, warm_up
from consumer.spark.jobs import shuffled

_PATIENCE_S = 60.0
"""So long a run that goes on is left alone."""
_MAKE_S = 300.0
_LEAST = 19
"""Of all processes this one is the least urgent."""


def make(place: Path) -> None:
    """Make the archive, unless somebody else is at it. Raises CalledProcessError, TimeoutExpired."""
    lock = try_lock(place.with_suffix(".lock"))
    if lock is None:
        return
    with lock:
        unfinished = place.with_suffix(".new")
        unfinished.unlink(missing_ok=True)
        making = {**os.environ, MAKING: str(unfinished)}
        subprocess.run(
            [sys.executable, "-m", "consumer.spark.build_class_archive"], env=making, check=True, timeout=_MAKE_S
        )
        unfinished.replace(place)


def exercise() -> None:
    """Do what a window does, in the JVM that archives its classes when it ends."""
    with scratch_directory() as scratch:
        _exercise(start_spark("class-archive", SparkSection(), scratch))


def _exercise(context: SparkContext) -> None:
    warm_up(context)
    records = context.parallelize(range(4), 2).mapPartitions(_records)
    rows = shuffled(records, 3)
    context.runJob(rows.values(), list, [0])
    list(rows.mapPartitions(list).toLocalIterator(prefetchPartitions=True))
    rows.mapPartitions(list).coalesce(2).collect()
    context.parallelize([0], 1).mapPartitions(_records).collect()
    gateway = SparkContext._gateway  # noqa: SLF001
    context.stop()
    gateway.shutdown()
    gateway.proc.stdin.close()  # the JVM ends with it, and writes the archive
    gateway.proc.wait(_MAKE_S)


def _records(numbers: Iterable[int]) -> Iterator[tuple[int, bytes]]:
    for number in numbers:
        yield number, b"a row"


def main(words: list[str]) -> None:
    """Make the archive in its place, or in the file that is named.

    `--wait FILE`: once standard input has ended, or by and by.
    """
    logs.set_up(json=False, verbose=False)  # what Spark's JVM says in passing is nobody's business here
    if os.environ.get(MAKING):
        exercise()
        return
    if words[:1] == ["--wait"]:
        select.select([sys.stdin], [], [], _PATIENCE_S)
    os.nice(_LEAST)
    ensure_java()
    place = Path(words[-1]) if words else place_to_make()
    if place is not None:
        make(place)


if __name__ == "__main__":
    main(sys.argv[1:])
