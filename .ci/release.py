"""Makes a release in `dist/`: source archive, wheels, notes and checksums, and tries the wheel in a clean environment.

    ./dev release [--host-only]

The version is pyproject's, and CHANGELOG.md has to have a section of it. The wheels hold the compiled core, built by
Zig's C compiler for each platform (glibc 2.17 and newer, macOS 11 and newer); `--host-only` builds only this machine's.
Ends with 1 where anything fails, and then `dist/` is not there.
"""

import hashlib
import os
import platform
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile
import tomllib
import venv
import zipfile
from collections.abc import Mapping, Sequence
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
ZIG = ROOT / ".ci" / "locks" / "ziglang.lock"
"""The compiler, with the hashes of its files."""
PLATFORMS = {
    "manylinux2014_x86_64": "x86_64-linux-gnu.2.17",
    "manylinux2014_aarch64": "aarch64-linux-gnu.2.17",
    "macosx_11_0_x86_64": "x86_64-macos.11.0",
    "macosx_11_0_arm64": "aarch64-macos.11.0",
}
"""A wheel's platform tag (PEP 425, PEP 600) -> the target that Zig builds for."""


class ReleaseError(Exception):
    """There is no release, and why."""


def say(text: str) -> None:
    """Tell what happens now."""
    print(text, file=sys.stderr, flush=True)  # noqa: T201 a command


