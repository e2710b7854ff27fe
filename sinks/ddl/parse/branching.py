"""How often a parser of queries may have to read the same words again.

sqlglot tries one reading, goes back, and tries another: of a table behind JOIN, of `CHAR(`, of `[`. Nested, each of
them can double its time or more, so what counts is how many words there are that may begin such a thing. Most words of
a statement that TiDB prints are none: names in quotes, literals, and these.
"""

from collections.abc import Iterable

from sinks.ddl.parse.lexer import Word, WordKind

FEW = 10
"""So many take a second at most: sqlglot takes up to 2.2 times as long with each."""
_SIMPLE = frozenset({",", ".", ")", "=", "<", ">", "<=", ">=", "<>", "AS", "FROM", "WHERE", "ON", "AND"})


def may_be_slow(words: Iterable[Word]) -> bool:
    """Whether reading these words as a query, or a condition, may take long."""
    return sum(_may_branch(word) for word in words) > FEW


def _may_branch(word: Word) -> bool:
    if word.kind is not WordKind.PLAIN:
        return False
    return not (word.text.upper() in _SIMPLE or (word.text.isascii() and word.text[0].isdigit()))
