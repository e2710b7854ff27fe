"""The progress tables of an earlier version: what only reads, reads them as they are; a run brings them up to date."""

from dataclasses import replace

import psycopg
import pytest

from consumer.operate import ddl_log
from tests.service.lab import Feed
from tests.service.messages import at, begun, insert, watermarks

pytestmark = [pytest.mark.service, pytest.mark.spark]
_BACK = (
    "ALTER TABLE ticdc_reconciler.ddl DROP COLUMN duration_ms, DROP COLUMN reason",
    "DROP TABLE ticdc_reconciler.quarantine",
    "DROP TABLE ticdc_reconciler.instance",
)


def _make_older(feed: Feed) -> None:
    """Take away what was added to the progress tables since their first version."""
    if feed.uri.startswith("postgresql"):
        with psycopg.connect(feed.uri, autocommit=True) as connection:
            for statement in (*_BACK, "DROP TABLE ticdc_reconciler.definition"):
                connection.execute(statement.encode())
    else:
        for statement in _BACK:
            feed.cells.query(statement)  # type: ignore[union-attr]


@pytest.mark.parametrize("kind", ["mariadb", "postgres"])
def test_an_earlier_version_s_progress_is_read_and_then_brought_up_to_date(
    request: pytest.FixtureRequest, kind: str
) -> None:
    feed: Feed = request.getfixturevalue(f"{kind}_feed")
    if kind == "postgres":
        feed = replace(feed, uri=request.getfixturevalue("own_database"), settings={})
    feed.send(begun())
    feed.once()
    _make_older(feed)

    told = feed.status()
    assert told["checkpoint_ts"] >= at(1)
    assert [line["state"] for line in told["ddl_history"]] == ["done"] * len(told["ddl_history"])
    lines = ddl_log(feed.config, 10)
    assert [(line.duration_ms, line.reason) for line in lines] == [(None, "")] * len(lines)
    assert lines
    for command in (["status"], ["ddl", "list"]):
        done = feed.command(*command, str(feed.file()))
        assert done.returncode == 0, (command, done.stdout, done.stderr)
    assert ddl_log(feed.config, 10) == lines  # looking changed nothing

    feed.send([insert("d.t", 8, id=8, v=8, s="x"), *watermarks(9)])
    assert feed.once().checkpoint_ts == at(9)
    assert feed.status()["checkpoint_ts"] == at(9)
