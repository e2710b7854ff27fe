"""Rows that wait for their unit: a disk that takes no more of them is told as what it is, and no file is left."""

import os
import resource
import tempfile
from pathlib import Path

import pytest

from ordering.errors import LocalDiskError
from ordering.events import RowOp, TableName
from sinks.rows.chunk import Chunk
from sinks.rows.spool import Spool

ROOM = 64 << 10


def _filled(size: int) -> None:
    with Spool() as spool:
        for _ in range((8 << 20) // size):
            spool.add(Chunk(TableName("d", "t"), RowOp.WRITE, ("a",), 1, b"x" * size))


@pytest.mark.parametrize("size", [1_000, 200_000])
def test_a_full_disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, size: int) -> None:
    """Small pieces are still in the file's buffer when it is closed: they must not fail once more there."""
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (ROOM, before[1]))
    try:
        with pytest.raises(LocalDiskError, match="File too large") as caught:
            _filled(size)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
    assert caught.value.where.startswith(str(tmp_path))
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("half", RowOp)
def test_a_file_that_gives_back_something_else(half: RowOp) -> None:
    """A byte, or the end, of what a target is going to be given, whichever way it takes it."""
    payload = b"1\t500\n" * 900_000

    def flip(file: Path) -> None:
        with file.open("r+b") as bytes_:
            bytes_.seek(2)
            bytes_.write(b"9")

    def cut(file: Path) -> None:
        os.truncate(file, 60)

    for damage in (flip, cut):
        with Spool() as spool:
            spool.add(Chunk(TableName("d", "t"), half, ("id", "v"), 900_000, payload))
            (group,) = spool.groups(half)
            file = Path(group.path())
            assert b"".join(group.payloads()) == payload
            damage(file)
            for take in (lambda: list(group.payloads()), group.path):  # noqa: B023
                with pytest.raises(LocalDiskError, match="other rows than were written"):
                    take()
