"""`./dev` makes anew what has changed, and no more: the environment, or only the compiled core."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
PYTHON = """#!/bin/sh
# Of the outside; makes an environment whose Python notes what it is asked for.
case "$1 $2" in
  "-m venv")
    mkdir -p .venv/bin
    printf '#!/bin/sh\\n[ "$1" = -c ] || echo "$*" >>"%s/asked"\\n' "$PWD" >.venv/bin/python
    chmod +x .venv/bin/python ;;
  *) exec {python} "$@" ;;
esac
"""
UV = """#!/bin/sh
echo "uv $*" >>asked
exit {code}
"""


class Checkout:
    """What `./dev venv` looks at, and what it asks the environment's Python for."""

    def __init__(self, place: Path) -> None:
        self.place, self.programs = place, place / "programs"
        for name in ("dev", "requirements.lock", "pyproject.toml", "setup.py"):
            shutil.copy(ROOT / name, place / name)
        shutil.copytree(ROOT / "native", place / "native", ignore=shutil.ignore_patterns("__pycache__"))
        self.programs.mkdir()
        self.program("python", PYTHON.replace("{python}", sys.executable))

    def program(self, name: str, text: str) -> None:
        (self.programs / name).write_text(text)
        (self.programs / name).chmod(0o755)

    def made(self, **environment: str) -> str:
        """Run it, and give what it asked for."""
        (self.place / "asked").unlink(missing_ok=True)
        outside = [d for d in os.environ["PATH"].split(os.pathsep) if not Path(d, "uv").exists()]
        given = {
            **os.environ, "PYTHON": str(self.programs / "python"), **environment,
            "PATH": os.pathsep.join([str(self.programs), *outside]),
        }  # fmt: skip
        subprocess.run(["./dev", "venv"], cwd=self.place, env=given, check=True, capture_output=True)
        return (self.place / "asked").read_text() if (self.place / "asked").exists() else ""

    def change(self, name: str) -> None:
        with (self.place / name).open("a") as file:
            file.write("\n")


@pytest.fixture
def checkout(tmp_path: Path) -> Checkout:
    return Checkout(tmp_path)


def test_a_change_of_the_core_builds_the_core_alone(checkout: Checkout) -> None:
    assert "--require-hashes" in checkout.made()
    assert checkout.made() == "", "nothing has changed"
    for name in ("native/core.c", "native/json.h", "native/build.py"):
        checkout.change(name)
        assert checkout.made() == "native/build.py\n", name
        assert checkout.made() == ""


def test_nobody_builds_a_core_that_is_switched_off(checkout: Checkout) -> None:
    checkout.made()
    checkout.change("native/core.c")
    assert checkout.made(TICDC_CORE="off") == ""


@pytest.mark.parametrize("name", ["requirements.lock", "pyproject.toml", "setup.py", "native/backend.py"])
def test_the_environment_is_made_anew(checkout: Checkout, name: str) -> None:
    checkout.made()
    checkout.change(name)
    assert "--require-hashes" in checkout.made()


@pytest.mark.parametrize("code", [0, 1])
def test_uv_installs_where_it_is_there_and_can(checkout: Checkout, code: int) -> None:
    checkout.program("uv", UV.replace("{code}", str(code)))
    asked = [line for line in checkout.made().splitlines() if "--require-hashes" in line]
    assert [line.split()[0] for line in asked] == ["uv", "-m"][: 1 + code]


def test_what_is_fetched_is_checked_by_its_hash() -> None:
    """What runs where we build and release is never whatever an index answers; our own package has no index.

    By versions only: the lowest ones, and those of a release's trial.
    """
    checked = ("--require-hashes", "--no-deps", "--no-index", '"$place/requirements.txt"', "installs ", '"-c"')
    found = []
    for name in ("dev", ".ci/run", ".ci/release.py", "docker/Dockerfile"):
        text = (ROOT / name).read_text().replace("\\\n", " ")
        commands = [line for line in text.splitlines() if re.search(r"\b(install|sync|download)\b", line)]
        found += [line for line in commands if re.search(r"\bpip\b|\[\*pip|\$\{pip", line) and "apt" not in line]
    found = [line for line in found if not line.lstrip().startswith("#") and "say" not in line]
    assert len(found) >= 8
    assert [line.strip() for line in found if not any(one in line for one in checked)] == []
    for lock in (ROOT / ".ci" / "locks").iterdir():
        assert re.search(r"^[a-z0-9-]+==\S+.* \\\n    --hash=sha256:", lock.read_text(), re.MULTILINE), lock
