"""A signal may cut through anything, also where a lock is held: what ends the process waits for no such lock."""

import os
import signal
import subprocess
import threading
from collections.abc import Iterator
from contextlib import nullcontext, suppress
from pathlib import Path

import psutil
import pytest
from click.testing import CliRunner

from consumer.cli.main import main
from consumer.kafka.admin import KafkaAdmin
from consumer.run.runner import Runner
from consumer.runtime.retry import Patience, retried
from consumer.runtime.signals import Stopped, StopRequest, handled
from consumer.spark.provider import OwnSpark
from ordering.errors import ConfigError, LateEventError, SourceUnreachableError
from sinks.ddl.parse.tables import read_table
from tests.bench.measure import RECONCILER
from tests.service.lab import DEADLINE_S, eventually


class CutThrough:
    """An admin client in which a signal's exception left a lock held: closing it takes for ever."""

    def list_partition_offsets(self, _asked: object) -> None:
        raise Stopped

    def close(self) -> None:
        pytest.fail("closing it waits for its own lock")


def test_a_client_that_a_signal_cut_through_is_not_closed() -> None:
    control = KafkaAdmin("127.0.0.1:1", {})
    control._admin = CutThrough()
    with pytest.raises(Stopped):
        control._call(lambda admin: admin.list_partition_offsets({}))
    control.close()


class JustClosed:
    """An admin client whose connection its broker has closed, as kafka-python reports it to a request."""

    def list_partition_offsets(self, _asked: object) -> object:
        raise RuntimeError("Transport closed for writes")

    def close(self) -> None:
        """Nothing is held."""


def test_a_connection_that_was_just_closed_is_tried_again() -> None:
    control = KafkaAdmin("127.0.0.1:1", {})
    control._admin = JustClosed()
    with pytest.raises(SourceUnreachableError, match="Kafka is out of reach"):
        control._call(lambda admin: admin.list_partition_offsets({}))
    assert control._admin is None


@pytest.fixture
def _no_leftovers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """What a run keeps for its time only lies in a directory of its own, which is empty afterwards."""
    place = tmp_path / "tmp"
    place.mkdir()
    monkeypatch.setenv("TMPDIR", str(place))
    yield
    eventually("nothing is left", lambda: not list(place.iterdir()))


@pytest.fixture
def _kept_handler() -> Iterator[None]:
    """SIGUSR1 and SIGVTALRM are as they were afterwards."""
    before = {number: signal.getsignal(number) for number in (signal.SIGUSR1, signal.SIGVTALRM)}
    yield
    for number, handler in before.items():
        signal.signal(number, handler)


def _cut_through() -> None:
    """Read a DDL until a signal stops it."""
    asked = StopRequest()

    def stop(*_: object) -> None:
        asked.ask()
        raise Stopped

    columns = ", ".join(f"`c{n}` VARCHAR(60) NOT NULL DEFAULT 'x'" for n in range(200))
    signal.signal(signal.SIGVTALRM, stop)
    signal.setitimer(signal.ITIMER_VIRTUAL, 0.02)
    while not asked.is_set():  # an exception that cuts through a finaliser goes no further
        read_table(f"CREATE TABLE `t` ({columns})")


@pytest.mark.usefixtures("_kept_handler")
def test_a_library_that_makes_its_own_error_of_every_exception_lets_the_stop_pass() -> None:
    for _ in range(20):  # the DDL parser does so: CREATE TABLE was refused (exit 3) if SIGTERM came meanwhile
        with suppress(Stopped):
            _cut_through()


@pytest.mark.usefixtures("_kept_handler")
@pytest.mark.timeout(20)
def test_it_is_asked_by_a_signal_while_this_thread_holds_its_lock() -> None:
    asked = StopRequest()
    signal.signal(signal.SIGUSR1, lambda *_: asked.ask())
    with asked._cond:  # as in the first and the last moments of a wait
        signal.raise_signal(signal.SIGUSR1)
    assert asked.is_set()
    assert asked.wait(0)


