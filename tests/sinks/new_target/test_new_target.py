"""The guide's target takes the real pipeline's rounds and ends as upstream did: rows, DDL, progress, leadership."""

from contextlib import closing
from itertools import product
from pathlib import Path

import pytest

from consumer.wiring import target_of
from ordering.errors import LeadershipLostError, TargetError
from ordering.progress import Progress
from ordering.timestamps import CheckpointTs
from sinks import registry, uri
from sinks.bookkeeping.progress_rows import Lease
from sinks.rows.spool import Spool
from tests.service.cells import differences, oracle
from tests.service.lab import is_row, recorded
from tests.service.local import LocalFeed
from tests.service.messages import begun, ddl, insert, watermarks
from tests.sinks.new_target.cells import DuckCells
from tests.sinks.new_target.dialect import DuckDialect

RECORDINGS = ("split.index-value.raw", "split.table.split", "unique-swaps.index-value.raw")
CASES = [*product(RECORDINGS, ("snapshot", "transaction", "row")), ("ddl-basic.restarts", "snapshot")]


@pytest.fixture
def feed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> LocalFeed:
    monkeypatch.setitem(registry.DIALECTS, "duckdb", DuckDialect)
    monkeypatch.setitem(uri.PATHS, "duckdb", "DuckDB")
    file = tmp_path / "target" / "upstream.duckdb"
    return LocalFeed.into(f"duckdb:///{file}", DuckCells(file), tmp_path)


@pytest.mark.cells("recording", "consistency")
@pytest.mark.parametrize(("recording", "consistency"), CASES)
def test_recordings_end_as_upstream(feed: LocalFeed, recording: str, consistency: str) -> None:
    feed.with_(target={"consistency": consistency})
    messages = recorded(recording)
    feed.send(messages)
    first = feed.once()
    assert first.counts.events == sum(map(is_row, messages))
    assert differences(oracle(recording.split(".", maxsplit=1)[0]), feed.cells) == []
    feed.send(messages)
    assert feed.once().counts.rows_written == first.counts.rows_written
    assert differences(oracle(recording.split(".", maxsplit=1)[0]), feed.cells) == []


def test_what_it_leaves_out_is_refused(feed: LocalFeed) -> None:
    feed.send([*begun(), ddl("d.t", 3, "ALTER TABLE `t` RENAME COLUMN `v` TO `w`", kind="ALTER"), *watermarks(4)])
    assert "DuckDB is not given this" in feed.failing(TargetError).fact
    with closing(target_of(feed.config)) as target:
        assert [line.state for line in target.ddl_log.latest(feed.name, 1)] == ["failed"]


def test_a_refused_row_is_not_named_and_nothing_of_it_is_written(feed: LocalFeed) -> None:
    feed.send(begun(columns="id INT PRIMARY KEY, v INT, s VARCHAR(9), UNIQUE KEY (v)"))
    feed.once()
    before = feed.checkpoint()
    rows = feed.cells.tables(["d"])
    feed.send([insert("d.t", 4, 1, id=7, v=1, s="x"), insert("d.t", 4, 1, id=8, v=1, s="y"), *watermarks(5)])
    assert "Duplicate" in feed.failing(TargetError).fact
    assert (feed.checkpoint(), feed.cells.tables(["d"])) == (before, rows)


def test_of_two_leaders_the_former_writes_nothing(feed: LocalFeed) -> None:
    first = Progress.first(CheckpointTs(0), "", "ledger")
    with closing(target_of(feed.config)) as former, closing(target_of(feed.config)) as later:
        former.connect()
        lease = Lease(feed.name, former.claim(feed.name, first).epoch)
        later.connect()
        later.claim(feed.name, first)
        with Spool() as nothing, pytest.raises(LeadershipLostError):
            former.apply(nothing, first, lease, lambda _: None)
