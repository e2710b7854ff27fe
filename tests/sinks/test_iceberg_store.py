"""Iceberg with its warehouse in an object store: its faults, kills, secrets, and a reader with its own client."""

import os
import random
from collections.abc import Iterator
from contextlib import closing, suppress
from itertools import product
from pathlib import Path
from typing import Any

import pytest

from consumer.config.model import config_from
from consumer.wiring import target_of
from ordering.errors import ConfigError, TargetError, TargetUnreachableError
from sinks.iceberg import compaction, expiry
from sinks.uri import parse_target_uri
from tests.service.buckets import Bucket, Fault
from tests.service.cells import differences, oracle
from tests.service.lab import recorded
from tests.service.local import LocalFeed
from tests.service.messages import begun, ddl, insert, update, watermarks
from tests.sinks.iceberg_cells import IcebergCells
from tests.sinks.iceberg_kills import ends
from tests.sinks.test_iceberg import _check_bank

SECRET = "a-secret-of-the-store"
OPTIONS = {"access-key-id": "us", "secret-access-key": SECRET, "region": "eu-west-1", "allow-http": "true"}
MORE = [update("d.t", 4, {"v": 1}, id=1, v=5, s="one"), insert("d.t", 4, id=2, v=2, s="two"), *watermarks(5)]


@pytest.fixture
def bucket(tmp_path: Path) -> Iterator[Bucket]:
    with Bucket(tmp_path) as found:
        yield found


@pytest.fixture
def feed(bucket: Bucket, tmp_path: Path) -> LocalFeed:
    catalog = tmp_path / "catalog.db"
    login = {"access_key_id": "us", "secret_access_key": SECRET, "region": "eu-west-1"}
    cells = IcebergCells(catalog, endpoint=bucket.endpoint, **login)
    uri = f"iceberg+sqlite:///{catalog}?warehouse=s3://lake/of/ours"
    options = {**OPTIONS, "endpoint": bucket.endpoint, "timeout": "1s"}
    return LocalFeed.into(uri, cells, tmp_path).with_(target={"warehouse-options": options})  # type: ignore[return-value]


def rows(feed: LocalFeed) -> list[Any]:
    return sorted((row["id"], row["v"]) for row in feed.cells.tables(["d"])["d.t"][1])


def objects(bucket: Bucket) -> set[Path]:
    return {path for path in bucket.directory.rglob("*") if path.is_file()}


def expire(feed: LocalFeed, since: int) -> expiry.Expired:
    target = target_of(feed.config)
    try:
        return expiry.expire(target.session.db, since)
    finally:
        target.close()


def test_rows_are_read_by_another_client(feed: LocalFeed, bucket: Bucket) -> None:
    feed.send(begun())
    feed.once()
    feed.send([*MORE, ddl("d.t", 6, "ALTER TABLE `t` ADD COLUMN `a` INT DEFAULT 7", "ALTER"), *watermarks(7)])
    feed.once()
    assert rows(feed) == [(1, 5), (2, 2)]
    assert all("/lake/of/ours/d/t-" in str(path) for path in objects(bucket))
    assert feed.check()[0].endswith("1 tables")


@pytest.mark.cells("method", by_turns=(("kind", "fault"),))
@pytest.mark.parametrize("method", ["PUT", "GET"])
@pytest.mark.parametrize(
    ("kind", "fault"),
    [*product([".parquet", ".avro", ".metadata.json"], ["refuse", "busy", "cut"]), (".parquet", "hang")],
)
def test_a_fault_of_the_store_changes_nothing_and_is_told(
    feed: LocalFeed, bucket: Bucket, fault: Fault, method: str, kind: str
) -> None:
    feed.send(begun())
    feed.once()
    before = objects(bucket)
    feed.send(MORE)
    bucket.fault = lambda m, path: fault if m == method and path.partition("?")[0].endswith(kind) else None
    error = feed.failing(TargetError)
    assert isinstance(error, TargetUnreachableError) == (fault != "refuse")
    assert "the warehouse" in error.fact
    assert error.where == "s3://lake/of/ours"
    assert SECRET not in str(error)
    bucket.fault = lambda *_: None
    assert objects(bucket) == before
    assert rows(feed) == [(1, 1)]
    feed.once()
    assert rows(feed) == [(1, 5), (2, 2)]


