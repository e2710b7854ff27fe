"""The view `applied` and `wait_for`: right in every target, at each commit, through crashes and deletions."""

import json
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

import consumer
from consumer.library import wait as waiting
from consumer.library.wait import TargetLooks, Waited
from consumer.operate.progress import reset_progress
from consumer.wiring import target_of
from ordering.errors import ConfigError, ReconcilerError, TargetUnreachableError
from sinks.steps import Step
from tests.consumer.cli.test_manners import reconciler
from tests.embedded import MariaDbServer, PostgresServer, TidbServer
from tests.service.cells import MariaDbCells, SqliteCells, emptied
from tests.service.local import Killed, LocalFeed
from tests.service.messages import at, begun, insert, watermarks
from tests.service.postgres_cells import PostgresCells

pytestmark = pytest.mark.service
SERVERS = {"mariadb": MariaDbCells, "tidb": MariaDbCells, "postgres": PostgresCells}


@pytest.fixture(params=["sqlite", "mariadb", "postgres", "tidb"])
def feed(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[LocalFeed]:
    """A changefeed into each kind of target."""
    if request.param == "sqlite":
        place = tmp_path / "target"
        yield LocalFeed(None, "nowhere:1", "topic", f"sqlite:///{place}", SqliteCells(place), tmp_path)  # type: ignore[arg-type]
        return
    server: MariaDbServer | PostgresServer | TidbServer = request.getfixturevalue(f"{request.param}_server")
    with emptied(SERVERS[request.param](server.uri)) as cells:
        yield LocalFeed.into(server.uri, cells, tmp_path)


def shown(feed: LocalFeed) -> list[tuple[int, str]]:
    """What the view shows of the changefeed: checkpoint, and its moment to the millisecond."""
    with closing(target_of(feed.config)) as target:
        place = "applied" if feed.uri.startswith("sqlite") else "ticdc_reconciler.applied"
        rows = target.session.book.query(f"SELECT checkpoint_ts, time FROM {place} WHERE changefeed = ?", (feed.name,))
    return [(ts, str(moment)[: len("2026-01-01 00:00:00.003")]) for ts, moment in rows]


def test_the_view_shows_each_commit(feed: LocalFeed) -> None:
    feed.send([*begun(), *watermarks(3)])
    feed.apply()
    assert shown(feed) == [(at(3), "2026-01-01 00:00:00.003")]
    feed.send([insert("d.t", 4, id=4, v=4, s="x"), *watermarks(1_500)])
    feed.apply()
    assert shown(feed) == [(at(1_500), "2026-01-01 00:00:01.500")]


@pytest.mark.parametrize("step", [Step.ROWS_WRITTEN, Step.PROGRESS_WRITTEN, Step.COMMITTED])
def test_a_crash_shows_no_more_than_is_there(feed: LocalFeed, step: Step) -> None:
    feed.send([*begun(), *watermarks(3)])
    feed.apply()
    feed.send([insert("d.t", 4, id=4, v=4, s="x"), *watermarks(5)])

    def kill(now: Step) -> None:
        if now is step:
            raise Killed

    assert not feed.lives(kill)
    there = step is Step.COMMITTED
    assert consumer.wait_for(feed.config, at(4), 0) == Waited(feed.name, at(4), at(5) if there else at(3))
    assert (4 in {row["id"] for row in feed.cells.tables(["d"])["d.t"][1]}) == there
    feed.apply()
    assert consumer.wait_for(feed.config, at(4), 0).covered


def test_it_waits_until_another_process_has_applied_it(feed: LocalFeed) -> None:
    """From before the target knows the changefeed."""
    found: list[Waited] = []
    waits = threading.Thread(target=lambda: found.append(consumer.wait_for(feed.config, at(3), 30)))
    waits.start()
    feed.send([*begun(), *watermarks(3)])
    feed.apply()
    waits.join(30)
    assert found == [Waited(feed.name, at(3), at(3))]
    late = consumer.wait_for(feed.config, at(4), 0.3)
    assert (late.covered, late.checkpoint_ts) == (False, at(3))


def test_progress_that_is_reset_meanwhile_is_an_error(feed: LocalFeed) -> None:
    feed.send([*begun(), *watermarks(3)])
    feed.apply()
    found: list[BaseException] = []
    seen = threading.Event()

    class Seeing(TargetLooks):
        def _run(self) -> None:
            told = self._told
            self._told = lambda look: (told(look), seen.set())[0]
            super()._run()

    def wait() -> None:
        try:
            consumer.wait_for(feed.config, at(9), 30)
        except ReconcilerError as error:
            found.append(error)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(waiting, "TargetLooks", Seeing)
        waits = threading.Thread(target=wait)
        waits.start()
        assert seen.wait(30)
        reset_progress(feed.config)
        waits.join(30)
    assert [type(one) for one in found] == [ConfigError]
    assert "was reset" in str(found[0])


def test_the_command(feed: LocalFeed) -> None:
    feed.send([*begun(), *watermarks(3)])
    feed.apply()
    path = feed.file()
    done = reconciler("wait", path, at(3))
    assert (done.exit_code, done.stdout, done.stderr) == (0, f"applied: the checkpoint is {at(3)}\n", "")
    late = reconciler("wait", path, at(1_003), "--timeout", "0.1", "--json")
    assert (late.exit_code, json.loads(late.stdout)["covered"], "1.000 s before" in late.stderr) == (8, False, True)
    assert reconciler("wait", path, 1767225600000).exit_code == 2, "milliseconds are no TSO"


def test_a_server_that_is_away_or_silent_keeps_nobody_longer(tmp_path: Path) -> None:
    feed = LocalFeed(None, "nowhere:1", "away", "mysql://u:p@127.0.0.1:9", None, tmp_path)  # type: ignore[arg-type]
    with pytest.raises(TargetUnreachableError):
        consumer.wait_for(feed.config, at(3), 1)
    with socket.create_server(("127.0.0.1", 0)) as silent, pytest.MonkeyPatch.context() as patch:
        patch.setattr(waiting, "_FIRST_ANSWER_S", 0.5)
        feed.uri = f"mysql://u:p@127.0.0.1:{silent.getsockname()[1]}"
        begun_at = time.monotonic()
        with pytest.raises(ReconcilerError, match="not answered"):
            consumer.wait_for(feed.config, at(3), 1)
        assert time.monotonic() - begun_at < 9  # ten seconds it would be without the patch
