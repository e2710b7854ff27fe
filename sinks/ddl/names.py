"""Finds which tables a statement means: the database of a name that it leaves unqualified, the case of names.

`database` in a message is that of the table after the DDL, not the session's: the old name of a RENAME and the model of
a CREATE LIKE may lie in another one, which only the target's tables can tell.
"""

from collections.abc import Callable, Iterable

from ordering.errors import InputError
from ordering.events import DdlEvent, TableName
from sinks.ddl.lexer import Canonical
from sinks.ddl.statement import DdlKind, Reference, Statement
from sinks.ddl.views import CannotSayError, read_view
from sinks.ddl.words import Word, WordKind, Words
from sinks.schema import Catalog

_INTRODUCING = {"TABLE", "EXISTS", "LIKE", "VIEW", "TRUNCATE"}
"""Words before the name of a table; `ON` only in CREATE and DROP INDEX, a comma only between whole tables."""


def respelled(given: str, database: str, catalog: Catalog, *, features: bool = False) -> Canonical:
    """The statement with its tables spelled as in the target, where names that differ by case are two.

    `features`: see `Words`.
    """
    read = Words(given, features=features)
    sql, words = str(read.sql), read.words
    first = [word.text.upper() for word in words[:2]]
    introducing = _INTRODUCING | ({","} if first in (["DROP", "TABLE"], ["RENAME", "TABLE"]) else set())
    introducing |= {"ON"} if "INDEX" in [word.text.upper() for word in words[:3]] else set()
    edits: list[tuple[Word, str]] = []
    for before, at in zip(words, range(1, len(words)), strict=False):
        if before.kind is WordKind.PLAIN and before.text.upper() in introducing and words[at].text.upper() != "IF":
            qualified = len(words) > at + 2 and words[at + 1].text == "."
            names = [words[at], words[at + 2]] if qualified else [words[at]]
            meant = TableName(names[0].text if qualified else database, names[-1].text)
            found = catalog.spelled(meant)
            edits += zip(names, found if qualified else found[1:], strict=True) if found != meant else []
    for word, name in reversed(edits):
        sql = f"{sql[: word.start]}`{name.replace('`', '``')}`{sql[word.stop :]}"
    return Canonical(sql)


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
    return catalog.database(ddl.database)


def _crosses(statement: Statement) -> bool:
    """Whether the statement names another table with its database: then the session's may be another one."""
    return any(r.database is not None for r in (*statement.tables, *(new for _, new in statement.renames)))


def session_of(statement: Statement, ddl: DdlEvent, catalog: Catalog, others: Callable[[], Iterable[TableName]]) -> str:
    """The database of the names that a statement leaves without one, old names of a RENAME aside.

    A view without a database is in the session's; one with may be made out of another. `others`: the views that are
    there. Raises InputError where several databases hold all that a view reads.
    """
    own = catalog.database(ddl.database)
    if statement.kind is not DdlKind.CREATE_VIEW:
        return own
    try:
        view = read_view(ddl.sql)
        names = {name.lower() for name in view.unqualified()}
    except CannotSayError:
        return own  # it is left out
    if view.name.database is None or not names:
        return own
    there: dict[str, set[str]] = {}
    for table in (*catalog.tables, *others()):
        there.setdefault(table.database, set()).add(table.table.lower())
    holders = sorted(database for database, held in there.items() if names <= held)
    if len(holders) > 1:
        raise InputError(
            f"a view names {', '.join(sorted(names))} without database, and {', '.join(holders)} have such: {ddl.sql}",
            where=str(ddl.position),
            hint="specify all database names in such statements upstream; here execute it by hand",
        )
    return holders[0] if holders else own
