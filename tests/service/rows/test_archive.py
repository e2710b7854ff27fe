"""Real Kafka whose records are deleted under a stopped reader, and files that have them: it goes on and returns."""

import os
from collections.abc import Iterable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Producer

from consumer.demo.fake_ticdc.changefeed import Message
from consumer.operate.check import findings
from consumer.operate.decisions import retire_topic
from consumer.operate.progress import exported, import_progress, read_export
from ordering.errors import ConfigError, InputError, SourceUnreachableError
from tests.service.buckets import Bucket
from tests.service.lab import PARTITIONS, Feed, body
from tests.service.messages import at, ddl, insert, watermark, watermarks
from tests.service.ticdc_api import ticdc_api
from tests.storage_files import CsvOptions, Files, Storage, write_dated

pytestmark = [pytest.mark.service, pytest.mark.kafka]

MINUTE = 60_000
CREATE = ddl("d.t", 1, "CREATE TABLE `t` (`id` INT PRIMARY KEY)")


def history(first: int, last: int) -> list[Message]:
    """A row every five minutes, over all partitions, and watermarks behind each."""
    found: list[Message] = []
    for minute in range(first, last, 5):
        partition = minute // 5 % PARTITIONS
        found += [insert("d.t", minute * MINUTE, partition, id=minute), *watermarks(minute * MINUTE + 1)]
    return found


def files_of(messages: Iterable[Message], csv: CsvOptions | None) -> Iterator[Files]:
    """The same in the files of another changefeed."""
    moved = [message._replace(partition=0) for message in messages]
    return Storage(moved, csv=csv).steps()


def send(feed: Feed, messages: Iterable[Message]) -> None:
    """Send messages as of when they were committed."""
    producer = Producer({"bootstrap.servers": feed.bootstrap, "enable.idempotence": True, "linger.ms": 0})
    for message in messages:
        told = body(message)["_tidb"]
        ms = max(told.get("commitTs", 0), told.get("watermarkTs", 0)) >> 18
        producer.produce(feed.topic, message.value, partition=message.partition, timestamp=ms)
    producer.flush(60)


class Archive:
    """Files that are written up to a minute."""

    def __init__(self, root: Path, messages: Iterable[Message], csv: CsvOptions | None) -> None:
        self.root, self._steps = root, files_of(messages, csv)

    def reach(self, minute: int) -> None:
        while not (self.root / "metadata").exists() or self.reached < at(minute * MINUTE):
            write_dated(next(self._steps), self.root)

    @property
    def reached(self) -> int:
        return int((self.root / "metadata").read_text().rpartition(":")[2].rstrip("}"))


def made(feed: Feed) -> None:
    feed.make_topic(**{"retention.ms": "-1"})
    feed.make_database("d", "SELECT 1")


def rows(feed: Feed) -> list[int]:
    return sorted(row["id"] for row in feed.cells.tables(["d"])["d.t"][1])


def expired(feed: Feed, messages: Iterable[Message]) -> None:
    """Let retention delete all that was sent, of which these are the messages."""
    for partition in range(PARTITIONS):
        feed.delete_records(partition, sum(message.partition == partition for message in messages))


@pytest.fixture(params=["disk", "s3"])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[tuple[Path, dict[str, Any]]]:
    """Where files are written, and how the config names that."""
    if request.param == "disk":
        yield tmp_path / "nfs", {"archive": f"file://{tmp_path}/nfs", "archive-protocol": "csv"}
        return
    with Bucket(tmp_path) as bucket:
        options = {
            "endpoint": bucket.endpoint, "access-key-id": "a", "secret-access-key": "b", "region": "us-east-1",
            "allow-http": "true",
        }  # fmt: skip
        yield tmp_path / "buckets/cdc/orders", {"archive": "s3://cdc/orders", "archive-options": options}


