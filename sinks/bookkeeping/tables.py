"""Our own tables, `ticdc_reconciler.*`: what makes them, and how statements over them reach a session.

All SQL over these tables is written once, in this package, with `?` for bound values and `"` around names. A dialect
brings a `BookTypes`; `Book` spells each statement as the dialect has it.
"""

import re
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Protocol

from ordering.errors import TargetError
from sinks.bookkeeping.instances import InstanceSql

PROGRESS_DATABASE = "ticdc_reconciler"
_UNHELD = re.compile("[\0\ud800-\udfff]")


@dataclass(frozen=True, slots=True)
class BookTypes:
    """How a dialect spells what our own tables need.

    `short`: a text of up to 191 characters that may be a key; `tso`: an unsigned number of 64 bits; `moment`: an
    instant, in UTC where the type has no zone, which is given in `moment_format`; `identity`: an integer that counts by
    itself, without PRIMARY KEY; `clock`: seconds since 1970 by the target's clock; `mark`: what stands for a bound
    value; `tail`: what ends each CREATE TABLE; `first`: what has to be there before the tables, each statement fine
    when repeated; `row_locks`: whether SELECT ... FOR UPDATE locks rows; `instances_apart`: the list of instances is
    made elsewhere; `keeps_definitions`: `first` makes a table of them; `text_default`: of a text column that is added,
    "" where texts may have none.
    """

    short: str
    text: str
    binary: str
    tso: str
    moment: str
    identity: str
    clock: str
    schema: str = PROGRESS_DATABASE
    quote: str = '"'
    mark: str = "%s"
    tail: str = ""
    first: tuple[str, ...] = ()
    moment_format: str = "%Y-%m-%dT%H:%M:%S.%f+00:00"
    row_locks: bool = False
    instances_apart: bool = False
    keeps_definitions: bool = False
    text_default: str = " DEFAULT ''"

    def place(self, table: str) -> str:
        """A table of ours in a statement."""
        return f"{self.schema}.{table}"

    def instances(self) -> InstanceSql:
        """How the list of instances is spelled."""
        return InstanceSql(self.place("instance"), self.clock)

    def statements(self) -> Iterator[str]:
        """All that makes the tables that each changefeed needs; each can be repeated."""
        short, text, tso, moment = self.short, self.text, self.tso, self.moment
        key = f"changefeed {short} NOT NULL PRIMARY KEY"
        tables = {
            "checkpoint": f"{key}, checkpoint_ts {tso} NOT NULL, offsets {text} NOT NULL, state {text} NOT NULL,"
            f" epoch BIGINT NOT NULL, updated_at {moment} NOT NULL",
            "window_start": f"{key}, digest {short} NOT NULL, offsets {text} NOT NULL, state {text} NOT NULL",
            "writer": f"changefeed {short} NOT NULL, part INTEGER NOT NULL, phase {short} NOT NULL,"
            " attempt BIGINT NOT NULL, PRIMARY KEY (changefeed, part)",
            "stop": f"{key}, stopped_at {moment} NOT NULL, exit_code INTEGER NOT NULL, error {text} NOT NULL",
            "ddl": f"id {self.identity} PRIMARY KEY, changefeed {short} NOT NULL, commit_ts {tso} NOT NULL,"
            f" {self.quote}database{self.quote} {short} NOT NULL, name {short} NOT NULL, statement {text} NOT NULL,"
            f" executed {text} NOT NULL, state {short} NOT NULL, before_it {text} NOT NULL,"
            f" updated_at {moment} NOT NULL, duration_ms BIGINT, reason {text} NOT NULL",
        }
        yield from self.first
        for name, columns in tables.items():
            yield f"CREATE TABLE IF NOT EXISTS {self.place(name)} ({columns}){self.tail}"
        if not self.instances_apart:
            yield self.instances().creation + self.tail


class BookSession(Protocol):
    """What our own tables need of a session."""

    def run(self, sql: str, parameters: Sequence[Any] | None = None) -> int:
        """Execute a statement; rows affected."""
        ...

    def query(self, sql: str, parameters: Sequence[Any] | None = None) -> list[tuple[Any, ...]]:
        """Execute a query; all rows."""
        ...

    def has_table(self, name: str) -> bool:
        """Whether there is this table, or view, of ours."""
        ...


class Opener(Protocol):
    """Where the session is, opened when it is first needed."""

    @property
    def db(self) -> BookSession:
        """The session."""
        ...

    def transaction(self) -> AbstractContextManager[None]:
        """A transaction around what is done inside: all of it, or nothing."""
        ...


@dataclass(frozen=True, slots=True)
class Book:
    """Our own tables in one target. `where`: the target's name, for errors. All methods raise TargetError."""

    opener: Opener
    types: BookTypes
    where: str

    def run(self, sql: str, parameters: Sequence[Any] = ()) -> int:
        """Execute a statement with `?` for bound values and `"` around names; rows affected."""
        return self.opener.db.run(self._spelled(sql), [*map(as_held, parameters)])

    def query(self, sql: str, parameters: Sequence[Any] = ()) -> list[tuple[Any, ...]]:
        """Execute a query with `?` for bound values and `"` around names; all rows."""
        return self.opener.db.query(self._spelled(sql), [*map(as_held, parameters)])

    def _spelled(self, sql: str) -> str:
        return sql.replace('"', self.types.quote).replace("?", self.types.mark)

    def has(self, table: str) -> bool:
        """Whether there is this table."""
        return self.opener.db.has_table(table)

    def place(self, table: str) -> str:
        """The table in a statement."""
        return self.types.place(table)

    def transaction(self) -> AbstractContextManager[None]:
        """A transaction of its own around what is done inside: all of it, or nothing."""
        return self.opener.transaction()

    def lock(self) -> str:
        """What locks the rows that a SELECT finds; "" where the target refuses one of two that change the same row."""
        return " FOR UPDATE" if self.types.row_locks else ""

    def now(self) -> str:
        """This moment, for a column of the type `moment`."""
        return datetime.now(UTC).strftime(self.types.moment_format)

    def make(self) -> None:
        """Make the tables that each changefeed needs, where they are missing."""
        for statement in self.types.statements():
            self.opener.db.run(statement)


def changed_by_hand(table: str, column: str, value: object, why: Exception) -> TargetError:
    """The error for a line of one of our tables that reads otherwise than anything we write."""
    return TargetError(
        f"a line of `{table}` is not as it was written: {why}",
        where=f"ticdc_reconciler.{table}, {column} = {value!r}",
        hint="somebody has changed it: DELETE that line",
    )


def as_held(value: Any) -> Any:
    """A value as our tables hold it: of a text, escapes in place of what not every target takes.

    Texts of PostgreSQL hold no NUL, and no server takes halves of characters, as names of files have that are no UTF-8.
    """
    if not isinstance(value, str) or (value.isascii() and "\0" not in value):
        return value
    return _UNHELD.sub(lambda found: repr(found[0])[1:-1], value)


def as_moment(value: Any) -> datetime:
    """A value of a `moment` column; MySQL's DATETIME knows no zone: ours is UTC."""
    found = value if isinstance(value, datetime) else datetime.fromisoformat(str(value))
    return (found if found.tzinfo else found.replace(tzinfo=UTC)).astimezone(UTC)
