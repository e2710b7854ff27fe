"""A message that could not be decoded may be about any row: an older one is not written past it."""

import pytest

from consumer.codec import canal_json
from consumer.operate.quarantine import discard, listed, replay
from ordering.quarantine import QuarantineState
from ordering.timestamps import physical_ms
from tests.service.commands.test_quarantine_moved import COLUMNS, holding, keys, then
from tests.service.ddl.test_ddl import made
from tests.service.local import LocalFeed
from tests.service.messages import at, ddl, encoded, row_value, watermarks

__all__ = ["made"]
pytestmark = pytest.mark.service
WIDER = (
    f"ALTER TABLE t RENAME TO o; CREATE TABLE t {COLUMNS.replace(' NOT NULL', '')};"
    " INSERT INTO t SELECT * FROM o; DROP TABLE o"
)


@pytest.mark.parametrize("made", ["sqlite"], indirect=True)
@pytest.mark.parametrize("is_discarded", [False, True])
@pytest.mark.parametrize("partition", [0, 1])
def test_a_message_that_nobody_could_read_may_be_a_later_one_of_the_row(
    made: LocalFeed, partition: int, *, is_discarded: bool
) -> None:
    feed = holding(made)
    value = encoded(row_value("UPDATE", "d.t", at(6), {"id": 2, "v": 7}, {"id": 2, "v": 5}))
    feed.send_raw(partition, value[:-3])
    then(feed)
    unread = next(one.position for one in listed(feed.config) if one.row is None)
    if is_discarded:
        discard(feed.config, [unread], "by an operator")
    feed.cells.run("d", WIDER)
    verdict = next(one for one in replay(feed.config, []) if one.position != unread)
    assert verdict.state is QuarantineState.HELD
    assert str(unread) in verdict.why
    assert "progress rewind" in verdict.why
    assert keys(feed, "d.t") == [1]


DAY_MS = 24 * 60 * 60 * 1000


@pytest.mark.parametrize("made", ["sqlite"], indirect=True)
@pytest.mark.parametrize(
    ("before_ms", "after_ms", "applied"), [(DAY_MS + 1, 1, True), (DAY_MS, 1, False), (3 * DAY_MS, -2 * DAY_MS, False)]
)
def test_a_message_that_kafka_held_long_before_the_row_was_committed_is_no_later_one(
    made: LocalFeed, before_ms: int, after_ms: int, *, applied: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One that was discarded kept every replay from then on waiting, in all partitions."""
    row_ms = physical_ms(at(4))
    made.with_(
        quarantine={"enabled": True}, limits={"clock-ahead-seconds": 3 * DAY_MS / 1000}
    )  # Kafka's clock is wrong
    made.send_raw(0, b"{")
    monkeypatch.setattr(
        made.log_of_messages, "time_of", lambda p, offset: row_ms + (after_ms if p.partition or offset else -before_ms)
    )
    feed = holding(made)
    discard(feed.config, [next(one.position for one in listed(feed.config) if one.row is None)], "broken")
    feed.cells.run("d", WIDER)
    (verdict,) = replay(feed.config, [])
    assert (verdict.state is QuarantineState.REPLAYED) == applied
    assert keys(feed, "d.t") == ([1, 2] if applied else [1])


@pytest.mark.parametrize("made", ["sqlite"], indirect=True)
@pytest.mark.parametrize("kind", ["ddl", "watermark"])
def test_a_message_that_can_be_read_by_now_and_is_about_no_row_is_no_later_one(
    made: LocalFeed, kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An earlier version could not read it."""
    feed = holding(made)
    feed.send_raw(0, b"{")
    then(feed)
    other = ddl("d.x", 6, "CREATE TABLE `x` (`id` INT)") if kind == "ddl" else watermarks(6)[0]
    read = canal_json.decode
    monkeypatch.setattr(canal_json, "decode", lambda v, p: read(other.value if v == b"{" else v, p))
    feed.cells.run("d", WIDER)
    assert QuarantineState.REPLAYED in {one.state for one in replay(feed.config, [])}
    assert keys(feed, "d.t") == [1, 2]


@pytest.mark.parametrize("made", ["sqlite"], indirect=True)
def test_a_message_that_nobody_could_read_before_the_row_keeps_nothing_waiting(made: LocalFeed) -> None:
    made.with_(quarantine={"enabled": True})
    made.send_raw(1, b"{")
    holding(made)
    feed = made
    feed.cells.run("d", WIDER)
    assert {one.state for one in replay(feed.config, [])} == {QuarantineState.HELD, QuarantineState.REPLAYED}
    assert keys(feed, "d.t") == [1, 2]
