"""The progress of another version: an earlier one's is read and brought up to date, a later one's is refused."""

import sqlite3
from contextlib import closing
from dataclasses import replace

import orjson
import psycopg
import pytest
from click.testing import CliRunner

from consumer.cli.main import main
from consumer.operate.decisions import ddl_log
from ordering.errors import ConfigError
from ordering.progress import FORMAT
from tests.service.lab import Feed
from tests.service.messages import at, begun, insert, watermarks

pytestmark = [pytest.mark.service, pytest.mark.kafka]
EARLIER = (
    "ALTER TABLE ticdc_reconciler.ddl DROP COLUMN duration_ms, DROP COLUMN reason",
    "DROP TABLE ticdc_reconciler.quarantine",
    "DROP TABLE ticdc_reconciler.instance",
    "DROP TABLE ticdc_reconciler.window_start",
    "DROP TABLE ticdc_reconciler.stop",
)
"""Takes away what was added to our own tables since their first version."""


def _make_older(feed: Feed) -> None:
    """Take away what was added to the progress tables since their first version."""
    if feed.uri.startswith("postgresql"):
        with psycopg.connect(feed.uri, autocommit=True) as connection:
            for statement in (*EARLIER, "DROP TABLE ticdc_reconciler.definition"):
                connection.execute(statement.encode())
    else:
        for statement in EARLIER:
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


def test_a_later_version_s_progress_is_refused_and_left_alone(sqlite_feed: Feed) -> None:
    feed = sqlite_feed
    feed.send(begun())
    feed.once()
    state = orjson.loads(feed.cells.progress(feed.name)["state"])
    assert state["format"] == 1 < FORMAT
    file = feed.cells.directory / "ticdc_reconciler.sqlite"  # type: ignore[union-attr]
    with closing(sqlite3.connect(file)) as connection, connection:
        later = orjson.dumps({**state, "format": FORMAT + 1}).decode()
        connection.execute("UPDATE checkpoint SET state = ?", (later,))
    before = feed.cells.progress(feed.name)

    feed.send([insert("d.t", 8, id=8, v=8, s="x"), *watermarks(9)])
    assert f"of format {FORMAT + 1}, which a later version wrote" in feed.failing(ConfigError).fact
    for words in (["status"], ["progress", "show"], ["progress", "export"]):
        done = CliRunner().invoke(main, [*words, str(feed.file())])
        assert (done.exit_code, "later version" in done.stderr) == (2, True), words
    assert feed.cells.progress(feed.name) == before