def test_it_is_set_by_another_thread() -> None:
    asked = StopRequest()
    assert not asked.wait(0)
    threading.Thread(target=asked.set).start()
    assert asked.wait(DEADLINE_S)
    assert asked.is_set()


@pytest.mark.parametrize("kind", [ConfigError, SourceUnreachableError])
def test_what_fails_because_it_was_cut_through_is_the_stop(kind: type[ConfigError | SourceUnreachableError]) -> None:
    asked = StopRequest()

    def cut_through() -> None:
        asked.ask()
        raise kind("Spark can't start")

    with pytest.raises(Stopped):
        retried(cut_through, Patience(60), asked, lambda _: None)


def test_what_is_wrong_with_the_data_is_told_also_while_stopping() -> None:
    asked = StopRequest()

    def late() -> None:
        asked.ask()
        raise LateEventError("late event")

    with pytest.raises(LateEventError):
        retried(late, Patience(60), asked, lambda _: None)


def config_in(tmp_path: Path) -> Path:
    config = tmp_path / "a.toml"
    config.write_text(
        f'changefeed = "a"\n[source]\nbootstrap-servers = "127.0.0.1:1"\ntopics = ["t"]\n'
        f'[target]\nuri = "sqlite:///{tmp_path}/target"\n'
    )
    return config


@pytest.mark.usefixtures("_no_leftovers")
@pytest.mark.cells
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_java_that_was_begun_ends_with_a_run_that_is_stopped_at_once(number: signal.Signals, tmp_path: Path) -> None:
    config = config_in(tmp_path)
    run = psutil.Popen([RECONCILER, "run", str(config)], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    eventually("Java was begun", lambda: bool(run.children()))
    java = run.children(recursive=True)
    run.send_signal(number)
    assert run.wait(DEADLINE_S) == 0
    assert not psutil.wait_procs(java, timeout=DEADLINE_S)[1]


@pytest.mark.usefixtures("_no_leftovers")
@pytest.mark.cells
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_java_that_takes_for_ever_to_start_is_not_waited_for(number: signal.Signals, tmp_path: Path) -> None:
    """On a busy machine it takes longer than whoever stops a service waits."""
    java = tmp_path / "bin" / "java"
    java.parent.mkdir()
    begun = tmp_path / "begun"
    java.write_text(f"#!/bin/sh\necho $$ >{begun}.new\nmv {begun}.new {begun}\nexec sleep 300\n")
    java.chmod(0o755)
    quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    environment = {**os.environ, "JAVA_HOME": str(tmp_path)}
    run = psutil.Popen([RECONCILER, "run", str(config_in(tmp_path))], env=environment, **quiet)

    eventually("Java was begun", begun.exists)
    run.send_signal(number)
    try:
        assert run.wait(DEADLINE_S) == 0
    finally:
        os.kill(int(begun.read_text()), signal.SIGKILL)


def signalled_at(method: str, monkeypatch: pytest.MonkeyPatch, *, swallowed: bool) -> None:
    """Let SIGTERM arrive where a method of the runner begins; there it may be lost, as in a finaliser."""
    original = getattr(Runner, method)

    def cut(runner: Runner, *args: object, **options: object) -> object:
        with suppress(Stopped) if swallowed else nullcontext():
            signal.raise_signal(signal.SIGTERM)
        return original(runner, *args, **options)

    monkeypatch.setattr(Runner, method, cut)
    monkeypatch.setattr(OwnSpark, "begin", lambda _: None)


@pytest.mark.parametrize("swallowed", [False, True])
@pytest.mark.parametrize("method", ["__init__", "run", "_run"])
def test_a_signal_at_the_start_is_never_lost(
    method: str, swallowed: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Runner, "_warm", lambda _: pytest.fail("it went on"))
    signalled_at(method, monkeypatch, swallowed=swallowed)
    with handled(lambda *_: pytest.fail("nobody listened")):
        done = CliRunner().invoke(main, ["run", str(config_in(tmp_path))])
    assert done.exit_code == 0, done.output
