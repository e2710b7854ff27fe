"""OffsetForLeaderEpoch (KIP-320), which kafka-python's admin client can send and has no method for."""

from collections import defaultdict
from collections.abc import Mapping
from typing import Any

from kafka import TopicPartition
from kafka.errors import for_code
from kafka.protocol.consumer import OffsetForLeaderEpochRequest

_UNKNOWN = -1


async def epochs_asked(admin: Any, epochs: Mapping[TopicPartition, int]) -> dict[TopicPartition, int | None]:
    """The end of each partition's epoch, from its leader; None: it knows no such epoch. Raises KafkaError."""
    found: dict[TopicPartition, int | None] = {}
    leaders = await admin._async_get_leader_for_partitions(set(epochs))  # noqa: SLF001
    for leader, partitions in leaders.items():
        answer = await admin._manager.send(_request({tp: epochs[tp] for tp in partitions}), node_id=leader)  # noqa: SLF001
        found |= _ends(answer)
    return found


def _request(epochs: Mapping[TopicPartition, int]) -> Any:
    topic = OffsetForLeaderEpochRequest.OffsetForLeaderTopic
    by_topic = defaultdict(list)
    for tp, epoch in epochs.items():
        one = topic.OffsetForLeaderPartition(partition=tp.partition, current_leader_epoch=_UNKNOWN, leader_epoch=epoch)
        by_topic[tp.topic].append(one)
    topics = [topic(topic=name, partitions=some) for name, some in by_topic.items()]
    return OffsetForLeaderEpochRequest(replica_id=-1, topics=topics)


def _ends(answer: Any) -> dict[TopicPartition, int | None]:
    found: dict[TopicPartition, int | None] = {}
    for topic in answer.topics:
        for one in topic.partitions:
            if one.error_code:
                raise for_code(one.error_code)(f"OffsetForLeaderEpoch failed for {topic.topic}-{one.partition}")
            found[TopicPartition(topic.topic, one.partition)] = None if one.end_offset == _UNKNOWN else one.end_offset
    return found
