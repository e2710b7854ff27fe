"""Plays a recorded script into a target in this process and compares every cell with TiDB's."""

import re
import shutil
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from random import Random
from uuid import uuid4

import psycopg

from consumer.wiring import target_of
from ordering.errors import ReconcilerError
from sinks.steps import Step
from tests.differential.recording import Recording
from tests.differential.together import groups, joined, stopped_in
from tests.embedded import MariaDbServer, MySqlServer, PostgresServer, TidbServer
from tests.histories.playing import WINDOWS
from tests.service.cells import OURS, Cells, MariaDbCells, SqliteCells, differences
from tests.service.local import Killed, LocalFeed
from tests.service.postgres_cells import PostgresCells

KINDS = ("sqlite", "mariadb", "mysql", "postgres", "tidb")
_OFFSETS = {"Asia/Shanghai": "+08:00"}
"""A server without time zone tables knows offsets."""
_OWN = re.compile(r"s\d+b?", re.IGNORECASE)
"""Databases of scripts."""
_DATABASES = {"sqlite": 9}
"""How many a target may hold; SQLite attaches ten, of which one is the reconciler's."""
_ANEW = 100
"""Scripts after which what the reconciler keeps in a server is dropped: each one leaves a changefeed behind."""


@dataclass(frozen=True, slots=True)
class Verdict:
    """What came of a script: nothing; other cells (`silent`, a line each); a stop with its reason, or a crash."""

    silent: tuple[str, ...] = ()
    stopped: str = ""
    crashed: str = ""

    @property
    def what(self) -> str:
        """In one word."""
        return "SILENT" if self.silent else "CRASH" if self.crashed else "STOPS" if self.stopped else "as upstream"

    @property
    def said(self) -> str:
        """In words."""
        return "; ".join(self.silent) or self.crashed or self.stopped

    @property
    def reason(self) -> str:
        """What is said without what is one script's own: its statement, names, values, sizes of types."""
        text = re.sub(r"; DDL at .*|\n.*", "", self.said, flags=re.DOTALL)
        text = re.sub(r"\(.*?\)|'[^']*'|`[^`]*`|\"[^\"]*\"", "…", text)
        return re.sub(r"\b(s\d+\w*\.\w+|s\d+\w*|\d[\d.:-]*|[tc]\d+)", "N", text)[:200]


