"""What holds of a recording in each format of messages: it ends as upstream ended, and again when it is sent again."""

from collections.abc import Iterable

from consumer.demo.fake_ticdc.changefeed import Message
from tests.service.cells import differences, oracle
from tests.service.lab import Feed, is_row, recorded


def check_sent_again(feed: Feed, recording: str, sent: Iterable[Message]) -> None:
    """Send a recording as `sent`, run, and compare; then run again, and once more after all of it was sent again."""
    sent = list(sent)
    if recording.startswith("topics"):
        feed.with_(source={"topics": [f"~{feed.topic}.*"]})
    upstream, rows = oracle(recording.split(".", maxsplit=1)[0]), sum(map(is_row, recorded(recording)))
    feed.send(sent)
    first = feed.once()
    assert differences(upstream, feed.cells) == []
    assert first.counts.events == rows
    idle = feed.once()
    assert (idle.counts, idle.checkpoint_ts) == (first.counts, first.checkpoint_ts)
    feed.send(sent)
    repeated = feed.once()
    assert differences(upstream, feed.cells) == []
    assert repeated.counts.rows_written == first.counts.rows_written
    assert repeated.checkpoint_ts == first.checkpoint_ts
    assert repeated.counts.duplicates_unproven - first.counts.duplicates_unproven == rows
