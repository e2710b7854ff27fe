"""Reads a DDL statement that may be slow to read in a process of its own first.

What reads statements takes time linear in their length, and tests double the input to see it. This is the net below
them, for a statement that is slow all the same. The queries of views are read by sqlglot, which promises no such time:
`CHAR(CHAR(...` and `t JOIN t JOIN ...` take it twice as long with each, so 300 characters would hold a process for a
year.
"""

from consumer.runtime import trial
from ordering.errors import InputError
from sinks.ddl.parse import branching
from sinks.ddl.parse.statement import DdlKind, read_statement
from sinks.ddl.parse.tables import read_changes, read_table
from sinks.ddl.parse.views import read_view
from sinks.ddl.parse.words import Words
from sinks.ddl.ticdc_allow_list import clauses_of

SHORT = 64 << 10
"""Characters up to which a statement is read at once: even time that grows with the square is short then."""


def check_time(sql: str) -> None:
    """Raise InputError for a statement that takes too long to read. What else is wrong with it is not said here."""
    if _may_be_slow(sql) and not trial.is_read_in_time("consumer.ddl.trial_parse", sql):
        fact = f"a DDL statement of {len(sql)} characters can't be read within {trial.LIMIT_S:.0f} s: {sql[:200]!r}"
        raise InputError(fact)


def _may_be_slow(sql: str) -> bool:
    if len(sql) > SHORT:
        return True
    if "VIEW" not in sql.upper():
        return False
    words = Words(sql, features=True)
    words.skip_to("VIEW")
    return branching.may_be_slow(words.words[words.at :])


def _read(sql: str) -> None:
    statement = read_statement(sql)
    clauses_of(sql)
    if statement.kind is DdlKind.CREATE_VIEW:
        read_view(statement.sql).parsed()
    if statement.kind is DdlKind.CREATE_TABLE and statement.like is None:
        read_table(statement.sql)
    elif statement.kind is DdlKind.ALTER_TABLE:
        read_changes(statement.sql)


if __name__ == "__main__":
    trial.read_stdin(_read)
