"""What `./dev release` decides: the notes of a version, and the wheels that it takes for the same."""

import importlib.util
import tomllib
import zipfile
from pathlib import Path
from types import ModuleType

import pytest

from tests.docs.test_readme import ROOT


@pytest.fixture(scope="module")
def release() -> ModuleType:
    spec = importlib.util.spec_from_file_location("release", ROOT / ".ci" / "release.py")
    assert spec
    assert spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


CHANGES = "# Changelog\n\n## [Unreleased]\n\n## [1.2.0] - 2026-01-02\n### Added\n- a\n\n## [1.1.0] - 2025-01-02\n- b\n"


def test_the_notes_of_a_version(release: ModuleType) -> None:
    assert release.notes(CHANGES, "1.2.0") == "## [1.2.0] - 2026-01-02\n### Added\n- a\n"
    assert release.notes(CHANGES, "1.1.0") == "## [1.1.0] - 2025-01-02\n- b\n"


@pytest.mark.parametrize("version", ["1.3.0", "1", "1.2", "Unreleased"])
def test_a_version_without_notes(release: ModuleType, version: str) -> None:
    with pytest.raises(release.ReleaseError, match="has no section"):
        release.notes(CHANGES, version)


def test_an_empty_section_is_none(release: ModuleType) -> None:
    with pytest.raises(release.ReleaseError, match="has no section"):
        release.notes("## [1.0.0] - 2025-01-01\n\n## [0.9.0] - 2024-01-01\n- x\n", "1.0.0")


def test_this_version_has_notes(release: ModuleType) -> None:
    version = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["version"]
    assert len(release.notes((ROOT / "CHANGELOG.md").read_text(), version)) > 1000


def packed(path: Path, **files: str) -> Path:
    with zipfile.ZipFile(path, "w") as archive:
        for name, text in files.items():
            archive.writestr(name.replace("__", "/").replace("_dot_", "."), text)
    return path


def test_wheels_differ_in_the_core_alone(release: ModuleType, tmp_path: Path) -> None:
    one = packed(tmp_path / "1.whl", consumer__a="1", consumer__core_dot_so="x", d__RECORD="1")
    two = packed(tmp_path / "2.whl", consumer__a="1", consumer__core_dot_so="y", d__RECORD="2")
    release.same_modules([one, two])
    with pytest.raises(release.ReleaseError, match="differ"):
        release.same_modules([one, packed(tmp_path / "3.whl", consumer__a="2", consumer__core_dot_so="x")])
