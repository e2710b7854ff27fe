"""Claim-check messages: the row lies in a file, which only the survivors of a window need; its place is data."""

import json
import tarfile
from base64 import b64encode
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

from consumer.demo.fake_ticdc.changefeed import Message
from ordering.errors import BodyMissingError, InputError, ReconcilerError, SourceError
from tests.service.buckets import Bucket
from tests.service.cells import VECTORS, differences, oracle
from tests.service.lab import Feed, is_row, recorded
from tests.service.messages import TOPIC, at, delete, encoded, insert, lz4, row_value, snappy, update, watermarks

pytestmark = pytest.mark.service
COLUMNS = "id INT PRIMARY KEY, v INT, s VARCHAR(10)"
STORES = {
    "large.claim-check.raw": "ticdc-claim-check",
    "large.claim-check-raw-value.split": "ticdc-claim-check-raw",
    "large.claim-check-lz4.split": "ticdc-claim-check-lz4",
}


def allowed(feed: Feed, **more: Any) -> Feed:
    """The feed, with files below `/claims` upstream to be found in a directory of the test."""
    section = {"map": {"file:///claims": directory(feed).as_uri()}, **more}
    return feed.with_(source={"claim-check": section})


def directory(feed: Feed) -> Path:
    found = feed.directory / "claims"
    found.mkdir(exist_ok=True)
    return found


def claim(message: Message, location: str) -> Message:
    """The message as it goes to Kafka when its row goes to a file."""
    value = json.loads(message.value)
    cut = {name: rows and [{"id": rows[0]["id"]}] for name, rows in value.items() if name in {"data", "old"}}
    tidb = {**value["_tidb"], "claimCheckLocation": location}
    return message._replace(value=encoded({**value, **cut, "_tidb": tidb}))


def wrapped(value: bytes) -> bytes:
    return json.dumps({"key": None, "value": b64encode(value).decode()}).encode()


def rows(feed: Feed) -> dict[int, Any]:
    return {int(row["id"]): row["s"] for row in feed.cells.tables(["d"])["d.t"][1]}


@pytest.mark.cells("recording", ("feed", "consistency"))
@pytest.mark.parametrize("consistency", ["snapshot", "transaction", "row"])
@pytest.mark.parametrize("recording", sorted(STORES))
def test_recordings(feed: Feed, recording: str, consistency: str) -> None:
    with tarfile.open(VECTORS / "large.claim-checks.tar.gz") as files:
        files.extractall(feed.directory, filter="data")
    there = f"file:///tmp/{STORES[recording]}"
    here = (feed.directory / STORES[recording]).as_uri()
    feed.with_(
        source={"claim-check": {"locations": [there], "map": {there: here}}}, target={"consistency": consistency}
    )
    messages = feed.send(recorded(recording))
    outcome = feed.once()
    assert differences(oracle("large"), feed.cells) == []
    assert outcome.counts.events == sum(map(is_row, messages))
    feed.send(recorded(recording))
    assert feed.once().counts.rows_written == outcome.counts.rows_written
    assert differences(oracle("large"), feed.cells) == []


FORMS: dict[str, Callable[[bytes], bytes]] = {
    "wrapped": wrapped,
    "raw": bytes,
    "lz4-wrapped": lambda value: wrapped(lz4(value)),
    "snappy-raw": snappy,
    "wrapped-lz4": lambda value: lz4(wrapped(value)),
}


@pytest.mark.parametrize("form", sorted(FORMS))
def test_every_form_of_a_file(sqlite_feed: Feed, form: str) -> None:
    feed = allowed(sqlite_feed)
    feed.make_database("d", f"CREATE TABLE t ({COLUMNS})")
    whole = insert("d.t", 1, id=1, v=1, s="x")
    (directory(feed) / "a.json").write_bytes(FORMS[form](whole.value))
    feed.send([claim(whole, "file:///claims/a.json"), *watermarks(2)])
    feed.once()
    assert rows(feed) == {1: "x"}


def test_only_survivors_are_fetched(feed: Feed) -> None:
    """Neither what was replaced nor what was deleted has a file, nor does a DELETE need one."""
    allowed(feed).make_database("d", f"CREATE TABLE t ({COLUMNS})")
    gone = "file:///claims/gone.json"
    last = update("d.t", 3, {"s": "x"}, id=1, v=1, s="last")
    (directory(feed) / "last.json").write_bytes(wrapped(last.value))
    feed.send([
        claim(insert("d.t", 1, id=1, v=1, s="x"), gone),
        claim(insert("d.t", 2, id=2, v=1, s="x"), gone),
        claim(last, "file:/claims/last.json"),
        claim(delete("d.t", 4, id=2, v=1, s="x"), gone),
        *watermarks(5),
    ])  # fmt: skip
    feed.once()
    assert rows(feed) == {1: "last"}