def run(command: Sequence[str], place: Path, environment: Mapping[str, str] = {}) -> str:
    """Run a program, its output is the answer. Raises ReleaseError with the output."""
    done = subprocess.run(  # noqa: S603 programs that are named here
        command,
        cwd=place,
        env=os.environ | environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
    if done.returncode != 0:
        raise ReleaseError(f"{' '.join(command)} ended with {done.returncode}:\n{done.stdout}")
    return done.stdout


def notes(changelog: str, version: str) -> str:
    """What CHANGELOG.md says of a version, with its heading. Raises ReleaseError where it says nothing."""
    sections = re.split(r"^(?=## )", changelog, flags=re.MULTILINE)
    heading = re.compile(rf"## \[{re.escape(version)}\] - \d{{4}}-\d\d-\d\d\n")
    found = [text for text in sections if heading.match(text)]
    if not found or not found[0].partition("\n")[2].strip():
        raise ReleaseError(f"CHANGELOG.md has no section `## [{version}] - YYYY-MM-DD`")
    return found[0].strip() + "\n"


def backend(place: Path, call: str, environment: Mapping[str, str] = {}) -> Path:
    """Call the project's own build backend (PEP 517) in a source tree: the file that it made."""
    code = f"import backend; print('MADE', backend.{call})"
    answer = run(
        [sys.executable, "-c", code], place, {"PYTHONPATH": f"native:{os.environ.get('PYTHONPATH', '')}", **environment}
    )
    return place / "dist" / answer.rpartition("MADE ")[2].strip()


def source_archive(work: Path) -> Path:
    """The source archive of what is committed."""
    tree = work / "tree"
    run(["git", "clone", "--quiet", "--no-hardlinks", str(ROOT), str(tree)], work)
    return backend(tree, "build_sdist('dist')")


def wheel(archive: Path, tag: str, zig: Path, work: Path) -> Path:
    """A wheel built from the source archive, for a platform."""
    place = work / tag
    with tarfile.open(archive) as packed:
        packed.extractall(place, filter="data")
    (tree,) = place.iterdir()
    compiler = f"{sys.executable} -m ziglang cc -target {PLATFORMS[tag]}"
    options = f"{{'--build-option': ['--plat-name={tag}']}}"
    made = backend(tree, f"build_wheel('dist', {options})", {"CC": compiler, "PYTHONPATH": f"native:{zig}"})
    if not made.name.endswith(f"-py3-none-{tag}.whl"):
        raise ReleaseError(f"the wheel for {tag} is named {made.name}")
    if "consumer/native/_core.so" not in zipfile.ZipFile(made).namelist():
        raise ReleaseError(f"{made.name} lacks the compiled core")
    return made


def same_modules(wheels: Sequence[Path]) -> None:
    """Raise ReleaseError unless all wheels hold the same files with the same bytes, but for core and record."""
    contents = [
        {name: packed.read(name) for name in packed.namelist() if not name.endswith((".so", "/RECORD", "/WHEEL"))}
        for packed in map(zipfile.ZipFile, wheels)
    ]
    if any(held != contents[0] for held in contents):
        raise ReleaseError("the wheels differ in more than the compiled core")


def host_tag() -> str:
    """The tag of this machine's wheel."""
    system, machine = ("macosx", "linux")[sys.platform == "linux"], platform.machine()
    found = [tag for tag in PLATFORMS if system in tag and tag.endswith(machine)]
    if not found:
        raise ReleaseError(f"no wheel is made for {sys.platform} on {machine}")
    return found[0]


def tried(made: Path, version: str, work: Path) -> None:
    """Install the wheel with the locked versions into an empty environment, and let it show itself."""
    place = work / "clean"
    venv.create(place, with_pip=True)
    locked = re.sub(r" \\\n( +--hash=\S+( \\)?\n?)+", "\n", (ROOT / "requirements.lock").read_text())
    (work / "constraints.txt").write_text(locked)
    pip = [str(place / "bin/python"), "-m", "pip", "--quiet", "--disable-pip-version-check"]
    run([*pip, "install", "-c", str(work / "constraints.txt"), f"{made}[embedded]"], work)
    reconciler = str(place / "bin/reconciler")
    shown = run([reconciler, "--version"], work)
    if version not in shown:
        raise ReleaseError(f"the installed program calls itself {shown.strip()}")
    run([reconciler, "help", "limits"], work)
    run([str(place / "bin/python"), "-c", "from consumer.native import chosen; assert chosen(True).core"], work)
    if "target = upstream" not in run([reconciler, "demo", "--seconds", "5"], work):
        raise ReleaseError("the installed program's demo did not end with `target = upstream`")


def release(work: Path, tags: Sequence[str]) -> list[Path]:
    """The files of the release, tried."""
    version = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["version"]
    text = notes((ROOT / "CHANGELOG.md").read_text(), version)
    if run(["git", "status", "--porcelain"], ROOT):
        raise ReleaseError("there are changes that are not committed, so they would not be in the release")
    say("the source archive")
    archive = source_archive(work)
    zig = work / "zig"
    install = [sys.executable, "-m", "pip", "install", "--quiet", "--require-hashes", "--only-binary", ":all:"]
    run([*install, "--target", str(zig), "-r", str(ZIG)], work)
    wheels = {}
    for tag in tags:
        say(f"the wheel for {tag}")
        wheels[tag] = wheel(archive, tag, zig, work)
    same_modules([*wheels.values()])
    say("the wheel in a clean environment, with its demo")
    tried(wheels[host_tag()], version, work)
    (work / "NOTES.md").write_text(text)
    made = [archive, *wheels.values(), work / "NOTES.md"]
    sums = work / "SHA256SUMS"
    sums.write_text("".join(f"{hashlib.sha256(path.read_bytes()).hexdigest()}  {path.name}\n" for path in made))
    return [*made, sums]


def main(words: Sequence[str]) -> int:
    """Make the release, or say why there is none."""
    dist = ROOT / "dist"
    shutil.rmtree(dist, ignore_errors=True)
    with tempfile.TemporaryDirectory() as place:
        try:
            files = release(Path(place), [host_tag()] if "--host-only" in words else [*PLATFORMS])
        except ReleaseError as error:
            say(f"NO RELEASE: {error}")
            return 1
        dist.mkdir()
        for path in files:
            shutil.copy(path, dist)
            say(f"dist/{path.name}  {path.stat().st_size:,} bytes")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
