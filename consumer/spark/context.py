"""Starts Spark lean: no UI, no SQL, loopback only, quiet; and warms it up while the rest connects."""

import os
import re
import shutil
import signal
import subprocess
import sys
from collections import deque
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from importlib import resources
from pathlib import Path
from threading import Lock, Thread
from typing import Any

import structlog
from py4j.protocol import Py4JError
from pyspark import SparkConf, SparkContext, java_gateway
from pyspark.accumulators import AccumulatorTCPServer, AccumulatorUnixServer
from pyspark.errors import PySparkException

from consumer.config.model import SparkSection
from consumer.embedded import java_home
from consumer.runtime.secrets import SECRET_NAMES, ProcessArguments, is_secret
from consumer.runtime.signals import left_alone
from consumer.spark.class_archive import java_flags, make_in_background
from consumer.spark.daemon import loaded
from consumer.spark.master import check_master
from consumer.spark.traffic import traffic_settings, warn_of_open_traffic
from ordering.errors import ConfigError, WorkerLostError

_DEFAULTS = {
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.redaction.regex": SECRET_NAMES,  # in the UI and in event logs
    "spark.driver.memory": "1g",
    "spark.speculation": "false",
    "spark.python.worker.reuse": "true",
    "spark.python.daemon.module": "consumer.spark.daemon",
    # workers are not to import what lies by chance in our current directory
    "spark.executorEnv.PYTHONSAFEPATH": "1",
    "spark.serializer": "org.apache.spark.serializer.KryoSerializer",
    "spark.shuffle.compress": "true",
    "spark.io.compression.codec": "lz4",
    "spark.task.maxFailures": "4",
    # larger results of tasks take a detour over the block manager, which costs as much as the rest of their way
    "spark.task.maxDirectResultSize": "64m",
    "spark.cleaner.periodicGC.interval": "5min",
}
_LOCAL = {
    # there the executor is the driver. A machine that slept, a clock that jumps, or files of a shuffle that somebody
    # deleted make Spark take it for lost; from then on its heartbeats fail, for it can't register again (the endpoint
    # that Spark 4 asks for leave is missing in local mode), and after 60 of them Java would end with exit code 56
    "spark.storage.blockManagerHeartbeatTimeoutMs": "3650d",
    "spark.executor.heartbeat.maxFailures": str(2**31 - 1),
}
"""What is set besides where Spark runs in one process."""
_LONGEST_PLACE = (107 if sys.platform == "linux" else 103) - len("/.8e6b4ff2-7c9b-4a9e-a5dc-0f8ab3f1b1b7.sock")
"""Bytes of a directory in which a socket may lie, by what its whole name may take."""
FAILURES = (Py4JError, PySparkException, OSError, EOFError)
"""What a call into Spark's JVM raises. Once a SparkSession was made in a process, PySpark raises classes of its own in
the place of Py4JJavaError."""
_OUT_OF_MEMORY = 52
"""Spark's own exit code for it (SparkExitCode.OOM)."""
log = structlog.get_logger()


class Jvm:
    """Spark's JVM, started by a thread of its own: that takes as long as to import what is needed besides."""

    def __init__(self, name: str, config: SparkSection) -> None:
        self.said: deque[str] = deque(maxlen=20)
        """The last lines that it said."""
        _prepare(config)
        self._child = _Child()
        pool = ThreadPoolExecutor(1)
        self._gateway = pool.submit(_gateway, _conf(name, config), self.said, self._child)
        pool.shutdown(wait=False)

    def gateway(self) -> Any:
        """The connection to it. Raises what its start has raised."""
        return self._gateway.result()

    def end(self) -> None:
        """End a start that nobody waits for any more: this process would wait for it at its own end."""
        if not self._gateway.done():
            self._child.end()


