"""What keeps tables from being written exactly, of all tables in one query: looked for whenever the catalog is read."""

from ordering.events import TableName
from sinks.postgres.catalog import OURS, of_one
from sinks.postgres.connection import PostgresConnection
from sinks.postgres.names import place
from sinks.rows.schema import Unfit

_BEFORE = 2
"""The bit of pg_trigger.tgtype that says BEFORE (PostgreSQL's source, catalog/pg_trigger.h)."""
_OF_TABLES = f"""
WITH RECURSIVE root AS (
  SELECT c.oid, n.nspname, c.relname, c.relkind FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
  WHERE c.relkind IN ('r', 'p') AND NOT c.relispartition AND {OURS}),
part AS (
  SELECT oid AS root, oid FROM root
  UNION ALL SELECT p.root, i.inhrelid FROM part p JOIN root r ON r.oid = p.root AND r.relkind = 'p'
    JOIN pg_inherits i ON i.inhparent = p.oid),
found AS (
  SELECT p.root, 'foreign' AS kind, c.oid::regclass::text AS name FROM part p JOIN pg_class c ON c.oid = p.oid
    WHERE c.relkind = 'f'
  UNION ALL SELECT p.root, 'unlogged', c.oid::regclass::text FROM part p JOIN pg_class c ON c.oid = p.oid
    WHERE c.relpersistence = 'u'
  UNION ALL SELECT p.root, 'hidden', c.oid::regclass::text FROM part p JOIN pg_class c ON c.oid = p.oid
    WHERE c.relrowsecurity AND row_security_active(c.oid)
  UNION ALL SELECT r.oid, 'inherited', i.inhrelid::regclass::text FROM root r JOIN pg_inherits i ON i.inhparent = r.oid
    WHERE r.relkind = 'r'
  UNION ALL SELECT r.oid, 'rule', w.rulename FROM root r JOIN pg_rewrite w ON w.ev_class = r.oid
    WHERE w.ev_type <> '1' AND w.ev_enabled = ANY (%s)
  UNION ALL SELECT p.root, 'trigger', g.tgname FROM part p JOIN pg_trigger g ON g.tgrelid = p.oid
    WHERE g.tgenabled = ANY (%s) AND (g.tgisinternal OR %s OR (g.tgtype & {_BEFORE}) <> 0))
SELECT r.nspname, r.relname, f.kind, f.name FROM found f JOIN root r ON r.oid = f.root
ORDER BY 1, 2, 3 DESC, 4 DESC"""  # noqa: S608 a constant
_FIRING = f"""
WITH RECURSIVE part AS (
  SELECT c.oid AS root, c.oid, n.nspname, c.relname FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
    WHERE c.relkind IN ('r', 'p') AND NOT c.relispartition AND {OURS}
  UNION ALL SELECT p.root, i.inhrelid, p.nspname, p.relname FROM part p JOIN pg_inherits i ON i.inhparent = p.oid)
SELECT DISTINCT p.nspname, p.relname, g.tgname FROM part p JOIN pg_trigger g ON g.tgrelid = p.oid
WHERE NOT g.tgisinternal AND g.tgenabled = ANY (%s) ORDER BY 1, 2, 3"""  # noqa: S608 a constant
_SILENT, _LOUD = ["A", "R"], ["A", "O"]
"""What fires in a session whose replication role is `replica`, and in another (PostgreSQL manual, "ALTER TABLE")."""


def unfit_tables(db: PostgresConnection, only: TableName | None = None) -> dict[TableName, Unfit]:
    """The tables that can't be written, and why; of several reasons one. `only`: look at this one."""
    firing = _SILENT if db.fires_nothing else _LOUD
    sql = of_one(_OF_TABLES) if only else _OF_TABLES
    found = db.query(sql, (*(only or ()), firing, firing, not db.fires_nothing))
    return {name: _unfit(name, kind, what) for *at, kind, what in found for name in [TableName(*at)]}


def firing_triggers(db: PostgresConnection, only: TableName | None = None) -> dict[TableName, list[str]]:
    """The triggers that fire in our sessions, by table. `only`: look at this one."""
    found: dict[TableName, list[str]] = {}
    sql = of_one(_FIRING) if only else _FIRING
    for schema, table, name in db.query(sql, (*(only or ()), _SILENT if db.fires_nothing else _LOUD)):
        found.setdefault(TableName(schema, table), []).append(name)
    return found


def _unfit(table: TableName, kind: str, what: str) -> Unfit:
    fact, hint = _SAID[kind]
    return Unfit(fact.format(what=what), "run on the target: " + hint.format(table=place(table), what=what))


_SAID = {
    "foreign": (
        "has the foreign table {what} as a partition, which does not commit together with the progress",
        "ALTER TABLE {table} DETACH PARTITION {what}, and give it a partition of its own",
    ),
    "unlogged": (
        "is unlogged ({what}): the server empties it after a crash, and the progress stays",
        "ALTER TABLE {what} SET LOGGED",
    ),
    "hidden": (
        "has row security that hides rows of {what} from this user",
        "ALTER ROLE ... BYPASSRLS for the target's user, or ALTER TABLE {what} DISABLE ROW LEVEL SECURITY",
    ),
    "inherited": (
        "has the child {what}: statements about it would also change the child's rows",
        "ALTER TABLE {what} NO INHERIT {table}",
    ),
    "rule": (
        "has the rule {what!r}, which puts other statements in the place of ours",
        "ALTER TABLE {table} DISABLE RULE the rule, or DROP it",
    ),
    "trigger": (
        "has the trigger {what!r}, which fires in our sessions and may change or drop what is written",
        "ALTER TABLE {table} DISABLE TRIGGER the trigger, or ENABLE it for ordinary sessions alone",
    ),
}
