"""A broker that asks for a password: the right one reads, a wrong one is refused at once and shown nowhere."""

import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark import SparkContext

from consumer.embedded import KafkaBroker
from consumer.embedded.ports import answers
from ordering.errors import SourceError, SourceUnreachableError
from tests.service.cells import SqliteCells
from tests.service.lab import Feed

pytestmark = [pytest.mark.service, pytest.mark.spark]
WRONG = "wr0ng-Pa55"
_MODULE = "org.apache.kafka.common.security.plain.PlainLoginModule required"


class LockedBroker(KafkaBroker):
    """Asks for a password on its only listener."""

    def __init__(self, directory: Path) -> None:
        super().__init__(
            directory,
            extra={
                "listener.security.protocol.map": "CONTROLLER:PLAINTEXT,PLAINTEXT:SASL_PLAINTEXT",
                "sasl.enabled.mechanisms": "PLAIN",
                "sasl.mechanism.inter.broker.protocol": "PLAIN",
                "listener.name.plaintext.plain.sasl.jaas.config": (
                    f'{_MODULE} username="admin" password="adm1n" user_admin="adm1n" user_reader="r1ght";'
                ),
            },
        )

    def _ready(self) -> bool:
        return answers(self.port)


@pytest.fixture(scope="module")
def locked(tmp_path_factory: pytest.TempPathFactory) -> Iterator[KafkaBroker]:
    with LockedBroker(tmp_path_factory.mktemp("locked")) as broker:
        yield broker


def login(password: str) -> dict[str, object]:
    names = {"security.protocol": "SASL_PLAINTEXT", "sasl.mechanism": "PLAIN", "sasl.username": "reader"}
    return {**names, "sasl.password": password}


def feed_with(locked: KafkaBroker, spark: SparkContext, directory: Path, settings: dict[str, object]) -> Feed:
    target = directory / "target"
    feed = Feed(spark, locked.bootstrap, "locked", f"sqlite:///{target}", SqliteCells(target), directory)
    return feed.with_(**{"source": {"topics": ["~locked.*"]}, "source.kafka": settings})


def check(feed: Feed) -> "subprocess.CompletedProcess[str]":
    return feed.command("check", str(feed.file()))


def test_the_right_password(locked: KafkaBroker, spark: SparkContext, tmp_path: Path) -> None:
    done = check(feed_with(locked, spark, tmp_path, login("r1ght")))
    assert done.returncode == 0, done.stdout
    assert "ok   kafka: 0 topics" in done.stdout


def test_a_wrong_password(locked: KafkaBroker, spark: SparkContext, tmp_path: Path) -> None:
    done = check(feed_with(locked, spark, tmp_path, login(WRONG)))
    said = done.stdout + done.stderr
    assert done.returncode == 3, said
    assert "Kafka refuses us" in said
    assert locked.bootstrap in said
    assert "sasl" in said
    assert WRONG not in said
    assert "Traceback" not in said


def test_a_wrong_password_is_not_tried_again(locked: KafkaBroker, spark: SparkContext, tmp_path: Path) -> None:
    feed = feed_with(locked, spark, tmp_path, login(WRONG))
    values = {**feed.values(), "limits": {"retry-seconds": 300}}
    values["source"] = {**values["source"], "kafka": values.pop("source.kafka")}
    feed.settings = {name: value for name, value in values.items() if isinstance(value, dict)}
    error = feed.failing(SourceError)
    assert not isinstance(error, SourceUnreachableError)
    assert error.exit_code == 3
    assert WRONG not in str(error)
