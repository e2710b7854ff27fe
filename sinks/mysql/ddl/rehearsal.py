"""Tries a statement on an empty table of our own that has the same definition: what would it make of the real one.

The table (or view) lies in the reconciler's database, and is gone afterwards.
"""

import re
from collections.abc import Mapping

import xxhash

from ordering.errors import TargetError, TargetUnreachableError
from ordering.events import TableName
from sinks.ddl.parse.options import without_collation
from sinks.ddl.parse.statement import read_statement
from sinks.ddl.parse.words import Words
from sinks.mysql.catalog import quoted
from sinks.mysql.connection import MysqlConnection

Settings = Mapping[str, str | float]
"""Session variables and their values, see `MysqlConnection.set_for_now`."""
_DATABASE = "ticdc_reconciler"
_NAME = r"(?:`(?:[^`]|``)*`\.)?`(?:[^`]|``)*`"
_HEAD = re.compile(rf"^(CREATE TABLE|CREATE .*?\bVIEW) {_NAME}", re.DOTALL)
_KEY = re.compile(r"^  ((\w+ )*KEY|CONSTRAINT) ")
_NAMED_BY_SERVER = re.compile(r"CONSTRAINT `(?:[^`]|``)*_(ibfk|chk)_\d+`")
"""Foreign keys and checks of which nobody said a name: called after the table, and again when it is renamed."""
_REFERENCE = re.compile(r"(?<=REFERENCES )(?:`(?:[^`]|``)*`\.)?(`(?:[^`]|``)*`)")
_IMPLIED = re.compile(r"CHARACTER SET \w+ (?=COLLATE )")
"""MySQL says it of a column that was made with a COLLATE of its own, as each is that is made from a definition."""
_COUNTERS = ("AUTO_INCREMENT=", "AUTO_RANDOM_BASE=")


def definition(connection: MysqlConnection, name: TableName) -> str | None:
    """The definition of a table or view without its name; None if it is not there."""
    look = "SELECT COUNT(*) FROM information_schema.TABLES WHERE TABLE_SCHEMA = %s AND TABLE_NAME = %s"
    if not connection.value(look, name):
        return None
    connection.run("USE information_schema")  # a view's definition leaves out the name of the session's database
    text = _shown(connection, f"{quoted(name.database)}.{quoted(name.table)}")
    # rows change the counter, a statement does not
    kept = " ".join(word for word in text.split(" ") if not word.startswith(_COUNTERS))
    return _HEAD.sub(r"\1", _IMPLIED.sub("", kept))


def _shown(connection: MysqlConnection, place: str) -> str:
    """What the server shows; the bytes of a default stand in it as they are."""
    try:
        return str(connection.query(f"SHOW CREATE TABLE {place}")[0][1])
    except TargetError as error:
        if error.__cause__ is None or not isinstance(error.__cause__.__cause__, UnicodeDecodeError):
            raise
        raise TargetError(
            f"the definition of {place} can't be read: a column's default is no UTF-8, which no DDL of upstream makes",
            where=error.where,
            hint=f"ALTER TABLE {place} ALTER COLUMN ... DROP DEFAULT (messages hold whole rows), then run again",
        ) from error


class Rehearsal:
    """Rehearses for one changefeed. `session`: the database that names without one belong to.

    `settings`: those of the session in which the statement runs.
    """

    def __init__(
        self, connection: MysqlConnection, changefeed: str, session: str | None, settings: Settings | None = None
    ) -> None:
        self._connection, self._session, self._settings = connection, session, settings or {}
        self._name = TableName(_DATABASE, f"rehearsal_{xxhash.xxh3_64_hexdigest(changefeed.encode())}")

    def of(self, before: str | None, *statements: str) -> str | None:
        """The definition that the statements would make of a table that has this one; None if they can't run."""
        place = f"{quoted(self._name.database)}.{quoted(self._name.table)}"
        self._drop(place)
        try:
            if self._session is not None:
                self._connection.run(f"USE {quoted(self._session)}")
            if before is not None:
                self._connection.run(f"CREATE TABLE {place}{before.removeprefix('CREATE TABLE')}")
            with self._connection.set_for_now(self._settings):
                for sql in filter(None, statements):
                    self._connection.run(retargeted(self._collated(sql), place))
            return definition(self._connection, self._name)
        except TargetUnreachableError:
            raise
        except TargetError:
            return None  # what can't be rehearsed can't be told: the caller says so
        finally:
            self._drop(place)

    def _collated(self, sql: str) -> str:
        """A CREATE TABLE that names no collation with that of its database: ours may have another one."""
        at = without_collation(sql)
        if at is None:
            return sql
        look = "SELECT DEFAULT_COLLATION_NAME FROM information_schema.SCHEMATA WHERE SCHEMA_NAME = %s"
        collation = self._connection.value(look, (read_statement(sql).tables[0].database or self._session,))
        return f"{sql[:at]} COLLATE {quoted(str(collation))}{sql[at:]}"

    def makes(self, now: str | None, before: str | None, *statements: str) -> bool:
        """Whether the statements make `now` of a table with the definition `before`, wherever an index stands.

        A definition does not tell everything (TiDB's of a column that lost its default reads like one that has none):
        what is there is created again for the comparison too.
        """
        made = self.of(before, *statements)
        if made is None or now is None:
            return made == now
        return alike(made) == alike(now) or alike(made) == alike(self.of(now) or "")

    def _drop(self, place: str) -> None:
        self._connection.run(f"DROP TABLE IF EXISTS {place}")
        self._connection.run(f"DROP VIEW IF EXISTS {place}")


def retargeted(sql: str, place: str) -> str:
    """The statement about another table: the one after TABLE or VIEW, in a statement about an index after ON."""
    words = Words(sql)
    if words.skip_to("TABLE", "VIEW", "INDEX") == "INDEX":
        words.skip_to("ON")
    words.skip("IF", "NOT", "EXISTS")
    start = words.take().start
    if words.skip("."):
        words.name()
    return f"{words.sql[:start]}{place}{words.sql[words.words[words.at - 1].stop :]}"


def alike(text: str, own: str = "") -> list[str]:
    """A definition's lines; those of indexes and constraints in one order, and without what follows from names.

    These are the names that the server makes, and of tables that a foreign key refers to their databases. `own`: the
    table's name, for keys that refer to it.
    """
    text = _REFERENCE.sub(lambda found: "`/own`" if found[1] == quoted(own) else found[1], text)
    lines = [_NAMED_BY_SERVER.sub(r"CONSTRAINT \1", line.rstrip(",")) for line in text.splitlines()]
    return [line for line in lines if not _KEY.search(line)] + sorted(line for line in lines if _KEY.search(line))
