"""`reconciler prove` over recordings in TiCDC's other formats."""

import json
from collections.abc import Callable
from itertools import pairwise

import pytest

from consumer.demo.fake_ticdc.changefeed import Message
from consumer.proof.report import ProofVerdict
from tests.avro_protocol import as_avro
from tests.debezium import as_debezium
from tests.open_protocol import as_open
from tests.service.commands.test_prove import feed, has_begun, prove, verdicts
from tests.service.lab import recorded
from tests.service.local import LocalFeed
from tests.service.schema_registry import FakeRegistry
from tests.simple_protocol import as_simple

pytestmark = pytest.mark.service
__all__ = ["feed"]

AS_PROTOCOL: dict[str, Callable[[list[Message], FakeRegistry], list[Message]]] = {
    "simple": lambda messages, _: as_simple(messages),
    "open-protocol": lambda messages, _: as_open(messages),
    "debezium": lambda messages, _: as_debezium(messages),
    "avro": lambda messages, registry: as_avro(messages, registry.register, deletes="before"),
}
OF_PROTOCOL = {"debezium": {"lossy-values": "stop"}, "avro": {"avro-enable-watermark": True}}


@pytest.mark.parametrize("protocol", ["simple", "open-protocol", "debezium", "avro"])
@pytest.mark.parametrize("story", ["split.index-value.raw", "keys.index-value.split"])
def test_other_protocols_are_proven_as_well(feed: LocalFeed, registry: FakeRegistry, protocol: str, story: str) -> None:
    """Also rows whose schema came before the interval."""
    feed.with_(source={"protocol": protocol, **OF_PROTOCOL.get(protocol, {})})
    if protocol == "avro":
        feed.with_(source={"schema-registry": registry.url})
    sent = AS_PROTOCOL[protocol](recorded(story), registry)
    cuts = [0, len(sent) // 3, len(sent) // 2, len(sent)]
    seen: set[str] = set()
    for low, high in pairwise(cuts):
        feed.send(sent[low:high])
        feed.apply()
        if has_begun(feed):
            proof = prove(feed)
            assert proof.having(ProofVerdict.DIFFERENT) == [], json.dumps(proof.as_json())
            seen |= set(verdicts(proof).values())
    assert "equal" in seen
    name = next(
        name for name, (_, one) in prove(feed).tables.items() if one.verdict is ProofVerdict.EQUAL and one.rows_found
    )
    feed.cells.run(name.database, f"DELETE FROM `{name.table}`")
    assert verdicts(prove(feed))[name.table] == "different"
