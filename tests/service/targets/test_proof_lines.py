"""The lines of the table `proof`, written by two processes at once."""

from concurrent.futures import ThreadPoolExecutor, wait
from contextlib import closing

import pytest

from consumer.wiring import target_of
from tests.service.lab import Feed


@pytest.fixture(params=["sqlite", "mariadb", "postgres", pytest.param("tidb", marks=pytest.mark.tidb)])
def any_feed(request: pytest.FixtureRequest) -> Feed:
    """A changefeed into each kind of target whose lines several processes write."""
    found: Feed = request.getfixturevalue(f"{request.param}_feed")
    return found


def added(feed: Feed, state: str, after: str | None = None) -> bool:
    """What a writer is told."""
    with closing(target_of(feed.config)) as target:
        target.connect()
        return target.proofs.add(feed.name, 1, "", state, after)


def written_beside(feed: Feed, after: str | None) -> tuple[bool, str]:
    """What the later of two writers is told, and which state is kept, where the earlier one commits while it writes.

    Without a lock, the later writer ends before the earlier one commits, and both take theirs for the latest.
    """
    with closing(target_of(feed.config)) as target, ThreadPoolExecutor(1) as pool:
        target.connect()
        target.proofs.make()
        added(feed, "base")
        with target.session.transaction():
            target.proofs.write(feed.name, 1, "", "earlier")
            later = pool.submit(added, feed, "later", after)
            wait([later], timeout=0.5)  # it may be waiting for the lock, or not have come to it
        return later.result(60), target.proofs.state(feed.name)


def test_what_an_operator_takes_as_right_is_not_lost_to_the_background(any_feed: Feed) -> None:
    assert written_beside(any_feed, after="base") == (False, "earlier")


def test_an_operator_who_comes_later_is_the_one_who_counts(any_feed: Feed) -> None:
    assert written_beside(any_feed, after=None) == (True, "later")
