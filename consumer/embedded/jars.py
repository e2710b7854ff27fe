"""Jars from the central Maven repository, in the cache, pinned by version and digest.

The Ivy that pyspark ships fetches them, so neither Maven nor its settings are needed. A set of jars is a directory
named by the digest of its pins. It appears by a rename once every jar is there and checked: a directory that exists is
complete, whatever crashed before.
"""

import hashlib
import logging
import shutil
import subprocess
from collections.abc import Callable
from dataclasses import dataclass
from importlib.resources import files
from importlib.util import find_spec
from pathlib import Path

from consumer.embedded.errors import EmbeddedError
from consumer.embedded.java import java_runtime
from consumer.embedded.process import last_lines
from consumer.runtime.cache_dir import cache_directory
from consumer.runtime.file_locks import file_lock

Progress = Callable[[str], None]

_log = logging.getLogger(__name__)

_ATTEMPTS = 3
_ATTEMPT_SECONDS = 900


@dataclass(frozen=True, slots=True)
class Jar:
    """One pinned artifact."""

    organisation: str
    name: str
    revision: str
    sha256: str

    @property
    def file_name(self) -> str:
        """Its name in the set's directory."""
        return f"{self.name}-{self.revision}.jar"


def jar_directory(name: str, progress: Progress = _log.info, package: str = __package__) -> Path:
    """The directory with all jars of the set `name`, pinned in a file of `package`; fetched on first use."""
    pins = (files(package) / f"{name}-jars.properties").read_text()
    directory = cache_directory() / "jars" / f"{name}-{hashlib.sha256(pins.encode()).hexdigest()[:12]}"
    if not directory.is_dir():
        with file_lock(directory.with_suffix(".lock")):
            if not directory.is_dir():  # the lock's former holder may have fetched it
                _fetch(name, _parse(pins), directory, progress)
    return directory


def _parse(pins: str) -> list[Jar]:
    return [_jar(*line.split("=")) for line in pins.splitlines() if line and not line.startswith("#")]


def _jar(place: str, sha256: str) -> Jar:
    organisation, name, revision = place.split("/")
    return Jar(organisation, name, revision, sha256)


def _fetch(name: str, jars: list[Jar], directory: Path, progress: Progress) -> None:
    progress(f"fetching {len(jars)} jar(s) for {name}: only this first time")
    work = directory.with_suffix(".unfinished")
    shutil.rmtree(work, ignore_errors=True)
    work.mkdir(parents=True)
    _retrieve(name, jars, work)
    for jar in jars:
        _check(jar, work / "jars" / jar.file_name)
    (work / "jars").rename(directory)
    shutil.rmtree(work)
    progress(f"jars for {name} are in {directory}")


def _retrieve(name: str, jars: list[Jar], work: Path) -> None:
    """Let Ivy fetch; what one attempt got stays in its cache, so that the next goes on from there."""
    (work / "ivy.xml").write_text(_module(name, jars))
    (work / "ivysettings.xml").write_text((files(__package__) / "ivysettings.xml").read_text())
    command = _ivy(work)
    for _ in range(_ATTEMPTS):
        with (work / "ivy.log").open("wb") as log:
            done = subprocess.run(  # noqa: S603 - the command is ours
                command, stdin=subprocess.DEVNULL, stdout=log, stderr=log, check=False, timeout=_ATTEMPT_SECONDS
            )
        if done.returncode == 0:
            return
    raise EmbeddedError(
        f"the jars for {name} could not be fetched, {_ATTEMPTS} times",
        detail=last_lines(work / "ivy.log"),
        hint=f"is the central Maven repository within reach? The whole log is {work / 'ivy.log'}",
    )


def _ivy(work: Path) -> list[str]:
    runtime = java_runtime()
    retrieved = f"{work}/jars/[artifact]-[revision].[ext]"
    options = ["-settings", f"{work}/ivysettings.xml", "-cache", f"{work}/ivy", "-ivy", f"{work}/ivy.xml"]
    java = [runtime.java, *runtime.https_options(), "-cp", str(_ivy_jar())]
    return [*java, "org.apache.ivy.Main", *options, "-types", "jar", "-retrieve", retrieved]


def _ivy_jar() -> Path:
    spec = find_spec("pyspark")
    places = spec.submodule_search_locations if spec is not None else None
    found = [jar for place in places or () for jar in sorted(Path(place, "jars").glob("ivy-*.jar"))]
    if not found:
        raise EmbeddedError("pyspark with its Ivy is not installed", hint="pip install 'ticdc-reconciler[embedded]'")
    return found[-1]


def _module(name: str, jars: list[Jar]) -> str:
    """Ivy's list of what to fetch: exactly these, nothing that they depend on."""
    wanted = "\n".join(
        f'<dependency org="{jar.organisation}" name="{jar.name}" rev="{jar.revision}" transitive="false"'
        ' conf="default->default"/>'
        for jar in jars
    )
    return (
        f'<ivy-module version="2.0"><info organisation="ticdc-reconciler" module="{name}"/>'
        '<configurations><conf name="default"/></configurations>'
        f"<dependencies>{wanted}</dependencies></ivy-module>"
    )


def _check(jar: Jar, file: Path) -> None:
    with file.open("rb") as content:
        found = hashlib.file_digest(content, "sha256").hexdigest()
    if found != jar.sha256:
        raise EmbeddedError(
            f"{jar.file_name} is not the file that was pinned",
            detail=f"sha256 is {found}, pinned {jar.sha256}",
            hint="something between this machine and the repository changed it",
        )
