"""Batches beside the model: each change in exactly one of them, whatever comes twice, late or between two drivers."""

import json
import random
import time
from collections import Counter
from collections.abc import Iterator

import pytest

from consumer.config.changefeed_filter import read_filter
from consumer.demo.fake_ticdc.changefeed import Message
from consumer.source.probe import Source
from consumer.spark_source.offset import FeedOffset, restored
from consumer.spark_source.options import SourceOptions, read_options
from consumer.spark_source.planning import FeedPlanner
from consumer.spark_source.slices import FeedChange, SliceReader
from ordering.errors import InputError
from tests.service.lab import recorded
from tests.service.messages import (
    at,
    begun,
    ddl,
    delete,
    encoded,
    insert,
    keyed,
    update,
    value_of,
    watermark,
    watermarks,
)
from tests.simulation.log import FakeLog
from tests.spark_source.model import Identity, ddls, identities, resolved

RECORDINGS = (
    "bank.index-value.restarts",
    "split.index-value.raw",
    "split.table.split",
    "ddl-basic.restarts",
    "topics.topic-per-table",
    "unique-swaps.index-value.raw",
)


KEYS = {"sp.uk_t": ("id",), "bank.acc2": ("no",), "us.k": ("no",)}


def options_of(**more: str) -> SourceOptions:
    told = {"source.bootstrap-servers": "nowhere:1", "source.topics": '["~.*"]'}
    return read_options(told | {name.replace("_", "-"): value for name, value in more.items()})


def planner_of(log: FakeLog, options: SourceOptions, max_rows: int = 1000) -> FeedPlanner:
    return FeedPlanner(options, Source(options.config, log, marks=log.get()), log, max_rows)  # type: ignore[arg-type]


def identity(change: FeedChange) -> Identity:
    kind = "delete" if change.after is None else "write"
    return (*change.table, change.commit_ts, kind, json.dumps(change.key, sort_keys=True))


def read(log: FakeLog, options: SourceOptions, planner: FeedPlanner, batch: FeedOffset) -> Iterator[FeedChange]:
    tables = read_filter(options.config.filter).tables
    reader = SliceReader(log, tables, options.handle_keys, options.config.limits.message_bytes)
    for part in planner.slices(batch):
        yield from reader.changes(part)


def spark_sees(batch: FeedOffset) -> FeedOffset:
    """An offset, through the text that Spark keeps of it."""
    return restored(json.loads(json.dumps(batch.stored())))


@pytest.mark.parametrize("name", RECORDINGS)
@pytest.mark.parametrize("seed", range(2))
def test_each_change_is_in_one_batch(name: str, seed: int) -> None:
    chance = random.Random(f"{name} {seed}")
    messages = recorded(name)
    arrived, marks = 0, resolved(messages)
    log, options = FakeLog(messages), options_of(handle_keys="; ".join(f"{k}({v[0]})" for k, v in KEYS.items()))
    planner = planner_of(log, options, max_rows := chance.choice([300, 10_000]))
    offset, found, told, rows = planner.first(), Counter[Identity](), Counter[tuple[int, str]](), {}
    while True:
        step = chance.randrange(1, 600)
        log.arrive(step)
        arrived = min(arrived + step, len(messages))
        while (batch := planner.after(offset)) is not offset:
            if "topic-per-table" not in name:  # there a DDL ends a topic, and stands for its watermark
                assert batch.commit_ts <= marks[arrived - 1]
            batch = spark_sees(batch)
            if chance.random() < 0.3:  # the driver is killed, and more has arrived before the next one asks
                log.arrive(step)
                arrived = min(arrived + step, len(messages))
                planner = planner_of(log, options, max_rows)
            changes = list(read(log, options, planner, batch))
            assert len(changes) == batch.rows
            assert all(batch.low < change.commit_ts <= batch.commit_ts for change in changes)
            found.update(map(identity, changes))
            rows.update({identity(change): change.after for change in changes})
            told.update((one.commit_ts, one.sql) for one in batch.ddls)
            offset = batch
        if arrived == len(messages):
            break
    expected = {k: v for k, v in identities(messages, KEYS).items() if k[2] <= offset.commit_ts}
    assert found == Counter(expected.keys())
    assert rows == expected
    assert told == Counter({one for one in ddls(messages) if one[0] <= offset.commit_ts})
    assert offset.commit_ts >= max(k[2] for k in identities(messages, KEYS))


