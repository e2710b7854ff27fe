"""What is said when Spark's workers fail names the cause, not only that a call failed."""

import pytest
from py4j.protocol import Py4JError

from consumer.spark.context import warm_up
from ordering.errors import WorkerLostError

TOLD = """An error occurred while calling z:org.apache.spark.api.python.PythonRDD.collectAndServe.
: org.apache.spark.api.python.PythonException: [PYTHON_EXCEPTION] An exception was thrown from the Python worker:
  File "/somewhere/consumer/spark/context.py", line 12, in <module>
    import structlog
ModuleNotFoundError: No module named 'structlog'
 SQLSTATE: 38000
\tat org.apache.spark.api.python.BasePythonRunner$ReaderIterator.hasNext(PythonRunner.scala:1034)
"""


class Broken:
    """A context whose workers can't start."""

    defaultParallelism = 2  # noqa: N815 Spark's name

    def parallelize(self, *_: object) -> None:
        raise Py4JError(TOLD)


def test_workers_that_cannot_start_say_why() -> None:
    with pytest.raises(WorkerLostError, match="ModuleNotFoundError: No module named 'structlog'"):
        warm_up(Broken())
