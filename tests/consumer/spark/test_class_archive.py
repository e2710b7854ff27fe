"""The archive of Java classes: made once, used by the JVM, left alone where it is not ours."""

import os
import subprocess
import sys
from pathlib import Path

import psutil
import pytest
from pyspark import SparkContext

from consumer.spark.class_archive import MAKING, found_archive, java_flags, make_in_background, place_to_make
from consumer.spark.context import ensure_java

SPARK = """
import sys
sys.prefix = "/proc"
from pyspark import SparkContext
from consumer.config.model import SparkSection
from consumer.spark.context import start_spark
start_spark("test", SparkSection(master="local[1]"))
print("JVM", SparkContext._gateway.proc.pid, flush=True)
input()
"""


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An installation that nobody may write to, and an empty cache."""
    monkeypatch.setattr(sys, "prefix", "/proc")
    monkeypatch.setenv("TICDC_RECONCILER_CACHE", str(tmp_path))
    monkeypatch.delenv(MAKING, raising=False)
    ensure_java()
    return tmp_path


def mapped(archive: Path) -> bool:
    """Whether a new process's JVM uses the archive."""
    words = [sys.executable, "-c", SPARK]
    with subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as spark:
        assert spark.stdout is not None
        pid = next(line.split()[1] for line in iter(spark.stdout.readline, "") if line.startswith("JVM"))
        maps = Path(f"/proc/{pid}/maps").read_text()
        assert spark.stdin is not None
        spark.stdin.write("\n")
    return str(archive) in maps


@pytest.mark.soak
@pytest.mark.spark
def test_it_is_made_in_the_background_and_used(cache: Path) -> None:
    making = make_in_background()
    assert making is not None
    assert making.stdin is not None
    making.stdin.close()  # as if this process had ended
    assert making.wait(300) == 0
    assert found_archive() == next(cache.glob("*.jsa"))
    assert make_in_background() is None
    assert mapped(found_archive() or cache)


@pytest.mark.spark
def test_the_one_that_is_installed_is_used(spark: SparkContext) -> None:
    """`./dev` makes it; here one that a JVM can't map would only make each start slower."""
    assert spark is not None
    java = psutil.Process(SparkContext._gateway.proc.pid)
    used = [flag.partition("=")[2] for flag in java.cmdline() if flag.startswith("-XX:SharedArchiveFile=")]
    archive = found_archive()
    if archive is not None and archive.stat().st_mtime < java.create_time():  # not one that was made meanwhile
        assert used == [str(archive)]
    assert all(name in Path(f"/proc/{java.pid}/maps").read_text() for name in used)


def test_nothing_is_said_while_it_is_made() -> None:
    """Spark's JVM greets with warnings that nobody asked for; `consumer.spark.context` logs them at debug."""
    said = "structlog.get_logger().debug('spark', line='WARNING: Using incubator modules')"
    script = f"import structlog, consumer.spark.build_class_archive as a; a.exercise = lambda: {said}; a.main([])"
    words = [sys.executable, "-c", script]
    making = {**os.environ, MAKING: "/nowhere"}
    done = subprocess.run(words, env=making, capture_output=True, text=True, check=False, timeout=60)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


@pytest.mark.usefixtures("cache")
def test_nothing_is_taken_from_another_user(monkeypatch: pytest.MonkeyPatch) -> None:
    place = place_to_make()
    assert place is not None
    place.write_bytes(b"")
    assert found_archive() == place
    if os.getuid() == 0:
        os.chown(place, 12345, -1)
    else:
        monkeypatch.setattr(os, "getuid", lambda: 12345)
    assert found_archive() is None


@pytest.mark.usefixtures("cache")
def test_another_jar_needs_another_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It fits one class path: the JVM would use none."""
    monkeypatch.setenv("SPARK_HOME", str(tmp_path / "spark"))
    (tmp_path / "spark" / "jars").mkdir(parents=True)
    before = place_to_make()
    assert before == place_to_make()
    (tmp_path / "spark" / "jars" / "driver.jar").touch()
    assert before != place_to_make()


def test_where_nothing_can_be_written_nothing_is_made(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "prefix", "/proc")
    monkeypatch.setenv("TICDC_RECONCILER_CACHE", "/proc/nowhere")
    assert place_to_make() is None
    assert "SharedArchiveFile" not in java_flags()


@pytest.mark.usefixtures("cache")
def test_it_can_be_switched_off(monkeypatch: pytest.MonkeyPatch) -> None:
    place = place_to_make()
    assert place is not None
    place.write_bytes(b"")
    monkeypatch.setenv(MAKING, "")
    assert "SharedArchiveFile" not in java_flags()
    assert place_to_make() is None
