"""Followers that lag, and leaders that are lost with what only they had: real brokers, both clients (R2, R8, R12)."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from uuid import uuid4

import pytest

from consumer.demo.fake_ticdc.changefeed import Message
from consumer.demo.fake_ticdc.producer import produce
from consumer.kafka import reader
from consumer.kafka.admin import KafkaAdmin
from consumer.kafka.properties import reader_settings
from consumer.kafka.reader import KafkaReaders, RangeReader
from consumer.native import chosen
from consumer.pipeline.round import Round
from consumer.pipeline.session import Session
from consumer.source.probe import Source
from consumer.wiring import readers_of, target_of
from ordering.errors import InputError, ReconcilerError, SourceUnreachableError
from ordering.events import Partition
from sinks.steps import Observer, Step
from tests.service.cells import SqliteCells
from tests.service.kafka.replicas import FOLLOWER, LENIENT, STRICT, Cluster, cluster_at, rack
from tests.service.kafka_here import ReadersHere
from tests.service.lab import PARTITIONS, Feed, eventually
from tests.service.messages import at, begun, insert, watermark, watermarks
from tests.simulation.jobs import LocalJobs

pytestmark = pytest.mark.service
UNSAFE = {"unclean_leader_election_enable": "true"}
SILENCE_S = 3.0
"""Long enough for what the follower gives out to come, short enough to wait for what never comes."""


@pytest.fixture(scope="module")
def running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    with cluster_at(tmp_path_factory.mktemp("replicas")) as made:
        yield made


@pytest.fixture
def cluster(running: Cluster) -> Iterator[Cluster]:
    yield running
    running.restored()
    KafkaReaders({}).forget()


@pytest.fixture(params=[False, True], ids=["python", "core"])
def core(request: pytest.FixtureRequest) -> bool:
    return bool(request.param)


@dataclass
class ReplicatedFeed(Feed):
    """A changefeed over real Kafka whose tasks run in this process, without the runner's retries."""

    def once(self, observe: Observer = lambda _: None) -> int:  # type: ignore[override]
        """Rounds until nothing is left to do; the checkpoint. Raises ReconcilerError."""
        source, target = Source.of(self.config), target_of(self.config)
        with closing(source), closing(target):
            target.connect()
            jobs = LocalJobs(ReadersHere(readers_of(self.config)), buckets=2, tasks=2)  # type: ignore[arg-type]
            session = Session(self.config, source, target, jobs, observe)
            with closing(session.ledger):
                while Round(session).run(source.ends(), to_end=True):
                    pass
                return int(session.progress.checkpoint_ts)

    def failing(  # type: ignore[override]
        self, kind: type[ReconcilerError] = InputError, observe: Observer = lambda _: None
    ) -> ReconcilerError:
        with pytest.raises(kind) as caught:
            self.once(observe)
        return caught.value

    def send_to_the_leader(self, messages: list[Message]) -> None:
        """Messages that nobody but the leader need have."""
        alone = {"enable.idempotence": False, "acks": 1, "linger.ms": 0}
        produce(self.here(messages), self.bootstrap, partitions=PARTITIONS, config=alone)

    def ids(self) -> list[int]:
        return sorted(int(row["id"]) for row in self.cells.tables(["d"])["d.t"][1])


@pytest.fixture
def feed(cluster: Cluster, tmp_path: Path, core: bool) -> ReplicatedFeed:
    target = tmp_path / "target"
    made = ReplicatedFeed(
        None,  # type: ignore[arg-type]
        cluster.bootstrap,
        f"test-{uuid4().hex[:12]}",
        f"sqlite:///{target}",
        SqliteCells(target),
        tmp_path,
    )
    return made.with_(spark={"native": core})  # type: ignore[return-value]


def during(step: Step, act: Callable[[], object]) -> Observer:
    """Do something once, at a step."""
    left = [act]

    def observe(now: Step) -> None:
        if now is step and left:
            left.pop()()

    return observe


def rows(ts: int, *ids: int) -> list[Message]:
    """In all partitions."""
    return [insert("d.t", ts, n % PARTITIONS, id=n, v=n, s="x") for n in ids]


