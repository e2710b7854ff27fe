"""Two brokers: partitions move from one to the other while they are read, and back; everything is applied, once."""

from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass, replace

import pytest
from confluent_kafka.admin import NewTopic
from kafka import KafkaAdminClient, TopicPartition

from consumer.embedded import KafkaBroker
from sinks.steps import Step
from tests.service.cells import differences, oracle
from tests.service.kafka.brokers import joining
from tests.service.lab import PARTITIONS, Feed, eventually, is_row, recorded

pytestmark = [pytest.mark.service, pytest.mark.kafka]
RECORDING = "split.index-value.raw"


@dataclass
class Cluster:
    """Both, and what moves partitions between them."""

    first: KafkaBroker
    second: KafkaBroker

    def move(self, topic: str, *nodes: int) -> None:
        """Move each partition of the topic to the node of its place in the list, and wait until that is done."""
        wanted = {TopicPartition(topic, number): [node] for number, node in enumerate(nodes)}
        with closing(KafkaAdminClient(bootstrap_servers=self.first.bootstrap)) as admin:
            answers = admin.alter_partition_reassignments(wanted)
            assert set(answers.values()) == {None}, answers
            eventually("moved", lambda: self._leaders(admin, topic) == list(nodes))

    @staticmethod
    def _leaders(admin: KafkaAdminClient, topic: str) -> list[int]:
        (told,) = admin.describe_topics([topic])
        found = {part["partition_index"]: part["leader_id"] for part in told["partitions"]}
        return [found[number] for number in sorted(found)]


@pytest.fixture
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    place = tmp_path_factory.mktemp("brokers")
    with KafkaBroker(place / "first") as first, joining(first, place / "second", 2) as second:
        yield Cluster(first, second)


@pytest.mark.by_turns
def test_partitions_move_between_brokers_while_they_are_read(sqlite_feed: Feed, cluster: Cluster) -> None:
    feed = replace(sqlite_feed, bootstrap=cluster.first.bootstrap, settings={})
    feed.with_(limits={"retry-seconds": 90, "window-rows": 10})
    topic = NewTopic(feed.topic, num_partitions=PARTITIONS, replica_assignment=[[1]] * PARTITIONS)
    feed.admin_do(lambda admin: admin.create_topics([topic]))
    messages = recorded(RECORDING)
    feed.send(messages)
    left = {Step.PROBED: (2, 1, 2), Step.PLANNED: (1, 2, 1), Step.APPLY_BEGUN: (2, 2, 2), Step.COMMITTED: (2, 1, 2)}

    def move(step: Step) -> None:
        if step in left:
            cluster.move(feed.topic, *left.pop(step))

    counts = feed.once(move).counts
    assert not left
    assert differences(oracle("split"), feed.cells) == []
    assert counts.events == sum(map(is_row, messages))
