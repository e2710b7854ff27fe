"""Spark's JVM without Spark's launcher: as the launcher would start it, and only where it has nothing to do."""

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import psutil
import pytest

from consumer.spark.class_archive import MAKING, arguments_beside, found_archive, place_to_make
from consumer.spark.context import driver_options, ensure_java
from consumer.spark.direct_start import argument_file, direct_command

SETTINGS = {"spark.driver.memory": "1g", "spark.driver.extraJavaOptions": "-Da=1 -Db=2", "spark.app.name": "a name"}
STARTED = """
import sys
sys.prefix = sys.argv[1]
from consumer.config.model import SparkSection
from consumer.spark.context import Jvm
print("JVM", Jvm("test", SparkSection()).gateway().proc.pid, flush=True)
input()
"""


@pytest.fixture
def arguments(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An installation of ours with an archive and its options."""
    monkeypatch.setattr(sys, "prefix", str(tmp_path))
    monkeypatch.delenv(MAKING, raising=False)
    monkeypatch.delenv("SPARK_HOME", raising=False)
    ensure_java()
    archive = place_to_make()
    assert archive is not None
    archive.touch()
    arguments_beside(archive).write_text('"-Dnone=1"\n')
    return arguments_beside(archive)


@contextmanager
def started(prefix: Path | str, **variables: str) -> Iterator[psutil.Process]:
    """The JVM that a process of an installation starts."""
    words = [sys.executable, "-c", STARTED, str(prefix)]
    environment = {name: value for name, value in os.environ.items() if name != "SPARK_HOME"} | variables
    with subprocess.Popen(words, env=environment, text=True, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        yield psutil.Process(next(int(line.split()[1]) for line in process.stdout if line.startswith("JVM")))
        process.communicate("\n")


@pytest.mark.spark
def test_the_options_are_those_of_the_launcher() -> None:
    """What is kept with an installation is what its launcher gives."""
    with started(sys.prefix, SPARK_LAUNCHER_OPTS="-Xmx128m") as java:
        options = argument_file(java.pid, driver_options().split())
    assert options is not None
    assert {'"-cp"', '"--add-opens=java.base/java.nio=ALL-UNNAMED"'} <= set(options.splitlines())
    assert "-Xmx" not in options
    archive = found_archive()
    if archive is not None:
        assert arguments_beside(archive).read_text() == options
        with started(sys.prefix) as java:
            assert java.cmdline()[1] == f"@{arguments_beside(archive)}"


@pytest.mark.spark
def test_one_that_does_not_start_is_started_by_the_launcher(arguments: Path) -> None:
    arguments.write_text('"--no-such-option"\n')
    with started(sys.prefix) as java:
        assert "org.apache.spark.deploy.SparkSubmit" in java.cmdline()


def test_memory_and_options_are_those_of_the_config(arguments: Path) -> None:
    command = direct_command("local[*]", (), SETTINGS)
    assert command is not None
    main = "org.apache.spark.api.python.PythonGatewayServer"
    assert command[1:] == [f"@{arguments}", "-Xmx1g", "-Da=1", "-Db=2", "-Dspark.app.name=a name", main]


@pytest.mark.usefixtures("arguments")
@pytest.mark.parametrize("name", ["spark.driver.memory", "spark.ui.port", "spark.local.dir"])
def test_what_only_the_context_reads_needs_no_launcher(name: str) -> None:
    assert direct_command("local[2]", (name,), SETTINGS) is not None


@pytest.mark.usefixtures("arguments")
@pytest.mark.parametrize(
    "name", ["spark.jars.packages", "spark.driver.extraClassPath", "spark.driver.extraJavaOptions", "spark.hadoop.x"]
)
def test_other_settings_need_it(name: str) -> None:
    assert direct_command("local[2]", (name,), SETTINGS) is None


@pytest.mark.usefixtures("arguments")
@pytest.mark.parametrize("name", ["SPARK_HOME", "SPARK_CONF_DIR", "PYSPARK_SUBMIT_ARGS"])
def test_its_variables_need_it(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(name, "x")
    assert direct_command("local[2]", (), SETTINGS) is None


def test_a_cluster_and_a_missing_or_foreign_file_need_it(arguments: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert direct_command("spark://127.0.0.1:7077", (), SETTINGS) is None
    archive = found_archive()
    assert archive is not None
    if os.getuid() == 0:
        os.chown(arguments, 12345, -1)
        assert direct_command("local[2]", (), SETTINGS) is None
    arguments.unlink()
    assert direct_command("local[2]", (), SETTINGS) is None
    monkeypatch.setenv(MAKING, "")
    assert direct_command("local[2]", (), SETTINGS) is None
