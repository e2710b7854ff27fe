"""The embedded TiDB starts from a program or a packed one, and leaves nothing outside of its directory."""

import lzma
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pymysql
import pytest

from consumer.embedded import EmbeddedError
from tests.embedded import TidbServer
from tests.embedded.tidb import BUILT, VARIABLE, tidb_program
from tests.embedded.tidb_build import build

pytestmark = pytest.mark.service


def test_it_answers_and_keeps_its_files_to_itself(
    tidb_server: TidbServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    with TidbServer(tmp_path / "own", config="[performance]\ntxn-entry-size-limit = 1000000\n") as server:
        assert server.port != tidb_server.port
        connection = pymysql.connect(host="127.0.0.1", port=server.port, user="root")
        with connection.cursor() as cursor:
            cursor.execute("SELECT SLEEP(0.5)")
            cursor.execute("SHOW CONFIG WHERE name = 'performance.txn-entry-size-limit'")
            assert cursor.fetchall()[0][-1] == "1000000"
        connection.close()
    assert [path.name for path in tmp_path.iterdir()] == ["own"]


def test_a_packed_program_is_unpacked_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    packed = tmp_path / "tidb-server.xz"
    packed.write_bytes(lzma.compress(b"#!/bin/sh\n"))
    monkeypatch.setenv("TICDC_RECONCILER_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv(VARIABLE, str(packed))
    program = tidb_program()
    assert program.read_bytes() == b"#!/bin/sh\n"
    before = program.stat()
    assert before.st_mode & 0o100
    assert tidb_program() == program
    assert program.stat().st_mtime_ns == before.st_mtime_ns


def test_without_one_the_error_says_what_to_do(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setenv("TICDC_RECONCILER_CACHE", str(tmp_path))
    monkeypatch.setenv(VARIABLE, str(tmp_path / "none"))
    with pytest.raises(EmbeddedError, match="none, which is not there"):
        tidb_program()
    monkeypatch.delenv(VARIABLE)
    with pytest.raises(EmbeddedError, match=r"\./dev tidb"):
        tidb_program()
    (tmp_path / BUILT).write_text("")
    assert tidb_program() == tmp_path / BUILT


def test_a_module_with_another_sum_is_not_built(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    go = tmp_path / "go"
    go.write_text("""#!/bin/sh
case $1 in env) echo go1.99.0 ;; mod) echo '{"Sum": "h1:other", "Dir": "/"}' ;; *) exit 1 ;; esac
""")
    go.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:/bin:/usr/bin")
    monkeypatch.setenv("TICDC_RECONCILER_CACHE", str(tmp_path / "cache"))
    with pytest.raises(EmbeddedError, match="h1:other"):
        build()
    assert [path.name for path in (tmp_path / "cache").iterdir()] == [f"{BUILT}.lock"], "nothing half-built is left"


TESTS = """
import pytest

@pytest.mark.service
@pytest.mark.parametrize("kind", ["sqlite", "tidb"])
def test_it(kind): ...

def test_other(tidb_server): ...
"""


@pytest.fixture
def few_tests(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., tuple[int, str]]:
    """Runs three tests, two of which need a server, where there is none."""
    (tmp_path / "test_few.py").write_text(TESTS)
    monkeypatch.setenv("TICDC_RECONCILER_CACHE", str(tmp_path / "cache"))
    monkeypatch.delenv(VARIABLE, raising=False)
    monkeypatch.setenv("TEST_CELLS", "all")  # else a run takes some of the tests of TiDB
    path = os.pathsep.join(
        place for place in os.environ["PATH"].split(os.pathsep) if not (Path(place) / "tidb-server").exists()
    )
    monkeypatch.setenv("PATH", path)

    def run(*options: str) -> tuple[int, str]:
        root = Path(__file__).parent.parent
        settings = (
            "-c",
            str(root / "pyproject.toml"),
            "--rootdir",
            str(root),
            "-p",
            "tests.conftest",
            "-p",
            "no:randomly",
        )
        command = [sys.executable, "-m", "pytest", *settings, *options, str(tmp_path / "test_few.py")]
        done = subprocess.run(command, capture_output=True, text=True, cwd=root, check=False)
        return done.returncode, done.stdout + done.stderr

    return run


@pytest.mark.by_turns
@pytest.mark.parametrize("processes", ["0", "2"])
def test_without_a_server_its_tests_are_left_out_in_one_loud_line(
    processes: str, few_tests: Callable[..., tuple[int, str]]
) -> None:
    code, said = few_tests("-n", processes)
    assert code == 0, said
    (line,) = (line for line in said.splitlines() if "WITHOUT A TIDB SERVER" in line)
    assert "2 TESTS" in line
    assert "./dev tidb" in line
    assert "1 passed" in said


def test_where_it_is_demanded_a_missing_server_is_an_error(few_tests: Callable[..., tuple[int, str]]) -> None:
    code, said = few_tests("--demand-tidb")
    assert code == pytest.ExitCode.USAGE_ERROR
    assert "./dev tidb" in said
