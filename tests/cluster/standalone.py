"""A standalone cluster on this machine: a master, and workers with a core each, by Spark's own `spark-class`."""

import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Self
from urllib.error import URLError
from urllib.request import urlopen

import psutil
import pyspark

from consumer.embedded.ports import lease_port
from consumer.embedded.process import ServerProcess
from consumer.spark.context import ensure_java
from sinks.private_files import open_file

_SPARK_CLASS = Path(pyspark.__file__).parent / "bin" / "spark-class"
_HOST = "127.0.0.1"
_ANSWER_S = 5.0
_SECRET = "shared-by-cluster-and-changefeed"
_QUICK = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"
"""For JVMs that live for seconds: they spend less on compiling than they save."""
_CLOSED = {
    "spark.authenticate": "true",
    "spark.authenticate.secret": _SECRET,
    "spark.network.crypto.enabled": "true",
}


class Standalone:
    """A cluster at `master` that takes nobody without its secret, and talks encrypted; every worker lends one core.

    A context that leaves no process behind.
    """

    def __init__(self, directory: Path, workers: int = 2, memory: str = "1g") -> None:
        self._directory, self._memory = directory, memory
        self._ports = [lease_port(), lease_port(), *(lease_port() for _ in range(workers))]
        self._page = f"http://{_HOST}:{self._ports[1].port}/json/"
        self.master = f"spark://{_HOST}:{self._ports[0].port}"
        # PySpark's own directory holds no other Spark, and executors find Java as we do
        ensure_java()
        launcher = ["env", f"SPARK_HOME={Path(pyspark.__file__).parent}", f"SPARK_LOCAL_IP={_HOST}"]
        launcher += [f"SPARK_DAEMON_JAVA_OPTS={_QUICK}", f"SPARK_LAUNCHER_OPTS={_QUICK}"]
        directory.mkdir(parents=True, exist_ok=True)
        with open_file(self._directory / "closed.properties", "wb") as settings:  # as docs/security.md says
            settings.write("".join(f"{name} {value}\n" for name, value in _CLOSED.items()).encode())
        ports = ["--host", _HOST, "--port", str(self._ports[0].port), "--webui-port", str(self._ports[1].port)]
        self._head = self._process("master", ["org.apache.spark.deploy.master.Master", *ports], launcher, 0)
        self.workers = [self._worker(i, launcher) for i in range(workers)]

    def _worker(self, number: int, launcher: list[str]) -> ServerProcess:
        page = str(self._ports[2 + number].port)
        place = self._directory / f"work-{number}"
        options = ["--host", _HOST, "--cores", "1", "--memory", self._memory, "--webui-port", page, "--work-dir", place]
        words = ["org.apache.spark.deploy.worker.Worker", *map(str, options), self.master]
        return self._process(f"worker-{number}", words, launcher, number + 1)

    def _process(self, name: str, words: list[str], launcher: list[str], workers: int) -> ServerProcess:
        return ServerProcess(
            name,
            [str(_SPARK_CLASS), words[0], "--properties-file", str(self._directory / "closed.properties"), *words[1:]],
            self._directory / f"{name}.log",
            lambda: self._alive_workers() >= workers,
            launcher=launcher,
        )

    def _alive_workers(self) -> int:
        """How many workers the master knows; -1 while it does not answer."""
        try:
            with urlopen(self._page, timeout=_ANSWER_S) as answer:  # noqa: S310 our own http address
                return int(json.load(answer)["aliveworkers"])
        except (URLError, OSError, ValueError):
            return -1

    def __enter__(self) -> Self:
        try:
            for process in (self._head, *self.workers):
                process.start()
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        for process in (*self.workers, self._head):
            process.stop()
        for port in self._ports:
            port.release()

    def settings(self) -> Mapping[str, str]:
        """The section [spark] of a changefeed that runs here: as README says, for a machine without a name."""
        shared = {"spark.authenticate.secret": _SECRET}
        executors = {"spark.executor.memory": "512m", "spark.executor.extraJavaOptions": _QUICK}
        return {"master": self.master, "spark.driver.host": _HOST, **executors, **shared}

    def executors(self) -> list[psutil.Process]:
        """The executors' JVMs, in the order of their workers."""
        return [
            child
            for worker in self.workers
            if worker.running
            for child in psutil.Process(worker.pid).children(recursive=True)
            if _is_executor(child)
        ]

    def processes(self) -> list[int]:
        """The master's and the workers' process ids."""
        return [process.pid for process in (self._head, *self.workers) if process.running]

    def showing_the_secret(self) -> list[str]:
        """Names of processes, executors and their workers among them, that show it to every user of the machine."""
        parents = [psutil.Process(pid) for pid in self.processes()]
        family = [child for parent in parents for child in (parent, *parent.children(recursive=True))]
        return [name for name, shown in map(_command, family) if _SECRET in shown]


def _command(process: psutil.Process) -> tuple[str, str]:
    try:
        return process.name(), " ".join(process.cmdline())
    except psutil.NoSuchProcess:  # it has ended a moment ago
        return "", ""


def _is_executor(process: psutil.Process) -> bool:
    try:
        return process.name() == "java" and "CoarseGrainedExecutorBackend" in " ".join(process.cmdline())
    except psutil.NoSuchProcess:  # killed a moment ago, and perhaps not yet reaped
        return False


def environment() -> dict[str, str]:
    """Ours, for a driver whose own name does not resolve; compiled modules are kept, as where a user installed them."""
    return {**os.environ, "SPARK_LOCAL_IP": _HOST, "PYTHONDONTWRITEBYTECODE": ""}
