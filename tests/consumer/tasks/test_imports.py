"""What a process loads at its start: nothing that takes long and that it has no use for."""

import subprocess
import sys

import pytest

UNUSED = {
    "from consumer.spark.daemon import TASKS; [import_module(name) for name in TASKS]": ("redis", "kafka", "psycopg"),
    "import_module('consumer.run.runner')": ("psycopg", "pyiceberg", "pyarrow"),
}
"""Programs, and packages that each of them loads only where a config asks for them."""


@pytest.mark.parametrize("program", UNUSED)
def test_what_only_some_need_is_not_loaded(program: str) -> None:
    told = f"import sys\nfrom importlib import import_module\n{program}\nprint(*sorted(sys.modules))"
    done = subprocess.run([sys.executable, "-c", told], capture_output=True, text=True, check=True)
    assert not set(UNUSED[program]) & set(done.stdout.split())
