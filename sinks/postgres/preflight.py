"""What `check` looks for, and what a run refuses: rights, settings, constraints that change rows by themselves."""

from collections.abc import Iterator

from ordering.errors import TargetError
from sinks.bookkeeping.tables import PROGRESS_DATABASE
from sinks.postgres.catalog import OURS
from sinks.postgres.connection import PostgresConnection
from sinks.target_session import DatabaseSession

OLDEST = 130000
"""PostgreSQL 13."""
_ENCODING = "UTF8"
_ACTING = f"""
SELECT 'foreign key', n.nspname || '.' || c.relname, x.conname FROM pg_constraint x
  JOIN pg_class c ON c.oid = x.conrelid JOIN pg_namespace n ON n.oid = c.relnamespace WHERE x.contype = 'f' AND {OURS}
UNION ALL
SELECT 'trigger', n.nspname || '.' || c.relname, g.tgname FROM pg_trigger g
  JOIN pg_class c ON c.oid = g.tgrelid JOIN pg_namespace n ON n.oid = c.relnamespace
  WHERE NOT g.tgisinternal AND g.tgenabled = 'O' AND {OURS} ORDER BY 2, 3"""  # noqa: S608 a constant
_RIGHTS = """
SELECT n.nspname || '.' || c.relname FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
WHERE c.relkind IN ('r', 'p') AND NOT c.relispartition AND """ + OURS + """
  AND NOT (has_schema_privilege(n.oid, 'USAGE') AND has_table_privilege(c.oid, 'SELECT')
           AND has_table_privilege(c.oid, 'INSERT') AND has_table_privilege(c.oid, 'DELETE'))
ORDER BY 1"""  # fmt: skip

_MAY = {"CREATE": "schemas", "TEMPORARY": "temporary tables"}


def refuse_what_acts_on_rows(db: PostgresConnection) -> None:
    """Refuse foreign keys and triggers that would act on what is written (R5), where the session can't silence them."""
    if db.fires_nothing:
        return
    for kind, table, name in db.query(_ACTING):
        raise TargetError(
            f"table {table} has the {kind} {name!r}, which would act on rows a second time",
            where=db.where,
            hint="GRANT SET ON PARAMETER session_replication_role to the user (PostgreSQL 15 and later), or drop it:"
            " upstream sends the rows that its own foreign keys and triggers changed",
        )


def findings(db: PostgresConnection, name: str) -> list[str]:
    """Lines about what is fine. Raises TargetError for the first thing that is not."""
    return list(_findings(db, name))


def usable_server(db: DatabaseSession, where: str) -> tuple[str, str]:
    """The server's version and the database's name. Raises TargetError for a server that can't be written."""
    number, version, encoding, database = db.query(
        "SELECT current_setting('server_version_num')::int, current_setting('server_version'),"
        " current_setting('server_encoding'), current_database()"
    )[0]
    if number < OLDEST:
        raise TargetError(f"PostgreSQL {version} is too old", where=where, hint="use PostgreSQL 13 or later")
    if encoding != _ENCODING:
        hint = "create the database with ENCODING 'UTF8'"
        raise TargetError(f"database {database!r} has the encoding {encoding}", where=where, hint=hint)
    if db.value("SELECT pg_is_in_recovery()"):
        raise TargetError("the server is a stand-by: it takes no writes", where=where, hint="name the primary server")
    return version, database


def _findings(db: PostgresConnection, name: str) -> Iterator[str]:
    version, database = usable_server(db, db.where)
    _refuse_missing_rights(db, database)
    refuse_what_acts_on_rows(db)
    silent = "off in our sessions" if db.fires_nothing else "none in the way"
    yield f"{name}: version {version}, database {database}; foreign keys and triggers: {silent}"


def _refuse_missing_rights(db: PostgresConnection, database: str) -> None:
    create, temporary, progress = db.query(
        "SELECT has_database_privilege(current_database(), 'CREATE'),"
        " has_database_privilege(current_database(), 'TEMP'),"
        " (SELECT has_schema_privilege(oid, 'USAGE') FROM pg_namespace WHERE nspname = %s)",
        (PROGRESS_DATABASE,),
    )[0]
    lacking = [right for right, there in (("CREATE", create), ("TEMPORARY", temporary)) if not there]
    if lacking:
        raise TargetError(
            f"the user may not create {' and '.join(_MAY[right] for right in lacking)} in database {database!r}",
            where=db.where,
            hint=f"GRANT {', '.join(lacking)} ON DATABASE ... TO the user",
        )
    if progress is False:
        hint = f"GRANT ALL ON SCHEMA {PROGRESS_DATABASE} and its tables to the user"
        raise TargetError(f"the user may not use schema {PROGRESS_DATABASE}", where=db.where, hint=hint)
    for (table,) in db.query(_RIGHTS):
        hint = "make the user the table's owner: it also has to change the table when a DDL comes"
        raise TargetError(f"the user may not read and write table {table}", where=db.where, hint=hint)