def ends(cluster: Cluster, topic: str, partitions: int = 1) -> list[int]:
    """As the leaders give them out."""
    places = [Partition(topic, number) for number in range(partitions)]
    with closing(KafkaAdmin(cluster.bootstrap, {})) as control:
        found = control.ends(places)
    return [found[place] for place in places]


def at_once(messages: Iterable[Message], cluster: Cluster) -> None:
    """In one batch, which nobody but the leader need have."""
    settings = {"enable.idempotence": False, "acks": 1, "linger.ms": 100, "compression.type": "none"}
    produce(messages, cluster.bootstrap, partitions=1, config=settings)


def known_to_the_leader(cluster: Cluster, topic: str, messages: Sequence[Message], end: int) -> None:
    """Send messages that the follower gets, and does not hear that they may be given out."""
    cluster.ways[STRICT].hold_behind(sum(len(message.value) for message in messages))
    at_once(messages, cluster)
    eventually("the leader gives them out", lambda: ends(cluster, topic) == [end])
    cluster.until_in_sync(topic, STRICT, FOLLOWER)


@pytest.fixture
def lagging(cluster: Cluster) -> Partition:
    """A partition with 20 messages, of which the follower gives out 10."""
    place = Partition(f"test-{uuid4().hex[:12]}", 0)
    some = [Message(place.topic, 0, bytes(1000)) for _ in range(10)]
    cluster.make_topic(place.topic, STRICT, FOLLOWER)
    at_once(some, cluster)
    eventually("both have them", lambda: ends(cluster, place.topic) == [10])
    with closing(standing_near(cluster, core=False)) as reading:
        read(reading, place, 0, 10)
    known_to_the_leader(cluster, place.topic, some, 20)
    return place


def standing_near(cluster: Cluster, *, core: bool) -> RangeReader:
    """A reader beside the follower."""
    return RangeReader(reader_settings(cluster.bootstrap, {"client.rack": rack(FOLLOWER)}), core=chosen(core).core)


@pytest.fixture
def near(cluster: Cluster, core: bool) -> Iterator[RangeReader]:
    made = standing_near(cluster, core=core)
    yield made
    made.close()


def read(reading: RangeReader, place: Partition, start: int, stop: int) -> list[int]:
    return [message.offset() for _, run in reading.read([(place, start, stop)]) for message in run]


def test_a_follower_that_lags_is_waited_for(cluster: Cluster, lagging: Partition, near: RangeReader) -> None:
    with ThreadPoolExecutor(1) as pool:
        reading = pool.submit(read, near, lagging, 0, 20)
        eventually("the follower has told its end", lambda: near._held.get(lagging) == 10)
        assert not reading.done()
        cluster.ways[STRICT].release()
        assert reading.result(60) == list(range(20))
    assert near.reached(lagging)[:2] == (20, 20)


@pytest.mark.by_turns
def test_a_follower_that_stays_behind_is_an_error(
    lagging: Partition, near: RangeReader, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reader, "SILENCE_S", SILENCE_S)
    for _ in range(2):  # the second time with a consumer that was used before
        with pytest.raises(SourceUnreachableError, match="up to offset 10 only, 20 was promised") as caught:
            read(near, lagging, 0, 20)
        assert (caught.value.where, caught.value.exit_code) == (f"{lagging} offset=10", 3)


