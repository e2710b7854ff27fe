"""The command of an executor's pod in Kubernetes: Spark's executor, started from our image as Spark's own images do it.

Spark's driver tells the pod by `SPARK_...` variables what it is, and gives it one argument, `executor`. The pod's
template (`docker/kubernetes/spark/executors.yaml`) makes this module the command.
"""

import os
import shutil
import sys
from collections.abc import Mapping
from importlib.util import find_spec
from pathlib import Path

_BACKEND = "org.apache.spark.scheduler.cluster.k8s.KubernetesExecutorBackend"
_OPTIONS = {
    "--driver-url": "SPARK_DRIVER_URL",
    "--executor-id": "SPARK_EXECUTOR_ID",
    "--cores": "SPARK_EXECUTOR_CORES",
    "--app-id": "SPARK_APPLICATION_ID",
    "--hostname": "SPARK_EXECUTOR_POD_IP",
    "--resourceProfileId": "SPARK_RESOURCE_PROFILE_ID",
    "--podName": "SPARK_EXECUTOR_POD_NAME",
}
_JAVA_OPTION = "SPARK_JAVA_OPT_"
"""Followed by a number from 0 on: the order of the options."""


def command(environment: Mapping[str, str], java: str, jars: Path) -> list[str]:
    """The executor's command line. Raises KeyError for a variable that the driver did not set."""
    numbers = sorted(int(name.removeprefix(_JAVA_OPTION)) for name in environment if name.startswith(_JAVA_OPTION))
    memory = environment["SPARK_EXECUTOR_MEMORY"]
    more = environment.get("SPARK_CLASSPATH", "")
    return [
        *(java, *(environment[f"{_JAVA_OPTION}{number}"] for number in numbers)),
        *(f"-Xms{memory}", f"-Xmx{memory}", "-cp", ":".join(filter(None, (more, f"{jars}/*"))), _BACKEND),
        *(word for option, name in _OPTIONS.items() for word in (option, environment[name])),
    ]


def main() -> None:
    """Become the executor. Exits with 2 and the name of the variable where Spark's driver did not start this."""
    java, spark = shutil.which("java"), find_spec("pyspark")
    if java is None or spark is None or spark.origin is None or sys.argv[1:] != ["executor"]:
        sys.exit("error: this is the command of an executor's pod, see `reconciler help deploy`")
    try:
        line = command(os.environ, java, Path(spark.origin).parent / "jars")
    except KeyError as error:
        print(f"error: {error.args[0]} is not set: Spark's driver starts this, nobody else does", file=sys.stderr)  # noqa: T201
        sys.exit(2)
    os.execv(java, line)  # noqa: S606 a program of the image, with what the driver said


if __name__ == "__main__":
    main()
