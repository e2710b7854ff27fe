"""A crash of the core is an error that names the message; the process lives to tell it. Without a core Python reads."""

import os
import signal
import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest
from structlog.testing import capture_logs

from consumer import native
from consumer.codec.canal_json import Plain
from consumer.kafka.account import Reached
from consumer.native import Core, chosen, load
from consumer.native.log_choice import tell_choice
from consumer.native.source import fingerprint
from consumer.operate.status import core_state
from consumer.tasks.order import ReadTask
from consumer.tasks.report import Report
from consumer.tasks.scans.choose_scan import reduction_of, scan_of
from consumer.tasks.scans.compiled_scan import CompiledReduction, CompiledScan
from consumer.tasks.scans.scan import Scan
from consumer.tasks.shuffle_blocks import REPORTS
from ordering.errors import ConfigError, CoreError
from ordering.events import Partition, Position
from tests.consumer.native.building import ROOT, built
from tests.consumer.native.fuzz import Case
from tests.consumer.native.test_core_equal import case_of
from tests.service.messages import at, encoded, row_value

MESSAGES = [encoded(row_value("INSERT", "d.t", at(n + 1), {"id": n, "v": "x" * n})) for n in range(20)]
FATAL = 12


@pytest.fixture
def faulty(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A core that writes to a wrong address when it meets one of the messages."""
    monkeypatch.setattr(native._State, "crashed", False)
    library = built(tmp_path, f"-DCORE_FAULT={len(MESSAGES[FATAL])}")
    monkeypatch.setattr(native, "LIBRARY", library)
    return library


class FromList:
    """A reader of one range, and where tasks get it from."""

    def __init__(self, runs: list[list[Plain]]) -> None:
        self.runs = runs

    def get(self) -> "FromList":
        return self

    def forget(self) -> None:
        self.runs = []

    def read(self, spans: Sequence[tuple[Partition, int, int]]) -> Iterator[tuple[Partition, Sequence[Any]]]:
        for run in self.runs:
            yield spans[0][0], run

    def done(self, partition: Partition) -> None:
        raise AssertionError(partition)

    def reached(self, _partition: Partition) -> Reached:
        return Reached(len(MESSAGES), len(MESSAGES))


def records_of(case: Case) -> list[Any]:
    return list(ReadTask(case.spec, FromList(case.runs))([(0, (case.part,))]))


@pytest.mark.usefixtures("faulty")
def test_a_crash_is_an_error_with_the_position() -> None:
    case = case_of(MESSAGES)
    found = [payload for bucket, payload in records_of(case) if bucket == REPORTS]
    assert [type(one) for one in found] == [CoreError]
    assert found[0].where == str(Position(*case.part.partition, FATAL))
    assert "spark.native = false" in found[0].hint
    assert chosen("auto") == (None, "it has crashed in this process"), "what it holds may be broken"
    again = [payload for bucket, payload in records_of(case) if bucket == REPORTS]
    assert [(report.events, report.without_core) for report in again] == [(20, "it has crashed in this process")]


@pytest.mark.by_turns
def test_signals_outside_of_the_core_stay_what_they_are(faulty: Path) -> None:
    """A process that used the core dies of its own faults as ever."""
    program = (
        "import os, signal\nfrom pathlib import Path\nfrom tests.consumer.native.fuzz import check\n"
        "from consumer.native import load\nfrom tests.consumer.native.in_place import FakeShelf\n"
        f"core = load(Path({str(faulty)!r})).core\ncheck(1, core, FakeShelf(core))\n"
        "os.kill(os.getpid(), signal.SIGSEGV)\n"
    )
    done = subprocess.run([sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == -signal.SIGSEGV, done.stderr


def test_reports_are_the_same_without_it(core: Core, monkeypatch: pytest.MonkeyPatch) -> None:
    """But for the word that a task could not use it; also the digest, which a task elsewhere has to repeat."""
    case = case_of(MESSAGES)
    monkeypatch.setattr(native, "LIBRARY", core.path)
    with_core = records_of(case)
    monkeypatch.setattr(native, "LIBRARY", Path(os.devnull))
    without = records_of(case)
    assert with_core[:-1] == without[:-1]
    told: list[Report] = [with_core[-1][1], without[-1][1]]
    assert [report.without_core for report in told] == ["", "it was not built when this was installed"]
    assert told[0].digest == told[1].digest


@pytest.mark.parametrize(("wanted", "kind"), [("auto", CompiledScan), (True, CompiledScan), (False, Scan)])
def test_the_config_chooses(core: Core, monkeypatch: pytest.MonkeyPatch, wanted: Any, kind: type[Scan]) -> None:
    monkeypatch.setattr(native, "LIBRARY", core.path)
    case = case_of(MESSAGES)
    spec = case.spec.__class__(**{**{f: getattr(case.spec, f) for f in case.spec.__slots__}, "native": wanted})
    reduction, why = reduction_of(spec, 0)
    scan = scan_of(spec, case.part, reduction)
    assert isinstance(scan, kind)
    assert isinstance(scan, CompiledScan) == isinstance(reduction, CompiledReduction) == (wanted is not False)
    assert why == "", "nobody is told of what he asked for"


def test_a_core_that_is_demanded_and_missing_is_refused(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(native, "LIBRARY", tmp_path / "none.so")
    with pytest.raises(ConfigError, match="it was not built"):
        chosen(True)
    (tmp_path / "none.so").write_bytes(b"no library")
    load.cache_clear()
    with pytest.raises(ConfigError, match="can't be loaded"):
        chosen(True)
    assert chosen("auto").core is None


@pytest.mark.by_turns
@pytest.mark.parametrize("told", ["0123456789abcdef", ""])
def test_a_core_of_another_source_is_refused(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, told: str) -> None:
    """Also one that lacks nothing: with it tests and figures would be those of other code."""
    stale = built(tmp_path, "-UCORE_SOURCE", f'-DCORE_SOURCE="{told}"')
    monkeypatch.setattr(native, "LIBRARY", stale)
    with pytest.raises(ConfigError, match=r"it is stale: .*`\./dev core` builds it again"):
        chosen(True)
    assert chosen("auto").is_broken
    assert "it is stale" in core_state(True)["why"]
    assert "it is stale" in core_state("auto")["why"]


def test_nobody_is_warned_of_a_core_that_he_did_not_build(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(native, "LIBRARY", tmp_path / "none.so")
    with capture_logs() as logs:
        tell_choice("auto")
    assert [(log["log_level"], log["why"]) for log in logs] == [("info", "it was not built when this was installed")]
    (tmp_path / "broken.so").write_bytes(b"no library")
    monkeypatch.setattr(native, "LIBRARY", tmp_path / "broken.so")
    with capture_logs() as logs:
        tell_choice("auto")
    assert [log["log_level"] for log in logs] == ["warning"]


def test_an_installed_package_has_no_source_beside_it(tmp_path: Path) -> None:
    assert fingerprint(tmp_path) == ""
    assert fingerprint() == fingerprint(ROOT / "native") != ""
