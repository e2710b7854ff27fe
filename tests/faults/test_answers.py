"""What is told of applied windows stays right through kills: a line for each, and nobody who waits is told early.

Drivers that die at any step, in one process; `tests.faults.answers_run` kills real ones, and takes over from them.
"""

import random
from collections.abc import Iterator
from contextlib import closing, suppress
from pathlib import Path

import pytest

from consumer.library.wait import wait_for
from consumer.operate.audit import audit_of
from consumer.wiring import target_of
from ordering.errors import ReconcilerError
from sinks.steps import Step
from tests.cells import seed
from tests.faults.answers import DATABASE, Told, made, reader_of, wrong_lines
from tests.faults.answers_run import Campaign
from tests.faults.random_kills import Place
from tests.service.cells import MariaDbCells, SqliteCells, emptied
from tests.service.local import Killed, LocalFeed
from tests.service.messages import at, insert, watermarks
from tests.service.postgres_cells import PostgresCells

pytestmark = pytest.mark.service
TARGETS = ["sqlite", "mariadb", "postgres", "tidb"]
CONSISTENCIES = ["snapshot", "transaction", "row"]
LONGEST_S = 60.0


@pytest.fixture
def feed(request: pytest.FixtureRequest, target: str, tmp_path: Path) -> Iterator[LocalFeed]:
    if target == "sqlite":
        place = tmp_path / "target"
        yield LocalFeed.into(f"sqlite:///{place}", SqliteCells(place), tmp_path)
        return
    server = request.getfixturevalue(f"{target}_server")
    with emptied(PostgresCells(server.uri) if target == "postgres" else MariaDbCells(server.uri)) as cells:
        yield LocalFeed.into(server.uri, cells, tmp_path)


class Killing:
    """Commits that come, and drivers that die at some step, or end by themselves."""

    def __init__(self, feed: LocalFeed, consistency: str, chance: random.Random) -> None:
        self.feed, self.number, self._chance = feed, 0, chance
        self._may_lag = consistency == "transaction"
        self.kills = self.lines = self.unnamed = 0
        feed.with_(target={"consistency": consistency, "audit": True})
        if consistency == "row":
            feed.by_tasks()
        feed.send(made())

    def part(self, upto: int = 0) -> None:
        """Some commits, of which some come again; who applies them dies, and the next one too, perhaps."""
        first = max(1, self.number + 1 - (5 if self._chance.random() < 0.3 else 0))
        last = max(upto, self.number + self._chance.randrange(1, 9))
        rows = [insert(f"{DATABASE}.t", n, n % 3, id=n, v=n, s="x") for n in range(first, last + 1)]
        before, self.number = self.number, last
        self.feed.send([*rows, *watermarks(last)])
        low = last
        while not self._lives():
            self.kills += 1
            low = before if self._may_lag else last  # the line that a crash took comes with the next commit
            self.check(at(low))
        self.check(at(low))

    def _lives(self) -> bool:
        left = self._chance.randrange(1, 30)

        def kill(_: Step) -> None:
            nonlocal left
            left -= 1
            if not left:
                raise Killed

        return self.feed.lives(kill)

    def check(self, most: int) -> None:
        """Just now, when nobody else writes: what is applied up to `most` has its lines."""
        with closing(target_of(self.feed.config)) as looked:
            upto = looked.applied(self.feed.name) or 0
        lines = audit_of(self.feed.config, 100_000)[::-1]
        wrong = wrong_lines(lines, [at(n) for n in range(1, self.number + 1)], min(most, upto), upto)
        assert wrong == [], seed()
        self.lines, self.unnamed = len(lines), sum(line["rows_by_table"] is None for line in lines)


def killed(feed: LocalFeed, consistency: str, kills: int) -> Killing:
    killing = Killing(feed, consistency, random.Random(seed()))

    def asked(tso: int) -> bool:
        with suppress(ReconcilerError):  # the target knows nothing of it yet
            return wait_for(feed.config, tso, 0.5).covered
        return False

    with Told(feed.uri, feed.name, lambda: killing.number, {"library": [asked] * 4}) as told:
        while killing.kills < kills or not told.answers["library"]:
            killing.part()
        killing.part(upto=told.stop_asking() + 1)
        told.finish(LONGEST_S)
    assert told.early == [], seed()
    assert told.answers["library"] > 0
    assert killing.lines > 1
    assert reader_of(feed.uri).rows(killing.number) == killing.number
    return killing


@pytest.mark.by_turns
@pytest.mark.cells("target", "consistency")
@pytest.mark.parametrize("consistency", CONSISTENCIES)
@pytest.mark.parametrize("target", TARGETS)
def test_lines_and_answers_through_kills(feed: LocalFeed, consistency: str) -> None:
    killed(feed, consistency, 8)


@pytest.mark.soak
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("consistency", CONSISTENCIES)
@pytest.mark.parametrize("target", TARGETS)
def test_lines_and_answers_through_hundreds_of_kills(feed: LocalFeed, consistency: str) -> None:
    killing = killed(feed, consistency, 200)
    assert bool(killing.unnamed) == (consistency == "transaction"), "crashes have taken counts of a second"


@pytest.mark.soak
@pytest.mark.spark
@pytest.mark.timeout(3600)
@pytest.mark.parametrize(
    ("target", "consistency"), [("mariadb", "transaction"), ("postgres", "row"), ("sqlite", "snapshot")]
)
def test_processes_that_are_killed_and_taken_over(
    target: str, consistency: str, request: pytest.FixtureRequest, tmp_path: Path
) -> None:
    broker = request.getfixturevalue("kafka_broker")
    uri = f"sqlite:///{tmp_path}" if target == "sqlite" else request.getfixturevalue(f"{target}_server").uri
    report = Campaign(Place(tmp_path, broker.bootstrap, uri), consistency, 5).run(5)
    assert report.right, report
