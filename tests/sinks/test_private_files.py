"""Files with rows in them are their owner's, whatever the umask; those that are there keep their modes."""

import os
import re
import stat
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace

import pytest

from consumer.verify.resume_file import ResumeState
from sinks.private_files import make_directory, make_file, open_file
from sinks.steps import Step
from tests.consumer.cli.test_manners import reconciler
from tests.sinks.test_sqlite_fence import Leader
from tests.test_architecture import ROOT, name_of

OTHERS_MAY_MAKE = {"consumer/demo", "consumer/embedded", "consumer/reference"}
"""Made-up data, programs, and pages of the documentation."""


@pytest.fixture(autouse=True)
def _open_umask() -> Iterator[None]:
    before = os.umask(0)
    yield
    os.umask(before)


def modes(folder: Path) -> dict[str, int]:
    return {str(p.relative_to(folder)): stat.S_IMODE(p.stat().st_mode) for p in folder.rglob("*")}


def test_what_is_made_is_private_and_what_is_there_stays(tmp_path: Path) -> None:
    shared = tmp_path / "shared"
    shared.mkdir(mode=0o755)
    there = shared / "there"
    there.write_text("x")
    make_directory(shared)
    make_directory(shared / "a" / "b")
    make_file(there)
    make_file(shared / "new")
    for path, mode in ((there, "a"), (shared / "state", "ab"), (shared / "repair", "w"), (shared / "init", "x")):
        open_file(path, mode).close()
    private = dict.fromkeys(("new", "state", "repair", "init"), 0o600)
    assert modes(shared) == {"there": 0o666, "a": 0o700, "a/b": 0o700, **private}
    assert there.read_text() == "x"


def test_commands_write_private_files(tmp_path: Path) -> None:
    assert reconciler("init", tmp_path / "orders.toml").exit_code == 0
    ResumeState(tmp_path / "state", SimpleNamespace(as_json=dict))  # type: ignore[arg-type]
    assert modes(tmp_path) == {"orders.toml": 0o600, "state": 0o600}


def test_nothing_else_makes_files() -> None:
    """The net: what makes a file or a directory goes through `sinks.private_files`, or makes private ones by itself."""
    making = re.compile(r"\.open\(\"[wax]|write_text\(|write_bytes\(|\.touch\(\)|\.mkdir\(|makedirs\(")
    found = {
        name_of(path)
        for package in ("consumer", "sinks")
        for path in (ROOT / package).rglob("*.py")
        if making.search(path.read_text()) and not any(name_of(path).startswith(one) for one in OTHERS_MAY_MAKE)
    }
    empty = {
        "consumer/runtime/cache_dir.py",
        "consumer/runtime/file_locks.py",
        "consumer/spark/class_archive.py",
    }  # locks and the cache's directory hold nothing, the archive holds Java's classes
    assert found - empty == {"sinks/private_files.py"}


def test_sqlite_files_are_private_at_every_step_and_others_keep_their_modes(tmp_path: Path) -> None:
    directory, seen = tmp_path / "out" / "target", dict[str, int]()
    leader = Leader(directory)

    def look(_: Step) -> None:
        seen.update(modes(tmp_path))

    leader.ddl(1, "CREATE DATABASE `d`", look)
    leader.ddl(2, "CREATE TABLE `d`.`t` (`id` INT PRIMARY KEY)", look)
    leader.target.close()
    look(Step.DDL_DONE)
    assert {seen.pop("out"), seen.pop("out/target")} == {0o700}
    assert set(seen.values()) == {0o600}, {name: oct(mode) for name, mode in seen.items()}
    assert {Path(name).name for name in seen} >= {"d.sqlite", "ticdc_reconciler.sqlite", "d.sqlite-journal"}
    (directory / "d.sqlite").chmod(0o640)
    again = Leader(directory)
    again.ddl(3, "CREATE TABLE `d`.`u` (`id` INT PRIMARY KEY)")
    again.target.close()
    assert stat.S_IMODE((directory / "d.sqlite").stat().st_mode) == 0o640
