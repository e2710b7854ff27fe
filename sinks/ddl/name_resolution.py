"""Finds which tables a statement means: the database of a name that it leaves unqualified, the case of names.

`database` in a message is that of the table after the DDL, not the session's: the old name of a RENAME and the model of
a CREATE LIKE may lie in another one, which only the target's tables can tell.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import islice

from ordering.errors import InputError
from ordering.events import DdlEvent, TableName
from sinks.ddl.parse.lexer import Canonical
from sinks.ddl.parse.statement import DdlKind, Statement, TableReference, read_statement
from sinks.ddl.parse.views import CannotSayError, read_view
from sinks.ddl.parse.words import Word, WordKind, Words
from sinks.rows.schema import Catalog

_INTRODUCING = {"TABLE", "VIEW"}
"""Words before the name of a table; `ON` only in CREATE and DROP INDEX, a comma only between whole tables."""


def respelled(given: str, database: str, catalog: Catalog, *, features: bool = False) -> Canonical:
    """The statement with its tables and databases spelled as in the target, where names that differ by case are two.

    `features`: see `Words`.
    """
    read = Words(given, features=features)
    sql = str(read.sql)
    for word, name in reversed(list(_edits(sql, read.words, database, catalog))):
        sql = f"{sql[: word.start]}`{name.replace('`', '``')}`{sql[word.stop :]}"
    return Canonical(sql)


def _edits(sql: str, words: Sequence[Word], database: str, catalog: Catalog) -> Iterator[tuple[Word, str]]:
    """The names that the target spells in another way, and how."""
    first = [word.text.upper() for word in words[:2]]
    if first[-1:] in (["DATABASE"], ["SCHEMA"]):
        yield from _of_database(words, catalog)
        return
    introducing = _INTRODUCING | ({","} if first in (["DROP", "TABLE"], ["RENAME", "TABLE"]) else set())
    introducing |= {"ON"} if "INDEX" in [word.text.upper() for word in words[:3]] else set()
    if any(_is_plain(word, "LIKE") for word in words) and read_statement(sql).like is not None:
        introducing |= {"LIKE"}
    goals = {"TO", "AS"} if first in (["RENAME", "TABLE"], ["ALTER", "TABLE"]) else set()
    for before, at in zip(words, range(1, len(words)), strict=False):
        if (
            before.kind is not WordKind.PLAIN
            or words[at].kind is WordKind.STRING
            or _is_plain(words[at], "IF", "TABLE")
        ):
            continue
        verb = before.text.upper()
        qualified = len(words) > at + 2 and words[at + 1].text == "."
        if verb in introducing or (verb == "TRUNCATE" and at == 1) or _ends_condition(words[max(at - 4, 0) : at]):
            names = [words[at], words[at + 2]] if qualified else [words[at]]
            meant = TableName(names[0].text if qualified else database, names[-1].text)
            found = catalog.spelled(meant)
            yield from zip(names, found if qualified else found[1:], strict=True) if found != meant else ()
        elif verb in goals and qualified:  # a new name is as it is written
            yield words[at], catalog.database(words[at].text)


def _ends_condition(words: Sequence[Word]) -> bool:
    """Whether words end with TABLE or VIEW IF [NOT] EXISTS: of columns and indexes there is such a condition, too."""
    texts = [word.text.upper() if word.kind is WordKind.PLAIN else "" for word in words]
    return [text for text in texts if text != "NOT"][-3:] in (["TABLE", "IF", "EXISTS"], ["VIEW", "IF", "EXISTS"])


def _is_plain(word: Word, *texts: str) -> bool:
    return word.kind is WordKind.PLAIN and word.text.upper() in texts


def _of_database(words: Sequence[Word], catalog: Catalog) -> Iterator[tuple[Word, str]]:
    """The name of a statement that is about a database."""
    behind = (w for w in words[2:] if w.kind is not WordKind.PLAIN or w.text.upper() not in {"IF", "NOT", "EXISTS"})
    for word in islice(behind, 1):
        yield word, catalog.database(word.text)


def older_database(statement: Statement, reference: TableReference, ddl: DdlEvent, catalog: Catalog) -> str:
    """The database of an unqualified old name. Raises InputError where two readings are possible."""
    if told := dict(ddl.olders).get(reference.table.lower()):
        return catalog.database(told)
    holders = sorted(catalog.databases_with(reference.table))
    if len(holders) == 1:
        return holders[0]
    if readings_of(statement, reference, catalog):
        raise InputError(
            f"DDL names {reference.table!r} without its database, and {', '.join(holders)} each have one: {ddl.sql}",
            where=str(ddl.position),
            hint="specify all database names in such statements upstream, or set source.upstream.uri, so that upstream"
            " is asked which; here execute it by hand",
        )
    return catalog.database(ddl.own_database)


def readings_of(statement: Statement, reference: TableReference, catalog: Catalog) -> list[str]:
    """The databases of which an unqualified old name may be, where the statement leaves several possible; else none."""
    holders = sorted(catalog.databases_with(reference.table))
    return holders if len(holders) > 1 and _crosses(statement) else []


def _crosses(statement: Statement) -> bool:
    """Whether the statement names another table with its database: then the session's may be another one."""
    return any(r.database is not None for r in (*statement.tables, *(new for _, new in statement.renames)))


def session_of(statement: Statement, ddl: DdlEvent, catalog: Catalog, others: Callable[[], Iterable[TableName]]) -> str:
    """The database of the names that a statement leaves without one, old names of a RENAME aside.

    A view without a database is in the session's; one with may be made out of another. `others`: the views that are
    there. Raises InputError where several databases hold all that a view reads.
    """
    own = catalog.database(ddl.own_database)
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
