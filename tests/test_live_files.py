"""Looking through a directory that changes meanwhile."""

from pathlib import Path
from shutil import rmtree

from tests.live_files import files_below


def test_a_directory_that_goes_away_is_left_out(tmp_path: Path) -> None:
    for name in ("a", "b", "c"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "file").touch()
    walk = files_below(tmp_path)
    found = [next(walk)]
    for name in {"a", "b", "c"} - {found[0].parent.name}:
        rmtree(tmp_path / name)
    assert [*found, *walk] == found
