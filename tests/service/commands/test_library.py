"""The library: windows as DataFrames, written as Parquet, also across a crash between writing and committing."""

import sqlite3
from collections.abc import Iterable, Iterator
from contextlib import closing
from itertools import pairwise
from pathlib import Path

import pytest
from pyspark import SparkContext
from pyspark.sql import SparkSession

import consumer
from consumer.config.model import Config, load_config
from consumer.embedded import KafkaBroker
from consumer.library.feed import ChangeWindow, Ddl
from consumer.spark.jobs import SparkJobs
from consumer.tasks.read_spec import ReadSpec
from ordering.errors import ConfigError, InputError, LeadershipLostError, WorkerLostError
from ordering.events import Partition
from ordering.timestamps import CheckpointTs, ResolvedTs
from ordering.window import Range, Window
from tests.bench.load import Change, Digest, Load, Mark, digest_of
from tests.bench.measure import Sending, write_config
from tests.service.lab import Feed
from tests.service.messages import begun, ddl, insert, watermarks

pytestmark = [pytest.mark.service, pytest.mark.spark]
EVENTS = 3_000


@pytest.fixture(scope="module")
def load(kafka_broker: KafkaBroker) -> Load:
    made = Load(EVENTS, database="lake", watermark_every=100)
    Sending(kafka_broker.bootstrap, "library", made.partitions).send(made.messages())
    return made


def config_of(extra: str, place: Path, bootstrap: str = "nowhere:1", topic: str = "library") -> Config:
    uri = f"sqlite:///{place}/state"
    path = place / "library.toml"
    return load_config(write_config(path, changefeed="library", bootstrap=bootstrap, topic=topic, uri=uri, extra=extra))


@pytest.fixture
def config(kafka_broker: KafkaBroker, tmp_path: Path) -> Config:
    return config_of("[limits]\nwindow-rows = 700", tmp_path, kafka_broker.bootstrap)


@pytest.mark.by_turns(9)
def test_parquet_holds_what_upstream_holds_after_a_crash(
    load: Load, config: Config, spark: SparkContext, tmp_path: Path
) -> None:
    written: list[Path] = []
    seen: list[tuple[int, int]] = []

    def write(window: ChangeWindow) -> None:
        path = tmp_path / f"{window.high}.parquet"
        window.changes.write.mode("overwrite").parquet(str(path))
        written.append(path)
        seen.append((window.low, window.high))

    first = consumer.windows(config, once=True, spark=spark)
    for item in first:
        if isinstance(item, ChangeWindow):
            write(item)
            break  # a crash: it was written and not committed
        item.commit()
    first.close()  # type: ignore[attr-defined]
    for item in consumer.windows(config, once=True, spark=spark):
        if isinstance(item, ChangeWindow):
            write(item)
        item.commit()
    assert seen[0] == seen[1]
    assert all(low == before for (_, before), (low, _) in pairwise(seen[1:]))
    assert len(seen) > 4
    assert _table(spark, dict.fromkeys(written)) == load.digest()
    assert list(consumer.windows(config, once=True, spark=spark)) == []


@pytest.mark.by_turns
def test_after_a_crash_comes_the_same_window_whatever_has_arrived(
    kafka_broker: KafkaBroker, spark: SparkContext, tmp_path: Path
) -> None:
    steps = list(Load(600, database="later", watermark_every=300).messages())
    cut = next(i for i, step in enumerate(steps) if isinstance(step, Mark)) + 1 + 4
    topic = Sending(kafka_broker.bootstrap, "library-later", 4)
    topic.send(steps[:cut])
    config = config_of("", tmp_path, kafka_broker.bootstrap, "library-later")

    def first(*, net: bool) -> tuple[ChangeWindow, int]:
        for item in consumer.windows(config, net=net, once=True, spark=spark):
            if isinstance(item, ChangeWindow):
                return item, item.changes.count()
            item.commit()
        raise AssertionError("no window")

    before, count = first(net=False)
    topic.send(steps[cut:])
    after, same = first(net=False)
    assert (before.low, before.high, count) == (after.low, after.high, same)
    total = [item.changes.count() for item in _committed(config, spark) if isinstance(item, ChangeWindow)]
    assert sum(total) == 600


def _committed(config: Config, spark: SparkContext) -> Iterator[ChangeWindow | Ddl]:
    for item in consumer.windows(config, net=False, once=True, spark=spark):
        yield item
        item.commit()


def _table(spark: SparkContext, files: dict[Path, None]) -> Digest:
    session, rows = SparkSession(spark), {}
    for path in files:
        for change in session.read.parquet(str(path)).collect():
            if change["kind"] == "delete":
                rows.pop(change["key"]["id"], None)
            else:
                rows[change["key"]["id"]] = change["row"]
    ordered = sorted(rows, key=int)
    return digest_of([rows[key][name] for name in ("id", "k", "c", "pad")] for key in ordered)


@pytest.mark.by_turns
def test_all_changes_come_once_and_in_order(load: Load, config: Config, spark: SparkContext) -> None:
    found, ddls = [], []
    for item in consumer.windows(config, net=False, once=True, spark=spark):
        if isinstance(item, ChangeWindow):
            changes = item.changes.collect()
            assert all(item.low < change["commit_ts"] <= item.high for change in changes)
            found += [(change["commit_ts"], int(change["key"]["id"]), change["kind"]) for change in changes]
        else:
            ddls.append(item.sql.split("(")[0])
        item.commit()
    sent = [step for step in load.changes() if isinstance(step, Change)]
    assert [ts for ts, *_ in found] == sorted(ts for ts, *_ in found)
    assert set(found) == {(c.commit_ts, c.id, "upsert" if c.new else "delete") for c in sent}
    assert len(found) == EVENTS
    assert ddls == ["CREATE DATABASE `lake`", "CREATE TABLE `sbtest1` "]


