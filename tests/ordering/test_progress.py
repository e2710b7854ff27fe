"""The progress: what is stored is what was meant, and it never falls."""

from dataclasses import fields, replace

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ordering.errors import ConfigError
from ordering.events import Partition, TableName
from ordering.progress import FORMAT, Counts, PartitionProgress, Progress, TopicProgress
from ordering.timestamps import MAX_TSO, CheckpointTs, ResolvedTs
from ordering.window import Range, Window

STAMPS = st.integers(0, MAX_TSO).map(CheckpointTs)
OFFSETS = st.integers(0, 2**62)
TEXTS = st.text(max_size=5)
PROGRESS = st.builds(
    Progress,
    STAMPS,
    STAMPS,
    STAMPS,
    partitions=st.dictionaries(
        st.builds(Partition, TEXTS, st.integers(0, 20)),
        st.builds(PartitionProgress, OFFSETS, OFFSETS, st.none() | STAMPS.map(ResolvedTs), OFFSETS),
        max_size=4,
    ),
    topics=st.dictionaries(
        TEXTS,
        st.builds(
            TopicProgress,
            TEXTS,
            st.frozensets(st.builds(TableName, TEXTS, TEXTS), max_size=3),
            st.booleans(),
            st.booleans(),
            st.booleans(),
            brokers=st.frozensets(TEXTS, max_size=2),
        ),
        max_size=3,
    ),
    executed=st.frozensets(TEXTS, max_size=3),
    counts=st.builds(Counts, *[st.integers(0, 2**40)] * 6),
    filter_digest=TEXTS,
    ledger=TEXTS,
    ledger_key=TEXTS,
    time_zone=TEXTS,
    window=st.none()
    | st.builds(
        Window,
        STAMPS,
        STAMPS,
        STAMPS.map(ResolvedTs),
        STAMPS.map(ResolvedTs),
        st.lists(
            st.builds(Range, st.builds(Partition, TEXTS, st.integers(0, 20)), OFFSETS, OFFSETS, OFFSETS), max_size=3
        ).map(tuple),
        to_end=st.booleans(),
    ),
)


@given(PROGRESS)
def test_it_comes_back_from_json_as_it_was(progress: Progress) -> None:
    offsets, state = (orjson.loads(orjson.dumps(part)) for part in (progress.offsets(), progress.kept_state()))
    assert Progress.restored(progress.checkpoint_ts, offsets, state) == progress


def test_the_ledgers_key_is_shown_nowhere() -> None:
    progress = Progress(ledger_key="s3cret")
    assert progress.kept_state()["ledger_key"] == "s3cret"
    assert "s3cret" not in f"{progress!r} {progress.state()} {progress.offsets()} {progress.moves()}"


@given(PROGRESS, STAMPS)
def test_a_checkpoint_never_falls(progress: Progress, ts: CheckpointTs) -> None:
    if ts < progress.checkpoint_ts:
        with pytest.raises(AssertionError, match="would fall"):
            progress.at(ts)
        return
    moved = progress.at(ts)
    assert moved.checkpoint_ts == ts
    assert moved.executed == (progress.executed if ts == progress.checkpoint_ts else frozenset())
    assert moved.partitions == progress.partitions


@given(PROGRESS, st.integers(1, 9), st.frozensets(TEXTS, max_size=2))
def test_what_moves_inside_a_window_is_enough_to_go_on_from_its_start(
    start: Progress, more: int, executed: frozenset[str]
) -> None:
    counts = start.counts.plus(rows_written=more, quarantined=more)
    moved = start.at(CheckpointTs(start.checkpoint_ts + more), counts=counts, executed=executed)
    assert moved.goes_on_from(start)
    state = orjson.loads(orjson.dumps(moved.moves()))
    assert start.moved(moved.checkpoint_ts, state) == moved
    with pytest.raises(ConfigError, match="later version"):
        start.moved(moved.checkpoint_ts, {**state, "format": FORMAT + 1})


@pytest.mark.parametrize("name", [field.name for field in fields(Progress)])
def test_all_else_that_changes_is_stored_in_whole(name: str) -> None:
    start = Progress.first(CheckpointTs(7), "digest", "ledger")
    changed = replace(start, **{name: object()})
    assert changed.goes_on_from(start) == (name in {"checkpoint_ts", "executed", "counts"})


@given(PROGRESS, st.lists(TEXTS, min_size=1, max_size=3, unique=True))
def test_ddls_executed_at_the_checkpoint_are_remembered_until_it_moves(progress: Progress, ddls: list[str]) -> None:
    at = CheckpointTs(progress.checkpoint_ts + 1)
    moved = progress
    for identity in ddls:
        moved = moved.after_ddl(at, identity)
    assert moved.executed == frozenset(ddls)
    assert (moved.checkpoint_ts, moved.base_ts) == (at, at)
    assert moved.counts.ddls == progress.counts.ddls + len(ddls)
    assert moved.at(CheckpointTs(at + 1)).executed == frozenset()


def test_a_new_changefeed_has_everything_up_to_its_start() -> None:
    first = Progress.first(CheckpointTs(7), "digest", "ledger")
    assert (first.checkpoint_ts, first.base_ts, first.start_ts) == (7, 7, 7)
    assert first.counts.plus(events=2, duplicates_proven=1).plus(duplicates_unproven=3).duplicates == 4


def test_what_a_later_version_wrote_is_refused_not_guessed_at() -> None:
    stored = {**Progress().state(), "format": FORMAT + 1}
    with pytest.raises(ConfigError, match=f"format {FORMAT + 1}.*later version"):
        Progress.restored(0, {}, stored)


def test_what_an_earlier_version_wrote_lacks_the_number_and_later_counts() -> None:
    stored = {name: value for name, value in Progress().state().items() if name != "format"}
    stored["counts"] = {"events": 7, "duplicates_proven": 1, "duplicates_unproven": 0, "ddls": 2}
    found = Progress.restored(5, {}, stored)
    assert (found.checkpoint_ts, found.counts) == (5, Counts(events=7, duplicates_proven=1, ddls=2))


def test_a_count_that_a_later_version_added_may_be_left_unread() -> None:
    stored = {**Progress().state(), "counts": {"events": 7, "of_tomorrow": 1}}
    assert Progress.restored(5, {}, stored).counts == Counts(events=7)
