"""What a start of the command line loads: help and completion are there at once."""

import subprocess
import sys

HEAVY = {"pydantic", "sqlglot", "pyspark", "kafka", "confluent_kafka", "redis", "fastapi", "numpy", "consumer.config"}


def test_help_loads_neither_the_config_nor_what_reads_or_writes() -> None:
    program = "import sys, consumer.cli.main; print(*sys.modules)"
    found = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert HEAVY & set(found.stdout.split()) == set()
