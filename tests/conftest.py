"""What every test may ask for; each subject's fixtures live in a module of their own and are named here."""

import os
from pathlib import Path

import pytest

from tests.services import (
    database_prefix,
    kafka_broker,
    mariadb_server,
    postgres_server,
    redis_server,
    spark,
    tidb_server,
    topic_name,
)

__all__ = [
    "database_prefix",
    "kafka_broker",
    "mariadb_server",
    "postgres_server",
    "redis_server",
    "spark",
    "tidb_server",
    "topic_name",
]

ROOT = Path(__file__).parent.parent


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--soak", action="store_true", help="run the long tests too (marked soak)")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    if config.getoption("--soak"):
        return
    long = [item for item in items if item.get_closest_marker("soak")]
    if long:
        config.hook.pytest_deselected(items=long)
        items[:] = [item for item in items if item not in long]


def pytest_configure() -> None:
    os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")  # machines whose own name does not resolve
    # Spark's workers look for the tests' own functions there, not in the current directory
    os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, (str(ROOT), os.environ.get("PYTHONPATH"))))
