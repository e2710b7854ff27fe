"""What the demo plays on: a directory, servers, the config file, and the reconciler as a process of its own."""

import os
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path

from consumer.demo.live_upstream import TOPIC
from consumer.embedded import KafkaBroker, RedisServer, java_home
from consumer.embedded.process import ServerProcess
from consumer.embedded.server import EmbeddedServer
from consumer.runtime.signals import ENDING, handled
from ordering.errors import ConfigError

CHANGEFEED = "demo"
DATABASE = "bank"

_STOP_SECONDS = 30.0

_CONFIG = """\
changefeed = "{changefeed}"

[source]
bootstrap-servers = "{bootstrap}"
topics = ["{topic}"]

[target]
uri = "sqlite:///{target}"
consistency = "{consistency}"

[redis]
uri = "{redis}"

[spark]
master = "local[2]"
"spark.local.dir" = "{work}"
"spark.driver.extraJavaOptions" = "-Djava.io.tmpdir={work}"
"""


@contextmanager
def place(keep: Path | None) -> Iterator[Path]:
    """The demo's directory: a new one that is removed afterwards, or the one that the user wants to keep."""
    if keep is None:
        with tempfile.TemporaryDirectory(prefix="ticdc-reconciler-demo-", ignore_cleanup_errors=True) as name:
            yield Path(name)
        return
    yield new_directory(keep, "--keep")


def new_directory(path: Path, name: str) -> Path:
    """Make a directory that must not hold anything yet; `name` is what the user calls it. Raises ConfigError."""
    if path.exists() and (not path.is_dir() or any(path.iterdir())):
        raise ConfigError(f"{path} is not an empty directory", hint=f"{name} takes a new or an empty directory")
    try:
        path.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise ConfigError(f"can't make {path}: {error.strerror}", hint=f"{name} takes a new directory") from error
    return path.absolute()


def interruptible() -> AbstractContextManager[None]:
    """SIGTERM and a closed terminal end the demo as Ctrl-C does: everything is stopped."""
    return handled(signal.default_int_handler, (*ENDING, signal.SIGHUP))


@contextmanager
def running(servers: Sequence[EmbeddedServer]) -> Iterator[None]:
    """Start all servers at the same time; stop them at the same time, also those that were still starting."""
    with ThreadPoolExecutor(2 * len(servers)) as pool:
        try:
            for starting in [pool.submit(server.start) for server in servers]:
                starting.result()
            yield
        finally:
            for closing in [pool.submit(server.close) for server in servers]:
                closing.result()


class Stage:
    """Directories, servers and the reconciler; nothing runs yet."""

    def __init__(self, directory: Path, consistency: str) -> None:
        self.target = directory / "target"
        self.kafka = KafkaBroker(directory / "kafka")
        self.redis = RedisServer(directory / "redis")
        self.config = directory / "demo.toml"
        self.work = directory / "work"
        self.work.mkdir()
        self.config.write_text(self._config(consistency), encoding="utf-8")
        self.reconciler = ReconcilerProcess(self.config, directory / "reconciler.log", self.work)

    def _config(self, consistency: str) -> str:
        return _CONFIG.format(
            changefeed=CHANGEFEED,
            bootstrap=self.kafka.bootstrap,
            topic=TOPIC,
            target=self.target,
            consistency=consistency,
            redis=self.redis.uri,
            work=self.work,
        )


class ReconcilerProcess(ServerProcess):
    """`reconciler run CONFIG`, as a user starts it; dies with the demo, and is killed by it on purpose."""

    def __init__(self, config: Path, log: Path, work: Path) -> None:
        environment = {"JAVA_HOME": str(java_home()), "TMPDIR": str(work)}
        program = [sys.executable, "-P", "-m", "consumer.cli", "run", str(config)]
        command = [_env(), *(f"{key}={value}" for key, value in environment.items()), *program]
        super().__init__("reconciler", command, log, ready=lambda: True)

    def finish(self) -> int:
        """Ask it to end, as an operator would, and return its exit code. Only it: its JVM ends with it."""
        process = self._started()
        os.kill(process.pid, signal.SIGTERM)
        try:
            return process.wait(_STOP_SECONDS)
        except subprocess.TimeoutExpired:
            self.kill()
            return process.wait()


def _env() -> str:
    found = shutil.which("env")
    if found is None:
        raise ConfigError("the program `env` is not on the PATH", hint="the demo needs Linux or macOS")
    return found