@pytest.mark.by_turns
def test_deleted_records_come_from_the_archive(sqlite_feed: Feed, place: tuple[Path, dict[str, Any]]) -> None:
    root, section = place
    feed = sqlite_feed.with_(source=section)
    made(feed)
    first, lost, rest = [CREATE, *history(5, 40)], history(40, 70), history(70, 120)
    archive = Archive(root, [*first, *lost, *rest], CsvOptions() if "archive-protocol" in section else None)
    send(feed, first)
    feed.once()
    archive.reach(10)
    send(feed, lost)
    expired(feed, [*first, *lost])
    send(feed, rest)

    assert "not yet" in feed.failing(SourceUnreachableError).fact  # the archive lags
    archive.reach(75)
    feed.once()  # ten minutes are between the first message that is left and what proves that it is enough
    assert rows(feed) == list(range(5, 80, 5))
    told = feed.status()
    assert told["archived"].startswith(f"{section['archive']}: retention deleted messages not applied yet")
    assert told["source"]["state"] == "connected"
    checked = {one.subject: one for one in findings(feed.config)}
    assert (checked["kafka"].error, checked["archive"].error) == (None, None)
    archive.reach(90)
    feed.once()
    assert rows(feed) == list(range(5, 120, 5))
    assert feed.status()["archived"] == ""
    idle = feed.once()
    assert idle.counts.rows_written == idle.before.rows_written
    send(feed, history(120, 130))
    feed.once()
    assert rows(feed) == list(range(5, 130, 5))


def test_topics_that_begin_after_start_ts(sqlite_feed: Feed, tmp_path: Path) -> None:
    first, rest = [CREATE, *history(5, 70)], history(70, 120)
    feed = sqlite_feed.with_(source={"archive": f"file://{tmp_path}/nfs", "start-ts": at(30 * MINUTE)})
    made(feed)
    feed.cells.run("d", "CREATE TABLE t (id INT PRIMARY KEY)")
    archive = Archive(tmp_path / "nfs", [*first, *rest], None)
    send(feed, first)
    expired(feed, first)
    send(feed, rest)
    archive.reach(90)
    feed.once()
    assert rows(feed) == list(range(35, 120, 5))
    assert feed.status()["archived"] == ""


def test_what_a_changefeed_left_out_that_was_made_anew_comes_from_the_archive(
    sqlite_feed: Feed, tmp_path: Path
) -> None:
    """Its topics hold messages that are old enough, and yet lack what came before it began."""
    first, left_out, rest = [CREATE, *history(5, 40)], history(40, 60), history(60, 120)
    with ticdc_api() as api:
        section = {"archive": f"file://{tmp_path}/nfs", "watermark-from": api.url, "watermark-changefeed": "orders"}
        feed = sqlite_feed.with_(source={**section, "unproven-beginning": "accept"})
        made(feed)
        archive = Archive(tmp_path / "nfs", [*first, *left_out, *rest], None)
        send(feed, first)
        api.at(at(36 * MINUTE), start_ts=1)
        feed.once()
        send(feed, rest)
        api.at(at(116 * MINUTE), start_ts=at(59 * MINUTE))
        archive.reach(50)
        feed.once()
        assert rows(feed) == list(range(5, 55, 5))
        feed.once()
        assert "began at" in feed.status()["archived"]
        archive.reach(65)
        feed.once()
        assert (rows(feed), feed.status()["archived"]) == (list(range(5, 120, 5)), "")


def test_an_archive_that_may_begin_too_late_is_refused_until_somebody_knows_better(
    sqlite_feed: Feed, tmp_path: Path
) -> None:
    first, lost = [CREATE, *history(5, 40)], history(40, 60)
    feed = sqlite_feed.with_(source={"archive": f"file://{tmp_path}/nfs"})
    made(feed)
    archive = Archive(tmp_path / "nfs", [*first, *lost], None)
    send(feed, first)
    feed.once()
    send(feed, lost)
    expired(feed, [*first, *lost])
    archive.reach(50)
    for path in (tmp_path / "nfs").rglob("CDC0*"):
        os.utime(path)  # copied: nothing tells any more when they were written
    assert "the files may begin after it" in feed.failing(InputError).fact
    feed.with_(source={"unproven-beginning": "accept"}).once()
    assert rows(feed) == list(range(5, 55, 5))