def test_answers_that_are_lost_leave_one_row_of_each(feed: LocalFeed, bucket: Bucket) -> None:
    """The store has obeyed; the library asks again, or the window is done again."""
    chance = random.Random(3)
    feed.send(begun())
    feed.once()
    bucket.fault = lambda method, _: "late cut" if method == "PUT" and chance.random() < 0.3 else None
    tries = 0
    feed.send(MORE)
    while True:
        tries += 1
        try:
            feed.once()
            break
        except TargetUnreachableError:
            assert tries < 50
    assert rows(feed) == [(1, 5), (2, 2)]


def test_a_store_that_is_gone_while_files_are_removed_leaves_what_expires(feed: LocalFeed, bucket: Bucket) -> None:
    feed.send(begun())
    feed.once()
    before = objects(bucket)
    feed.send(MORE)
    refused = ("POST", "DELETE")
    bucket.fault = lambda method, path: "busy" if method in refused or (method, path[-5:]) == ("PUT", ".json") else None
    feed.failing(TargetUnreachableError)
    bucket.fault = lambda *_: None
    left = objects(bucket) - before
    assert left
    feed.once()
    for path in objects(bucket):
        os.utime(path, (0, 0))
    newest = feed.cells.pointers()["d.t"].removeprefix("s3:/")  # type: ignore[attr-defined]
    assert expire(feed, 0).files == 0  # no older than the pointer: a leader may be about to name them
    os.utime(f"{bucket.directory}{newest}")
    # of objects that are deleted one by one, a client may still try some again after it has given up
    assert expire(feed, 0).files <= len(left)
    assert not left & objects(bucket)
    assert rows(feed) == [(1, 5), (2, 2)]


@pytest.mark.by_turns
def test_sigkills_between_the_steps_leave_upstreams_states(feed: LocalFeed) -> None:
    messages, chance, killed = recorded("bank.table.split"), random.Random(7), 0
    step = len(messages) // 3
    for start in range(0, len(messages), step):
        feed.send(messages[start : start + step])
        furthest = 90
        while not ends(feed, chance.randint(1, furthest)):
            killed, furthest = killed + 1, 2 * furthest
    assert killed >= 3
    _check_bank(feed, 2)


def test_recordings_end_as_upstream_with_a_store_that_fails_often(feed: LocalFeed, bucket: Bucket) -> None:
    chance, failed = random.Random(1), 0
    faults: list[Fault] = ["busy", "cut", "late cut"]
    bucket.fault = lambda *_: chance.choice(faults) if chance.random() < 0.15 else None
    feed.send(recorded("unique-swaps.index-value.raw"))
    while True:
        try:
            feed.once()
            break
        except TargetUnreachableError:
            failed += 1
            assert failed < 200
    bucket.fault = lambda *_: None
    assert failed > 0
    assert differences(oracle("unique-swaps"), feed.cells) == []


def compact(feed: LocalFeed) -> compaction.Compaction:
    with closing(target_of(feed.config)) as target:
        return compaction.compact(target.session.db, lambda _: True, 32 << 20)


@pytest.mark.parametrize("fault", ["refuse", "busy", "cut"])
def test_small_files_are_merged_or_all_is_as_it_was(feed: LocalFeed, bucket: Bucket, fault: Fault) -> None:
    _small_files(feed)
    before, wanted = objects(bucket), rows(feed)
    for method, kind in product(["PUT", "GET"], [".parquet", ".avro", ".metadata.json"]):
        bucket.fault = lambda m, path, seen=(method, kind): fault if (m, _kind(path)) == seen else None
        with pytest.raises(TargetError, match="the warehouse"):
            compact(feed)
        bucket.fault = lambda *_: None
        assert rows(feed) == wanted
        # manifests are written at once: one may come after another one's failure, and stays until it expires
        assert {_kind(str(path)) for path in objects(bucket) - before} <= {".avro"}
    compact(feed)
    assert rows(feed) == wanted
    assert compact(feed) == ((), 0)


