"""The process that Spark's Python workers are forked from: it loads once what each of them would load for itself.

Spark's JVM runs it as `python -m consumer.spark.daemon pyspark.worker` (`spark.python.daemon.module`), on each machine
of a cluster. It serves as `pyspark.daemon` does.
"""

import gc
import sys
from collections.abc import Iterable, Iterator
from importlib import import_module
from importlib.util import find_spec

TASKS = (
    "consumer.tasks.order",
    "consumer.tasks.write",
    "consumer.tasks.second_look",
    "consumer.spark.local_files",
    "pyspark.worker",
)

_NEW_OBJECTS = 100_000


def loaded(numbers: Iterable[int]) -> Iterator[tuple[int, int]]:
    """A task that does nothing: once it has run, its worker is there."""
    for number in numbers:
        yield number, number


def _prefer_installed_pyspark() -> None:
    """Take PySpark from where it is installed, if it is, and not from the archive that Spark puts before it.

    Modules of an archive are compiled again by each process, and each task reads its directory once more.
    """
    archives = [place for place in sys.path if place.endswith(".zip")]
    sys.path[:] = [place for place in sys.path if place not in archives]
    if find_spec("pyspark") is None or find_spec("py4j") is None:
        sys.path[:0] = archives


def main() -> None:
    """Load, then fork a worker whenever Spark asks for one."""
    _prefer_installed_pyspark()
    for name in TASKS:
        import_module(name)
    # the worker collects garbage after each task: what it was born with need not be looked at, nor copied
    gc.collect()
    gc.freeze()
    # tasks make many objects and no cycles: looking for these after each 700 objects takes a tenth of their time
    gc.set_threshold(_NEW_OBJECTS)
    import_module("pyspark.daemon").manager()


if __name__ == "__main__":
    main()
