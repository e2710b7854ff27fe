"""Reads a DDL statement that may be slow to read in a process of its own first, within a time limit.

What reads statements takes time linear in their length, and tests double the input to see it. This is the net below
them: a statement that is slow all the same holds a process that can be ended, not ours with all its changefeeds, for
Python's regular expressions can't be interrupted. The queries of views are read by sqlglot, which promises no such
time: `CHAR(CHAR(...` takes it twice as long with each bracket, so 400 characters would hold a process for a year.
"""

import os
import subprocess
import sys
from collections import OrderedDict
from hashlib import sha256

from consumer.runtime.secrets import visible
from ordering.errors import InputError
from sinks.ddl.parse.statement import DdlKind, read_statement
from sinks.ddl.parse.tables import read_changes, read_table
from sinks.ddl.parse.views import read_view
from sinks.ddl.ticdc_allow_list import clauses_of

SHORT = 64 << 10
"""Characters up to which a statement is read at once: even time that grows with the square is short then."""
FEW_BRACKETS = 8
"""Opening ones up to which a view is read at once: twice as long for each is short then."""
LIMIT_S = 30.0

_read: OrderedDict[bytes, bool] = OrderedDict()
_KEPT = 64


def check_time(sql: str) -> None:
    """Raise InputError for a statement that takes too long to read. What else is wrong with it is not said here."""
    if not _may_be_slow(sql):
        return
    text = sql.encode(errors="surrogatepass")
    digest = sha256(text).digest()
    if digest not in _read:  # a statement is looked at again in each round until its turn comes
        _read[digest] = _in_time(text)
        if len(_read) > _KEPT:
            _read.popitem(last=False)
    if not _read[digest]:
        fact = f"a DDL statement of {len(sql)} characters can't be read within {LIMIT_S:.0f} s: {sql[:200]!r}"
        raise InputError(fact)


def _may_be_slow(sql: str) -> bool:
    return len(sql) > SHORT or (sql.count("(") > FEW_BRACKETS and "VIEW" in sql.upper())


def _in_time(text: bytes) -> bool:
    command = [sys.executable, "-m", "consumer.ddl.trial_parse"]
    try:
        subprocess.run(command, input=text, env=visible(os.environ), capture_output=True, timeout=LIMIT_S, check=False)  # noqa: S603 ourselves
    except subprocess.TimeoutExpired:
        return False
    return True


def main() -> None:
    """Read the statement on stdin; how that ends does not matter."""
    sql = sys.stdin.buffer.read().decode(errors="surrogatepass")
    statement = read_statement(sql)
    clauses_of(sql)
    if statement.kind is DdlKind.CREATE_VIEW:
        read_view(statement.sql).parsed()
    if statement.kind is DdlKind.CREATE_TABLE and statement.like is None:
        read_table(statement.sql)
    elif statement.kind is DdlKind.ALTER_TABLE:
        read_changes(statement.sql)


if __name__ == "__main__":
    main()