@pytest.mark.by_turns
def test_a_run_beside_a_follower_that_lags(
    feed: ReplicatedFeed, cluster: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The leader's watermarks are known, the rows below them are not to be had: nothing is applied before they are."""
    feed.with_(source={"kafka": {"client.rack": rack(FOLLOWER)}})
    cluster.make_topic(feed.topic, STRICT, FOLLOWER)
    at_once(feed.here([*begun()[:-PARTITIONS], watermark(3, 0)]), cluster)
    eventually("the first row is applied", lambda: feed.once() == at(3))
    rows = [insert("d.t", 5, 0, id=n, v=n, s="x") for n in range(10, 40)]
    known_to_the_leader(cluster, feed.topic, feed.here([*rows, watermark(6, 0)]), 35)
    monkeypatch.setattr(reader, "SILENCE_S", SILENCE_S)
    assert "up to offset 4 only, 35 was promised" in feed.failing(SourceUnreachableError).fact
    assert (feed.checkpoint(), feed.ids()) == (at(3), [1])
    monkeypatch.undo()
    cluster.ways[STRICT].release()
    assert feed.once() == at(6)
    assert feed.ids() == [1, *range(10, 40)]


@pytest.mark.by_turns
def test_what_the_leader_alone_has_is_not_there_yet(feed: ReplicatedFeed, cluster: Cluster) -> None:
    """The follower counts as in sync, so the high watermark stands: neither rows nor watermarks above it are taken."""
    cluster.make_topic(feed.topic, LENIENT, FOLLOWER, partitions=PARTITIONS)
    feed.send(begun())
    assert feed.once() == at(3)
    before = ends(cluster, feed.topic, PARTITIONS)
    cluster.ways[LENIENT].hold()
    feed.send_to_the_leader([*rows(5, *range(10, 40)), *watermarks(6)])
    assert ends(cluster, feed.topic, PARTITIONS) == before
    assert (feed.once(), feed.ids()) == (at(3), [1])
    cluster.ways[LENIENT].release()
    eventually("the follower has them", lambda: ends(cluster, feed.topic, PARTITIONS) != before)
    eventually("all of them are applied", lambda: feed.once() == at(6))
    assert feed.ids() == [1, *range(10, 40)]


@dataclass
class Lost:
    """A feed whose leader is lost, with the rows 10 to 39 and a watermark above them."""

    feed: ReplicatedFeed
    cluster: Cluster

    @classmethod
    def of(cls, feed: ReplicatedFeed, cluster: Cluster) -> "Lost":
        cluster.make_topic(feed.topic, STRICT, FOLLOWER, partitions=PARTITIONS, **UNSAFE)
        feed.send(begun())
        assert feed.once() == at(3)
        cluster.ways[STRICT].hold()
        feed.send_to_the_leader([*rows(5, *range(10, 40)), *watermarks(6)])
        cluster.until_in_sync(feed.topic, STRICT)
        return cls(feed, cluster)

    def elect(self, grown: int) -> None:
        """An unclean election; the log may then grow beyond where it ended."""
        self.cluster.lose_the_leader(self.feed.topic, STRICT, FOLLOWER)
        if grown:
            self.feed.send([*rows(7, *range(100, 100 + grown)), *watermarks(9)])

    def refused(self) -> None:
        """Whoever leads, nothing more is applied, and why is said."""
        assert "lost its end" in self.feed.failing().fact
        self.cluster.restored()
        self.cluster.until_in_sync(self.feed.topic, STRICT, FOLLOWER)
        assert "lost its end" in self.feed.failing().fact


@pytest.mark.by_turns(9)
@pytest.mark.parametrize(("core", "grown"), [(False, 60), (True, 60), (True, 0)], indirect=["core"])
def test_an_unclean_election_in_mid_window(
    feed: ReplicatedFeed, cluster: Cluster, grown: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What was offered is gone when it is read, and other rows may lie at its offsets: nothing of them is applied.

    Once that was said, a run that is started again takes what the log holds now; it knows nothing of what was lost.
    """
    lost = Lost.of(feed, cluster)
    monkeypatch.setattr(reader, "SILENCE_S", 2.0)
    error = feed.failing(ReconcilerError, during(Step.PLANNED, lambda: lost.elect(grown)))
    assert error.exit_code == 3
    assert f"topic={feed.topic} partition=" in str(error)
    assert (feed.checkpoint(), feed.ids()) == (at(3), [1])
    if grown:
        assert feed.once() == at(9)
        assert feed.ids() == [1, *range(100, 100 + grown)]


@pytest.mark.by_turns
@pytest.mark.parametrize("core", [True], indirect=True)
def test_an_unclean_election_after_a_window(feed: ReplicatedFeed, cluster: Cluster) -> None:
    """What was applied is gone from the log: no row of another log comes on top, before and after the old leader."""
    lost = Lost.of(feed, cluster)
    assert feed.once() == at(6)
    lost.elect(60)
    lost.refused()
    assert (feed.checkpoint(), feed.ids()) == (at(6), [1, *range(10, 40)])
