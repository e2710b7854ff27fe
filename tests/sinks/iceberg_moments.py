"""What happens at a moment of a window that an Iceberg target writes, and the files that are there then."""

from collections.abc import Callable
from pathlib import Path

import pytest

from sinks.iceberg.files import LakeFiles
from tests.service.local import LocalFeed


def files_of(feed: LocalFeed) -> set[Path]:
    """All files of its warehouse."""
    return {path for path in (feed.directory / "warehouse").rglob("*") if path.is_file()}


def while_files_are_written(monkeypatch: pytest.MonkeyPatch, act: Callable[[], object]) -> None:
    """Have something happen once, when a window's files are on disk and no pointer has moved."""
    sync, waiting = LakeFiles.sync, [act]

    def synced(self: LakeFiles) -> None:
        sync(self)
        if waiting and self._new:
            waiting.pop()()

    monkeypatch.setattr(LakeFiles, "sync", synced)
