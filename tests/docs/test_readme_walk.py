"""README's and first steps' walks, command by command: a topic, an empty target, a real Redis."""

import json
import shlex
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from consumer.demo.fake_ticdc.bank import Bank
from consumer.demo.fake_ticdc.changefeed import Changefeed
from consumer.demo.fake_ticdc.producer import produce
from consumer.embedded import KafkaBroker, RedisServer
from tests.docs.test_readme import FIRST_STEPS, LINES, START, blocks
from tests.service.lab import DEADLINE_S

pytestmark = [pytest.mark.service, pytest.mark.spark]


MAKE, *WALK = (line for line in LINES if "orders.toml" in line)


@pytest.fixture
def places(kafka_broker: KafkaBroker, redis_server: RedisServer, topic_name: str, tmp_path: Path) -> dict[str, str]:
    """What the pages name -> our servers, and a topic with a history."""
    messages = Changefeed(topic=topic_name, default_topic=topic_name).messages(Bank(5).run(40).database.log)
    produce(messages, kafka_broker.bootstrap, partitions=3)
    return {
        "127.0.0.1:9092": kafka_broker.bootstrap,
        "redis://127.0.0.1:6379/0": redis_server.uri,
        "ticdc-test": topic_name,
        "sqlite:////tmp/out": f"sqlite:///{tmp_path}/out",
    }


def placed(text: str, places: dict[str, str]) -> str:
    for shown, ours in places.items():
        text = text.replace(shown, ours)
    return text


def write_sample(places: dict[str, str], place: Path) -> None:
    """The sample of the first steps as it stands, which shows all places."""
    (sample,) = blocks("toml", START)
    assert all(shown in sample for shown in places)
    assert '"local[*]"' in sample
    (place / "orders.toml").write_text(placed(sample, places).replace('"local[*]"', '"local[2]"'))


def write_by_init(places: dict[str, str], place: Path) -> None:
    """What the README's first command writes; it knows no other Redis than the default."""
    output(placed(MAKE, places), place)
    path = place / "orders.toml"
    assert "redis://127.0.0.1:6379/0" in path.read_text()
    path.write_text(placed(path.read_text(), places) + '\n[spark]\nmaster = "local[2]"\n')


def start(line: str, place: Path) -> subprocess.Popen[str]:
    command = [sys.executable, "-m", "consumer.cli", *shlex.split(line)[1:]]
    return subprocess.Popen(command, cwd=place, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def output(line: str, place: Path) -> str:
    with start(line, place) as process:
        out, err = process.communicate(timeout=DEADLINE_S)
    assert process.returncode == 0, out + err
    return out


def test_both_pages_walk_alike() -> None:
    assert [line for line in FIRST_STEPS if "orders.toml" in line] == WALK


@pytest.mark.parametrize("write", [write_by_init, write_sample])
def test_what_is_written_is_checked_without_a_fault(
    write: Callable[[dict[str, str], Path], None], places: dict[str, str], tmp_path: Path
) -> None:
    write(places, tmp_path)
    lines = output(WALK[0], tmp_path).splitlines()
    assert lines
    assert all(line.startswith("ok ") for line in lines)


@pytest.mark.cells
@pytest.mark.parametrize("write", [write_by_init, write_sample])
def test_the_walk(write: Callable[[dict[str, str], Path], None], places: dict[str, str], tmp_path: Path) -> None:
    write(places, tmp_path)
    _, once, status, run = WALK
    told = json.loads(output(once, tmp_path).splitlines()[-1])
    assert told["events"] > 100
    assert told["duplicates"] == 0
    assert str(told["checkpoint_ts"]) in output(status, tmp_path)
    with start(run, tmp_path) as process:
        assert process.stderr is not None
        assert any("idle" in line for line in process.stderr)
        process.send_signal(signal.SIGTERM)
        process.communicate(timeout=DEADLINE_S)
    assert process.returncode == 0
