"""Orders in which partitions may be written, and portions in which they may be read."""

import random
from collections.abc import Iterator

from consumer.demo.fake_ticdc.changefeed import Message


def interleaved(messages: list[Message], seed: int) -> list[Message]:
    """The messages with their partitions mixed again."""
    queues: dict[tuple[str, int], list[Message]] = {}
    for message in reversed(messages):
        queues.setdefault((message.topic, message.partition), []).append(message)
    chance = random.Random(seed)
    mixed = []
    while queues:
        place = chance.choice(sorted(queues))
        count = min(chance.randint(1, 6), len(queues[place]))
        mixed += [queues[place].pop() for _ in range(count)]
        if not queues[place]:
            del queues[place]
    return mixed


def portions(messages: list[Message], seed: int, count: int) -> Iterator[list[Message]]:
    """The messages in portions of any size, some of them empty."""
    bounds = sorted(random.Random(-seed).choices(range(len(messages) + 1), k=count - 1))
    for low, high in zip([0, *bounds], [*bounds, len(messages)], strict=True):
        yield messages[low:high]