@pytest.mark.parametrize("order", [1, -1])
@pytest.mark.parametrize("consistency", ["snapshot", "transaction"])
def test_a_row_that_also_came_whole_is_not_fetched(sqlite_feed: Feed, consistency: str, order: int) -> None:
    feed = sqlite_feed.with_(target={"consistency": consistency})
    feed.make_database("d", f"CREATE TABLE t ({COLUMNS})")
    whole = insert("d.t", 1, 1, id=1, v=1, s="x")
    feed.send([*[whole, claim(whole, "file:///claims/gone.json")][::order], *watermarks(2)])
    assert feed.once().counts.duplicates_proven == 1
    assert rows(feed) == {1: "x"}


def test_two_locations_of_one_event_are_one_event(sqlite_feed: Feed) -> None:
    feed = allowed(sqlite_feed)
    feed.make_database("d", f"CREATE TABLE t ({COLUMNS})")
    whole = insert("d.t", 1, id=1, v=1, s="x")
    for name in "ab":
        (directory(feed) / f"{name}.json").write_bytes(wrapped(whole.value))
    feed.send([*(claim(whole, f"file:///claims/{name}.json") for name in "ab"), *watermarks(2)])
    assert feed.once().counts.duplicates_proven == 1
    assert rows(feed) == {1: "x"}


def test_a_claim_check_that_contradicts_a_whole_row(sqlite_feed: Feed) -> None:
    feed = sqlite_feed
    feed.make_database("d", f"CREATE TABLE t ({COLUMNS})")
    one = row_value("INSERT", "d.t", at(1), {"id": 1, "v": 1, "s": "x"})
    other = {**one, "data": [{"id": "1", "v": "2"}], "_tidb": {"commitTs": at(1), "claimCheckLocation": "file:///x/y"}}
    feed.send([Message(TOPIC, 0, encoded(one)), Message(TOPIC, 0, encoded(other)), *watermarks(2)])
    assert "different content" in feed.failing(InputError).fact


@pytest.mark.by_turns
@pytest.mark.parametrize(("feed", "count"), [("sqlite", 210), ("mariadb", 30)], indirect=["feed"])
def test_rows_of_megabytes(feed: Feed, count: int) -> None:
    """Few and many, all together more than Spark's JVM could pass on."""
    allowed(feed).make_database("d", "CREATE TABLE t (id INT PRIMARY KEY, v INT, s LONGTEXT)")
    claims = []
    for number in range(count):
        whole = insert("d.t", 1, id=number, v=number, s=f"{number}é" * 500_000)
        (directory(feed) / f"{number}.json").write_bytes(wrapped(whole.value))
        claims.append(claim(whole, f"file:///claims/{number}.json"))
    feed.send([*claims, *watermarks(2)])
    feed.once()
    assert rows(feed) == {number: f"{number}é" * 500_000 for number in range(count)}


WHOLE = insert("d.t", 1, id=1, v=1, s="x")
BAD_FILES: dict[str, tuple[bytes | None, str, type[ReconcilerError]]] = {
    "missing": (None, "is missing", BodyMissingError),
    "empty": (b"", "0 bytes", InputError),
    "garbage": (b"hello", "not valid JSON", InputError),
    "truncated": (wrapped(WHOLE.value)[:-40], "not valid JSON", InputError),
    "wrapped-garbage": (wrapped(b"hello"), "not valid JSON", InputError),
    "no-base64": (b'{"key":null,"value":"%%%"}', "not Canal-JSON", InputError),
    "another-row": (insert("d.t", 1, id=2, v=1, s="x").value, "another message", InputError),
    "another-table": (insert("d.u", 1, id=1, v=1, s="x").value, "another message", InputError),
    "another-commit": (insert("d.t", 7, id=1, v=1, s="x").value, "another message", InputError),
    "a-delete": (delete("d.t", 1, id=1, v=1, s="x").value, "another message", InputError),
    "a-claim-check": (claim(WHOLE, "file:///claims/b.json").value, "another message", InputError),
    "too-large": (wrapped(b"{" + b" " * 70_000), "limits.message-bytes", InputError),
    "a-bomb": (lz4(b"{" + b" " * 1_000_000), "limits.message-bytes", InputError),
    "no-text": (encoded({**json.loads(WHOLE.value), "data": [{"id": "1", "v": 2}]}), "can't be read", InputError),
    "lz4-cut": (lz4(WHOLE.value)[:-20], "can't be decompressed", InputError),
}


@pytest.mark.parametrize("case", sorted(BAD_FILES))
def test_bad_files(sqlite_feed: Feed, case: str) -> None:
    feed = allowed(sqlite_feed).with_(limits={"message-bytes": "64KiB"})
    content, fact, kind = BAD_FILES[case]
    feed.make_database("d", f"CREATE TABLE t ({COLUMNS})")
    if content is not None:
        (directory(feed) / "a.json").write_bytes(content)
    feed.send([insert("d.t", 2, 1, id=5, v=1, s="x"), claim(WHOLE._replace(partition=1), "file:///claims/a.json")])
    feed.send(watermarks(3))
    error = feed.failing()
    assert (error.exit_code, type(error)) == (3, kind)
    assert fact in error.fact
    assert f"topic={feed.topic} partition=1 offset=1" in str(error).splitlines()[0]
    assert rows(feed) == {}
    if kind is BodyMissingError:
        assert "file:///claims/a.json" in error.where


