"""A session with a target, and what all parts of a target share over it: catalog, bookkeeping, transactions.

    begin -> epoch locked and checked -> what is done -> progress -> commit

Rows and progress commit together (R1); the row of the progress is locked in the same transaction, so a leader that was
stopped and goes on later cannot write (fencing). Nor can one under which the target was restored from a backup: the
epoch may be its own then, the last save is not.
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, Generic, Protocol, TypeVar

from ordering.errors import LeadershipLostError
from ordering.events import DdlEvent
from ordering.progress import Progress
from sinks.bookkeeping.books import Books
from sinks.bookkeeping.progress_rows import Lease, Saving, standing
from sinks.bookkeeping.tables import Book, BookTypes
from sinks.known_tables import KnownTables, ReadTable
from sinks.rows.schema import Catalog


class DatabaseSession(Protocol):
    """A connection: statements with the dialect's mark for bound values. Raises TargetError and its kinds."""

    def run(self, sql: str, parameters: Sequence[Any] | None = None) -> int:
        """Execute a statement; rows affected."""
        ...

    def query(self, sql: str, parameters: Sequence[Any] | None = None) -> list[tuple[Any, ...]]:
        """Execute a query; all rows."""
        ...

    def value(self, sql: str, parameters: Sequence[Any] | None = None) -> Any:
        """The first column of the first row, or None."""
        ...

    def has_table(self, name: str) -> bool:
        """Whether there is this table, or view, of ours; makes nothing."""
        ...

    def begin(self) -> None:
        """Begin a transaction that reads what is committed, and locks what it changes."""
        ...

    def commit(self) -> None:
        """Commit it. Raises TargetUnreachableError where no answer came."""
        ...

    def rollback(self) -> None:
        """Drop the transaction, if one is open."""
        ...

    def save_point(self) -> None:
        """Set the savepoint; there is one, and it moves. Not called without the ability."""
        ...

    def back_to_point(self) -> None:
        """Undo what was written since the savepoint."""
        ...

    def close(self) -> None:
        """Close the socket."""
        ...


S = TypeVar("S", bound=DatabaseSession)


class Connector(Protocol[S]):
    """What a session needs to know of its dialect. `name`: for people: kind, host and port or path; no password."""

    name: str
    books: BookTypes

    def connect(self) -> S:
        """A new connection, outside of any transaction."""
        ...

    def catalog(self, session: S) -> Catalog:
        """All tables but our own."""
        ...

    def finish_rows(self, session: S, progress: Progress, confirm: Callable[[], None]) -> None:
        """Write what is left to be written of a transaction's rows, before its progress: nothing in most databases.

        `confirm` locks the epoch once more; needed where the lock that came with the first look was let go of.
        """
        ...


class TargetSession(Generic[S]):
    """Not for use by several threads at once. After an error the caller closes it and connects again."""

    def __init__(self, connector: Connector[S], books: Callable[[Book], Books] = Books.over) -> None:
        self._connector, self.name = connector, connector.name
        self.book = Book(self, connector.books, connector.name)
        self.books = books(self.book)
        self._open: S | None = None
        self._tables = KnownTables(lambda: connector.catalog(self.db))

    @property
    def db(self) -> S:
        """The session; made when it is first needed."""
        if self._open is None:
            self._open = self._connector.connect()
        return self._open

    def close(self) -> None:
        """Close the connection; what was not committed is rolled back."""
        if self._open is not None:
            self._open.close()
            self._open = None

    def catalog(self) -> Catalog:
        """The tables, cached until `forget_catalog` or `forget_tables`."""
        return self._tables.catalog()

    def assume(self, catalog: Catalog) -> None:
        """Take this catalog for the target's until `forget_catalog`: tasks get the driver's."""
        self._tables.assume(catalog)

    def forget_catalog(self) -> None:
        """Read the catalog again at its next use."""
        self._tables.forget()

    def forget_tables(self, ddl: DdlEvent, read: ReadTable) -> None:
        """Before and after a DDL: read again what it is about, or all tables, see `KnownTables`. Raises InputError."""
        self._tables.forget_some(ddl.statement, ddl.own_database, read)

    @contextmanager
    def transaction(self) -> Iterator[None]:
        """A transaction around what is done inside: all of it, or nothing."""
        self.db.begin()
        try:
            yield
            self.db.commit()
            self.books.progress.committed()
        except BaseException:
            self.books.progress.forget_saved()
            if self._open is not None:
                self._open.rollback()
            raise

    @contextmanager
    def led_transaction(self, lease: Lease) -> Iterator[None]:
        """A transaction of the leader. Raises LeadershipLostError."""
        with self.transaction():
            self.check_epoch(lease)
            yield

    def check_epoch(self, lease: Lease) -> None:
        """Lock the row of the progress; raise LeadershipLostError if epoch or last save is no longer ours."""
        self._compare(self.books.progress.locked(lease.changefeed), lease)

    def hold(self, changefeed: str, lease: Lease | None) -> None:
        """Keep everybody from becoming the leader until the transaction ends. `lease`: as `check_epoch`.

        Who leads now may hold the lock for long: who does no longer need not wait for that.
        """
        if lease is None:
            self.books.progress.locked(changefeed)
        else:
            self.confirm(lease)
            self.check_epoch(lease)

    def confirm(self, lease: Lease, session: S | None = None) -> None:
        """As `check_epoch`, without a lock: right before what is no part of a transaction.

        `session`: the one that is going to do it, where that is another one than this.
        """
        look = f"{self.books.progress.look} WHERE changefeed = {self.book.types.mark}"
        self._compare(standing((session or self.db).query(look, (lease.changefeed,))), lease)

    def _compare(self, found: tuple[int, Saving] | None, lease: Lease) -> None:
        self.compare(None if found is None else found[0], lease)
        if found is not None and not self.books.progress.is_known(lease.changefeed, found[1]):
            raise LeadershipLostError(
                f"the progress of changefeed {lease.changefeed!r} is not as this instance left it: it was restored from"
                " a backup, or changed by hand",
                where=self.name,
                hint="start it again: it continues from the progress in the target",
            )

    def compare(self, epoch: int | None, lease: Lease) -> None:
        """Raise LeadershipLostError if the lease is of another epoch."""
        if epoch != lease.epoch:
            raise LeadershipLostError(
                f"changefeed {lease.changefeed!r} has a new leader: epoch {epoch}, ours was {lease.epoch}",
                where=self.name,
                hint="another instance took over; this one may be started again as a stand-by",
            )

    def save(self, progress: Progress, lease: Lease) -> None:
        """Save the progress, in the transaction that has begun and has checked the epoch."""
        self._connector.finish_rows(self.db, progress, lambda: self.check_epoch(lease))
        self.books.progress.save(progress, lease)
