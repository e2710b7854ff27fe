"""Applies a window that was read and judged: one way for each consistency."""

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from heapq import merge
from itertools import chain, groupby
from typing import Protocol

from consumer.pipeline.advance import copies_in
from consumer.pipeline.read import WindowRead, read_spec
from consumer.pipeline.read_ahead import begin_next
from consumer.pipeline.session import Session
from consumer.quarantine.collector import RowQuarantined
from consumer.quarantine.culprit import Refusal, refusal_of, sought_of
from consumer.source.window_ahead import Caps
from consumer.tasks.encoding.chunk_encoder import RowError
from consumer.tasks.jobs import Outcome, Waiting, succeeded
from consumer.tasks.keyless import net_chunks
from consumer.tasks.order import Part
from consumer.tasks.write import ParallelWriting, deletes_any
from ordering.progress import Progress
from ordering.rows.keyless_rows import Copies, by_commit
from ordering.timestamps import CheckpointTs
from ordering.window import Window
from sinks.bookkeeping.write_permits import NOTHING_DONE, PartDone
from sinks.rows.bisect_refused import RowRefusedError
from sinks.rows.chunk import Chunk
from sinks.rows.spool import Spool
from sinks.steps import Step


class Applier(Protocol):
    """A way to bring a window's rows and its progress into the target."""

    def apply(self, progress: Progress) -> None:
        """Apply the rows; the target holds this progress then, with the rows counted."""


def apply_window(session: Session, read: WindowRead, progress: Progress, caps: Caps = None) -> None:
    """Apply a window. Raises RowQuarantined where a row was, else the errors of rows and target, with a place.

    `caps`: of this round and the next, which may be begun meanwhile.
    """
    session.audit.begin()
    with _placing(session, read.window):
        _applier(session, read, caps).apply(progress)


def _applier(session: Session, read: WindowRead, caps: Caps) -> Applier:
    if isinstance(read.rows, Waiting):
        return RowApplier(session, read, read.rows)
    if session.mode.net:
        return SnapshotApplier(session, read, read.rows, caps)
    return TransactionApplier(session, read, read.rows)


@dataclass(frozen=True, slots=True)
class SnapshotApplier:
    """The window's net effects, in one transaction."""

    session: Session
    read: WindowRead
    rows: Iterator[Outcome]
    caps: Caps

    def apply(self, progress: Progress) -> None:
        """See `Applier.apply`."""
        with Spool() as spool:
            for chunk in _keyless(self.session, copies_in(self.read.reports)):
                spool.add(chunk)
            for outcome in succeeded(self.rows):
                for chunk in self.read.order.encoded(outcome):
                    spool.add(chunk)
            self.session.observe(Step.REDUCED)
            begin_next(self.session, self.read, progress, self.caps)
            self.session.commit(spool, replace(progress, counts=progress.counts.plus(rows_written=spool.rows)))


@dataclass(frozen=True, slots=True)
class TransactionApplier:
    """One commitTs after the other, each in a transaction of its own."""

    session: Session
    read: WindowRead
    rows: Iterator[Outcome]

    def apply(self, progress: Progress) -> None:
        """See `Applier.apply`. The offsets move with the last transaction, which holds no rows."""
        session = self.session
        session.observe(Step.REDUCED)
        for commit_ts, parts in groupby(self._in_order(), key=lambda part: part.commit_ts):
            with Spool() as spool:
                for part in parts:
                    for chunk in chain.from_iterable(map(self.read.order.encoded, part.chunks)):
                        spool.add(chunk)
                counts = session.progress.counts.plus(rows_written=spool.rows)
                session.commit(spool, session.progress.at(CheckpointTs(commit_ts), counts=counts))
        counts = replace(progress.counts, rows_written=session.progress.counts.rows_written)
        with Spool() as nothing:
            session.commit(nothing, replace(progress, counts=counts, drift=session.progress.drift))

    def _in_order(self) -> Iterator[Part]:
        parts = (outcome for outcome in succeeded(self.rows) if isinstance(outcome, Part))
        copies = by_commit(copies_in(self.read.reports))
        keyless = (Part(ts, tuple(_keyless(self.session, some))) for ts, some in copies.items())
        return merge(parts, keyless, key=lambda part: part.commit_ts)


@dataclass(frozen=True, slots=True)
class RowApplier:
    """Tasks write the rows in parallel. The window is recorded before: after a crash exactly it is done again."""

    session: Session
    read: WindowRead
    rows: Waiting

    def apply(self, progress: Progress) -> None:
        """See `Applier.apply`."""
        session = self.session
        done = self._written() if any(report.released for report in self.read.reports) else NOTHING_DONE
        with Spool() as spool:
            for chunk in _keyless(session, copies_in(self.read.reports)):
                spool.add(chunk)
            progress = replace(progress, counts=progress.counts.plus(rows_written=done.rows + spool.rows))
            session.save(spool, session.drifting.counted(progress, done.drifts), done)

    def _written(self) -> PartDone:
        session = self.session
        if session.schemas.has_new:
            record(session, self.read.window)
        else:  # the first phase does
            session.progress = replace(session.progress, window=self.read.window)
        writing = ParallelWriting(session.target, session.lease, session.observe, session.config.limits.writers)
        deletes = deletes_any(self.read.reports, session.target.catalog())
        order = replace(self.read.order, accounts=self.rows.accounts)
        return writing.write(self.rows.job, order, session.progress, deletes=deletes)


def record(session: Session, window: Window) -> None:
    """Save that a window is begun, with the schemas that were told: it is read again with them, and alone."""
    with session.setting_aside(replace(session.progress, window=window)) as (after, aside):
        session.target.save(after, session.lease, aside=aside)
    session.progress = after


def _keyless(session: Session, found: Iterable[Copies]) -> Iterator[Chunk]:
    return net_chunks(found, session.target.catalog(), session.target.encoder)


@contextmanager
def _placing(session: Session, window: Window) -> Iterator[None]:
    """Name the message of a row that can't be encoded or that the target refuses; quarantine it where that is asked."""
    net = session.mode.net
    try:
        yield
    except (RowError, RowRefusedError) as error:
        session.drop_ahead()
        refusal = _refusal(session, error, window, net=net)
        if session.quarantine.takes(refusal):
            raise RowQuarantined from error
        raise refusal.placed from error


def _refusal(session: Session, error: RowError | RowRefusedError, window: Window, *, net: bool) -> Refusal:
    sought = sought_of(error, session.target, session.bodies)
    places = session.jobs.places(window.ranges, read_spec(session, window), sought)
    return refusal_of(error, places, session.progress.checkpoint_ts, net_effect=net)
