"""The tables that a DDL names besides those that it is about: what a foreign key refers to, what a view reads.

TiCDC looks at the table that a DDL is about, and sends the statement whole. A target may hold more than the changefeed
has to do with, so the filter judges these names too. Within the statement's own database a foreign key may refer to a
table that the rules leave out, as TiCDC's users have it; a view reads rows, so each of its tables has to count.
"""

from collections.abc import Iterator
from itertools import pairwise
from typing import NamedTuple

from ordering.errors import InputError
from ordering.events import DdlEvent, TableName
from sinks.ddl.parse.statement import DdlKind, Statement
from sinks.ddl.parse.views import CannotSayError, View, read_view
from sinks.ddl.parse.words import Word, WordKind, Words

_NAMES = (WordKind.PLAIN, WordKind.NAME)
_READS = frozenset({"REFERENCES", "LIKE", "NEXTVAL", "LASTVAL", "SETVAL", "FOR"})
"""What stands before a table or a sequence, also with a bracket between, and never before a column."""


class QualifiedName(NamedTuple):
    """Two words with a dot between. `before`: in capitals what stands before them, brackets apart."""

    before: str
    word: Word
    name: Word
    is_called: bool
    """Whether a bracket follows: what a foreign key refers to, or a function."""


def qualified(sql: str) -> Iterator[QualifiedName]:
    """All names with a dot in a statement."""
    words = Words(sql, features=True).words
    last = ""
    for at, (word, following) in enumerate(pairwise(words)):
        before, last = last, last if word.text == "(" else word.text.upper()
        if word.kind not in _NAMES:
            continue
        if following.text == "." and at + 2 < len(words):
            yield QualifiedName(before, word, words[at + 2], [w.text for w in words[at + 3 : at + 4]] == ["("])
        elif following.text.startswith(".") and following.start == word.stop:  # `d.1t`: a name to MySQL, to us a number
            yield QualifiedName(before, word, following, is_called=False)


def names_beside(ddl: DdlEvent, statement: Statement) -> Iterator[TableName]:
    """The tables that the filter has to take in. Raises InputError for a view that can't be read."""
    if statement.kind is DdlKind.CREATE_VIEW:
        yield from _read_by(ddl, read_view(ddl.sql))
        return
    if statement.renames:
        return  # what is renamed out of the filter, or into it, is judged by itself
    own = {reference.table.lower() for reference in statement.tables}
    for before, word, name, is_called in qualified(ddl.sql):
        is_column = word.text.lower() in own and before not in _READS and not is_called
        if not is_column and word.text.lower() != ddl.database.lower():
            yield TableName(word.text, name.text)


def _read_by(ddl: DdlEvent, view: View) -> Iterator[TableName]:
    """What the query names as a table; and what could be one, if a server reads it otherwise than we do."""
    from sqlglot import exp  # noqa: PLC0415 it takes long to load, and few meet a view

    try:
        query = view.parsed()
    except CannotSayError as error:
        hint = "decide about it with `reconciler ddl`, or exclude the view in the changefeed's filter rules"
        raise InputError(f"the tables of a view can't be judged by filter.rules: {error}", hint=hint) from error
    apart = {one.alias for one in query.find_all(exp.CTE)}
    for table in query.find_all(exp.Table):
        if table.db or table.name not in apart:
            yield TableName(table.db or ddl.database, table.name)
    known = {one.alias_or_name.lower() for kind in (exp.Table, exp.CTE, exp.Subquery) for one in query.find_all(kind)}
    known.add(ddl.database.lower())
    for _, word, name, is_called in qualified(view.query):
        if word.text.lower() not in known or (is_called and word.text.lower() != ddl.database.lower()):
            yield TableName(word.text, name.text)
