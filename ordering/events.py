"""What comes out of Kafka, as values: positions, row changes, DDLs, watermarks."""

from dataclasses import dataclass
from enum import IntEnum
from typing import NamedTuple

from ordering.timestamps import CommitTs


class Partition(NamedTuple):
    """A partition of a topic."""

    topic: str
    partition: int

    def __str__(self) -> str:
        """`topic=t partition=1`, the form in which errors name a place."""
        return f"topic={self.topic} partition={self.partition}"


class Position(NamedTuple):
    """Where one message lies."""

    topic: str
    partition: int
    offset: int

    def __str__(self) -> str:
        """`topic=t partition=1 offset=42`, the form in which errors name a place."""
        return f"topic={self.topic} partition={self.partition} offset={self.offset}"


class TableName(NamedTuple):
    """A table by database (schema) and name, as upstream spells them."""

    database: str
    table: str

    def __str__(self) -> str:
        """`database.table`, for people; never part of a statement."""
        return f"{self.database}.{self.table}"


class Kind(IntEnum):
    """Kind of a row change; the values are the order inside one transaction (R4)."""

    DELETE = 0
    UPDATE = 1
    INSERT = 2


class Half(IntEnum):
    """What a row change does to one handle key; an UPDATE that moves a key has one of each (R5)."""

    DELETE = 0
    WRITE = 1


@dataclass(frozen=True, slots=True)
class DdlEvent:
    """A schema change. `database` and `table` name the table after it; `removes` and `adds` come from the statement."""

    position: Position
    commit_ts: CommitTs
    type: str
    database: str
    table: str
    sql: str
    removes: tuple[TableName, ...] = ()
    adds: tuple[TableName, ...] = ()
    drops_database: str | None = None
    replicated: str = ""
    """What TiCDC replicates of `sql`, where that is not all of it."""
    dumped: bool = False
    """Whether it defines what a dump holds: without the values that upstream computes, which messages bring."""

    @property
    def statement(self) -> str:
        """What is to be executed."""
        return self.replicated or self.sql

    @property
    def identity(self) -> str:
        """See `ddl_identity`."""
        return ddl_identity(self.commit_ts, self.database, self.table, self.sql)


def ddl_identity(commit_ts: int, database: str, table: str, sql: str) -> str:
    """What makes two messages one DDL: commitTs, place in the schema, statement. Several DDLs share a commitTs."""
    return f"{commit_ts}|{database}|{table}|{sql}"
