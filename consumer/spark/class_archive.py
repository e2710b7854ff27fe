"""An archive of the classes that Spark's JVM loads at its start, which halves what a start costs.

The JVM maps such an archive instead of reading, checking and linking ten thousand classes again (JEP 350, "Dynamic CDS
Archives"). `consumer.spark.build_class_archive` makes it, once per installation of Java and Spark; one that does not
fit is ignored by the JVM itself. Nothing depends on it.
"""

import hashlib
import os
import shutil
import subprocess
import sys
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path
from threading import Thread

from consumer.runtime.cache_dir import cache_place
from consumer.runtime.secrets import visible

MAKING = "TICDC_RECONCILER_CLASS_ARCHIVE"
"""Names the file to make, in the process that makes it. Set to nothing: none is used and none is made."""
_JVM = "-XX:+UseParallelGC -XX:TieredStopAtLevel=1 -XX:-UsePerfData"


def java_flags() -> str:
    """What Spark's JVM is started with."""
    making = os.environ.get(MAKING)
    if making:
        return f"{_JVM} -XX:ArchiveClassesAtExit={making} -Xlog:disable"
    found = None if making == "" else found_archive()
    return _JVM if found is None else f"{_JVM} -XX:SharedArchiveFile={found} -Xlog:cds=off"


def found_archive() -> Path | None:
    """The archive, if there is one; not one that another user may have written."""
    for path in _places():
        if path.is_file() and path.stat().st_uid in (0, os.getuid()):
            return path
    return None


def place_to_make() -> Path | None:
    """Where an archive may be made; None where there is no such place, or where it is not wanted."""
    for path in _places() if os.environ.get(MAKING) is None else ():
        try:
            path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        except OSError:
            continue
        if os.access(path.parent, os.W_OK):
            return path
    return None


def make_in_background() -> "subprocess.Popen[bytes] | None":
    """Have it made if it is missing: once this process has ended, or by and by if it goes on. Returns who makes it."""
    place = None if found_archive() else place_to_make()
    if place is None:
        return None
    making = subprocess.Popen(  # noqa: S603 ourselves
        [sys.executable, "-m", "consumer.spark.build_class_archive", "--wait", str(place)],
        env=visible(os.environ),
        stdin=subprocess.PIPE,  # ours to hold: it ends with this process
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )
    Thread(target=making.wait, name="class archive", daemon=True).start()
    return making


def _places() -> list[Path]:
    """With the installation, else in the user's cache."""
    name = _name()
    folders = [Path(sys.prefix) / "var" / "ticdc-reconciler", cache_place()]
    # for Spark a path with a space in it would be two words
    return [folder / name for folder in folders if name is not None and " " not in str(folder)]


def _name() -> str | None:
    """Of the archive for this Java and this Spark; None if either is missing."""
    home, spark = os.environ.get("JAVA_HOME"), find_spec("pyspark")
    java = str(Path(home) / "bin" / "java") if home else shutil.which("java")
    if java is None or not Path(java).exists() or spark is None:
        return None
    binary, place = Path(java).resolve(), Path(os.environ.get("SPARK_HOME") or Path(str(spark.origin)).parent)
    jars = sorted(path.name for path in place.glob("jars/*"))  # also those that somebody has put there
    # in whole seconds: the layers of a container image keep no others
    made = int(binary.stat().st_mtime)
    said = (str(binary), made, version("pyspark"), str(place), jars, _JVM)
    return f"spark-{hashlib.sha256(repr(said).encode()).hexdigest()[:16]}.jsa"