def batches(
    log: FakeLog, options: SourceOptions, max_rows: int = 1000, planner: FeedPlanner | None = None
) -> list[FeedOffset]:
    planner = planner or planner_of(log, options, max_rows)
    found = [planner.first()]
    while (batch := planner.after(found[-1])) is not found[-1]:
        found.append(batch)
    return found[1:]


def log_of(*messages: Message, partitions: int = 3) -> FakeLog:
    log = FakeLog(messages, partitions=partitions)
    log.arrive(len(messages))
    return log


def test_a_partition_that_comes_late_holds_the_next_batch_back_and_loses_nothing() -> None:
    log, options = log_of(*begun()), options_of()
    planner = planner_of(log, options)
    first = batches(log, options, planner=planner)[-1]
    log.coming.extend([insert("d.t", 4, 0, id=2), *watermarks(5), insert("d.t", 4, 3, id=3)])
    log.arrive(10)
    assert planner.after(first) is first  # partition 3 has no watermark yet
    log.coming.extend(watermarks(6, 4))
    log.arrive(10)
    batch = spark_sees(planner.after(first))
    assert [change.key["id"] for change in read(log, options, planner, batch)] == ["2", "3"]


def test_rows_that_were_read_and_come_again_are_in_no_batch() -> None:
    log, options = log_of(*begun()), options_of()
    planner = planner_of(log, options)
    first = batches(log, options, planner=planner)[-1]
    log.coming.extend([insert("d.t", 3, 1, id=1, v=1, s="one"), insert("d.t", 4, 2, id=2), *watermarks(5)])
    log.arrive(10)
    batch = planner.after(first)
    assert [change.commit_ts for change in read(log, options, planner, batch)] == [at(4)]


def test_a_change_in_two_partitions_is_given_once() -> None:
    again = [insert("d.t", 4, number, id=2) for number in (0, 1, 1, 2, 2)]
    log, options = log_of(*begun(), *again, *watermarks(5)), options_of()
    found = [c for b in batches(log, options) for c in read(log, options, planner_of(log, options), b)]
    assert [change.key["id"] for change in found] == ["1", "2"]


def test_a_raw_update_that_moves_a_key_and_its_split_form_are_one() -> None:
    forms = [update("d.t", 4, {"id": 1}, 0, id=2), delete("d.t", 4, 1, id=1), insert("d.t", 4, 2, id=2)]
    log, options = log_of(*begun(), *forms, *watermarks(5)), options_of()
    found = [c for b in batches(log, options) for c in read(log, options, planner_of(log, options), b)]
    assert sorted((c.op, c.kind, c.key["id"]) for c in found[1:]) == [(0, "delete", "1"), (1, "insert", "2")]


def test_a_batch_ends_before_a_ddl_and_holds_it() -> None:
    story = [
        insert("d.t", 4, id=2),
        ddl("d.t", 5, "ALTER TABLE `t` ADD COLUMN `x` INT", "ALTER"),
        insert("d.t", 6, id=3),
    ]
    found = batches(log_of(*begun(), *story, *watermarks(7)), options_of())
    assert [([d.sql.split()[0] for d in batch.ddls], batch.commit_ts) for batch in found][-2:] == [
        (["ALTER"], at(5)),
        ([], at(7)),
    ]


