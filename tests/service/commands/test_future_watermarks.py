"""A watermark of the future in a real topic: refused, ignored by its position, repaired where it was believed."""

import json
import time

import pytest
from click.testing import CliRunner

from consumer.cli.main import main
from consumer.demo.fake_ticdc.changefeed import Message
from consumer.operate.quarantine import discard, listed
from ordering.errors import InputError
from tests.service.lab import Feed
from tests.service.messages import TOPIC, at, begun, encoded, insert, row_value, value_of, watermark, watermarks

pytestmark = [pytest.mark.service, pytest.mark.kafka]
FAR = int(time.time() + 30 * 86_400) * 1000 << 18


def promised(ts: int, partition: int) -> Message:
    value = value_of("TIDB_WATERMARK", "", ts)
    return Message(TOPIC, partition, encoded({**value, "_tidb": {"watermarkTs": ts}}))


def keys(feed: Feed) -> list[int]:
    return sorted(int(row["id"]) for row in feed.cells.tables(["d"])["d.t"][1])


def repaired_once_caught_up(feed: Feed, rewind: list[str]) -> None:
    feed.send([watermark(20, 1)])
    done = CliRunner().invoke(main, rewind)
    assert done.exit_code == 0, done.output
    feed.once()
    assert (feed.checkpoint(), keys(feed)) == (at(20), [1, 15])
    feed.send([insert("d.t", 25, 1, id=25, v=1, s="x"), watermark(30, 0), watermark(30, 2)])
    feed.once()
    assert feed.checkpoint() == at(20), "its partition holds back again"


@pytest.mark.by_turns
def test_what_a_believed_one_has_lost_comes_back(sqlite_feed: Feed) -> None:
    feed = sqlite_feed
    feed.send(begun())
    feed.send([promised(FAR, 1), *watermarks(10)])
    assert "in the future" in feed.failing(InputError).fact
    feed.with_(limits={"clock-ahead-seconds": 1e8}).once()
    feed.send([watermark(20, 0), watermark(20, 2)])
    feed.once()
    feed.send([insert("d.t", 15, 1, id=15, v=1, s="x")])
    feed.once()
    assert (feed.checkpoint(), keys(feed)) == (at(20), [1]), "the limit was a lie"
    feed.with_(limits={"clock-ahead-seconds": 86_400})
    refused = feed.failing(InputError)
    assert "the progress holds a watermark of the future" in refused.fact
    feed.with_(source={"ignored-watermarks": [f"{feed.topic}/1/1"]})
    rewind = ["progress", "rewind", str(feed.file()), str(at(3)), "--slack", "1e9", "--yes"]
    refusal = CliRunner().invoke(main, rewind)
    assert refusal.exit_code == 3
    assert "has not caught up" in refusal.output, "rows up to the checkpoint may come yet"
    repaired_once_caught_up(feed, rewind)


def test_one_that_no_clock_refuses_is_forgotten_by_a_rewind(sqlite_feed: Feed) -> None:
    """It is a few hours ahead: to list its position alone changed nothing, nor did the rewind that is advised."""
    feed = sqlite_feed
    feed.send(begun())
    feed.send([promised(int(time.time() + 72_000) * 1000 << 18, 1), watermark(20, 0), watermark(20, 2)])
    feed.once()
    feed.send([insert("d.t", 15, 1, id=15, v=1, s="x")])
    feed.once()
    assert (feed.checkpoint(), keys(feed)) == (at(20), [1]), "the promise was a lie"
    feed.with_(source={"ignored-watermarks": [f"{feed.topic}/1/1"]})
    assert "the progress holds an ignored watermark" in feed.failing(InputError).fact
    rewind = ["progress", "rewind", str(feed.file()), str(at(3)), "--slack", "1e9", "--yes"]
    refusal = CliRunner().invoke(main, [*rewind[:3], str(at(3) + 1), *rewind[4:]])
    assert (refusal.exit_code, f"rewind to {at(3)} " in refusal.output) == (2, True), refusal.output
    refusal = CliRunner().invoke(main, rewind)
    assert (refusal.exit_code, "has not caught up" in refusal.output) == (3, True)
    repaired_once_caught_up(feed, rewind)


def test_the_quarantine_takes_a_row_of_the_future(sqlite_feed: Feed) -> None:
    feed = sqlite_feed
    feed.send(begun())
    feed.send(
        [Message(TOPIC, 1, encoded(row_value("INSERT", "d.t", FAR, {"id": 9, "v": 1, "s": "x"}))), *watermarks(10)]
    )
    assert "an event says commitTs" in feed.failing(InputError).fact
    feed.with_(quarantine={"enabled": True}).once()
    assert [one.position.partition for one in listed(feed.config)] == [1]
    discard(feed.config, [], "a test wrote it")
    feed.with_(quarantine={"enabled": False})
    feed.send([insert("d.t", 15, 1, id=15, v=1, s="x"), *watermarks(20)])
    feed.once()
    assert (feed.checkpoint(), keys(feed)) == (at(20), [1, 15])
    offsets = json.loads(feed.cells.progress(feed.name)["offsets"])
    assert offsets[feed.topic]["1"]["offset"] == 5, "nothing is held back by it"
