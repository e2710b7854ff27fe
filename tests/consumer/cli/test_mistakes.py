"""Sixty mistakes that people make, each with what they read: what is wrong, where, what to do. Nothing of a library's.

A config is the sample with one part changed; a command line is what stands behind `reconciler`.
"""

import tomllib
from pathlib import Path

import pymysql
import pytest
from click.testing import CliRunner

from consumer.cli.main import main
from consumer.config.model import config_of
from consumer.embedded.ports import lease_port
from consumer.kafka.admin import KafkaAdmin
from consumer.verify.plan import Plan
from consumer.verify.report import VerifyOutcome
from ordering.errors import ConfigError, SourceUnreachableError
from sinks.mysql.connection import MysqlConnection
from sinks.server_error_hints import mysql_advice, postgres_advice

SAMPLE = """\
changefeed = "orders"
[source]
bootstrap-servers = "127.0.0.1:9092"
topics = ["t"]
[target]
uri = "sqlite:////tmp/out"
"""
TABLE = tomllib.loads((Path(__file__).parent / "mistakes.toml").read_text())


def test_there_are_sixty() -> None:
    assert len(TABLE["config"]) + len(TABLE["file"]) + len(LINES) + 2 >= 60


@pytest.mark.parametrize("case", TABLE["config"], ids=[one["told"][:60] for one in TABLE["config"]])
def test_a_config(case: dict[str, str]) -> None:
    text = SAMPLE + case["instead"] if case["part"] == "+" else SAMPLE.replace(case["part"], case["instead"])
    with pytest.raises(ConfigError) as caught:
        config_of(text, Path("orders.toml"))
    hint = "`reconciler help configuration` lists all keys"
    assert str(caught.value) == f"the config is wrong: {case['told']} (orders.toml)\n  hint: {hint}"


@pytest.mark.parametrize("case", TABLE["file"], ids=[one["told"][:40] for one in TABLE["file"]])
def test_a_file(case: dict[str, str]) -> None:
    with pytest.raises(ConfigError) as caught:
        config_of(case["text"], Path("orders.toml"))
    assert str(caught.value) == case["told"]


LINES = [
    (["check", "nope.toml"], "error: there is no config file nope.toml\n  hint: `reconciler init nope.toml`"),
    (["check", "."], "error: can't read the config file .: Is a directory\n"),
    (["ddl", "skip", "c.toml", "abc"], "is no commitTs, a number such as 463219034579861505:"),
    (["tail", "c.toml", "-n", "abc"], "'abc' is not a valid whole number."),
    (["chek", "c.toml"], "No such command 'chek'."),
    (["help", "konfiguration"], "error: there is no page 'konfiguration'\n  hint: pages: "),
    (["quarantine", "show", "c.toml", "t-0-5"], "TOPIC/PARTITION/OFFSET"),
]  # fmt: skip


@pytest.mark.parametrize(("words", "told"), LINES, ids=[" ".join(one[0]) for one in LINES])
def test_a_command_line(words: list[str], told: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("c.toml").write_text(SAMPLE)
    done = CliRunner().invoke(main, words)
    assert done.exit_code == 2
    assert told in done.stderr
    assert "Traceback" not in done.stderr


def test_a_host_that_nobody_knows_and_a_port_where_nobody_listens() -> None:
    closed = lease_port()
    for address, told in {
        "no-such-host.invalid:9092": "no-such-host.invalid:9092 is no host that is known here (DNS)",
        f"127.0.0.1:{closed.port}": f"127.0.0.1:{closed.port} refuses connections: nothing listens there",
    }.items():
        with pytest.raises(SourceUnreachableError) as caught:
            KafkaAdmin(address, {}).topics(["t"])
        assert caught.value.fact == f"Kafka is out of reach: {told}"
        assert caught.value.hint.startswith("check source.bootstrap-servers")
    closed.release()


@pytest.mark.parametrize("code", [1044, 1045, 1049, 1142, 2003])
def test_what_a_mysql_server_refuses_comes_with_advice(code: int) -> None:
    connection = MysqlConnection.__new__(MysqlConnection)
    connection.where = "h:3306"
    error = connection._as_error(pymysql.OperationalError(code, "said so"))
    assert str(code) in error.fact
    assert error.hint == mysql_advice(code) != ""


def test_what_postgres_refuses_comes_with_advice() -> None:
    assert all(postgres_advice(state) for state in ("42501", "28P01", "3D000"))


def test_a_verdict_counts_what_differs_and_what_was_compared() -> None:
    equal = VerifyOutcome("c", 1 << 18, ("upstream", "target"), Plan([], [], [], []), 10)
    assert "compared 0 tables, 0 rows" in list(equal.lines())[-1]