class _Child:
    """The process that Spark's launcher starts; the launcher itself gives it away only once it is connected."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._process: subprocess.Popen[bytes] | None = None
        self._is_ended = False

    def start(self, *args: Any, **options: Any) -> "subprocess.Popen[bytes]":
        """Start it as `subprocess.Popen` does. Raises RuntimeError if it shall not start any more."""
        with self._lock:
            if self._is_ended:
                raise RuntimeError("the start of Java was given up")
            self._process = subprocess.Popen(*args, **options)  # noqa: S603 the launcher's own command
            return self._process

    def end(self) -> None:
        """Kill it; if it is not started yet it never is."""
        with self._lock:
            self._is_ended = True
            if self._process is not None:
                self._process.kill()


def start_spark(
    changefeed: str, config: SparkSection, scratch: Path | None = None, jvm: Jvm | None = None
) -> SparkContext:
    """A Spark context whose local files lie in `scratch`, on a JVM that may have been begun.

    Raises ConfigError if Spark or Java can't start, ClusterUnreachableError while its master does not answer.
    """
    _prepare(config)
    check_master(config.master)
    warn_of_open_traffic(config.master, config.settings)
    begun = jvm
    try:
        # a process keeps its JVM from one context to the next
        gateway = SparkContext._gateway  # noqa: SLF001
        if gateway is None:
            begun = jvm or Jvm(changefeed, config)
            gateway = begun.gateway()
        with left_alone(signal.SIGINT):  # SparkContext sets one that raises KeyboardInterrupt
            context = SparkContext(conf=_conf(changefeed, config, scratch), gateway=gateway)
    except (*FAILURES, RuntimeError) as error:
        hint = "Java 17 or newer is needed (JAVA_HOME or PATH; or pip install 'ticdc-reconciler[embedded]')"
        raise ConfigError(
            f"Spark can't start: {error}{_quoted(begun)}", where=f"spark.master = {config.master}", hint=hint
        ) from error
    close_interrupted_calls(context)
    context.setLogLevel("OFF")
    # where the JVM dies, this thread's traceback says nothing that the failed job does not say
    AccumulatorTCPServer.handle_error = AccumulatorUnixServer.handle_error = _log_accumulator_error
    make_in_background()
    return context


def close_interrupted_calls(context: SparkContext) -> None:
    """Have a call that a signal's exception cuts through close its connection to the JVM; the next call opens another.

    Py4J itself does so for KeyboardInterrupt alone. The answer to such a call would be taken for that of the thread's
    next one: what ends jobs and the context failed, or had a wrong answer.
    """
    client: Any = context._gateway._gateway_client  # noqa: SLF001
    if getattr(client.send_command, "__func__", None) is not type(client).send_command:
        return  # a process keeps its JVM from one context to the next
    sent = client.send_command

    def send_command(*args: Any, **options: Any) -> Any:
        try:
            return sent(*args, **options)
        except Exception:
            raise
        except BaseException:
            connection = client.get_thread_connection()
            if connection is not None:
                connection.close()
            raise

    client.send_command = send_command


def _prepare(config: SparkSection) -> None:
    """Set in the environment what Spark takes from there."""
    os.environ["PYSPARK_PYTHON"] = sys.executable
    os.environ["PYSPARK_DRIVER_PYTHON"] = sys.executable
    ensure_java()
    if config.master.startswith("local"):
        os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")


def _conf(changefeed: str, config: SparkSection, scratch: Path | None = None) -> SparkConf:
    conf = SparkConf(loadDefaults=False).setAppName(f"ticdc-reconciler {changefeed}").setMaster(config.master)
    logging = resources.files("consumer.spark").joinpath("log4j2.properties")
    for key, value in settings_of(config, scratch).items():
        conf.set(key, value)
    more = config.settings.get("spark.driver.extraJavaOptions", "")
    options = f"{java_flags()} -Dlog4j2.configurationFile={logging} {more}"
    return conf.set("spark.driver.extraJavaOptions", options)


def settings_of(config: SparkSection, scratch: Path | None = None) -> dict[str, str]:
    """Spark's settings: ours, and those of the config in their place; `scratch` is where its local files lie."""
    local = {**_LOCAL, **_sockets(scratch)} if config.master.startswith("local") else {}
    files = {} if scratch is None else {"spark.local.dir": str(scratch)}
    return {**_DEFAULTS, **local, **traffic_settings(config.master, config.settings), **files, **config.settings}


def _sockets(scratch: Path | None) -> Mapping[str, str]:
    """Have Java and Python talk through sockets in a directory of ours, which nobody else may enter.

    Over TCP each task and each answer waits about 40 ms: Java sends it in pieces without TCP_NODELAY, and the system
    holds the second one back until the first is acknowledged (RFC 1122, 4.2.3.2 and 4.2.3.4).
    """
    if scratch is None or len(os.fsencode(scratch)) > _LONGEST_PLACE:
        return {}
    return {"spark.python.unix.domain.socket.enabled": "true", "spark.python.unix.domain.socket.dir": str(scratch)}


