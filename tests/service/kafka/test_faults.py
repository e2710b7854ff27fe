"""A broker that is slow, cuts its lines, restarts: everything is applied, once."""

import threading
from collections.abc import Iterator
from dataclasses import replace

import pytest

from consumer.demo.fake_ticdc.producer import produce
from consumer.embedded import KafkaBroker
from sinks.steps import Step
from tests.service.cells import differences, oracle
from tests.service.lab import PARTITIONS, Feed, is_row, recorded
from tests.service.messages import at, begun, insert, watermarks
from tests.service.proxy import Proxy

pytestmark = [pytest.mark.service, pytest.mark.spark]
RECORDING = "split.index-value.raw"


@pytest.fixture(scope="module")
def far(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[KafkaBroker, Proxy]]:
    """A broker that tells everyone to come by way of a proxy, and the proxy."""
    with Proxy("127.0.0.1", 0) as proxy:
        told = {"advertised.listeners": f"PLAINTEXT://127.0.0.1:{proxy.port}"}
        broker = KafkaBroker(tmp_path_factory.mktemp("far"), extra=told)
        proxy.to = ("127.0.0.1", broker.port)
        with broker:
            yield broker, proxy


@pytest.fixture
def feed(sqlite_feed: Feed, far: tuple[KafkaBroker, Proxy]) -> Feed:
    """A feed whose messages come through the proxy."""
    return replace(sqlite_feed, bootstrap=f"127.0.0.1:{far[1].port}", settings={}).with_(limits={"retry-seconds": 90})


def test_a_slow_broker_whose_lines_break(feed: Feed, far: tuple[KafkaBroker, Proxy]) -> None:
    proxy, left = far[1], [Step.PROBED, Step.PLANNED, Step.APPLY_BEGUN]
    messages = recorded(RECORDING)
    feed.send(messages)

    def cut(step: Step) -> None:
        if left and step is left[0]:
            left.pop(0)
            proxy.cut()

    proxy.delay_s = 0.02
    try:
        counts = feed.once(cut).counts
    finally:
        proxy.delay_s = 0
    assert not left
    assert counts.events == sum(map(is_row, messages))
    assert differences(oracle("split"), feed.cells) == []


@pytest.mark.by_turns
def test_a_broker_that_restarts(feed: Feed, far: tuple[KafkaBroker, Proxy]) -> None:
    broker, left = far[0], [Step.PLANNED]
    feed.send(begun())
    feed.once()
    feed.send([insert("d.t", 8, id=8, v=8, s="x"), *watermarks(9)])
    starting: list[threading.Thread] = []

    def restart(step: Step) -> None:
        if left and step is left[0]:
            left.pop()
            broker.kill()
            starting.append(threading.Thread(target=broker.start))
            starting[0].start()

    outcome = feed.once(restart)
    starting[0].join()
    assert outcome.checkpoint_ts == at(9)
    assert [int(row["id"]) for row in feed.cells.tables(["d"])["d.t"][1]] == [1, 8]


@pytest.mark.by_turns
def test_a_message_of_the_largest_size(sqlite_feed: Feed) -> None:
    size = 9 << 20
    feed = sqlite_feed
    feed.make_topic(**{"max.message.bytes": str(10 << 20)})
    feed.send(begun(columns="id INT PRIMARY KEY, v INT, s LONGTEXT"))
    large = feed.here([insert("d.t", 8, id=8, v=8, s="x" * size), *watermarks(9)])
    room = {"message.max.bytes": 10 << 20, "compression.type": "none"}
    produce(large, feed.bootstrap, partitions=PARTITIONS, config=room)
    feed.once()
    (row,) = [row for row in feed.cells.tables(["d"])["d.t"][1] if int(row["id"]) == 8]
    assert len(row["s"]) == size
