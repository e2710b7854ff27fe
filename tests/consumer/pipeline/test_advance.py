"""What topics carry once a DDL was executed, and which reports of a partition count."""

from dataclasses import replace

import pytest

from consumer.pipeline.advance import carried_after, kept_reports
from consumer.tasks.report import Report
from ordering.events import Partition, TableName
from ordering.progress import Progress, TopicProgress
from ordering.timestamps import CheckpointTs, CommitTs
from ordering.window import Range
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
