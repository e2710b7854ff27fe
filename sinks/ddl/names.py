"""Finds the database of a name that a statement leaves unqualified.

`database` in a message is that of the table after the DDL, not the session's: the old name of a RENAME and the model of
a CREATE LIKE may lie in another one, which only the target's tables can tell.
"""

from ordering.errors import InputError
from ordering.events import DdlEvent
from sinks.ddl.statement import Reference, Statement
from sinks.schema import Catalog


def older_database(statement: Statement, reference: Reference, ddl: DdlEvent, catalog: Catalog) -> str:
    """The database of an unqualified old name. Raises InputError where two readings are possible."""
    holders = sorted(catalog.databases_with(reference.table))
    if len(holders) == 1:
        return holders[0]
    if len(holders) > 1 and _crosses(statement):
        raise InputError(
            f"DDL names {reference.table!r} without its database, and {', '.join(holders)} each have one: {ddl.sql}",
            where=str(ddl.position),
            hint="specify all database names in such statements upstream; here execute it by hand",
        )
    return ddl.database


def _crosses(statement: Statement) -> bool:
    """Whether the statement names another table with its database: then the session's may be another one."""
    return any(r.database is not None for r in (*statement.tables, *(new for _, new in statement.renames)))
