"""What a start of the command line loads: help and completion are there at once."""

import importlib
import os
import signal
import subprocess
import sys

import pytest
from click.testing import CliRunner

from consumer.cli import __main__ as start
from consumer.serve import server

main_module = importlib.import_module("consumer.cli.main")

HEAVY = {"pydantic", "sqlglot", "pyspark", "kafka", "confluent_kafka", "redis", "fastapi", "numpy", "consumer.config"}


def test_help_loads_neither_the_config_nor_what_reads_or_writes() -> None:
    program = "import sys, consumer.cli.main; print(*sys.modules)"
    found = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert HEAVY & set(found.stdout.split()) == set()


def loaded(*modules: str) -> set[str]:
    program = f"import sys, {', '.join(modules)}; print(*sys.modules)"
    found = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    return set(found.stdout.split())


def test_a_config_loads_no_sql_parser() -> None:
    """Only event filters with conditions need one."""
    assert {"sqlglot", "pyspark", "kafka", "redis", "numpy"} & loaded("consumer.config.model") == set()


def test_status_loads_neither_drivers_nor_spark() -> None:
    """It is asked every few seconds by people and scripts; a driver is loaded by who connects with it."""
    heavy = {"sqlglot", "pyspark", "redis", "numpy", "pymysql", "psycopg", "fastapi", "consumer.pipeline"}
    assert heavy & loaded("consumer.cli.main", "consumer.cli.status_text", "consumer.operate.status") == set()


def test_asking_redis_loads_no_numbers() -> None:
    assert {"numpy", "pyspark"} & loaded("consumer.redis.ledger_connection") == set()


def test_check_loads_neither_drivers_nor_spark() -> None:
    heavy = {"sqlglot", "pyspark", "redis", "numpy", "pymysql", "psycopg", "fastapi", "consumer.pipeline"}
    assert heavy & loaded("consumer.cli.main", "consumer.operate.check") == set()


@pytest.mark.by_turns
def test_a_target_loads_no_sql_parser() -> None:
    """Only views need one."""
    targets = {f"sinks.{name}.dialect" for name in ("mysql", "postgres", "sqlite", "tidb")}
    assert {"sqlglot"} & loaded("consumer.operate.status", *targets) == set()
    assert {"sqlglot"} & loaded("consumer.run.runner", "consumer.wiring") == set()


@pytest.mark.parametrize(
    ("words", "code"), [("run c.toml", 0), ("--log-format json serve d", 0), ("check c.toml", 130)]
)
def test_ctrl_c_while_the_program_is_loaded_leaves_no_traceback(
    monkeypatch: pytest.MonkeyPatch, words: str, code: int
) -> None:
    class Interrupted:
        def find_spec(self, name: str, *_: object) -> None:
            if name == "consumer.cli.main":
                raise KeyboardInterrupt

    monkeypatch.setattr(sys, "argv", ["reconciler", *words.split()])
    monkeypatch.setattr(sys, "meta_path", [Interrupted(), *sys.meta_path])
    monkeypatch.delitem(sys.modules, "consumer.cli.main", raising=False)
    with pytest.raises(SystemExit) as ended:
        start.main()
    assert ended.value.code == code


@pytest.mark.parametrize("command", ["run", "serve"])
def test_ctrl_c_before_anything_has_begun_ends_with_0(monkeypatch: pytest.MonkeyPatch, command: str) -> None:
    def interrupted(*_: object) -> None:
        os.kill(os.getpid(), signal.SIGINT)

    monkeypatch.setattr(main_module, "load_config", interrupted)
    monkeypatch.setattr(server, "serve", interrupted)
    assert CliRunner().invoke(main_module.main, [command, "x"]).exit_code == 0
