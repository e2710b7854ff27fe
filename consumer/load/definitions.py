"""Definitions out of a dump, as the DDL events that a changefeed would have sent for them."""

import re
from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path

from consumer.load.decompress import UNREADABLE, opened
from ordering.errors import InputError, TableMismatchError
from ordering.events import DdlEvent, Position, TableName
from ordering.timestamps import CommitTs
from sinks.ddl.model import ColumnDef
from sinks.rows.schema import TableSchema

_STATEMENT = re.compile(
    r"""(?:[^;'"`/#-]++|'(?:[^'\\]++|\\.|'')*+'|"(?:[^"\\]++|\\.|"")*+"|`(?:[^`]++|``)*+`|/\*(?:[^*]++|\*(?!/))*+\*/"""
    r"""|--\s[^\n]*+|[/#-])*+""",
    re.DOTALL,
)
_LEADING = re.compile(r"\A(?:\s++|/\*(?:[^*]++|\*(?!/))*+\*/)*+", re.DOTALL)
_CREATES = re.compile(r"CREATE\b", re.IGNORECASE)
_LARGEST = 64 << 20


class FilePlace(Position):
    """A file in the place of a message's position."""

    def __str__(self) -> str:
        """`file=shop.orders-schema.sql`."""
        return f"file={self.topic}"


def place_of(path: Path) -> FilePlace:
    """Where errors say that a statement is from."""
    return FilePlace(path.name, 0, 0)


def statement_of(path: Path) -> str:
    """The one CREATE statement of a file, without what is around it. Raises InputError."""
    try:
        with opened(path) as stream:
            text = stream.read(_LARGEST).decode("utf-8")
    except (*UNREADABLE, UnicodeDecodeError) as error:
        raise InputError(f"a dump's file can't be read: {error}", where=f"file={path.name}") from error
    at, found = 0, []
    while at < len(text):
        match = _STATEMENT.match(text, at)
        part = match[0] if match else text[at:]
        at += len(part) + 1
        sql = _LEADING.sub("", part, count=1).strip()
        if _CREATES.match(sql):
            found.append(sql)
    if len(found) != 1:
        raise InputError(
            f"a dump's definition has {len(found)} CREATE statements, one is needed",
            where=f"file={path.name}",
            hint="a dump that was cut off has to be created again",
        )
    return found[0]


def ddl_of(path: Path, tso: int, database: str, table: str = "") -> DdlEvent:
    """The DDL that makes what a file defines. Raises InputError."""
    name = TableName(database, table)
    kind = "CREATE TABLE" if table else "CREATE SCHEMA"
    return DdlEvent(
        position=place_of(path),
        commit_ts=CommitTs(tso),
        type=kind,
        database=database,
        table=table,
        sql=statement_of(path),
        adds=(name,) if table else (),
        dumped=True,
    )


def refuse_computed(defined: Sequence[ColumnDef], schema: TableSchema, file: str) -> None:
    """Raise TableMismatchError where the target does not compute a column that upstream does, and so the dump lacks."""
    for column in defined:
        own = schema.column(column.name)
        if column.generated is not None and own is not None and not own.generated:
            raise TableMismatchError(
                f"column {column.name!r} of {schema.name} is generated upstream, so the dump lacks its values, and here"
                " it is a column like others",
                where=f"file={file}",
                hint=f"make it GENERATED ALWAYS AS ({column.generated.expression}) STORED in the target, then go on;"
                " or leave the table out with filter.rules",
            )


def view_of(path: Path, tso: int, name: TableName) -> DdlEvent:
    """The DDL that makes a view, or replaces it. Raises InputError."""
    ddl = ddl_of(path, tso, *name)
    if not re.match(r"CREATE\s+OR\s+REPLACE\b", ddl.sql, re.IGNORECASE):
        ddl = replace(ddl, sql=_CREATES.sub("CREATE OR REPLACE", ddl.sql, count=1))
    return replace(ddl, type="CREATE VIEW", adds=())


def in_order(views: Iterable[DdlEvent]) -> list[DdlEvent]:
    """Views after those that their text names."""
    waiting = list(views)
    found: list[DdlEvent] = []
    while waiting:
        names = {id(one): f"`{one.table}`" for one in waiting}
        free = [v for v in waiting if not any(names[id(o)] in _query(v.sql) for o in waiting if o is not v)]
        found += free or waiting
        waiting = [one for one in waiting if one not in found]
    return found


def _query(sql: str) -> str:
    """What follows a view's name."""
    return re.split(r"\bAS\b", sql, maxsplit=1, flags=re.IGNORECASE)[-1]
