"""A message that could not be decoded may be about any row: an older one is not written past it."""

import pytest

from consumer.operate.quarantine import discard, listed, replay
from ordering.quarantine import QuarantineState
from tests.service.commands.test_quarantine_moved import COLUMNS, holding, keys, then
from tests.service.ddl.test_ddl import made
from tests.service.local import LocalFeed
from tests.service.messages import at, encoded, row_value

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


@pytest.mark.parametrize("made", ["sqlite"], indirect=True)
def test_a_message_that_nobody_could_read_before_the_row_keeps_nothing_waiting(made: LocalFeed) -> None:
    made.with_(quarantine={"enabled": True})
    made.send_raw(1, b"{")
    holding(made)
    feed = made
    feed.cells.run("d", WIDER)
    assert {one.state for one in replay(feed.config, [])} == {QuarantineState.HELD, QuarantineState.REPLAYED}
    assert keys(feed, "d.t") == [1, 2]
