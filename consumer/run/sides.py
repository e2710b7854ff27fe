"""What a run reads: its topics or files, or the archive from where retention deleted what the topics held.

`ordering.sources.archive` tells what has to hold for a switch. Each one is a commit of its own, and the next session
reads from the other side: what a session knows of DDLs, segments and offsets is of one side.
"""

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Self
from uuid import uuid4

import structlog

from consumer.config.model import Config
from consumer.pipeline.session import Session
from consumer.source.file_source import FileSource
from consumer.source.port import ChangeSource, source_of
from consumer.source.probe import Source
from consumer.tuning import MEASURED, Tuning
from consumer.wiring import archive_of, reading, storage_of
from ordering.errors import BeginningLostError, InputError, SourceError, SourceUnreachableError
from ordering.events import Partition
from ordering.progress import Progress
from ordering.rewind import reached
from ordering.sources.archive import begun_again, is_half_done, taken_up
from ordering.timestamps import utc_text
from sinks.steps import Step

log = structlog.get_logger()


@dataclass(slots=True)
class Sides:
    """The sources of a changefeed. `every_s`: how often it is asked whether the topics hold all again."""

    config: Config
    own: ChangeSource
    files: FileSource | None = None
    every_s: float = MEASURED.looks_back_s
    now: Callable[[], float] = time.monotonic
    _bounded: bool = field(default=False, init=False)
    """Whether it reads only what is there now (`--once`)."""
    _asked_at: float | None = field(default=None, init=False)

    @classmethod
    def of(cls, config: Config, tuning: Tuning = MEASURED) -> Self:
        """Those that a config names, not yet connected."""
        archive = archive_of(config) if config.source.archive else None
        files = None if archive is None else FileSource(archive, storage_of(archive))
        return cls(config, source_of(config, tuning), files, tuning.looks_back_s)

    def read_at(self, progress: Progress) -> tuple[Config, ChangeSource]:
        """What is read at this progress, with the config of that. Raises ConfigError, see `reading`."""
        config = reading(self.config, progress)
        return config, self.files if progress.archived and self.files is not None else self.own

    def reach(self) -> None:
        """Look whether they are there. With an archive the topics need not be: it is not known yet what is read."""
        try:
            self.own.reach()
        except (SourceUnreachableError, InputError) as error:
            if self.files is None:
                raise
            log.warning("the topics can't be read", error=error.fact, at=error.where)
            self.files.reach()

    def ends(self) -> Mapping[Partition, int]:
        """Where what is there now ends: nothing behind it is read from now on, on either side."""
        self._bounded = True
        if self.files is not None:
            self.files.ends()
        return self.own.ends()

    def close(self) -> None:
        """Close every connection; the next call connects again."""
        self.own.close()

    def go_to_archive(self, session: Session, lost: BeginningLostError) -> None:
        """Let what follows the checkpoint be read from the archive. Raises `lost` where there is none.

        `session`: a new one, whose progress is what the target holds. Raises what the topics, or the archive, lack.
        """
        if self.files is None or not isinstance(self.own, Source):
            raise lost
        try:
            self.own.probe(session.progress)
        except BeginningLostError as error:
            lost = error
        else:  # an offset is gone, and not at the beginning
            raise lost
        progress = session.progress
        after = taken_up(progress, because=f"{self.files.identity()}: {lost.fact} ({lost.where})", ledger=uuid4().hex)
        if self._bounded:
            self.files.ends()
        probe = self.files.probe(after)
        self.files.check_holds(progress, reached(progress))
        self._save(session, begun_again(after, probe.ranges))
        log.warning("reading on from the archive", because=after.archived, **_at(after))

    def goes_back(self, session: Session) -> bool:
        """Whether the topics hold all that follows the checkpoint again: the next session reads them."""
        progress, own = session.progress, self.own
        if not progress.archived or not isinstance(own, Source):
            return False
        if not self._is_due() or _is_unfinished(session):
            return False
        self._asked_at = self.now()
        try:
            lacking, topics = own.holding(progress.checkpoint_ts, progress.topics)
        except (SourceError, InputError) as error:
            log.warning("whether the topics hold all again is not known", error=error.fact, at=error.where)
            return False
        if lacking:
            log.debug("the topics do not hold all yet", partition=str(lacking[0]), more=len(lacking) - 1)
            return False
        self._save(session, taken_up(replace(progress, topics=topics), because="", ledger=uuid4().hex))
        log.info("reading the topics again: they hold all that follows", **_at(progress))
        return True

    def _is_due(self) -> bool:
        return self._bounded or self._asked_at is None or self.now() - self._asked_at >= self.every_s

    def _save(self, session: Session, progress: Progress) -> None:
        session.observe(Step.PROBED)
        session.target.save(progress, session.lease)
        session.progress = progress
        if isinstance(self.own, Source):
            self.own.begin_anew()
        session.observe(Step.COMMITTED)


def _is_unfinished(session: Session) -> bool:
    """Whether something was begun that has to be ended by the source with which it was begun.

    A DDL, too: topics spell some statements otherwise, so its line in the DDL log would not be found.
    """
    progress = session.progress
    if progress.window is not None or progress.is_torn or is_half_done(progress.executed, progress.checkpoint_ts):
        return True
    begun = session.target.ddl_log.under_way(session.config.changefeed)
    return any(line.commit_ts >= progress.checkpoint_ts for line in begun)


def _at(progress: Progress) -> dict[str, str]:
    return {"checkpoint": f"{progress.checkpoint_ts} ({utc_text(progress.checkpoint_ts)} UTC)"}