def ensure_java() -> None:
    """See that Spark finds a Java: where the machine has none, the one that came as a wheel."""
    if shutil.which("java") is None and "JAVA_HOME" not in os.environ:
        os.environ["JAVA_HOME"] = str(java_home())


def _gateway(conf: SparkConf, said: deque[str], child: _Child) -> Any:
    """Spark's JVM, as `child`. What it says goes to our log at debug, and is kept for the error if it can't start.

    Its stdout too: ours is for results, and who reads it to the end shall not wait for a JVM on its way out.
    """
    reading, writing = os.pipe()
    try:
        shown = SparkConf(loadDefaults=False)  # the context gets all of them, over a connection of its own
        shown.setAll([(name, value) for name, value in conf.getAll() if not is_secret(name)])
        with _launched_as(child):
            arguments = ProcessArguments(stdout=writing, stderr=writing)
            gateway = java_gateway.launch_gateway(shown, popen_kwargs=arguments)
    finally:
        os.close(writing)
        Thread(target=_follow, args=(reading, said), daemon=True).start()
    return gateway


@contextmanager
def _launched_as(child: _Child) -> Iterator[None]:
    before, java_gateway.Popen = java_gateway.Popen, child.start
    try:
        yield
    finally:
        java_gateway.Popen = before


def _log_accumulator_error(_server: AccumulatorTCPServer | AccumulatorUnixServer, _request: Any, _address: Any) -> None:
    log.debug("spark's accumulator connection broke")


def _follow(reading: int, said: deque[str]) -> None:
    with os.fdopen(reading, encoding="utf-8", errors="replace") as lines:
        for line in lines:
            said.append(line.strip())
            log.debug("spark", line=line.rstrip())


def _quoted(jvm: Jvm | None) -> str:
    return "" if jvm is None else "".join(f"\n  java: {line}" for line in jvm.said)


def warm_up(context: SparkContext) -> None:
    """Have the workers forked, so that the first window doesn't wait for them.

    Raises WorkerLostError.
    """
    try:
        count = context.defaultParallelism
        context.parallelize(range(count), count).mapPartitions(loaded).partitionBy(count).count()
    except FAILURES as error:
        raise WorkerLostError(f"Spark's workers can't start: {telling_lines(error)}") from error


def how_java_ended() -> str:
    """What is known of the end of this process's JVM, for the error of a job that lost it; empty while it lives."""
    process = getattr(SparkContext._gateway, "proc", None)  # noqa: SLF001 there is no public question
    code = None if process is None else process.poll()
    if code is None:
        return ""
    if code == _OUT_OF_MEMORY:
        return f" (Java ended with exit code {code}: out of memory; raise spark.driver.memory)"
    return f" (Java was ended by signal {-code})" if code < 0 else f" (Java ended with exit code {code})"


def telling_lines(error: Exception) -> str:
    """The telling lines of a failed job: the Python worker's own exception, or Spark's causes."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip() and not line.startswith("\tat ")]
    telling = [line for line in lines if re.match(r"(Caused by: )?[\w.]*(Error|Exception|Killed)\b", line)]
    return " / ".join((telling or lines)[-3:])[:500]


def stop_spark(context: SparkContext | None) -> None:
    """Stop it; a JVM that is gone already is stopped."""
    if context is None:
        return
    alive = is_alive(context)
    if alive:
        # it looks only every half second whether it shall end, and nobody needs to wait for it
        counting, context._accumulatorServer = context._accumulatorServer, None  # noqa: SLF001
        Thread(target=counting.shutdown, daemon=True).start()
        try:
            context.stop()
        except FAILURES:
            # who stops a service mostly signals all its processes: the JVM may end before it is told to
            log.debug("spark's JVM ended by itself")
        else:
            return
    with SparkContext._lock:  # noqa: SLF001 a gateway to a dead JVM would be used again by the next context
        SparkContext._active_spark_context = None  # noqa: SLF001
        SparkContext._gateway = SparkContext._jvm = None  # noqa: SLF001


def is_alive(context: SparkContext) -> bool:
    """Whether its JVM answers."""
    try:
        return not context._jsc.sc().isStopped()  # noqa: SLF001 there is no public question
    except (*FAILURES, AttributeError):
        return False
