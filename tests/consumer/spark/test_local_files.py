"""Rows that pass Spark by, in files: they come back as they were, or not at all."""

import gc
import signal
import stat
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from consumer.spark.local_files import LocalFiles, PlacedChunk, PlaceInFile, fetched_chunks, local_files
from consumer.tasks.order import Answered
from consumer.tasks.shuffle_blocks import REPORTS, Record
from ordering.events import RowOp, TableName
from ordering.rows.manifest import Manifest
from sinks.rows.chunk import Chunk

LARGE, SMALL = bytes(range(256)) * 40, b"few"
RECORDS: list[Record] = [
    (2, LARGE),
    (1, SMALL),
    (1, LARGE[::-1]),
    (2, b"x" * (3 << 20)),
    (1, Manifest(0, b"digest", 2)),
    (REPORTS, "a report"),
]


@pytest.fixture
def files(tmp_path: Path) -> LocalFiles:
    return LocalFiles(str(tmp_path))


def names(files: LocalFiles) -> set[Path]:
    return set(Path(files.directory).iterdir())


def test_records_come_back_as_they_were(files: LocalFiles) -> None:
    stored = list(files.stored(RECORDS))
    assert [isinstance(payload, PlaceInFile) for _, payload in stored] == [True, False, True, True, False, False]
    assert list(files.fetched(stored)) == RECORDS
    assert list(files.fetched(reversed(stored))) == RECORDS[::-1]  # the shuffle brings them in any order


def test_each_attempt_of_a_task_has_a_file_of_its_own_that_others_may_not_read(files: LocalFiles) -> None:
    first = list(files.stored(RECORDS))
    before = names(files)
    again = list(files.stored([(2, SMALL * 5000)]))
    assert len(names(files) - before) == 1
    assert list(files.fetched(first)) == RECORDS
    assert list(files.fetched(again)) == [(2, SMALL * 5000)]
    assert {stat.S_IMODE(path.stat().st_mode) for path in names(files)} == {0o600}


def test_an_attempt_that_fails_leaves_no_file(files: LocalFiles) -> None:
    def failing() -> Iterator[Record]:
        yield 1, LARGE
        raise ValueError

    with pytest.raises(ValueError):  # noqa: PT011 our own
        list(files.stored(failing()))
    assert not names(files)
    cancelled = files.stored([(1, LARGE), (2, LARGE)])
    next(cancelled)
    assert names(files)
    cancelled.close()
    assert not names(files)


def test_small_rows_make_no_file(files: LocalFiles) -> None:
    assert list(files.stored([(1, SMALL)])) == [(1, SMALL)]
    assert not names(files)


@pytest.mark.parametrize("left", [0, 1, len(LARGE) - 1])
def test_a_file_that_was_cut_is_an_error(files: LocalFiles, left: int) -> None:
    stored = list(files.stored([(1, LARGE)]))
    (path,) = names(files)
    path.write_bytes(LARGE[:left])
    with pytest.raises(EOFError, match="are missing"):
        list(files.fetched(stored))


@pytest.mark.parametrize("damage", [bytes(len(LARGE)), LARGE[:-1] + b"x", LARGE[::-1]])
def test_a_file_that_holds_something_else_is_an_error(files: LocalFiles, damage: bytes) -> None:
    """Zeros in the place of a page are a value as good as any other."""
    stored = list(files.stored([(1, LARGE)]))
    (path,) = names(files)
    path.write_bytes(damage)
    with pytest.raises(EOFError, match="not what was written"):
        list(files.fetched(stored))
    chunks = list(files.stored_chunks([CHUNK]))
    (path,) = names(files) - {path}
    path.write_bytes(damage)
    with pytest.raises(EOFError, match="not what was written"):
        list(fetched_chunks(chunks))


def test_a_file_that_is_gone_is_an_error(files: LocalFiles) -> None:
    stored = list(files.stored([(1, LARGE)]))
    for path in names(files):
        path.unlink()
    with pytest.raises(FileNotFoundError):
        list(files.fetched(stored))


CHUNK = Chunk(TableName("d", "t"), RowOp.WRITE, ("id",), 7, LARGE, met=3)


def test_chunks_come_back_and_leave_no_file(files: LocalFiles) -> None:
    outcomes = [CHUNK, replace(CHUNK, payload=SMALL), replace(CHUNK, payload=LARGE * 2), Answered(1, 3)]
    stored = list(files.stored_chunks(outcomes))
    assert [isinstance(one, PlacedChunk) for one in stored] == [True, False, True, False]
    assert list(fetched_chunks(stored)) == outcomes
    assert not names(files)


def test_they_are_removed_with_the_records(files: LocalFiles) -> None:
    class Records:
        pass

    records = Records()
    files.kept_with(records)
    list(files.stored(RECORDS))
    del records
    gc.collect()
    assert not Path(files.directory).exists()


@pytest.mark.parametrize("master", ["spark://host:7077", "yarn", "k8s://https://host"])
def test_tasks_on_other_machines_have_none(master: str, tmp_path: Path) -> None:
    assert local_files(master, str(tmp_path)) is None


def test_a_context_without_a_directory_of_ours_has_none() -> None:
    assert local_files("local[2]", "") is None


def test_the_directory_is_its_owners_alone_and_beside_sparks_own(tmp_path: Path) -> None:
    files = local_files("local[2]", f"{tmp_path},/elsewhere")
    assert files is not None
    directory = Path(files.directory)
    assert directory.parent.parent == tmp_path
    assert stat.S_IMODE(directory.stat().st_mode) == 0o700


def test_a_place_that_cannot_be_used_is_passed_over_as_spark_does(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    files = local_files("local[2]", f"{tmp_path / 'file'}, {tmp_path / 'missing'},{tmp_path}")
    assert files is not None
    assert Path(files.directory).is_relative_to(tmp_path)
    with pytest.raises(OSError, match="missing"):
        local_files("local[2]", str(tmp_path / "missing"))


def test_what_a_killed_process_left_is_removed_from_a_place_that_the_config_names(tmp_path: Path) -> None:
    code = (
        "import os, sys, signal; from consumer.spark.local_files import local_files;"
        "files = local_files('local[2]', sys.argv[1]);"
        "list(files.stored([(1, bytes(5000))]));"
        "os.kill(os.getpid(), signal.SIGKILL)"
    )
    for _ in range(2):
        ended = subprocess.run([sys.executable, "-c", code, str(tmp_path)], check=False)
        assert ended.returncode == -signal.SIGKILL
    (left,) = tmp_path.iterdir()  # of the second: it has removed the first's
    assert list(left.glob("rows-*/*"))
    assert local_files("local[2]", str(tmp_path)) is not None
    assert not left.exists()