def test_a_changefeed_moves_from_topics_to_files_and_back(sqlite_feed: Feed, tmp_path: Path) -> None:
    feed, topics = sqlite_feed, {"bootstrap-servers": sqlite_feed.bootstrap, "topics": [sqlite_feed.topic]}
    made(feed)
    messages = [CREATE, *history(5, 40)]
    archive = Archive(tmp_path / "nfs", [*messages, *history(40, 90)], None)
    send(feed, messages)
    feed.once()
    export = exported(feed.config)
    files = {"storage": f"file://{tmp_path}/nfs", "bootstrap-servers": None, "topics": None}
    feed.settings["source"] = dict(files)
    archive.reach(60)
    assert "is one of topics" in feed.failing(InputError).fact
    import_progress(feed.config, read_export(feed.config, export))
    feed.once()
    assert rows(feed) == list(range(5, 65, 5))
    export = exported(feed.config)
    feed.settings["source"] = topics
    send(feed, history(40, 90))
    import_progress(feed.config, read_export(feed.config, export))
    feed.once()
    assert rows(feed) == list(range(5, 90, 5))


def test_topics_of_a_changefeed_that_was_made_later_are_refused(sqlite_feed: Feed, tmp_path: Path) -> None:
    """They begin with their first message, and yet hold nothing of what came between the checkpoint and that."""
    feed, topics = sqlite_feed, {"bootstrap-servers": sqlite_feed.bootstrap, "topics": [sqlite_feed.topic]}
    made(feed)
    archive = Archive(tmp_path / "nfs", [CREATE, *history(5, 60)], None)
    archive.reach(40)
    feed.settings["source"] = {"storage": f"file://{tmp_path}/nfs", "bootstrap-servers": None, "topics": None}
    feed.once()
    export = exported(feed.config)
    feed.settings["source"] = topics
    send(feed, history(60, 90))
    with pytest.raises(InputError, match="may lack what came after") as refused:
        read_export(feed.config, export)
    assert "start-ts" in refused.value.hint
    feed.with_(source={"unproven-beginning": "accept"})
    import_progress(feed.config, read_export(feed.config, export))
    feed.once()
    assert rows(feed) == [*range(5, 45, 5), *range(60, 90, 5)]


def test_an_archive_that_is_read_stays_named(sqlite_feed: Feed, tmp_path: Path) -> None:
    feed = sqlite_feed.with_(source={"archive": f"file://{tmp_path}/nfs"})
    made(feed)
    first, lost = [CREATE, *history(5, 40)], history(40, 60)
    archive = Archive(tmp_path / "nfs", [*first, *lost, watermark(61 * MINUTE, 0)], None)
    send(feed, first)
    feed.once()
    send(feed, lost)
    expired(feed, [*first, *lost])
    archive.reach(55)
    feed.once()
    assert feed.status()["archived"]
    feed.with_(source={"archive": f"file://{tmp_path}/other"})
    assert "source.archive is now" in feed.failing(ConfigError).fact


def created_again(feed: Feed) -> None:
    """Another topic of this name, without a message."""
    feed.delete_topic()
    feed.make_topic(**{"retention.ms": "-1"})


@pytest.mark.by_turns
def test_a_topic_that_was_created_again_is_read_once_the_archive_is_past_that(
    sqlite_feed: Feed, tmp_path: Path
) -> None:
    """What it held before is in the archive alone; and it tells when it began."""
    feed = sqlite_feed.with_(source={"archive": f"file://{tmp_path}/nfs"})
    made(feed)
    first, lost, rest = [CREATE, *history(5, 40)], history(40, 70), history(70, 130)
    archive = Archive(tmp_path / "nfs", [*first, *lost, *rest], None)
    send(feed, first)
    feed.once()
    send(feed, lost)
    created_again(feed)
    send(feed, rest)
    archive.reach(65)
    feed.once()
    assert rows(feed) == list(range(5, 70, 5))
    assert "created again" in feed.status()["archived"]
    created_again(feed)  # once more, while the archive is read
    send(feed, rest)
    archive.reach(75)
    feed.once()
    assert rows(feed) == list(range(5, 80, 5))
    archive.reach(95)
    feed.once()
    assert (rows(feed), feed.status()["archived"]) == (list(range(5, 130, 5)), "")
    send(feed, history(130, 140))
    feed.once()
    assert rows(feed) == list(range(5, 140, 5))


