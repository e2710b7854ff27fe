"""Fetches a MySQL server from Debian's unstable release into the cache (`./dev mysql`), and installs nothing.

Debian's stable releases hold MariaDB only. The packages are unpacked with all libraries that they need, the C library
of that release among them, and run by its own loader: so the machine's release does not matter, only that it has apt.
Which version it is changes with that release. Takes 100 MB of downloads and 300 MB of disk.
"""

import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from consumer.embedded.errors import EmbeddedError
from consumer.runtime.cache_dir import cache_directory
from consumer.runtime.file_locks import file_lock
from tests.embedded.mysql import FETCHED, command_of

_RELEASE = "sid"
_PACKAGE = "mysql-server-core"
_HINT = "set MYSQL_SERVER to the path of MySQL's own program mysqld: see docs/development/testing.md"
_LACKS = 3
"""The exit code where it can't be had."""


class LackingError(EmbeddedError):
    """The packages are not to be had here."""


def fetch() -> Path:
    """The directory with it, fetched now if it is not in the cache. Raises EmbeddedError."""
    place = cache_directory() / FETCHED
    with file_lock(place.with_name(f"{FETCHED}.lock")):
        if not place.exists():
            with tempfile.TemporaryDirectory(prefix="mysql-fetch-", dir=place.parent) as work:
                _unpacked(Path(work)).rename(place)
    return place


def _unpacked(work: Path) -> Path:
    if shutil.which("apt-get") is None or shutil.which("dpkg-deb") is None:
        raise LackingError("no MySQL server can be fetched: this machine has no apt", hint=_HINT)
    options = _options(work)
    _say(f"asking for the packages of Debian's release {_RELEASE}")
    _apt([*options, "update"])
    _say(f"fetching {_PACKAGE} and what it needs")
    _apt([*options, "--yes", "--download-only", "--no-install-recommends", "install", _PACKAGE])
    root = work / "root"
    for package in sorted((work / "cache" / "archives").glob("*.deb")):
        _run(["dpkg-deb", "--extract", str(package), str(root)])
    _say(_run([*command_of(root), "--version"]).strip())
    return root


def _options(work: Path) -> list[str]:
    """Settings by which apt knows no release but that one, and takes nothing for installed."""
    for name in ("lists/partial", "cache/archives/partial", "etc"):
        (work / name).mkdir(parents=True)
    (work / "status").touch()
    (work / "sources.list").write_text(f"deb {_mirror()} {_RELEASE} main\n")
    settings = {
        "Dir::State::Lists": work / "lists",
        "Dir::State::status": work / "status",
        "Dir::State::extended_states": work / "extended_states",
        "Dir::Cache": work / "cache",
        "Dir::Etc::SourceList": work / "sources.list",
        "Dir::Etc::SourceParts": "/dev/null",
        "Dir::Etc::PreferencesParts": "/dev/null",
        "Dir::Etc::Preferences": "/dev/null",
        "Acquire::Languages": "none",
        "Acquire::Retries": "3",
        "Debug::NoLocking": "true",
        "APT::Sandbox::User": "root",
    }
    return [part for name, value in settings.items() for part in ("-o", f"{name}={value}")]


def _mirror() -> str:
    """Where this machine gets Debian's packages. Raises EmbeddedError if it is no Debian."""
    asked = ["indextargets", "--format", "$(SITE) $(ORIGIN) $(LABEL)", "Created-By: Packages"]
    found = [line.split() for line in _apt(asked).splitlines()]
    mirror = next((line[0] for line in found if line[1:] == ["Debian", "Debian"]), None)
    if mirror is None:
        raise LackingError("no MySQL server can be fetched: this machine's packages are not Debian's", hint=_HINT)
    return mirror


def _apt(arguments: Sequence[str]) -> str:
    """What apt prints. Raises LackingError if it fails."""
    try:
        return _run(["apt-get", *arguments])
    except EmbeddedError as error:
        raise LackingError(error.fact, hint=_HINT) from error


def _run(command: Sequence[str]) -> str:
    """What it prints. Raises EmbeddedError if it fails."""
    environment = {**os.environ, "LC_ALL": "C", "DEBIAN_FRONTEND": "noninteractive"}
    done = subprocess.run(
        command, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False, env=environment
    )
    if done.returncode != 0:
        raise EmbeddedError(f"{command[0]} failed: {(done.stdout + done.stderr)[-800:]}")
    return done.stdout


def _say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


def main() -> int:
    """Fetch it and print where it is; the exit code."""
    try:
        print(fetch())
    except LackingError as error:
        _say(f"error: {error}")
        return _LACKS
    except EmbeddedError as error:
        _say(f"error: {error}")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