@dataclass(slots=True)
class Place:
    """One kind of target, started once, empty for each script, or for each `together` scripts of one recording."""

    kind: str
    directory: Path
    stack: ExitStack
    together: int = 1
    killed_at: float = 0.0
    """How likely a driver dies at a step; with kills windows are small, so that there are steps."""
    _uri: str = ""
    _cells: MariaDbCells | PostgresCells | None = None
    _played: int = 0
    kills: int = 0
    """So far."""

    def __post_init__(self) -> None:
        self.directory.mkdir()
        if self.kind == "postgres":
            server = self.stack.enter_context(PostgresServer(self.directory))
            with psycopg.connect(server.uri, autocommit=True) as connection:
                connection.execute("CREATE DATABASE scripts ENCODING 'UTF8' TEMPLATE template0")
            self._uri = server.uri_of("scripts")
            self._cells = PostgresCells(self._uri)
        elif self.kind != "sqlite":
            server_of = {"mariadb": partial(MariaDbServer, flush_at_commit=2), "mysql": MySqlServer, "tidb": TidbServer}
            self._uri = self.stack.enter_context(server_of[self.kind](self.directory)).uri
            self._cells = MariaDbCells(self._uri)
        if self._cells is not None:
            self.stack.callback(self._cells.close)

    def play(self, recording: Recording, consistency: str) -> Verdict:
        """Play one script into the empty target."""
        with self._fresh() as (uri, cells):
            feed = self._feed([recording], consistency, uri, cells)
            return self._failure(feed, recording.seed) or Verdict(silent=tuple(_wrong(recording, cells)))

    def play_all(self, recordings: Sequence[Recording], consistency: str) -> Iterator[tuple[Recording, Verdict]]:
        """Play scripts that were recorded at once, up to `together` of them by one changefeed.

        A script that stops it, or leaves other cells, is played once more, alone; then the others go on.
        """
        for group in groups(recordings, self.together, _DATABASES.get(self.kind, 1000)):
            if len(group) == 1:
                yield group[0], self.play(group[0], consistency)
                continue
            left = group
            while left:
                verdicts = list(self._played_together(left, consistency))
                for one, verdict in zip(left, verdicts, strict=False):
                    yield one, verdict if verdict.what == "as upstream" else self._alone(one, consistency, verdict)
                left = left[len(verdicts) :]

    def _played_together(self, recordings: Sequence[Recording], consistency: str) -> Iterator[Verdict]:
        """Verdicts of the first ones, up to one that stops."""
        with self._fresh() as (uri, cells):
            feed = self._feed(recordings, consistency, uri, cells)
            failure = self._failure(feed, recordings[0].seed)
            done = stopped_in(recordings, _checkpoint(feed)) if failure else len(recordings)
            for one in recordings[:done]:
                yield Verdict(silent=tuple(_wrong(one, cells)))
            if failure:
                yield failure

    def _alone(self, recording: Recording, consistency: str, together: Verdict) -> Verdict:
        """The verdict of a script by itself, if there is one; else what came of it beside others."""
        alone = self.play(recording, consistency)
        return together if alone.what == "as upstream" else alone

    def _feed(self, recordings: Sequence[Recording], consistency: str, uri: str, cells: Cells) -> LocalFeed:
        feed = LocalFeed.into(uri, cells, self.directory)
        feed.with_(source={"time-zone": _OFFSETS.get(recordings[0].zone, recordings[0].zone)})
        feed.with_(target={"invalid-dates": "null", "consistency": consistency})
        feed.send(joined(recordings))
        return feed

    def _failure(self, feed: LocalFeed, seed: int) -> Verdict | None:
        """Play what was sent, in as many lives as it takes; what it stopped with."""
        chance = Random(f"{seed} {self.kind} {feed.config.target.consistency}")
        if self.killed_at:
            feed.with_(limits={"window-rows": chance.choice(WINDOWS)})

        def observe(_: Step) -> None:
            if chance.random() < self.killed_at:
                raise Killed

        try:
            while not feed.lives(observe):
                self.kills += 1
        except ReconcilerError as error:
            return Verdict(stopped=f"{type(error).__name__}: {error}")
        except Exception as error:  # noqa: BLE001 a crash is a finding of this script, and no reason to end
            return Verdict(crashed=f"{type(error).__name__}: {error}")
        return None

    @contextmanager
    def _fresh(self) -> Iterator[tuple[str, Cells]]:
        if self._cells is None:
            directory = self.directory / uuid4().hex
            yield f"sqlite:///{directory}", SqliteCells(directory)
            shutil.rmtree(directory, ignore_errors=True)
            return
        yield self._uri, self._cells
        self._played += 1
        self._cells.drop(name for name in self._cells.databases() if _OWN.fullmatch(name))
        if self._played % _ANEW == 0:
            self._cells.drop([OURS])


def _checkpoint(feed: LocalFeed) -> int:
    """How far it came."""
    with closing(target_of(feed.config)) as target:
        target.connect()
        stored = target.stored(feed.name)
        return stored.progress.checkpoint_ts if stored is not None else 0


def _wrong(recording: Recording, cells: Cells) -> Iterator[str]:
    yield from differences(recording.upstream, cells)
    databases = {name.split(".")[0] for name in recording.upstream}
    for other in {f"s{recording.seed}", f"s{recording.seed}b"} - databases:
        yield from (f"{name}: not upstream" for name in cells.tables({other}))
