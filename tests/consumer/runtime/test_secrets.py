"""Other processes see no variable that a config took; our own environment stays as it is meanwhile."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from consumer.config.text import values_of
from consumer.runtime import secrets
from consumer.runtime.secrets import ProcessArguments, hide_variables, is_secret, visible


@pytest.fixture
def taken(monkeypatch: pytest.MonkeyPatch) -> str:
    name = "A_SECRET_OF_TESTS"
    monkeypatch.setenv(name, "hidden")
    values_of('target = { uri = "mysql://u:${A_SECRET_OF_TESTS}@h" }', Path("x.toml"))
    return name


def test_a_variable_that_a_config_took_is_not_visible(taken: str) -> None:
    assert taken not in visible(os.environ)
    assert visible(os.environ)["PATH"] == os.environ["PATH"]


def test_a_library_that_passes_our_environment_on_passes_the_visible_part(taken: str) -> None:
    """PySpark sets `env` itself, last, as here; taking the variables away meanwhile would hide them from others."""
    arguments = ProcessArguments(stdout=subprocess.PIPE)
    arguments["env"] = dict(os.environ)
    seen = subprocess.run(
        [sys.executable, "-c", "import os; print(*os.environ)"], check=True, **arguments
    ).stdout.split()
    assert taken.encode() not in seen
    assert b"PATH" in seen
    assert os.environ[taken] == "hidden"


def test_variables_that_a_config_may_take_later_are_not_visible_either(monkeypatch: pytest.MonkeyPatch) -> None:
    """Spark's processes of a `serve` start before changefeeds come through the API; the token is never theirs."""
    monkeypatch.setattr(secrets, "_may_be_taken", set())
    hide_variables(["LATER_*", "TZ*"])
    environment = {"LATER_SECRET": "x", "LATER": "y", "RECONCILER_TOKEN": "t", "TZ": "UTC"}
    assert visible(environment) == {"LATER": "y", "TZ": "UTC"}


def test_a_pattern_for_all_names_leaves_what_spark_is_started_with(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(secrets, "_may_be_taken", set())
    hide_variables(["*", "SPARK_DB_PASSWORD", "PATH"])
    needed = {"PATH": "p", "_PYSPARK_DRIVER_CONN_INFO_PATH": "c", "PYTHONPATH": "m", "SPARK_HOME": "s"}
    assert visible({**needed, "ORDERS_PASSWORD": "x", "SPARK_DB_PASSWORD": "y"}) == needed


SECRET_SETTINGS = [
    "spark.authenticate.secret", "spark.ssl.keyPassword", "spark.hadoop.fs.s3a.secret.key",
    "spark.hadoop.fs.s3a.access.key", "spark.hadoop.fs.s3a.session.token", "spark.hadoop.fs.s3a.encryption.key",
    "spark.hadoop.fs.azure.account.key.acc.dfs.core.windows.net",
    "spark.hadoop.fs.azure.sas.box.acc.blob.core.windows.net", "spark.hadoop.fs.azure.sas.fixed.token.acc",
    "spark.hadoop.fs.gs.auth.service.account.private.key", "spark.hadoop.fs.azure.account.oauth2.client.secret",
    "spark.kubernetes.authenticate.oauthToken", "spark.hadoop.javax.jdo.option.ConnectionPassword",
]  # fmt: skip
OTHERS = ["spark.master", "spark.ui.enabled", "spark.driver.memory", "spark.driver.extraClassPath", "spark.local.dir"]


@pytest.mark.parametrize("name", [*SECRET_SETTINGS, *OTHERS])
def test_settings_that_hold_secrets_are_known_by_their_names(name: str) -> None:
    """They stay out of the JVM's command line, and are hidden on Spark's pages."""
    assert is_secret(name) is (name in SECRET_SETTINGS)