@pytest.mark.by_turns
def test_small_files_are_merged_though_answers_are_lost(feed: LocalFeed, bucket: Bucket) -> None:
    _small_files(feed)
    wanted, chance = rows(feed), random.Random(5)
    bucket.fault = lambda *_: "late cut" if chance.random() < 0.3 else None
    for _ in range(20):
        with suppress(TargetUnreachableError):
            compact(feed)
    bucket.fault = lambda *_: None
    compact(feed)
    assert rows(feed) == wanted
    assert compact(feed) == ((), 0)


@pytest.mark.by_turns
def test_sigkills_while_small_files_are_merged(feed: LocalFeed) -> None:
    _small_files(feed)
    wanted, last = rows(feed), 1
    while not ends(feed, last, compact):
        assert rows(feed) == wanted
        last += 5
    assert last > 10
    assert rows(feed) == wanted
    assert compact(feed) == ((), 0)


def _small_files(feed: LocalFeed) -> None:
    feed.send(begun())
    feed.once()
    for number in range(4, 7):
        feed.send([insert("d.t", number, id=number, v=number, s="s"), *watermarks(number)])
        feed.once()


def _kind(path: str) -> str:
    name = path.partition("?")[0]
    return next((kind for kind in (".parquet", ".avro", ".metadata.json") if name.endswith(kind)), "")


def test_the_stores_secret_is_nowhere(feed: LocalFeed, bucket: Bucket, capfd: pytest.CaptureFixture[str]) -> None:
    feed.send(begun())
    feed.once()
    bucket.fault = lambda method, _: "busy" if method in ("PUT", "POST", "DELETE") else None
    feed.send(MORE)
    error = feed.failing(TargetError)
    written = [path.read_bytes() for path in (*objects(bucket), feed.directory / "catalog.db")]
    told = "".join(
        [*capfd.readouterr(), str(error), repr(error.__cause__), repr(target_of(feed.config).session.db.io.__dict__)]
    )
    assert SECRET.encode() not in b"".join(written)
    assert SECRET not in told


@pytest.mark.parametrize(
    "warehouse",
    ["s3://", "s3://b/../x", "s3://b/a//b", "s3://b/.", "s3://u:p@b/x", "s3://b?x", "gs://b/x", "s3://b/x#y", "s3://B"],
)
def test_places_that_are_no_warehouse(warehouse: str) -> None:
    with pytest.raises(ConfigError, match=r"target\.uri") as caught:
        parse_target_uri(f"iceberg+sqlite:////tmp/c.db?warehouse={warehouse}")
    assert "u:p" not in str(caught.value)


def test_options_need_a_warehouse_in_a_store_and_names_that_it_knows(feed: LocalFeed) -> None:
    with pytest.raises(ConfigError, match="warehouse-options is of an Iceberg warehouse"):
        config_from({**feed.values(), "target": {"uri": "sqlite:////tmp/x", "warehouse-options": OPTIONS}}, "a test")
    values = feed.values()
    values["target"] = {**values["target"], "warehouse-options": {"no-such-option": SECRET}}
    with pytest.raises(ConfigError, match=r"target.warehouse-options no-such-option") as caught:
        config_from(values, "a test")
    assert SECRET not in str(caught.value)


def test_a_table_of_another_warehouse_is_named(feed: LocalFeed) -> None:
    feed.send(begun())
    feed.once()
    moved = {**feed.values()["target"], "uri": feed.values()["target"]["uri"].replace("of/ours", "of/others")}
    feed.send(MORE)
    error = feed.with_(target=moved).failing(TargetError)  # type: ignore[attr-defined]
    assert "the warehouse was another one" in error.fact
