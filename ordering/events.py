"""What comes out of Kafka, as values: positions, row changes, DDLs, watermarks."""

from dataclasses import dataclass
from enum import IntEnum
from functools import lru_cache
from typing import NamedTuple

from ordering.timestamps import CommitTs

_FILES = "/"
"""No topic's name holds it: it is the path of files that are read as a partition is."""
_DOTTED = {"\u0130": "i"}


class Partition(NamedTuple):
    """A partition of a topic."""

    topic: str
    partition: int

    @property
    def is_files(self) -> bool:
        """Whether it stands for files."""
        return _FILES in self.topic

    @property
    def holds_ddls(self) -> bool:
        """Whether the topic's DDLs are found in it: TiCDC sends them to the first partition, in some formats to all."""
        return self.partition == 0

    def __str__(self) -> str:
        """`topic=t partition=1`, the form in which errors name a place; or the files that begin so."""
        return f"files={self.topic}" if self.is_files else f"topic={self.topic} partition={self.partition}"


class Position(NamedTuple):
    """Where one message lies."""

    topic: str
    partition: int
    offset: int

    def __str__(self) -> str:
        """`topic=t partition=1 offset=42`, the form in which errors name a place; or a file's number."""
        kind = "number" if _FILES in self.topic else "offset"
        return f"{Partition(self.topic, self.partition)} {kind}={self.offset}"


def folded(name: str) -> str:
    """A name of upstream's in lower case, as TiDB folds it: letter by letter.

    `str.lower` makes two letters of a dotted I, and another one of a sigma at the end of a word.
    """
    return name.lower() if name.isascii() else "".join(_DOTTED.get(letter) or letter.lower() for letter in name)


class TableName(NamedTuple):
    """A table by database (schema) and name, as upstream spells them."""

    database: str
    table: str

    def __str__(self) -> str:
        """`database.table`, for people; never part of a statement."""
        return f"{self.database}.{self.table}"

    @property
    def folded(self) -> "TableName":
        """The name in lower case: upstream's names don't tell case apart, and statements spell them as they like."""
        return _folded(self)


@lru_cache(maxsize=1 << 14)
def _folded(name: TableName) -> TableName:
    """Each DDL is compared with all tables and all DDLs that wait, which may be thousands."""
    return TableName(folded(name.database), folded(name.table))


class Kind(IntEnum):
    """Kind of a row change; the values are the order inside one transaction (R4)."""

    DELETE = 0
    UPDATE = 1
    INSERT = 2


class RowOp(IntEnum):
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
    shown: tuple[tuple[str, str | None], ...] = ()
    """What rows show upstream in new columns whose default it computed, by lower-case name, as messages spell it."""
    unshown: str = ""
    """Why upstream could not tell that, where it was asked."""
    olders: tuple[tuple[str, str], ...] = ()
    """Databases of old names that the statement leaves without one, by lower-case name: upstream or later rows told."""

    routed: str = ""
    """The statement with the tables' names in the target, where these are others than upstream's."""
    session: str = ""
    """With `routed`: the database of what it names without one; "": `database`."""

    @property
    def own_database(self) -> str:
        """The database of what `statement` names without one."""
        return self.session or self.database

    @property
    def statement(self) -> str:
        """What is to be executed."""
        return self.routed or self.replicated or self.sql

    @property
    def identity(self) -> str:
        """See `ddl_identity`."""
        return ddl_identity(self.commit_ts, self.database, self.table, self.sql)


def ddl_identity(commit_ts: int, database: str, table: str, sql: str) -> str:
    """What makes two messages one DDL: commitTs, place in the schema, statement. Several DDLs share a commitTs."""
    return f"{commit_ts}|{database}|{table}|{sql}"


def any_ddl_at(commit_ts: int) -> str:
    """Among identities: every DDL of a commitTs, however it is spelled. One statement has a commitTs for itself."""
    return ddl_identity(commit_ts, "", "", "")


def rest_at(commit_ts: int) -> str:
    """Among identities: not every DDL of a commitTs is executed yet, though some are."""
    return ddl_identity(commit_ts, "", "", "the rest")


def commit_ts_of(identity: str) -> int:
    """The commitTs of a DDL by its identity."""
    return int(identity.partition("|")[0])
