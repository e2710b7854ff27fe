"""`docs/spark.md`: its script is run, and its options and columns are all there are."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from consumer.embedded import java_home
from consumer.spark.class_archive import java_flags
from consumer.spark_source import columns, options
from tests.docs.test_readme import README, ROOT
from tests.service.conftest import sqlite_feed
from tests.service.lab import Feed
from tests.service.messages import begun, insert, watermarks

__all__ = ["sqlite_feed"]
TEXT = (ROOT / "docs" / "spark.md").read_text()
SCRIPT = next(code for code in re.findall(r"```python\n(.*?)```", TEXT, re.DOTALL) if "sys.argv" in code)


@pytest.mark.by_turns(9)
@pytest.mark.service
@pytest.mark.spark
def test_the_script_writes_each_change_once(sqlite_feed: Feed, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("JAVA_HOME", str(java_home()))
    environment = {**os.environ, "JDK_JAVA_OPTIONS": java_flags()}  # as we start Spark: it saves half of a start
    shown = []
    for more in ([*begun(), *watermarks(3)], [insert("d.t", 4, id=2), insert("d.t", 4, id=2), *watermarks(5)]):
        sqlite_feed.send(more)
        command = [sys.executable, "-c", SCRIPT, sqlite_feed.bootstrap, sqlite_feed.topic, str(tmp_path)]
        told = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=280, check=False)
        assert told.returncode == 0, told.stderr[-3000:]
        lines = [line for line in told.stdout.splitlines() if line.startswith(("|d|", "|d "))]
        shown.append([line.split("|")[3].strip() for line in lines])
    assert shown == [["ddl", "ddl", "insert"], ["ddl", "ddl", "insert", "insert"]]


def test_it_is_found() -> None:
    assert "docs/spark.md" in README


def test_options_and_columns_are_told() -> None:
    told = set(re.findall(r"`([A-Za-z_-]+)`", TEXT))
    own = {options.MAX_ROWS, options.END_TS, options.TABLE, options.HANDLE_KEYS}
    assert own | set(columns.CHANGES.names) | set(columns.FACTS) <= told
