"""ALTER TABLE statements without some of their clauses."""

import re
from collections.abc import Callable

from ordering.events import folded
from sinks.ddl.model import AddColumn, AddIndex, Change
from sinks.ddl.parse.lexer import Canonical
from sinks.ddl.parse.tables import added_element, altering, clause, clauses
from sinks.ddl.parse.words import Words

_CONDITION = re.compile(r"\w+\s+(UNIQUE\s+)?((COLUMN|INDEX|KEY)\s*)?(/\*T!\s*)?IF\s+(NOT\s+)?EXISTS\b", re.IGNORECASE)
"""How a clause begins that upstream has executed only if something was there, or was not."""


def without(sql: str, leaves_out: Callable[[Change], bool]) -> str:
    """An ALTER TABLE without some of its clauses; "" if none stays. Raises InputError."""
    words = altering(sql)
    head = words.sql[: words.words[words.at - 1].stop]
    kept = [text for text, changes in clauses(words) if not any(map(leaves_out, changes))]
    return Canonical(f"{head} {', '.join(kept)}") if kept else ""


def without_idle(sql: str, changes_nothing: Callable[[Change], bool]) -> str:
    """An ALTER TABLE without those of its clauses with IF EXISTS or IF NOT EXISTS that change nothing.

    Of a clause that adds several columns, those stay that upstream has added. "" if none stays. Raises InputError.
    """
    words = altering(sql)
    head = words.sql[: words.words[words.at - 1].stop]
    kept: list[str] = []
    is_whole = True
    while not words.ended:
        at, first = words.at, words.words[words.at]
        listed = _enters_columns(words)
        words.at = at
        changes = list(clause(words))
        end, last = words.at, words.words[words.at - 1]
        text = left = words.sql[first.start : last.stop]
        judged = changes if _CONDITION.match(sql[first.origin : last.origin]) else []
        idle = [(isinstance(one, AddColumn) or not listed) and changes_nothing(one) for one in judged]
        if any(idle):
            words.at = at
            left = "" if all(idle) else _without_columns(words, changes_nothing) or text
            words.at = end
        is_whole &= left == text
        kept += [left] if left else []
        if not words.ended:
            words.expect(",")
    if is_whole:
        return sql
    return Canonical(f"{head} {', '.join(kept)}") if kept else ""


def conditional_indexes(sql: str) -> frozenset[str]:
    """The indexes, folded, that an ALTER TABLE makes only if there is none of the name. Raises InputError."""
    found: set[str] = set()

    def note(change: Change) -> bool:
        found.update({folded(change.index.known_as)} if isinstance(change, AddIndex) else ())
        return False

    without_idle(sql, note)
    return frozenset(found)


def without_those_there(sql: str, given: str, is_there: Callable[[str], bool]) -> str:
    """An ALTER TABLE without the indexes that upstream made only if it had none of the name, where the target has one.

    `given`: as it came, with the conditions in comments. Raises InputError.
    """
    there = {name for name in conditional_indexes(given) if is_there(name)} if "EXISTS" in given.upper() else set()

    def is_idle(change: Change) -> bool:
        return isinstance(change, AddIndex) and folded(change.index.known_as) in there

    return (without(sql, is_idle) or sql) if there else sql


def _enters_columns(words: Words) -> bool:
    """Step into ADD COLUMN (...), if it comes: its condition is of the columns, not of an index among them."""
    is_added = words.peek() == "ADD"
    words.take()
    words.skip("COLUMN")
    words.skip("IF", "NOT", "EXISTS")
    return words.skip("(") and is_added


def _without_columns(words: Words, changes_nothing: Callable[[Change], bool]) -> str:
    """An ADD COLUMN (...) without those of its columns that change nothing; "" if it has no such list."""
    start = words.words[words.at].start
    if not _enters_columns(words):
        return ""
    head, kept = words.sql[start : words.words[words.at - 1].stop], []
    while True:
        first = words.words[words.at]
        element, *_ = added_element(words, if_missing=True)
        is_idle = isinstance(element, AddColumn) and changes_nothing(element)
        kept += [] if is_idle else [words.sql[first.start : words.words[words.at - 1].stop]]
        if not words.skip(","):
            return f"{head}{', '.join(kept)})" if kept else ""
