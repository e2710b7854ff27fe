"""UPDATEs whose old row is in no message (Avro without `_ticdc_before`, Debezium without old values): still UPDATEs.

In the Open Protocol a part of it may lack: an old value whose column's name TiCDC leaves out.
"""

from collections.abc import Callable
from typing import Any

import pytest

from consumer.demo.fake_ticdc.changefeed import Message
from ordering.errors import ReconcilerError
from tests.avro_protocol import as_avro
from tests.debezium import as_debezium
from tests.service.commands.test_prove import prove, reason, verdicts
from tests.service.commands.test_scrub import Clock, rounds, scrub_of
from tests.service.local import LocalFeed
from tests.service.messages import ddl, insert, keyed, update, watermarks
from tests.service.rows.test_genuine_formats import genuine
from tests.service.rows.test_simple_vectors import CONSISTENCIES
from tests.service.schema_registry import FakeRegistry

pytestmark = pytest.mark.service
Send = Callable[..., None]


@pytest.fixture(params=["avro", "debezium"])
def send(request: pytest.FixtureRequest, feed: LocalFeed, registry: FakeRegistry) -> Send:
    """Sends messages without old rows, and reads them."""
    if request.param == "avro":
        feed.with_(source={"protocol": "avro", "schema-registry": registry.url, "avro-enable-watermark": True})
    else:
        feed.with_(source={"protocol": "debezium", "lossy-values": "accept"})

    def sent(*messages: Message) -> None:
        if request.param == "avro":
            feed.send(as_avro(messages, registry.register))
        else:
            feed.send(as_debezium(messages, old_values=False))
        feed.once()

    return sent


BEGIN = [
    ddl("d", 1, "CREATE DATABASE `d`", "QUERY"), ddl("d.t", 2, "CREATE TABLE `t` (`id` INT PRIMARY KEY, `v` INT)"),
    insert("d.t", 3, id=1, v=1), *watermarks(4),
]  # fmt: skip
CHANGED = [update("d.t", 5, {"v": 1}, id=1, v=2), *watermarks(6)]


def rows(feed: LocalFeed) -> list[tuple[Any, ...]]:
    return [tuple(row.values()) for row in feed.cells.tables(["d"])["d.t"][1]]


@pytest.mark.parametrize("consistency", CONSISTENCIES)
def test_they_are_no_drift(feed: LocalFeed, send: Send, consistency: str) -> None:
    feed.with_(target={"on-drift": "stop", "consistency": consistency})
    send(*BEGIN)
    send(*CHANGED)
    assert rows(feed) == [(1, 2)]


@pytest.mark.parametrize("consistency", CONSISTENCIES)
def test_a_row_that_the_target_lost_is_written_whole(feed: LocalFeed, send: Send, consistency: str) -> None:
    feed.with_(target={"consistency": consistency})
    send(*BEGIN)
    feed.cells.run("d", "DELETE FROM t")
    send(*CHANGED)
    assert rows(feed) == [(1, 2)]


@pytest.mark.parametrize("ignored", [{"ignore-event": ["insert"]}, {"ignore-insert-value-expr": "v = 2"}])
def test_what_ignores_inserts_does_not_ignore_them(feed: LocalFeed, send: Send, ignored: dict[str, Any]) -> None:
    send(*BEGIN)
    feed.with_(filter={"event-filters": [{"matcher": ["d.t"], **ignored}]})
    send(*CHANGED)
    assert rows(feed) == [(1, 2)]


def test_what_ignores_updates_ignores_them(feed: LocalFeed, send: Send) -> None:
    feed.with_(filter={"event-filters": [{"matcher": ["d.t"], "ignore-event": ["update"]}]})
    send(*BEGIN)
    send(*CHANGED)
    assert rows(feed) == [(1, 1)]


def test_a_condition_about_the_old_row_is_refused(feed: LocalFeed, send: Send) -> None:
    feed.with_(filter={"event-filters": [{"matcher": ["d.t"], "ignore-update-old-value-expr": "v = 2"}]})
    send(*BEGIN)
    with pytest.raises(ReconcilerError, match="does not tell the row before it"):
        send(*CHANGED)


def test_a_row_without_a_key_is_refused(feed: LocalFeed, send: Send) -> None:
    """It would stay beside its new content."""
    feed.with_(filter={"force-replicate": True})
    made = BEGIN[1]._replace(value=BEGIN[1].value.replace(b" PRIMARY KEY", b""))
    send(BEGIN[0], made, *(keyed(one) if b"INSERT" in one.value else one for one in BEGIN[2:]))
    with pytest.raises(ReconcilerError, match="lacks its old row"):
        send(keyed(CHANGED[0]), *CHANGED[1:])


def test_a_proof_says_that_they_prove_nothing(feed: LocalFeed, send: Send) -> None:
    """Without the row that it found, an event does not tell what it took away."""
    send(*BEGIN)
    assert verdicts(prove(feed)) == {"t": "equal"}
    send(*CHANGED)
    proof = prove(feed)
    assert verdicts(proof) == {"t": "base"}
    assert "lacks its old row" in reason(proof)
    send(insert("d.t", 7, id=2, v=1), *watermarks(8))
    assert verdicts(prove(feed)) == {"t": "equal"}


def test_the_background_says_that_they_prove_nothing(feed: LocalFeed, send: Send) -> None:
    send(*BEGIN)
    clock = Clock()
    scrub = scrub_of(feed, clock)
    assert verdicts(rounds(scrub)) == {"t": "equal"}
    send(*CHANGED)
    clock.later()
    proof = rounds(scrub, 1)
    assert verdicts(proof) == {"t": "unproven"}
    assert "lacks its old row" in reason(proof)
    clock.later()
    assert verdicts(rounds(scrub, 1)) == {"t": "base"}


def test_a_part_of_an_old_row_proves_nothing(feed: LocalFeed) -> None:
    feed.with_(source={"protocol": "open-protocol"}).send(list(genuine("formats.open-updated")))
    feed.once()
    found = verdicts(prove(feed)).values()
    assert "equal" in found
    assert "different" not in found


def test_a_condition_about_a_part_of_an_old_row_is_refused(feed: LocalFeed) -> None:
    """As if the value whose name is missing had been NULL, the row would be left out, or would not."""
    rules = [{"matcher": ["*.*"], "ignore-update-old-value-expr": "id < 0"}]
    feed.with_(source={"protocol": "open-protocol"}, filter={"event-filters": rules})
    feed.send(list(genuine("formats.open-updated")))
    with pytest.raises(ReconcilerError, match="does not tell the row before it"):
        feed.once()
