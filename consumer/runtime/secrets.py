"""What other processes are not to see: variables that hold a config's secrets, and Spark's secret settings.

Spark's JVM and the workers it starts inherit our environment and are given settings on their command line, which every
user of the machine can read in `ps`. What the config took out of a variable reaches tasks with their work, if they need
it.
"""

import os
import re
from collections.abc import Iterable, Mapping
from fnmatch import fnmatchcase
from typing import Any

TOKEN_VARIABLE = "RECONCILER_TOKEN"  # noqa: S105 the variable's name
"""Holds the API's token: no config may refer to it, and no other process sees it."""

SECRET_NAMES = r"(?i)secret|password|passphrase|token|credential|signature|private|key|[.]sas[.]"  # noqa: S105 a pattern
"""Names of settings that hold secrets: Spark's own `spark.redaction.regex`, and what stores of files have besides
(`fs.azure.account.key.*`, `fs.azure.sas.*`, `fs.gs.auth.service.account.private.key`, `fs.s3a.encryption.key`)."""
_SECRET = re.compile(SECRET_NAMES)
_COMMON = frozenset({
    "PATH", "HOME", "USER", "LANG", "LC_ALL", "LC_CTYPE", "TZ", "TMPDIR", "LD_LIBRARY_PATH", "JAVA_HOME",
    "SPARK_LOCAL_DIRS", "SPARK_LOCAL_IP",
})  # fmt: skip
"""Variables that programs need themselves, whatever a config takes out of them."""
_OF_SPARK = ("_PYSPARK_", "PYSPARK_", "PYTHON", "SPARK_", "JAVA_", "JDK_", "HADOOP_", "YARN_", "KUBERNETES_")
"""How those begin by which Spark's processes find each other and their files."""
_taken: set[str] = {TOKEN_VARIABLE}
_may_be_taken: set[str] = set()
"""Patterns of names that a config may take later, when Spark's processes are there already."""


def take_variable(name: str, key: str) -> str | None:
    """The value of an environment variable for a key of the config; None if it is not set."""
    if name not in _COMMON and (is_secret(key) or not key.startswith("spark.")):
        _taken.add(name)
    return os.environ.get(name)


def hide_variables(patterns: Iterable[str]) -> None:
    """Let other processes see no variable of these names, or patterns with `*`, whether a config took it or not.

    What Spark may need itself is hidden only by its name, not by a pattern.
    """
    _may_be_taken.update(patterns)


def visible(environment: Mapping[str, str]) -> dict[str, str]:
    """An environment for another process: without the variables that a config took, or may take."""
    return {name: value for name, value in environment.items() if not _is_hidden(name)}


def _is_hidden(name: str) -> bool:
    if name in _taken:
        return True
    if name in _COMMON or name.startswith(_OF_SPARK):
        return name in _may_be_taken - _COMMON
    return any(fnmatchcase(name, one) for one in _may_be_taken)


class ProcessArguments(dict[str, Any]):
    """Arguments of a process that a library starts with all of our environment, set last: it gets the visible part."""

    def __setitem__(self, name: str, value: Any) -> None:
        super().__setitem__(name, visible(value) if name == "env" else value)


def is_secret(setting: str) -> bool:
    """Whether a setting's value had better not stand on a command line, by its name."""
    return _SECRET.search(setting) is not None
