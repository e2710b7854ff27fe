"""What topics carry once a DDL was executed."""

from dataclasses import replace

import pytest

from consumer.pipeline.advance import carried_after
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
