"""A message near 1 GiB, as a topic may be set to take it: refused by its length; nobody reads or copies it."""

import resource
from collections.abc import Iterator, Sequence
from typing import Any

import pytest

from consumer.formats.avro.protocol import Avro
from consumer.formats.avro.registry import SchemaRegistry
from consumer.formats.debezium.protocol import Debezium
from consumer.formats.message_format import MessageFormat, Refused
from consumer.formats.open_protocol import OpenProtocol
from consumer.formats.simple.protocol import Simple
from consumer.kafka.account import Reached
from ordering.errors import InputError
from ordering.events import Partition
from tests.service.security.test_hostile_messages import scanned

HUGE = (1 << 30) - 1
LIMIT = 64 << 20
AT = Partition("t", 0)
FORMATS: dict[str, MessageFormat] = {
    "open-protocol": OpenProtocol(), "simple": Simple(), "debezium": Debezium(), "avro": Avro(SchemaRegistry()),
}  # fmt: skip


class OneMessage:
    """A reader of one message, and the message."""

    def __init__(self, value: bytes) -> None:
        self._value = value

    def read(self, _: Sequence[tuple[Partition, int, int]]) -> Iterator[tuple[Partition, Sequence[Any]]]:
        yield AT, [self]

    def offset(self) -> int:
        return 5

    def key(self) -> bytes:
        return b'{"ts":1,"t":1}'

    def value(self) -> bytes:
        return self._value

    def done(self, _: Partition) -> None:
        """It has nothing else."""

    def reached(self, _: Partition) -> Reached:
        return Reached(6, 6)


def refusal(protocol: str, value: bytes) -> Exception:
    """The error of a message."""
    if protocol == "canal-json":
        with pytest.raises(InputError) as caught:
            scanned(value, force_replicate=False)
        return caught.value
    ((_, (refused,)),) = FORMATS[protocol].reading(OneMessage(value), LIMIT).read([(AT, 5, 6)])
    assert isinstance(refused, Refused)
    return refused.why


@pytest.mark.parametrize("protocol", ["canal-json", *FORMATS])
def test_it_is_refused_unread(protocol: str) -> None:
    value = bytes(HUGE)  # zeros that the system hands out only where somebody looks at them
    before_kb = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    error = refusal(protocol, value)
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before_kb < 64 << 10
    assert "limits.message-bytes" in str(error)
    assert "topic=t partition=0 offset=5" in str(error)
