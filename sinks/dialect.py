"""What a new target implements: `Dialect`. `sinks.target.Target` is made of it.

    session      a connection, and what it can do (`sinks.target_session.DatabaseSession`)
    books        types of our own tables; the SQL over them is written once (`sinks.bookkeeping`)
    leadership   who leads (`sinks.leadership`)
    rows         encoder, delete, write
    DDL          how one is executed once (`sinks.ddl_execution`)
    compare      reader, for `reconciler verify`

docs/development/new-target.md adds one step by step.
"""

from collections.abc import Sequence
from typing import Protocol

from ordering.drift import Met
from ordering.events import TableName
from sinks.bookkeeping.instances import Beating
from sinks.compare.digests import TableReader
from sinks.ddl_execution import DdlExecution
from sinks.leadership import Leadership
from sinks.rows.chunk import Encoder
from sinks.rows.schema import TableSchema
from sinks.rows.spool import Group
from sinks.target_session import Connector, S, TargetSession


class Dialect(Connector[S], Protocol[S]):
    """One kind of database, at one place. Has no state, can be pickled. All methods raise TargetError.

    `has_savepoints`: without them a row that the target refuses is not named, so none can be quarantined for it.
    """

    has_savepoints: bool

    @property
    def encoder(self) -> Encoder:
        """Makes what `delete` and `write` are given; runs in Spark's tasks."""
        ...

    def connect_beside(self) -> Beating:
        """A connection for the list of instances, which goes on while a transaction holds the other one."""
        ...

    def prepare(self, at: TargetSession[S]) -> None:
        """Make what is missing of our own tables, and refuse a database that can't be written."""
        ...

    def check(self, at: TargetSession[S]) -> Sequence[str]:
        """Look for the rights that writing needs, changing nothing; what was found fine, a sentence each."""
        ...

    def leadership(self, at: TargetSession[S]) -> Leadership:
        """Who leads, as this session sees it."""
        ...

    def ddl(self, at: TargetSession[S]) -> DdlExecution:
        """What executes DDL over this session."""
        ...

    def delete(self, session: S, group: Group, schema: TableSchema) -> Met:
        """Delete rows by key (or, `by_content`, one equal row for each); how many were there."""
        ...

    def write(self, session: S, group: Group, schema: TableSchema) -> Met:
        """Insert rows, which replace those with the same handle key unless `plain_insert`; how many were there."""
        ...

    def is_empty(self, session: S, table: TableName) -> bool:
        """Whether a table that is there holds no row; asked by `reconciler load`."""
        ...

    def spelled(self, table: TableName, columns: Sequence[str]) -> tuple[str, list[str]]:
        """A table and some of its columns as statements name them; asked where tables are merged in it."""
        ...

    def reader(self, at: TargetSession[S]) -> TableReader:
        """Reads tables for `verify`; a dialect may raise TargetError in its place: then `verify` is refused."""
        ...