def test_max_rows_bounds_batches_and_keeps_transactions_whole() -> None:
    rows = [insert("d.t", n // 3, n % 3, id=n) for n in range(12, 42)]
    found = batches(log_of(*begun(), *rows, *watermarks(30)), options_of(), max_rows=4)
    assert [batch.rows for batch in found[1:]] == [4, *[3] * 9]


@pytest.mark.parametrize("ahead_s", [1e8, 20 * 3600])
def test_a_watermark_of_the_future_that_an_offset_rests_on_is_refused(ahead_s: float) -> None:
    """It was believed by another limit, or before it was listed."""
    ts = int(time.time() + ahead_s) * 1000 << 18
    value = encoded({**value_of("TIDB_WATERMARK", "", ts), "_tidb": {"watermarkTs": ts}})
    log = log_of(*begun(), Message("ticdc", 1, value), watermark(5, 0), watermark(5, 2))
    limit = {"limits.clock-ahead-seconds": "1000000000"}
    offset = batches(log, options_of(**limit))[-1]
    listed = {"source.ignored-watermarks": "ticdc/1/1"}
    with pytest.raises(
        InputError, match="holds a watermark of the future" if ahead_s > 1e6 else "an ignored watermark"
    ):
        planner_of(log, options_of(**listed)).after(offset)
    assert batches(log, options_of(**listed))[-1].commit_ts == at(3)


def test_what_the_topics_no_longer_hold_as_planned_is_told() -> None:
    log, options = log_of(*begun(), insert("d.u", 4, id=2), *watermarks(5)), options_of()
    batch = batches(log, options)[-1]
    other = options_of(**{"filter.rules": "d.t"})
    with pytest.raises(InputError, match="were in it when it was planned"):
        planner_of(log, other).slices(batch)


def test_a_table_without_a_primary_key_needs_an_option() -> None:
    row = keyed(insert("d.k", 4, id=2))
    log = log_of(*begun(), row, row, *watermarks(5))
    with pytest.raises(InputError, match="name no primary key") as error:
        batches(log, options_of())
    assert "handle-keys" in error.value.hint
    options = options_of(handle_keys="d.k(id)")
    found = [c for b in batches(log, options) for c in read(log, options, planner_of(log, options), b)]
    assert [str(change.table) for change in found] == ["d.t", "d.k"]


@pytest.mark.parametrize("lost", [0, 1, 3])
def test_a_log_that_is_replaced_before_its_slices_are_read(lost: int) -> None:
    """It has grown again, by as many rows: Spark's query is told in place of given others."""
    log, options = FakeLog(begun()), options_of()
    planner = planner_of(log, options)
    log.arrive(100)
    rows = [insert("d.t", 5 + n, 0, id=10 + n, v=1, s="x") for n in range(4)]
    for message in [*rows, *watermarks(9)]:
        log.add(message.topic, message.partition, message.value)
    batch = spark_sees(planner.after(planner.first()))
    while batch.rows < 4:
        batch = spark_sees(planner.after(batch))
    slices = planner.slices(batch)
    place = slices[0].range.partition
    log.elect(place, lost=lost + 1)
    for message in [
        *(insert("d.t", 6, 0, id=90 + n, v=1, s="x") for n in range(lost)),
        *watermarks(9),
        *watermarks(19),
    ]:
        log.add(message.topic, message.partition, message.value)
    reader = SliceReader(log, read_filter(options.config.filter).tables, options.handle_keys, 1 << 20)
    with pytest.raises(InputError, match="was replaced"):
        list(reader.changes(slices[0]))


@pytest.mark.parametrize("how", ["election", "made anew"])
def test_a_log_that_is_replaced_before_another_driver_reads_a_batch_again(how: str) -> None:
    """As many rows lie at the same offsets: neither their number nor the offsets tell."""
    log, options = log_of(*begun()), options_of()
    planner = planner_of(log, options)
    first = batches(log, options, planner=planner)[-1]
    log.coming.extend([insert("d.t", 4, 0, id=10), insert("d.t", 4, 0, id=11), *watermarks(5)])
    log.arrive(10)
    batch = spark_sees(planner.after(first))
    assert batch.rows == 2
    assert len(list(read(log, options, planner_of(log, options), batch))) == 2
    place = batch.ranges[0].partition
    if how == "election":
        log.elect(place, lost=2)
        log.coming.extend([insert("d.t", 4, 0, id=91), *watermarks(5)])
    else:
        before = list(log.held[place])
        log.make_anew(place.topic)
        log.held[place].extend(before)
        log.coming.extend([m for n in (1, 2) for m in (watermarks(3)[n], watermarks(5)[n])])
    log.arrive(20)
    with pytest.raises(InputError, match=r"was replaced|created again"):
        list(read(log, options, planner_of(log, options), batch))


def test_a_batch_that_an_earlier_version_planned_is_read() -> None:
    log, options = log_of(*begun()), options_of()
    (batch, *_) = batches(log, options)
    stored = {name: value for name, value in batch.stored().items() if name != "epochs"}
    assert len(list(read(log, options, planner_of(log, options), restored(stored)))) == batch.rows
