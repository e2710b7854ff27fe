"""Hostile changefeeds beside a good one, in one process: the good one keeps its time.

What else the machine does slows everything on it. So the same changefeed runs at the same time in a process of its own,
and each row goes to both at once: what is compared is how long both took, side by side. Only what the hostile ones hold
within their process (the interpreter's lock, threads, places in Spark) makes a difference between the two.
"""

import statistics
import tempfile
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from http import HTTPStatus
from pathlib import Path
from threading import Event, Thread
from time import monotonic

import cramjam
import pytest

from consumer.embedded import KafkaBroker
from tests.service.lab import Feed, eventually
from tests.service.messages import at, begun, ddl, insert, watermarks
from tests.service.producing import packed
from tests.serving.lab import Serving, config_of, feed_into

pytestmark = [pytest.mark.service, pytest.mark.spark]
SETTINGS = f'[spark]\nmaster = "local[2]"\n[api]\ndirectories = ["{tempfile.gettempdir()}"]\n'
FAILURES = 2
"""So often each hostile changefeed fails while rows are timed."""
MOST_ROUNDS = 60
SLACK_S = 0.5
"""Pauses between two looks for messages, which fall differently in two processes."""


class Good:
    """A changefeed that works on, in a process that may be others' too."""

    def __init__(self, serving: Serving, feed: Feed) -> None:
        self.serving, self.feed = serving, feed
        feed.send([*begun(), *watermarks(3)])
        serving.ask("POST", "", 201, json=config_of(feed))
        eventually("the first row", lambda: feed.reached(at(3)))

    def seconds(self, number: int) -> float:
        """How long a row takes from the topic into the target; the process answers meanwhile."""
        begun_at = monotonic()
        self.feed.send([insert("d.t", number, 1, id=number, v=number, s="x"), *watermarks(number + 1)])
        eventually(f"row {number} of {self.feed.name}", lambda: self.feed.reached(at(number + 1)))
        taken = monotonic() - begun_at
        assert self.serving.client.get("/healthz").status_code == HTTPStatus.OK
        return taken


class Hostile:
    """Changefeeds that fail by what their topics hold, and are resumed again and again."""

    def __init__(self, serving: Serving, feeds: list[Feed]) -> None:
        self._serving, self._ended = serving, Event()
        self.names = [feed.name for feed in feeds]
        self.failures = Counter[str]()
        for feed in feeds:
            serving.ask("POST", "", 201, json=config_of(feed))

    @contextmanager
    def at_work(self) -> Iterator[None]:
        thread = Thread(target=self._resume)
        thread.start()
        try:
            yield
        finally:
            self._ended.set()
            thread.join()

    def _resume(self) -> None:
        while not self._ended.wait(0.05):
            for one in self._serving.ask("GET", "", params={"state": "failed"})["items"]:
                self.failures[one["id"]] += 1
                self._serving.ask("POST", f"/{one['id']}/resume")

    @property
    def have_failed_enough(self) -> bool:
        return all(self.failures[name] >= FAILURES for name in self.names)


def hostile_feeds(directory: Path, broker: KafkaBroker, topic: str) -> list[Feed]:
    """A statement that is slow to read; deep JSON and a packed bomb; packed batches. A feed for each."""
    statement, messages, batches = (feed_into(directory, broker.bootstrap, f"{topic}-{n}") for n in ("s", "m", "b"))
    slow = "ALTER TABLE `t` COMMENT '" + "\\'/*! (" * 80_000
    statement.send([*begun(), ddl("d.t", 4, slow, kind="ALTER"), *watermarks(9)])
    messages.send([*begun(), *watermarks(9)])
    messages.send_raw(1, b"[" * 500_000, bytes(cramjam.lz4.compress(b"{" + b" " * (128 << 20))))
    batches.send(begun())
    packed(batches, "gzip", 2, *[bytes(150 << 20)] * 3)
    return [statement, messages, batches]


@contextmanager
def serving_in(folder: Path) -> Iterator[Serving]:
    folder.mkdir()
    (folder / "_serve.toml").write_text(SETTINGS)
    with Serving(folder) as found:
        yield found


@pytest.mark.by_turns(9)
def test_hostile_ones_slow_no_other(kafka_broker: KafkaBroker, topic_name: str, tmp_path: Path) -> None:
    feeds = [feed_into(tmp_path, kafka_broker.bootstrap, f"{topic_name}-{name}") for name in ("beside", "alone")]
    with (
        serving_in(tmp_path / "shared") as shared,
        serving_in(tmp_path / "own") as own,
        ThreadPoolExecutor(2) as both,
    ):
        goods = list(both.map(Good, (shared, own), feeds))
        hostile = Hostile(shared, hostile_feeds(tmp_path, kafka_broker, topic_name))
        taken: list[list[float]] = []
        with hostile.at_work():
            while not hostile.have_failed_enough and len(taken) < MOST_ROUNDS:
                number = 10 + 2 * len(taken)
                taken.append(list(both.map(Good.seconds, goods, [number] * 2)))
        beside, alone = (sorted(one) for one in zip(*taken, strict=True))
        assert hostile.have_failed_enough, (hostile.failures, len(taken))
        told = f"{hostile.failures}; {len(taken)} rounds, beside {beside}, alone {alone}"
        assert statistics.median(beside) <= 2 * statistics.median(alone) + SLACK_S, told
        assert len(goods[0].feed.cells.tables(["d"])["d.t"][1]) == 1 + len(taken)
