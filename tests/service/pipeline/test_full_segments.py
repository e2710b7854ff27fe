"""Segments of a window with more rows than their tasks should have, whatever is known of how they lie."""

from dataclasses import replace

import pytest

from tests.service.local import LocalFeed
from tests.service.messages import at, begun, ddl, insert, watermarks

pytestmark = [pytest.mark.service, pytest.mark.timeout(120)]
ROWS = 60
"""Of one transaction: more than two buckets hold, fewer than the histogram of commits tells apart."""


@pytest.mark.parametrize("most_segments", [200, 6])
@pytest.mark.parametrize("consistency", ["snapshot", "transaction"])
def test_a_window_ends_though_a_segment_stays_too_full(
    sqlite_feed: LocalFeed, consistency: str, most_segments: int
) -> None:
    """With more barriers than segments nothing is known of how all rows lie; a transaction is one step of them."""
    feed = sqlite_feed.with_(target={"consistency": consistency})
    feed.tuning = replace(feed.tuning, small_window=0, bucket_rows=2, most_segments=most_segments)
    rows = [insert("d.t", 4, n % 3, id=n, v=n, s="s") for n in range(2, ROWS)]
    barriers = [ddl("d.t", n, f"ALTER TABLE `t` ADD COLUMN `c{n}` INT", "ALTER") for n in range(5, 13)]
    feed.send([*begun(), *rows, *barriers, *watermarks(20)])
    feed.once()
    assert len(feed.cells.tables(["d"])["d.t"][1]) == ROWS - 1
    assert feed.checkpoint() == at(20)
