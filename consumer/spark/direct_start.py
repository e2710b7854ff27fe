"""Starts Spark's JVM without Spark's launcher, whose shell and own JVM take half a second of each start.

The launcher turns variables, files and settings into a command line. Where none of those that it reads is used, all of
that line is fixed for an installation but the memory and our own flags. `build_class_archive` reads the fixed part
(class path, module options) from a JVM that the launcher has started, and keeps it beside the class archive as an
argument file of `java` ("The java Command", Java 9 and later). `PythonGatewayServer`, which spark-submit would run, is
then started at once. Nothing depends on it: whatever is unusual goes through the launcher.
"""

import os
from collections.abc import Collection, Mapping, Sequence
from importlib.util import find_spec
from pathlib import Path

from consumer.spark.class_archive import MAKING, arguments_beside, found_archive, java_binary

_MAIN, _LAUNCHED = "org.apache.spark.api.python.PythonGatewayServer", "org.apache.spark.deploy.SparkSubmit"
"""What runs in the JVM: started directly, and by the launcher, which has it run the former."""
_VARIABLES = (
    "SPARK_HOME", "SPARK_CONF_DIR", "SPARK_SUBMIT_OPTS", "SPARK_LAUNCHER_OPTS", "SPARK_TESTING", "SPARK_DRIVER_MEMORY",
    "SPARK_PREPEND_CLASSES", "SPARK_DIST_CLASSPATH", "PYSPARK_SUBMIT_ARGS", "HADOOP_CONF_DIR", "YARN_CONF_DIR",
)  # fmt: skip
"""Those that Spark's scripts and its launcher read, if they are not empty."""
_MEMORY, _OPTIONS = "spark.driver.memory", "spark.driver.extraJavaOptions"
_OF_THE_CONTEXT = ("spark.ui.", "spark.eventLog.", "spark.task.", "spark.shuffle.", "spark.local.dir", "spark.cleaner.")
"""Settings that only the context reads, which gets all of them by itself."""


def direct_command(master: str, asked: Collection[str], settings: Mapping[str, str]) -> list[str] | None:
    """The command that starts Spark's JVM; None where the launcher has to.

    `asked`: the names of the user's own settings; `settings`: all, with our defaults, but for secrets. They are
    properties of the JVM too, as with the launcher: a context that somebody makes later in it takes them from there.
    """
    archive, java = found_archive(), java_binary()
    if archive is None or java is None or not master.startswith("local") or not _is_usual(asked):
        return None
    arguments = arguments_beside(archive)
    if not arguments.is_file() or arguments.stat().st_uid != archive.stat().st_uid:
        return None
    properties = [f"-D{name}={value}" for name, value in settings.items() if name not in (_MEMORY, _OPTIONS)]
    options = settings[_OPTIONS].split()
    return [str(java), f"@{arguments}", f"-Xmx{settings[_MEMORY]}", *options, *properties, _MAIN]


def _is_usual(asked: Collection[str]) -> bool:
    """Whether nothing that the launcher looks at is set: variables, its folder of files, settings."""
    spark = find_spec("pyspark")
    if spark is None or spark.origin is None or (Path(spark.origin).parent / "conf").exists():
        return False
    if MAKING in os.environ or any(os.environ.get(name) for name in _VARIABLES):
        return False
    return all(name == _MEMORY or name.startswith(_OF_THE_CONTEXT) for name in asked)


def argument_file(pid: int, own: Sequence[str]) -> str | None:
    """What an argument file for `java` holds: class path and options of a JVM that the launcher started, as `pid`.

    `own`: the options that are given with each start, as the memory is. None where the system has no such file.
    """
    try:
        words = Path(f"/proc/{pid}/cmdline").read_text().split("\0")[1:]
    except FileNotFoundError:
        return None
    options = words[: words.index(_LAUNCHED)]
    return "".join(f"{_quoted(one)}\n" for one in options if one not in own and not one.startswith("-Xmx"))


def _quoted(word: str) -> str:
    return '"' + word.replace("\\", "\\\\").replace('"', '\\"') + '"'
