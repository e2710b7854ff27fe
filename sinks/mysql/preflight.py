"""What `reconciler check` looks for on a MySQL-family server: rights, triggers, cascades, collations of keys."""

import re
from collections.abc import Iterator
from fnmatch import fnmatchcase

from ordering.errors import TargetError
from ordering.events import TableName
from sinks.bookkeeping.tables import PROGRESS_DATABASE
from sinks.mysql.catalog import ENGINE, unfit_engine
from sinks.mysql.connection import MysqlConnection
from sinks.rows.schema import Catalog

_SYSTEM = "('mysql', 'information_schema', 'performance_schema', 'sys')"
_CASCADES = f"""
SELECT CONSTRAINT_SCHEMA, TABLE_NAME, CONSTRAINT_NAME FROM information_schema.REFERENTIAL_CONSTRAINTS
WHERE CONSTRAINT_SCHEMA NOT IN {_SYSTEM} AND (DELETE_RULE IN ('CASCADE', 'SET NULL')
  OR UPDATE_RULE IN ('CASCADE', 'SET NULL')) ORDER BY 1, 2, 3"""  # noqa: S608 a constant
_OUR_ENGINES = f"""
SELECT TABLE_NAME, ENGINE FROM information_schema.TABLES
WHERE TABLE_SCHEMA = '{PROGRESS_DATABASE}' AND TABLE_TYPE = 'BASE TABLE' AND ENGINE <> '{ENGINE}'"""  # noqa: S608 constants
_GRANT = re.compile(r"GRANT (.+?) ON (?:TABLE )?(\*|`(?:[^`]|``)+`|\w+)\.(\*|`(?:[^`]|``)+`|\w+) TO ", re.IGNORECASE)
_OURS = {
    "SELECT", "INSERT", "UPDATE", "DELETE", "CREATE", "DROP", "ALTER", "INDEX", "CREATE TEMPORARY TABLES",
    "CREATE VIEW", "SHOW VIEW",
}  # fmt: skip
_THEIRS = {
    "SELECT", "INSERT", "UPDATE", "DELETE", "CREATE", "DROP", "ALTER", "INDEX", "REFERENCES", "CREATE VIEW",
    "SHOW VIEW",
}  # fmt: skip
"""Least rights on our database and on replicated ones; `docs/security.md` says what for."""
_READING = {"SELECT", "SHOW VIEW", "USAGE", "LOCK TABLES", "EXECUTE"}
"""Who may do no more than this in a database is not meant to replicate into it."""
_ALL = {"ALL", "ALL PRIVILEGES"}


def check_rights(connection: MysqlConnection) -> str:
    """What rights the user has. Raises TargetError if they can't suffice."""
    grants = [str(row[0]) for row in connection.query("SHOW GRANTS")]
    if any(grant.upper().startswith("GRANT `") or " ON " not in grant.upper() for grant in grants):
        return "rights come by roles, which are not looked into"
    lacking = {PROGRESS_DATABASE: _OURS - _granted(grants, PROGRESS_DATABASE)}
    theirs = [place for place, rights in _merged(grants) if not _is_ours(place) and rights - _READING]
    lacking |= {place: _THEIRS - _granted(grants, place) for place in theirs}
    if not theirs:
        lacking["each replicated database"] = _THEIRS
    missing = {place: rights for place, rights in lacking.items() if rights}
    if missing:
        raise _lacks(connection, missing)
    return f"rights on {', '.join('all databases' if place == '*' else place for place in theirs)}"


def _is_ours(place: str) -> bool:
    return place.replace("\\", "") == PROGRESS_DATABASE


def _merged(grants: list[str]) -> list[tuple[str, set[str]]]:
    """(database or its pattern, all rights on it), by name."""
    found: dict[str, set[str]] = {}
    for place, rights in _places(grants):
        found.setdefault(place, set()).update(rights)
    return sorted(found.items())


def _lacks(connection: MysqlConnection, missing: dict[str, set[str]]) -> TargetError:
    wanted = "; ".join(f"{place}: {', '.join(sorted(rights))}" for place, rights in missing.items())
    return TargetError(
        f"the user lacks rights on {wanted}",
        where=connection.where,
        hint="GRANT them ON that database.* (or ON *.*) to the target's user: see `reconciler help security`",
    )


def _places(grants: list[str]) -> Iterator[tuple[str, set[str]]]:
    """(database or its pattern, rights) of each grant on whole databases."""
    for grant in grants:
        match = _GRANT.match(grant)
        if match is not None and match[3] == "*":
            rights = {right.strip().upper() for right in match[1].split(",")}
            database = match[2].strip("`").replace("``", "`")
            yield database, _OURS | _THEIRS if rights & _ALL else rights


def _granted(grants: list[str], database: str) -> set[str]:
    return {right for place, rights in _places(grants) if _covers(place, database) for right in rights}


def _covers(place: str, database: str) -> bool:
    """Whether a grant's pattern (`%`, `_`, both after a backslash plain) covers a database."""
    if place in {"*", database}:
        return True
    pattern = re.sub(r"\\([%_])", r"[\1]", place.replace("[", "[[]"))
    return fnmatchcase(database, re.sub(r"(?<!\[)%", "*", re.sub(r"(?<!\[)_", "?", pattern)))


def check_engines(connection: MysqlConnection) -> None:
    """Raise TargetError if a progress table is in no transaction: its storage engine is another one than InnoDB."""
    for name, engine in connection.query(_OUR_ENGINES):
        table = TableName(PROGRESS_DATABASE, name)
        unfit = unfit_engine(table, engine)
        if unfit is not None:
            raise TargetError(f"table {table}: {unfit.fact}", where=connection.where, hint=unfit.remedy)


def told_of_tables(connection: MysqlConnection, catalog: Catalog) -> Iterator[str]:
    """What is worth knowing of tables that are there already, a line each."""
    for database, table, name in connection.query(_CASCADES):
        yield f"foreign key {name} of {database}.{table} will not cascade: upstream sends the rows that it cascaded to"
    for schema in catalog.tables.values():
        yield from schema.acting
        if schema.unfit:
            yield f"table {schema.name} takes no rows: {schema.unfit}; make it so: {schema.remedy}"
        folding = [column.name for column in schema.columns if column.folds and column.name in schema.handle_key]
        if folding:
            yield (
                f"key {', '.join(folding)} of {schema.name} takes texts that differ in case or accents for one: as long"
                " as upstream does too; where it does not, the row is refused"
            )
