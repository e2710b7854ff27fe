"""All changefeeds of the process: a TOML file each in one directory, one Spark, a thread each."""

import threading
import time
from collections import Counter
from itertools import chain, count
from pathlib import Path

import structlog

from consumer.config.text import read_text
from consumer.serve.api.errors import NotFoundError
from consumer.serve.changefeed import Feed
from consumer.serve.config.files import write
from consumer.serve.observed.history import EVERY_S
from consumer.serve.settings import NAME, Settings, check_spark, load_settings, with_paused
from consumer.serve.status import STATES, status_of
from consumer.spark.shared import SharedSpark
from ordering.errors import ConfigError, ReconcilerError

STOP_S = 20.0
"""So long a stop waits for windows to be finished or rolled back."""
log = structlog.get_logger()


class Fleet:
    """The changefeeds by id. What changes them takes `lock`."""

    def __init__(self, folder: Path, scratch: Path) -> None:
        self.folder = folder
        self.settings: Settings = load_settings(folder)
        self.spark = SharedSpark(self.settings.spark, scratch)
        self.feeds: dict[str, Feed] = {}
        self.lock = threading.RLock()
        self._stopping = threading.Event()
        self._sampler = threading.Thread(target=self._sample, name="sampler", daemon=True)

    def open(self) -> None:
        """Read all files and start all that are not paused. A file that is wrong is a failed changefeed."""
        for path in sorted(self.folder.glob("*.toml")):
            if path.name != NAME:
                self.add(path)
        self._sampler.start()
        for feed in self.all():
            if feed.name not in self.settings.paused and feed.fault is None:
                feed.start()

    def add(self, path: Path) -> Feed:
        """Take in a file; it does not run yet."""
        feed = Feed(path, self.spark)
        try:
            feed.load()
            self._check(feed)
        except ReconcilerError as error:
            log.error("a config can't be used", file=str(path), error=error.fact, where=error.where, hint=error.hint)  # noqa: TRY400 foreseen
            feed.fail(error)
        with self.lock:
            self._place(feed)
        return feed

    def _place(self, feed: Feed) -> None:
        """Keep it by its id; by its file's name where that is wrong, or its id another's: nobody takes a place."""
        names = chain((feed.name, feed.path.stem, feed.path.name), (f"{feed.path.name}-{n}" for n in count(2)))
        feed.name = next(name for name in names if name not in self.feeds)
        self.feeds[feed.name] = feed
        if not feed.has_own_id:
            feed.disown()

    def _make_room(self, feed: Feed) -> None:
        """Give one whose file can't be used another name, where it has this one's id by its file's name."""
        other = self.feeds.get(feed.name)
        if other is not None and not other.has_own_id:
            del self.feeds[feed.name]
            other.name = other.path.name
            self._place(other)

    def reload(self, feed: Feed) -> None:
        """Read its file again, after somebody fixed it. Raises ConfigError."""
        feed.load()
        with self.lock:
            # it may have made room meanwhile
            was = next((name for name, one in self.feeds.items() if one is feed), None)
            if was is None:
                feed.forget()
                raise NotFoundError(f"changefeed {feed.name!r} was deleted meanwhile")
            del self.feeds[was]
            try:
                self._check(feed)
            except ReconcilerError as error:
                feed.name = was
                feed.fail(error)
                if not feed.has_own_id:
                    feed.disown()
                raise
            finally:
                self.feeds[feed.name] = feed

    def remove(self, feed: Feed) -> None:
        """Forget one that has stopped and whose file is gone, and its past."""
        with self.lock:
            self.feeds.pop(feed.name, None)
        self.set_paused(feed.name, paused=False)
        feed.forget()
        feed.ring.forget()

    def set_paused(self, name: str, *, paused: bool) -> None:
        """Keep in `_serve.toml` whether a changefeed is paused. Raises ConflictError where that can't be written."""
        with self.lock:
            names = sorted({*self.settings.paused, name} if paused else {*self.settings.paused} - {name})
            if names != self.settings.paused:
                path = self.folder / NAME
                write(path, with_paused(read_text(path) if path.exists() else "", names))
                self.settings = self.settings.model_copy(update={"paused": names})

    def _check(self, feed: Feed) -> None:
        if feed.config is None:
            raise AssertionError(feed.path)
        check_spark(feed.config, self.settings, self.folder)
        self._make_room(feed)
        other = self.feeds.get(feed.name)
        if other is not None:
            hint = "an id names one row of progress: give one of them another id"
            raise ConfigError(f"two files hold changefeed {feed.name!r}", where=f"{other.path}, {feed.path}", hint=hint)

    def all(self) -> list[Feed]:
        """Every changefeed, by id."""
        with self.lock:
            return [feed for _, feed in sorted(self.feeds.items())]

    def feed(self, name: str) -> Feed:
        """One of them. Raises NotFoundError."""
        with self.lock:
            found = self.feeds.get(name)
        if found is None:
            known = ", ".join(feed.name for feed in self.all()) or "none"
            raise NotFoundError(f"there is no changefeed {name!r}", where="changefeed_id", hint=f"there are: {known}")
        return found

    def states(self) -> dict[str, int]:
        """How many are in each state."""
        found = Counter(feed.state for feed in self.all())
        return {state: found[state] for state in STATES}

    def stop(self) -> bool:
        """Stop all, at once; whether all have ended in time."""
        self._stopping.set()
        until = time.monotonic() + STOP_S
        for feed in self.all():
            feed.ask_to_stop()
        ended = [feed.join(until) for feed in self.all()]
        for feed in self.all():
            feed.forget()
            feed.ring.keep()
        if all(ended):
            self.spark.stop()
        return all(ended)

    def _sample(self) -> None:
        while not self._stopping.wait(EVERY_S):
            for feed in self.all():
                feed.ring.add(status_of(feed))