@pytest.mark.parametrize("row", [{"v": "1", "s": "longer than ten"}, {"v": "no number", "s": "x"}])
def test_a_fetched_row_that_the_target_refuses(mariadb_feed: Feed, row: dict[str, str]) -> None:
    feed = allowed(mariadb_feed)
    feed.make_database("d", f"CREATE TABLE t ({COLUMNS})")
    whole = insert("d.t", 1, 1, id=7, **row)
    (directory(feed) / "a.json").write_bytes(whole.value)
    feed.send([insert("d.t", 2, 1, id=5, v=1, s="x"), claim(whole, "file:///claims/a.json"), *watermarks(3)])
    error = feed.failing()
    assert error.exit_code == 4
    assert f"topic={feed.topic} partition=1 offset=1" in str(error)
    assert rows(feed) == {}


LOCATIONS: dict[str, tuple[str, Mapping[str, Any]]] = {
    "outside": ("file:///etc/passwd", {}),
    "sibling": ("file:///claims-too/a.json", {}),
    "climbing": ("file:///claims/../../etc/passwd", {}),
    "climbing-in-the-middle": ("file:///claims/x/../a.json", {}),
    "the-directory-itself": ("file:///claims/", {}),
    "a-host": ("file://claims/a.json", {}),
    "another-scheme": ("http://127.0.0.1:1/claims/a.json", {}),
    "no-uri": ("/claims/a.json", {}),
    "a-line-break": ("file:///claims/a\n.json", {}),
    "not-where-it-is-mapped-to": ("file:///here/a.json", {"map": {"file:///claims": "file:///here"}}),
    "nothing-configured": ("file:///claims/a.json", {"map": {}}),
}


@pytest.mark.parametrize("case", sorted(LOCATIONS))
def test_locations_that_are_not_followed(sqlite_feed: Feed, case: str) -> None:
    location, section = LOCATIONS[case]
    feed = allowed(sqlite_feed, **section)
    (directory(feed) / "a.json").write_bytes(WHOLE.value)
    feed.make_database("d", f"CREATE TABLE t ({COLUMNS})")
    feed.send([claim(WHOLE, location), *watermarks(2)])
    error = feed.failing(InputError)
    assert f"topic={feed.topic} partition=0 offset=0" in str(error).splitlines()[0]
    assert location.strip("/").rsplit("/", maxsplit=1)[-1].replace("\n", "\\n") in str(error)
    assert rows(feed) == {}


@pytest.mark.kafka  # where what may pass is tried again
def test_a_late_file_is_waited_for(sqlite_feed: Feed) -> None:
    feed = allowed(sqlite_feed).with_(limits={"retry-seconds": 30})
    feed.make_database("d", f"CREATE TABLE t ({COLUMNS})")
    feed.send([claim(WHOLE, "file:///claims/late.json"), *watermarks(2)])
    reads = []

    def second_look(step: object) -> None:
        reads.append(step)
        if len(reads) > 6:  # the first round got so far and failed
            (directory(feed) / "late.json").write_bytes(WHOLE.value)

    feed.once(second_look)
    assert rows(feed) == {1: "x"}


def test_a_bucket_with_credentials(sqlite_feed: Feed, tmp_path: Path) -> None:
    whole = insert("d.t", 1, id=1, v=1, s="x")
    with Bucket(tmp_path) as bucket:
        bucket.put("claims/prefix/a b.json", wrapped(whole.value))
        options = {
            "endpoint": bucket.endpoint, "region": "eu-1", "allow-http": "true",
            "access-key-id": "us", "secret-access-key": "s3cret-word",
        }  # fmt: skip
        feed = sqlite_feed.with_(source={"claim-check": {"locations": ["s3://claims/prefix"], "options": options}})
        feed.make_database("d", f"CREATE TABLE t ({COLUMNS})")
        feed.send([claim(whole, "s3:/claims/prefix/a b.json"), *watermarks(2)])
        feed.once()
        assert rows(feed) == {1: "x"}
        assert "Credential=us/" in bucket.authorizations[-1]
        bucket.refuse = True
        feed.send([claim(update("d.t", 3, {}, id=1, v=1, s="y"), "s3://claims/prefix/a b.json"), *watermarks(4)])
        error = feed.failing(SourceError)
    assert "s3cret-word" not in str(error)
    assert type(error) is SourceError
    assert type(feed.failing(SourceError)) is BodyMissingError  # nobody answers any more
