"""What other processes are not to see: variables that hold a config's secrets, and Spark's secret settings.

Spark's JVM and the workers it starts inherit our environment and are given settings on their command line, which every
user of the machine can read in `ps`. What the config took out of a variable reaches tasks with their work, if they need
it.
"""

import os
import re
from collections.abc import Mapping
from typing import Any

SECRET_NAMES = r"(?i)secret|password|passphrase|token|credential|signature|private|key|[.]sas[.]"  # noqa: S105 a pattern
"""Names of settings that hold secrets: Spark's own `spark.redaction.regex`, and what stores of files have besides
(`fs.azure.account.key.*`, `fs.azure.sas.*`, `fs.gs.auth.service.account.private.key`, `fs.s3a.encryption.key`)."""
_SECRET = re.compile(SECRET_NAMES)
_COMMON = frozenset({"PATH", "HOME", "USER", "LANG", "TMPDIR", "JAVA_HOME", "SPARK_LOCAL_DIRS", "SPARK_LOCAL_IP"})
"""Variables that programs need themselves, whatever a config takes out of them."""
_taken: set[str] = set()


def take_variable(name: str, key: str) -> str | None:
    """The value of an environment variable for a key of the config; None if it is not set."""
    if name not in _COMMON and (is_secret(key) or not key.startswith("spark.")):
        _taken.add(name)
    return os.environ.get(name)


def visible(environment: Mapping[str, str]) -> dict[str, str]:
    """An environment for another process: without the variables that a config took."""
    return {name: value for name, value in environment.items() if name not in _taken}


class ProcessArguments(dict[str, Any]):
    """Arguments of a process that a library starts with all of our environment, set last: it gets the visible part."""

    def __setitem__(self, name: str, value: Any) -> None:
        super().__setitem__(name, visible(value) if name == "env" else value)


def is_secret(setting: str) -> bool:
    """Whether a setting's value had better not stand on a command line, by its name."""
    return _SECRET.search(setting) is not None
