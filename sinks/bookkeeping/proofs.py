"""The table `proof`: what each proof of a changefeed's tables found, and from where the next one goes on.

A line is a certificate, JSON for people and programs ("" where nothing was compared), and the state, which the latest
line alone keeps. Two processes may write at once: one waits for the other's line, and the later one counts.
"""

from datetime import UTC, datetime, timedelta

from sinks.bookkeeping.tables import Book, changed_by_hand

KEPT = timedelta(days=30)
"""So long a certificate is kept."""


class ProofTable:
    """What proofs of the tables have found. Raises TargetError and its kinds."""

    def __init__(self, book: Book) -> None:
        self._book = book

    @property
    def _table(self) -> str:
        return self._book.place("proof")

    def make(self) -> None:
        """Make the table where it is missing; not inside a transaction."""
        types = self._book.types
        columns = (
            f"changefeed {types.short} NOT NULL, proved_at {types.short} NOT NULL, checkpoint_ts {types.tso} NOT NULL,"
            f" certificate {types.text} NOT NULL, state {types.text} NOT NULL, PRIMARY KEY (changefeed, proved_at)"
        )
        self._book.run(f"CREATE TABLE IF NOT EXISTS {self._table} ({columns}){types.tail}")

    def state(self, changefeed: str) -> str:
        """From where the next proof goes on; "" before the first. Changes nothing."""
        if not self._book.has("proof"):
            return ""
        sql = f"SELECT state FROM {self._table} WHERE changefeed = ? AND state <> ''"  # noqa: S608 constants
        rows = self._book.query(f"{sql} ORDER BY proved_at DESC", (changefeed,))
        return str(rows[0][0]) if rows else ""

    def add(self, changefeed: str, checkpoint_ts: int, certificate: str, state: str, after: str | None = None) -> bool:
        """Add a certificate, in a transaction of its own; see `write`."""
        with self._book.transaction():
            return self.write(changefeed, checkpoint_ts, certificate, state, after)

    def write(
        self, changefeed: str, checkpoint_ts: int, certificate: str, state: str, after: str | None = None
    ) -> bool:
        """Add a certificate, inside a transaction; earlier states and old certificates go.

        `after`: the state that this one goes on from; if another one is kept by now, nothing is added, and it is False.
        """
        last, kept = self._locked(changefeed)
        if after is not None and kept != after:
            return False
        self._add(changefeed, _after(last), checkpoint_ts, certificate, state)
        return True

    def _locked(self, changefeed: str) -> tuple[object, str]:
        """When the latest line was written, and its state, with all lines locked until the transaction ends.

        They are read once they are locked: PostgreSQL shows a statement that has waited for a lock the lines of before.
        """
        lines = f"FROM {self._table} WHERE changefeed = ?{self._book.lock()}"
        self._book.query(f"SELECT proved_at {lines}", (changefeed,))
        found = self._book.query(f"SELECT proved_at, state {lines}", (changefeed,))
        return max(found, key=lambda line: str(line[0]), default=(None, ""))

    def _add(self, changefeed: str, moment: datetime, checkpoint_ts: int, certificate: str, state: str) -> None:
        now = moment.isoformat()
        insert = f"INSERT INTO {self._table} VALUES (?, ?, ?, ?, ?)"  # noqa: S608 constants
        self._book.run(insert, (changefeed, now, checkpoint_ts, certificate, state))
        old = f"DELETE FROM {self._table} WHERE changefeed = ? AND proved_at < ?"  # noqa: S608 constants
        self._book.run(f"{old} AND (certificate = '' OR proved_at < ?)", (changefeed, now, (moment - KEPT).isoformat()))
        update = f"UPDATE {self._table} SET state = '' WHERE changefeed = ? AND proved_at < ? AND state <> ''"  # noqa: S608 constants
        self._book.run(update, (changefeed, now))

    def certificates(self, changefeed: str, limit: int) -> list[str]:
        """The latest certificates, newest first."""
        sql = f"SELECT certificate FROM {self._table} WHERE changefeed = ? AND certificate <> ''"  # noqa: S608 constants
        return [
            str(one) for (one,) in self._book.query(f"{sql} ORDER BY proved_at DESC LIMIT {limit:d}", (changefeed,))
        ]


def _after(last: object) -> datetime:
    """Now, or just after the latest line: another machine's clock may be ahead."""
    now = datetime.now(UTC)
    try:
        return now if last is None else max(now, datetime.fromisoformat(str(last)) + timedelta(microseconds=1))
    except (ValueError, TypeError, OverflowError) as error:
        raise changed_by_hand("proof", "proved_at", last, error) from error