@pytest.mark.by_turns
@pytest.mark.parametrize("is_named", [True, False], ids=["named", "expression"])
def test_a_topic_that_is_gone_is_read_from_the_archive_until_it_is_there_again(
    sqlite_feed: Feed, tmp_path: Path, *, is_named: bool
) -> None:
    """Also while it is gone the archive is read; the other topic alone is not what the changefeed wrote."""
    feed, other = sqlite_feed, f"{sqlite_feed.topic}-other"
    topics = [feed.topic, other] if is_named else [f"~{feed.topic}.*"]
    feed.with_(source={"archive": f"file://{tmp_path}/nfs", "topics": topics})
    made(feed)
    feed.make_topic(topic=other, **{"retention.ms": "-1"})
    first, lost, rest = [CREATE, *history(5, 40)], history(40, 70), history(70, 130)
    archive = Archive(tmp_path / "nfs", [*first, *lost, *rest], None)
    beside = replace(feed, topic=other)
    send(beside, watermarks(36 * MINUTE))
    send(feed, first)
    feed.once()
    feed.delete_topic()
    send(beside, watermarks(200 * MINUTE))
    archive.reach(50)
    feed.once()
    assert rows(feed) == list(range(5, 55, 5))
    assert f"is gone (topic={feed.topic})" in feed.status()["archived"]
    archive.reach(65)
    feed.once()
    assert (rows(feed), bool(feed.status()["archived"])) == (list(range(5, 70, 5)), True)
    feed.make_topic(**{"retention.ms": "-1"})
    send(feed, rest)
    archive.reach(95)
    feed.once()
    assert (rows(feed), feed.status()["archived"]) == (list(range(5, 130, 5)), "")


@pytest.mark.by_turns
def test_a_topic_that_is_gone_for_good_is_retired_while_the_archive_is_read(sqlite_feed: Feed, tmp_path: Path) -> None:
    feed, other = sqlite_feed, f"{sqlite_feed.topic}-other"
    feed.with_(source={"archive": f"file://{tmp_path}/nfs", "topics": [f"~{feed.topic}.*"]})
    made(feed)
    feed.make_topic(topic=other, **{"retention.ms": "-1"})
    first, rest = [CREATE, *history(5, 40)], history(40, 90)
    archive = Archive(tmp_path / "nfs", [*first, *rest], None)
    beside = replace(feed, topic=other)
    send(beside, watermarks(36 * MINUTE))
    send(feed, first)
    feed.once()
    feed.delete_topic(other)
    archive.reach(50)
    feed.once()
    assert f"is gone (topic={other})" in feed.status()["archived"]
    retire_topic(feed.config, other)
    send(feed, rest)
    feed.once()
    assert (rows(feed), feed.status()["archived"]) == (list(range(5, 90, 5)), "")


def test_without_an_archive_a_topic_that_was_created_again_is_refused(sqlite_feed: Feed) -> None:
    made(sqlite_feed)
    send(sqlite_feed, [CREATE, *history(5, 40)])
    sqlite_feed.once()
    created_again(sqlite_feed)
    assert "source.archive" in sqlite_feed.failing(InputError).hint


def test_one_topic_of_several_that_was_created_again_is_refused_in_a_move(sqlite_feed: Feed, tmp_path: Path) -> None:
    """The others tell that their changefeed is old enough, which says nothing of this one."""
    feed, other = sqlite_feed, f"{sqlite_feed.topic}-other"
    topics = {"bootstrap-servers": feed.bootstrap, "topics": [feed.topic, other]}
    made(feed)
    archive = Archive(tmp_path / "nfs", [CREATE, *history(5, 90)], None)
    archive.reach(40)
    feed.settings["source"] = {"storage": f"file://{tmp_path}/nfs", "bootstrap-servers": None, "topics": None}
    feed.once()
    export = exported(feed.config)
    feed.settings["source"] = topics
    send(feed, watermarks(1))
    feed.topic, first = other, feed.topic
    made(feed)
    send(feed, history(60, 90))  # what it held before is gone with it
    feed.topic = first
    with pytest.raises(InputError, match="may lack what came after") as refused:
        read_export(feed.config, export)
    assert f"topic={other}" in refused.value.where
