"""What topics carry once a DDL was executed, and which reports of a partition count."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from consumer.pipeline.advance import carried_after, kept_reports, rows_after
from consumer.tasks.report import RawDdl, Report
from ordering.events import DdlEvent, Partition, Position, TableName
from ordering.progress import Progress, TopicProgress
from ordering.timestamps import CheckpointTs, CommitTs, ResolvedTs
from ordering.window import Range
from sinks.ddl.parse import statement
from tests.ordering.ddls import ddl

TABLE = TableName("d", "t")


@pytest.mark.parametrize(("row_at", "carried"), [(5, False), (6, False), (7, True)])
def test_a_table_that_comes_back_by_another_topic_is_carried_by_its_rows(row_at: int, carried: bool) -> None:
    """RENAME away at 6 through this topic, and back through another one, which this topic is not told of."""
    topics = {"t": TopicProgress("id", frozenset([TABLE]), complete=True)}
    progress = replace(Progress.first(CheckpointTs(0), "", ""), topics=topics)
    report = Report(Range(Partition("t", 0), 0, 9, 0), 9, above={TABLE: CommitTs(row_at)})
    found = carried_after(ddl(6, removes=(TABLE,), adds=(TableName("e", "x"),)), progress, [report])["t"]
    assert (TABLE in found.tables, found.ended) == (carried, not carried)


def test_behind_a_watermark_that_ended_a_part_of_a_partition_nothing_counts() -> None:
    """Two tasks read a partition, and the first one's watermark promises less than what the second one met."""
    first, second = (Report(Range(Partition("t", 0), begin, begin + 9, begin), begin + 9) for begin in (0, 9))
    other = Report(Range(Partition("t", 1), 0, 9, 0), 9)
    ended = replace(first, ended_early=True, stop=4, counted_to=4)
    assert kept_reports([second, other, ended]) == [ended, other]
    assert [report.range for report in kept_reports([second, other, first])] == [first.range, second.range, other.range]


_TIMES = st.integers(1, 6).map(CommitTs)
_NAMES = st.builds(TableName, st.just("d"), st.sampled_from("tTuU"))
_DDLS = st.builds(lambda at, adds: ddl(at, adds=adds), _TIMES, st.lists(_NAMES, max_size=2).map(tuple))
_ABOVE = st.dictionaries(_NAMES, _TIMES)


@given(st.lists(_DDLS, min_size=1, max_size=4), st.lists(_ABOVE, max_size=3), _TIMES)
def test_rows_after_a_ddl_are_those_of_tables_that_no_other_ddl_may_have_created(
    ddls: list[DdlEvent], above: list[dict[TableName, CommitTs]], seen: CommitTs
) -> None:
    own = ddls[0]
    reports = [Report(Range(Partition("t", 0), 0, 9, 0), 9, above=one) for one in above]
    expected = set()
    for table in {name for one in above for name in one}:
        highest = max(one[table] for one in above if table in one)
        others = [d for d in ddls if own.commit_ts <= d.commit_ts <= highest and d.identity != own.identity]
        created = {name.folded for d in others for name in (*d.adds, TableName(d.database, d.table))}
        if own.commit_ts < highest <= seen and table.folded not in created:
            expected.add(table)
    assert rows_after(own, ddls, reports, ResolvedTs(seen)) == expected


def test_of_ddls_that_wait_only_an_alter_database_is_read_for_its_identity(monkeypatch: pytest.MonkeyPatch) -> None:
    """A topic may begin with thousands of CREATE TABLEs, and each that is settled asks the others' identities."""
    read: list[str] = []
    monkeypatch.setattr(statement, "naming_database", lambda sql, _database: read.append(sql) or sql)
    for sql in ("CREATE TABLE t (id INT PRIMARY KEY)", "alter Database DEFAULT CHARSET utf8mb4"):
        assert sql in RawDdl(Position("t", 0, 1), 7, "CREATE", "d", "t", sql).identity
    assert read == ["alter Database DEFAULT CHARSET utf8mb4"]
