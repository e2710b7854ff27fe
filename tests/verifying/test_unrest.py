"""Sides that move while they are compared: what was only under way is no difference, half a window is no state."""

from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest

from consumer.verify import compare, sides
from consumer.verify.report import VerifyOutcome
from consumer.verify.run import Verification
from consumer.verify.sides import Side
from consumer.wiring import target_of
from ordering.errors import ConfigError, DifferencesError, TargetBusyError
from ordering.timestamps import ResolvedTs
from ordering.window import Window
from sinks.bookkeeping.progress_rows import Lease
from sinks.rows.spool import Spool
from tests.embedded import MariaDbServer
from tests.service.cells import MariaDbCells, SqliteCells
from tests.service.messages import begun
from tests.verifying.upstreams import Verified, feed_of

pytestmark = pytest.mark.service


@pytest.fixture
def pair(mariadb_server: MariaDbServer, tmp_path: Path) -> Iterator[tuple[Verified, str]]:
    """A target in MariaDB, and one in SQLite that holds the same."""
    cells, copy = MariaDbCells(mariadb_server.uri), SqliteCells(tmp_path / "copy")
    cells.drop(["d"])
    feeds = [feed_of(mariadb_server.uri, cells, tmp_path), feed_of(f"sqlite:///{copy.directory}", copy, tmp_path)]
    for feed in feeds:
        feed.with_(filter={"rules": ["d.*"]}).send(begun())
        feed.apply()
    yield Verified(feeds[0]), feeds[1].uri
    cells.drop(["d"])
    cells.close()


def test_rows_that_were_only_under_way_are_no_difference(
    pair: tuple[Verified, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    verified, against = pair
    verified.cells.run("d", "UPDATE t SET v = 7; INSERT INTO t VALUES (5, 5, 'stays')")
    again = Verification._again

    def meanwhile(self: Verification, outcome: VerifyOutcome, both: tuple[Side, Side]) -> None:
        verified.cells.run("d", "UPDATE t SET v = 1 WHERE id = 1")
        for side in both:
            side.open(1)
        again(self, outcome, both)

    monkeypatch.setattr(Verification, "_again", meanwhile)
    assert verified.lines(against=against) == ["EXTRA     d.t id='5'"]


def test_a_half_written_window_is_waited_for(pair: tuple[Verified, str], monkeypatch: pytest.MonkeyPatch) -> None:
    verified, against = pair
    changefeed = verified.feed.name
    monkeypatch.setattr(sides, "_WAIT_S", 0.3)
    with closing(target_of(verified.feed.config)) as target, Spool() as nothing:
        target.connect()
        stored = target.stored(changefeed)
        assert stored is not None
        progress = stored.progress
        high = ResolvedTs(progress.checkpoint_ts + 1)
        window = Window(progress.checkpoint_ts, progress.base_ts, high, high, ())
        claimed = target.claim(changefeed, progress)
        lease = Lease(changefeed, claimed.epoch)
        target.apply(nothing, replace(progress, window=window), lease, lambda _: None)
        with pytest.raises(TargetBusyError, match="did not come to rest") as caught:
            verified.verify(against=against)
        assert caught.value.exit_code == 4
        target.apply(nothing, progress, lease, lambda _: None)
    assert verified.verify(against=against).is_equal


def test_more_differences_than_memory_is_for_end_it(
    pair: tuple[Verified, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    verified, against = pair
    monkeypatch.setattr(compare, "MOST_DIFFERENCES", 2)
    verified.cells.run("d", "INSERT INTO t VALUES (5, 5, 'a'), (6, 6, 'b'), (7, 7, 'c')")
    with pytest.raises(DifferencesError, match="more than 2 rows"):
        verified.verify(against=against)


def test_what_explains_differences_is_noted(pair: tuple[Verified, str]) -> None:
    verified, against = pair
    event_filter = {"matcher": ["d.*"], "ignore-event": ["delete"]}
    verified.feed.with_(filter={"event-filters": [event_filter]})
    assert verified.lines(against=against) == [
        "note      filter.event-filters leave rows out: what is missing or old may be theirs"
    ]


def test_a_target_that_is_not_there_is_not_made(tmp_path: Path) -> None:
    cells = SqliteCells(tmp_path / "none")
    feed = feed_of(f"sqlite:///{cells.directory}", cells, tmp_path)
    with pytest.raises(ConfigError, match="has not run yet"):
        Verified(feed).verify(replay=True)
    assert not cells.directory.exists()
