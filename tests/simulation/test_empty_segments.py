"""Segments of a window that hold only DDLs: they ask Spark for no rows."""

from collections.abc import Iterator
from typing import Any

import pytest

from consumer.tasks.order import OrderTask
from tests.simulation.jobs import LocalJob
from tests.simulation.script import CREATE, Script
from tests.simulation.world import config_of


@pytest.mark.parametrize("consistency", ["snapshot", "transaction", "row"])
def test_no_rows_are_asked_for_where_none_were_read(consistency: str, monkeypatch: pytest.MonkeyPatch) -> None:
    script = Script(config_of(consistency), partitions=2)
    script.jobs.buckets, script.jobs.tasks = 2, 2
    script.ddl(1, CREATE)
    script.mark(2)
    script.run()
    for number in range(3):
        script.ddl(10 + number, "TRUNCATE TABLE `t`")
    for key in range(8):
        script.row(20 + key, key, p=key % 2)
    script.mark(30)
    made, asked = LocalJob.outcomes, []

    def counted(job: LocalJob, order: OrderTask) -> Iterator[Any]:
        asked.append(job.first)
        yield from made(job, order)

    monkeypatch.setattr(LocalJob, "outcomes", counted)
    script.restarted()
    script.run()
    assert script.rows() == dict.fromkeys(map(str, range(8)), "x")
    assert len(asked) <= 1
