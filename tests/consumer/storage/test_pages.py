"""Listings of several pages, as stores give them from 1,000 objects on."""

from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest

from consumer.storage.place import StorageRoot
from ordering.errors import SourceUnreachableError
from tests.service.buckets import PAGE, Bucket


@pytest.fixture
def bucket(tmp_path: Path) -> Iterator[Bucket]:
    with Bucket(tmp_path) as found:
        yield found


def filled(bucket: Bucket, count: int) -> StorageRoot:
    """A directory with so many files, which has neighbours."""
    for number in range(1, count + 1):
        bucket.put(f"b/feed/d/t/5/2026-01-0{number % 3 + 1}/CDC{number:020d}.csv", b"x" * (number % 7))
    bucket.put("b/feed-2/d/t/5/CDC00000000000000000001.csv", b"x")
    bucket.put("b/fee/d/t/5/CDC00000000000000000001.csv", b"x")
    login: Mapping[str, str] = {"access-key-id": "a", "secret-access-key": "b", "region": "r"}
    return StorageRoot("s3://b/feed", {"endpoint": bucket.endpoint, "allow-http": "true", **login})


@pytest.mark.parametrize("count", [0, 1, PAGE - 1, PAGE, PAGE + 1, 2 * PAGE, 2 * PAGE + 500])
def test_all_pages_are_read(count: int, bucket: Bucket) -> None:
    found = filled(bucket, count).listing().series
    sizes = {number: file.size for files in found.values() for number, file in files.items()}
    assert sizes == {number: number % 7 for number in range(1, count + 1)}
    assert len(found) == min(count, 3)


@pytest.mark.parametrize("count", [PAGE + 1, 2 * PAGE])
def test_a_page_that_does_not_lead_on_is_no_end(count: int, bucket: Bucket) -> None:
    root = filled(bucket, count)
    bucket.loses_tokens = True
    with pytest.raises(SourceUnreachableError, match="there are more"):
        root.listing()


def test_a_page_that_is_refused_ends_the_listing(bucket: Bucket) -> None:
    root = filled(bucket, 2 * PAGE)
    bucket.fault = lambda _method, path: "busy" if "continuation-token" in path else None
    with pytest.raises(SourceUnreachableError, match="can't be read"):
        root.listing()
