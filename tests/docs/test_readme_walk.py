"""The README's walk, command by command: its sample config against a topic, an empty target and a real Redis."""

import json
import shlex
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from consumer.demo.upstream.bank import Bank
from consumer.demo.upstream.changefeed import Changefeed
from consumer.demo.upstream.produce import produce
from consumer.embedded import KafkaBroker, RedisServer
from tests.docs.test_readme import LINES, blocks

pytestmark = [pytest.mark.service, pytest.mark.spark]


@pytest.fixture
def config(kafka_broker: KafkaBroker, redis_server: RedisServer, topic_name: str, tmp_path: Path) -> Path:
    """The sample, with our servers' places, and a topic with a history."""
    messages = Changefeed(topic=topic_name, default_topic=topic_name).messages(Bank(5).run(40).database.log)
    produce(messages, kafka_broker.bootstrap, partitions=3)
    sample, *_ = blocks("toml")
    places = {
        '"127.0.0.1:9092"': f'"{kafka_broker.bootstrap}"',
        "redis://127.0.0.1:6379/0": redis_server.uri,
        "ticdc-test": topic_name,
        "sqlite:////tmp/out": f"sqlite:///{tmp_path}/out",
        '"local[*]"': '"local[2]"',
    }
    for shown, ours in places.items():
        assert shown in sample
        sample = sample.replace(shown, ours)
    (tmp_path / "orders.toml").write_text(sample)
    return tmp_path / "orders.toml"


def start(line: str, place: Path) -> subprocess.Popen[str]:
    command = [sys.executable, "-m", "consumer.cli", *shlex.split(line)[1:]]
    return subprocess.Popen(command, cwd=place, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def output(line: str, place: Path) -> str:
    with start(line, place) as process:
        out, err = process.communicate(timeout=120)
    assert process.returncode == 0, out + err
    return out


def test_the_walk(config: Path) -> None:
    check, once, status, run = (line for line in LINES if "orders.toml" in line)
    lines = output(check, config.parent).splitlines()
    assert lines
    assert all(line.startswith("ok ") for line in lines)
    told = json.loads(output(once, config.parent).splitlines()[-1])
    assert told["events"] > 100
    assert told["duplicates"] == 0
    assert str(told["checkpoint_ts"]) in output(status, config.parent)
    with start(run, config.parent) as process:
        assert process.stderr is not None
        assert any("idle" in line for line in process.stderr)
        process.send_signal(signal.SIGTERM)
        process.communicate(timeout=60)
    assert process.returncode == 0
