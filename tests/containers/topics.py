"""A recording of TiCDC's messages as a topic that grows while servers are killed."""

from collections.abc import Iterable, Iterator

from consumer.demo.fake_ticdc.changefeed import Message
from tests.service.lab import body, recorded

RECORDING, UPSTREAM = "bank.index-value.restarts", "bank"
PARTITIONS = 3


def portions(topic: str, number: int) -> Iterator[tuple[list[Message], int]]:
    """The recording's messages in so many portions, each with the commitTs up to which all is complete with it."""
    messages = [message._replace(topic=topic) for message in recorded(RECORDING)]
    size = -(-len(messages) // number)
    for begin in range(0, len(messages), size):
        yield messages[begin : begin + size], complete(messages[: begin + size])


def complete(messages: Iterable[Message]) -> int:
    """The lowest of the partitions' highest watermarks."""
    highest = dict.fromkeys(range(PARTITIONS), 0)
    for message in messages:
        value = body(message)
        if value["type"] == "TIDB_WATERMARK":
            highest[message.partition] = max(highest[message.partition], value["_tidb"]["watermarkTs"])
    return min(highest.values())
