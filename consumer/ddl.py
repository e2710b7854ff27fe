"""From a DDL message to a DdlEvent: which tables it takes away, which it brings."""

from collections.abc import Iterable

from consumer.scan import RawDdl
from ordering.errors import InputError
from ordering.events import DdlEvent, TableName
from ordering.timestamps import CommitTs
from sinks.ddl.statement import DdlKind, Reference, read_statement
from sinks.schema import Catalog


def understood(raw: RawDdl, catalog: Catalog, carried: Iterable[TableName]) -> DdlEvent:
    """Read the statement. An unqualified old name belongs to the one table so named that the message's topic carries.

    Raises InputError with the position if the statement can't be read.
    """
    own = {name.database for name in carried}

    def older(reference: Reference) -> str:
        carriers = {t.database for t in carried if t.table == reference.table}
        holders = carriers or {d for d in catalog.databases_with(reference.table) if not own or d in own}
        return holders.pop() if len(holders) == 1 and raw.database not in holders else raw.database

    try:
        statement = read_statement(raw.sql).placed(raw.database, older)
    except InputError as error:
        raise InputError(error.fact, where=str(raw.position), hint=error.hint) from error
    return DdlEvent(
        position=raw.position,
        commit_ts=CommitTs(raw.commit_ts),
        type=raw.type,
        database=raw.database,
        table=raw.table,
        sql=raw.sql,
        removes=statement.removes(),
        adds=statement.adds(),
        drops_database=statement.database if statement.kind is DdlKind.DROP_DATABASE else None,
    )


def is_filtered(ddl: DdlEvent, accepts: "object") -> bool:
    """Whether the filter leaves the DDL out: none of the tables that it names counts."""
    names = {*ddl.removes, *ddl.adds}
    if ddl.table:
        names.add(TableName(ddl.database, ddl.table))
    if not names:
        return not accepts.accepts_database(ddl.database)  # type: ignore[attr-defined]
    return not any(accepts(*name) for name in names)  # type: ignore[operator]