def test_a_ddl_is_judged_with_all_that_came_with_it(sqlite_feed: Feed) -> None:
    """RENAME TABLE d.a TO d.b, d.x TO d.y where d.x is left out is refused as a whole: nothing of it is given."""
    sqlite_feed.with_(filter={"rules": ["d.*", "!d.x"]})
    sqlite_feed.send([
        *begun("d.a"),
        ddl("d.b", 4, "RENAME TABLE `d`.`a` TO `d`.`b`", kind="RENAME"),
        ddl("d.y", 4, "RENAME TABLE `d`.`x` TO `d`.`y`", kind="RENAME"),
        *watermarks(5),
    ])  # fmt: skip
    given: list[str] = []

    def take_all() -> None:
        for item in consumer.windows(sqlite_feed.config, once=True, spark=sqlite_feed.spark):
            given.extend([item.sql.split()[0]] if isinstance(item, Ddl) else [])
            item.commit()

    with pytest.raises(InputError):
        take_all()
    assert given == ["CREATE", "CREATE"]


def test_what_is_not_committed_ends_it(load: Load, config: Config, spark: SparkContext) -> None:
    items = consumer.windows(config, once=True, spark=spark)
    assert isinstance(next(items), Ddl)
    with pytest.raises(RuntimeError, match="commit"):
        next(items)
    assert load.events == EVENTS


@pytest.mark.parametrize("extra", ["[quarantine]\nenabled = true", "[filter]\nforce-replicate = true"])
def test_what_it_can_not_give_is_refused(extra: str, tmp_path: Path) -> None:
    with pytest.raises(ConfigError):
        next(consumer.windows(config_of(extra, tmp_path)))


@pytest.fixture
def small(sqlite_feed: Feed) -> Feed:
    """A feed of two DDLs and then one window, for what becomes of single items."""
    sqlite_feed.send([*begun("d.a"), insert("d.a", 4, id=2, v=2), *watermarks(5)])
    return sqlite_feed


def items_of(feed: Feed) -> Iterator[ChangeWindow | Ddl]:
    return consumer.windows(feed.config, once=True, spark=feed.spark)


def named(item: ChangeWindow | Ddl) -> str:
    return item.sql.split("`")[0].strip() if isinstance(item, Ddl) else f"rows to {item.high}"


def given(feed: Feed) -> list[str]:
    """What is still to come; it is committed."""
    found = []
    for item in items_of(feed):
        found.append(named(item))
        item.commit()
    return found


def test_commit_has_committed_when_it_returns(small: Feed) -> None:
    found: list[str] = []
    for _ in range(5):
        with closing(items_of(small)) as items:  # type: ignore[type-var]
            for item in items:
                found.append(named(item))
                item.commit()
                item.commit()  # once more does nothing
                break
    assert len(found) == len(set(found)) == 3
    assert given(small) == []


def test_what_is_not_committed_comes_again(small: Feed) -> None:
    def fail() -> None:
        for item in items_of(small):
            raise ZeroDivisionError(named(item))

    with pytest.raises(ZeroDivisionError) as caught:
        fail()
    first = str(caught.value)
    del caught
    with closing(items_of(small)) as items:  # type: ignore[type-var]
        assert named(next(items)) == first
    assert given(small)[0] == first


def test_commit_after_the_end_saves_nothing(small: Feed) -> None:
    items = items_of(small)
    item = next(items)
    items.close()  # type: ignore[attr-defined]
    with pytest.raises(RuntimeError, match="after the iteration had ended"):
        item.commit()
    with pytest.raises(RuntimeError):
        item.commit()
    assert not item.committed
    assert given(small)[0] == named(item)


def raise_epoch(feed: Feed) -> None:
    path = Path(feed.config.target.uri.removeprefix("sqlite:///")) / "ticdc_reconciler.sqlite"
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute("UPDATE checkpoint SET epoch = epoch + 1")


@pytest.mark.by_turns
@pytest.mark.parametrize("before", [0, 1, 2])
def test_commit_of_who_was_replaced_raises_and_saves_nothing(small: Feed, before: int) -> None:
    with closing(items_of(small)) as items:  # type: ignore[type-var]
        for _ in range(before):
            next(items).commit()
        item = next(items)
        raise_epoch(small)
        with pytest.raises(LeadershipLostError):
            item.commit()
        assert not item.committed
        with pytest.raises(RuntimeError):  # it is not known what the other one has done meanwhile
            item.commit()
        with pytest.raises(RuntimeError):
            next(items)
    assert given(small)[0] == named(item)


def broken(_: Iterable[Range]) -> Iterator[Range]:
    raise ZeroDivisionError


@pytest.mark.by_turns
def test_a_failed_job_may_pass_also_beside_a_session(spark: SparkContext) -> None:
    """A session has PySpark raise other classes, in the whole process."""
    SparkSession(spark)
    ranges = (Range(Partition("t", 0), 0, 1, 0),)
    window = Window(CheckpointTs(0), CheckpointTs(0), ResolvedTs(9), ResolvedTs(9), ranges)
    spec = ReadSpec(window, {}, lambda *_: True, 1, 1 << 20)
    with pytest.raises(WorkerLostError, match="ZeroDivisionError"):
        SparkJobs(spark, {})._looked(ranges, spec, broken)
