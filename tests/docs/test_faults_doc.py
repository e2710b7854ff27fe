"""`docs/faults.md` and `docs/performance.md` name tests and commands that exist; what is said of clocks holds."""

import ast
import importlib.util
import os
import re
from pathlib import Path

import pytest

from tests.docs.test_readme import README, ROOT
from tests.forked import forked

TEXT = "".join((ROOT / "docs" / name).read_text() for name in ("faults.md", "performance.md"))
DATES_FOR_PEOPLE = {
    "consumer/source/clock.py",  # refuses watermarks of the future, decides nothing else
    "consumer/config/zone.py",  # for a warning
    "consumer/source/outside_watermark.py",  # refuses what is a day ahead
    "consumer/verify/resume_file.py",
    "consumer/operate/status.py",
    "consumer/proof/loaded.py",
    "consumer/proof/report.py",
    "consumer/run/live_status.py",
    "consumer/run/progress_log.py",
    "consumer/embedded/trust_store.py",
    "consumer/serve/observed/history.py",
    "sinks/bookkeeping/tables.py",
    "sinks/bookkeeping/audit.py",  # by it lines go, as those of proofs do
    "sinks/bookkeeping/proofs.py",
    "sinks/bookkeeping/quarantine.py",
    "sinks/iceberg/expiry.py",  # for readers; files of leaders go by the pointer: test_iceberg_expiry.py
}
CLOCKS = {("time", "time"), ("datetime", "now"), ("datetime", "utcnow"), ("datetime", "today"), ("date", "today")}


@pytest.mark.parametrize("path", sorted(set(re.findall(r"`(tests/[^`]+)`", TEXT))))
def test_the_tests_exist(path: str) -> None:
    assert (ROOT / path).exists()


def test_it_is_found() -> None:
    assert "docs/faults.md" in README
    assert "docs/performance.md" in README


COMMANDS = re.findall(r"`python -m (tests\.[a-z_.]+)([^`]*)`", TEXT)


@pytest.mark.parametrize("module", sorted({module for module, _ in COMMANDS}))
def test_the_commands_take_what_is_written_there(module: str) -> None:
    options = {word for name, rest in COMMANDS if name == module for word in re.findall(r"--[a-z-]+", rest)}
    found = importlib.util.find_spec(module)
    assert found is not None
    if options:
        program = f"{module}.__main__" if found.submodule_search_locations else module
        told = forked(program, module, ["--help"], os.environ, 60)
        assert told.returncode == 0, told.stderr
        assert options <= set(re.findall(r"--[a-z-]+", told.stdout))


def asks_the_wall_clock(path: Path) -> bool:
    calls = (node.func for node in ast.walk(ast.parse(path.read_text())) if isinstance(node, ast.Call))
    found = {(f.value.id, f.attr) for f in calls if isinstance(f, ast.Attribute) and isinstance(f.value, ast.Name)}
    return bool(found & CLOCKS)


def test_wall_clocks_decide_nothing() -> None:
    modules = [p for package in ("ordering", "sinks", "consumer") for p in (ROOT / package).rglob("*.py")]
    found = {str(p.relative_to(ROOT)) for p in modules if asks_the_wall_clock(p)}
    assert {name for name in found if not name.startswith("consumer/demo/")} <= DATES_FOR_PEOPLE
