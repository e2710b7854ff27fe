"""What every test may ask for; each subject's fixtures live in a module of their own and are named here."""

import os
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import structlog

from consumer import native
from consumer.embedded.errors import EmbeddedError
from tests.cells import SEED, seed, spare
from tests.cpu_seconds import CpuSeconds
from tests.dealing import dealt
from tests.in_memory import leave_place, take_place
from tests.needing_tidb import NEEDED
from tests.service.schema_registry import registry
from tests.services import (
    database_prefix,
    kafka_broker,
    mariadb_server,
    mysql_server,
    postgres_server,
    redis_server,
    spark,
    tidb_server,
    topic_name,
)

__all__ = [
    "database_prefix",
    "kafka_broker",
    "mariadb_server",
    "mysql_server",
    "postgres_server",
    "redis_server",
    "registry",
    "spark",
    "tidb_server",
    "topic_name",
]

ROOT = Path(__file__).parent.parent
LEFT_OUT = pytest.StashKey[dict[str, int]]()
"""How many tests need a server that is not there, by its marker."""
PLACE = pytest.StashKey[Path | None]()
"""The directory in memory that this run has taken."""
FAILED = pytest.StashKey[bool]()
SECONDS = Counter[str]()
"""How long the tests of each file took, with what they set up; of all processes in the one that reports."""
FILES_TOLD = 25


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--soak", action="store_true", help="run the long tests too (marked soak)")
    parser.addoption("--sparse", action="store_true", help="a third of the parameters of each test, at least one")
    parser.addoption("--recorder", help="a program as in tests.histories: run the tests marked recorder too")
    parser.addoption("--containers", action="store_true", help="run the tests that build and run images too")
    parser.addoption("--cpu-seconds", type=Path, help="a new file for the CPU seconds of each test; folders are listed")
    for needed in NEEDED:
        parser.addoption(needed.option, action="store_true", help=f"fail where there is no {needed.said.lower()}")


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol() -> Iterator[None]:
    """Leave the log as it was: a command that a test runs in its own process sets it up, and may silence warnings."""
    configured, config = structlog.is_configured(), structlog.get_config()
    found = yield
    structlog.reset_defaults()
    if configured:
        structlog.configure(**config)
    return found


@pytest.hookimpl(wrapper=True, tryfirst=True)  # before -m looks at the markers
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> Iterator[None]:
    for item in items:
        for needed in NEEDED:
            if needed.is_needed(item):
                item.add_marker(needed.marker)
    for item in list(spare(config, items)):
        item.add_marker("soak")
    if not config.getoption("--soak"):
        _leave_out(config, items, "soak")
    if not config.getoption("--recorder"):
        _leave_out(config, items, "recorder")
    if not config.getoption("--containers"):
        _leave_out(config, items, "containers")
    lacking = [needed.marker for needed in NEEDED if needed.find() is None]
    config.stash[LEFT_OUT] = {marker: _leave_out(config, items, marker) for marker in lacking}
    yield
    workers = getattr(config, "workerinput", {}).get("workercount", 1)
    if workers > 1:
        items[:] = dealt(items, workers)


def _leave_out(config: pytest.Config, items: list[pytest.Item], marker: str) -> int:
    left, left_out = list[pytest.Item](), list[pytest.Item]()
    for item in items:
        (left_out if item.get_closest_marker(marker) else left).append(item)
    if left_out:
        config.hook.pytest_deselected(items=left_out)
        items[:] = left
    return len(left_out)


@pytest.hookimpl(trylast=True)
def pytest_sessionfinish(session: pytest.Session, exitstatus: int) -> None:
    """Of several processes the one that reports did not collect: each worker says what it left out."""
    session.config.stash[FAILED] = exitstatus == pytest.ExitCode.TESTS_FAILED
    output = getattr(session.config, "workeroutput", None)
    if output is not None:
        output["left_out"] = session.config.stash.get(LEFT_OUT, {})


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node: Any) -> None:
    stash = node.config.stash
    stash[LEFT_OUT] = stash.get(LEFT_OUT, {}) | getattr(node, "workeroutput", {}).get("left_out", {})


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    SECONDS[report.nodeid.partition("::")[0]] += report.duration


def pytest_report_header() -> str:
    return f"cells: {SEED}={seed()}"


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    if len(SECONDS) > FILES_TOLD:
        terminalreporter.section(f"slowest {FILES_TOLD} files")
        for file, seconds in SECONDS.most_common(FILES_TOLD):
            terminalreporter.write_line(f"{seconds:8.1f}s {file}")
    left_out = config.stash.get(LEFT_OUT, {})
    for needed in NEEDED:
        if number := left_out.get(needed.marker, 0):
            terminalreporter.write_line(needed.lacking(number), yellow=True, bold=True)
    if config.stash[PLACE] is not None and config.stash[FAILED]:
        terminalreporter.write_line(f"files of the failed tests, until the next run: {config.stash[PLACE]}")


@pytest.hookimpl(tryfirst=True)
def pytest_configure(config: pytest.Config) -> None:
    config.stash[PLACE] = take_place()
    seed()  # before other processes start
    config.addinivalue_line("markers", "mysql: needs a MySQL server (./dev mysql)")
    config.addinivalue_line("markers", "kafka: its feeds use Kafka, but not Spark")
    if file := config.getoption("--cpu-seconds"):
        config.pluginmanager.register(CpuSeconds(file))
    if (core := native.load(native.LIBRARY)).is_broken:
        raise pytest.UsageError(f"the compiled core can't be used, and half of the tests would test Python: {core.why}")
    for needed in NEEDED:
        if config.getoption(needed.option):
            try:
                needed.demand()
            except EmbeddedError as error:
                raise pytest.UsageError(str(error)) from error
    os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")  # machines whose own name does not resolve
    # Spark's workers look for the tests' own functions there, not in the current directory
    os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, (str(ROOT), os.environ.get("PYTHONPATH"))))


def pytest_unconfigure(config: pytest.Config) -> None:
    place = config.stash.get(PLACE, None)
    if place is not None:
        leave_place(place, keep=config.stash.get(FAILED, False))
