"""A window's rows come over so many buckets that each fits a task's memory."""

from collections import Counter

import pytest

from consumer.pipeline.buckets import BucketPlan
from consumer.tasks.reduction import bucket_hash
from ordering.events import TableName
from ordering.rows.identity import row_key
from ordering.timestamps import CheckpointTs, ResolvedTs
from ordering.window import Window


@pytest.mark.parametrize(("messages", "size"), [(5_000_000, 500), (1_000_000, 100_000), (20_000, 500_000)])
def test_a_bucket_is_small_in_rows_and_in_bytes(messages: int, size: int) -> None:
    spreading = BucketPlan(cores=2, average_bytes=size)
    buckets = spreading.buckets(messages)
    assert messages / buckets <= 125_000
    assert messages / buckets * size <= 1 << 28 or buckets == 512


@pytest.mark.by_turns
@pytest.mark.parametrize("size", [200, 10_000, 100_000, 1 << 20, 8 << 20])
def test_rows_whose_numbers_follow_fill_no_bucket_alone(size: int) -> None:
    """A thousand rows of a megabyte are a gigabyte: they share no bucket, however their keys follow one another."""
    spreading = BucketPlan(cores=2, average_bytes=size)
    messages = (1 << 30) // size
    buckets = spreading.buckets(messages)
    held = Counter(
        bucket_hash(row_key(TableName("d", "t"), (str(i),)), spreading.run_digits) % buckets for i in range(messages)
    )
    assert max(held.values()) <= 2.5 * spreading.rows


def test_one_transaction_gets_as_many_buckets_as_it_needs() -> None:
    spreading = BucketPlan(cores=2, average_bytes=500)
    window = Window(CheckpointTs(0), CheckpointTs(0), ResolvedTs(1000), ResolvedTs(1000))
    histogram = [(499, 1000), (500, 5_001_000), (1000, 5_002_000)]
    first = spreading.by_commit(window, 5_002_000, [])
    assert max(first.sizes) == 1
    better = spreading.better(first, [histogram])
    assert better is not None
    assert better.sizes == (1, 40, 1)
    assert spreading.by_commit(window, 5_002_000, [histogram]) == better
    assert spreading.better(better, [histogram]) is None
