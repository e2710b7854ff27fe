"""`verify --replay` of a log that is another one by now: it is no truth, whatever it holds."""

from collections.abc import Callable, Mapping
from contextlib import closing
from pathlib import Path

import pytest

from consumer.config.model import Config
from consumer.source.offer import Probe
from consumer.verify.replay import SourceUpTo, replay
from consumer.wiring import target_of
from ordering.errors import InputError
from ordering.events import Partition
from ordering.progress import Progress
from ordering.timestamps import ResolvedTs
from tests.service.cells import SqliteCells
from tests.service.local import LocalFeed
from tests.service.messages import at, begun, insert, watermarks
from tests.simulation.jobs import LocalJobs


@pytest.fixture
def feed(tmp_path: Path) -> LocalFeed:
    target = tmp_path / "target"
    made = LocalFeed.into(f"sqlite:///{target}", SqliteCells(target), tmp_path)
    made.send([*begun(), *[insert("d.t", 5, 0, id=n, v=n, s="x") for n in range(10, 14)], *watermarks(6)])
    assert made.once().checkpoint_ts == at(6)
    return made


def replayed(
    feed: LocalFeed, before: Callable[[], object] = lambda: None, kind: type[SourceUpTo] = SourceUpTo
) -> list[dict[str, object]]:
    """The rows of a replay, and what happens once it has begun."""
    log = feed.log_of_messages
    with closing(target_of(feed.config)) as target:
        target.connect()
        known = target.stored(feed.name).progress  # type: ignore[union-attr]
    place = feed.directory / "replay"
    target_section = feed.config.target.model_copy(update={"uri": f"sqlite:///{place}"})
    config: Config = feed.config.model_copy(update={"target": target_section})
    source = kind(config, log, marks=log.get())  # type: ignore[arg-type]
    source.upto = ResolvedTs(known.checkpoint_ts)
    before()
    replay(config, known, source, LocalJobs(log))
    return list(SqliteCells(place).tables(["d"])["d.t"][1])


def regrown(feed: LocalFeed, lost: int) -> None:
    """As many rows take the place of those that an election lost."""
    feed.log_of_messages.elect(Partition(feed.topic, 0), lost=lost)
    feed.send([*[insert("d.t", 5, 0, id=90 + n, v=n, s="x") for n in range(lost)], *watermarks(6)])


def test_a_log_that_is_the_same(feed: LocalFeed) -> None:
    assert sorted(int(str(row["id"])) for row in replayed(feed)) == [1, *range(10, 14)]


def test_a_log_that_grows_faster_than_it_is_read(feed: LocalFeed) -> None:
    class Growing(SourceUpTo):
        probes = 0

        def probe(self, progress: Progress, caps: Mapping[Partition, int] | None = None) -> Probe:
            self.probes += 1
            assert self.probes < 20, "the replay follows the log's end"
            feed.send(
                [insert("d.t", 7 + self.probes, 0, id=100 + self.probes, v=1, s="x"), *watermarks(8 + self.probes)]
            )
            return super().probe(progress, caps)

    assert sorted(int(str(row["id"])) for row in replayed(feed, kind=Growing)) == [1, *range(10, 14)]


@pytest.mark.parametrize("lost", [1, 3])
def test_a_log_that_lost_its_end_is_no_truth(feed: LocalFeed, lost: int) -> None:
    with pytest.raises(InputError, match="lost its end"):
        replayed(feed, lambda: regrown(feed, lost))


def test_leaders_that_lost_nothing_are_no_matter(feed: LocalFeed) -> None:
    assert len(replayed(feed, lambda: regrown(feed, 0))) == 5


def test_a_topic_that_was_made_anew_is_no_truth(feed: LocalFeed) -> None:
    log = feed.log_of_messages

    def made_anew() -> None:
        before = {place: list(held) for place, held in log.held.items()}
        log.make_anew(feed.topic)
        log.held.update(before)

    with pytest.raises(InputError, match="created again"):
        replayed(feed, made_anew)
