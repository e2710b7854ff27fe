"""Unique indexes over all partitions of a table (GLOBAL, TiDB 8.4), which no other server has.

There a unique index of a partitioned table holds the columns that rows are partitioned by. One that does not is made
as a plain one where the table has a primary key: this tells rows apart, and that no two have one value is upstream's to
see to. Any other statement is left as it is, and the server refuses it.
"""

from collections.abc import Callable, Iterator, Sequence

from sinks.ddl.parse.words import Word, Words
from sinks.mysql.ddl.columns import is_word


def plain_globals(sql: str, has_primary_key: Callable[[], bool]) -> tuple[str, list[str]]:
    """The statement with such indexes as plain ones, and a note about each. Raises InputError if it can't be read.

    `has_primary_key`: whether the table that a statement changes has one; not asked where it makes the table.
    """
    if "GLOBAL" not in sql.upper():
        return sql, []
    sql, notes = _without_column_options(sql)
    words = Words(sql, features=True).words
    found = [one for one in _indexes(words) if any(is_word(word, "GLOBAL") for word in one[1])]
    makes = is_word(words[0], "CREATE") and is_word(words[1], "TABLE")
    if not found or not (_makes_primary_key(words) if makes else has_primary_key()):
        return sql, notes
    for head, _ in reversed(found):
        kind = next((word for word in head[1:2] if is_word(word, "INDEX", "KEY")), None)
        made = "" if kind is not None or is_word(words[1], "UNIQUE") else "INDEX"
        sql = f"{sql[: head[0].origin]}{made}{sql[head[0].origin + len('UNIQUE') :]}"
    return sql, notes + [_note(_named(head)) for head, _ in found]


def _note(index: str) -> str:
    return f"{index} is not unique here: the server has no indexes over all partitions"


def _without_column_options(sql: str) -> tuple[str, list[str]]:
    """A CREATE TABLE with `UNIQUE KEY GLOBAL` of a column as an index of that name, as upstream calls it; and notes.

    Without a primary key the statement stays as it is.
    """
    words, notes = Words(sql, features=True).words, list[str]()
    if not (is_word(words[0], "CREATE") and is_word(words[1], "TABLE") and _makes_primary_key(words)):
        return sql, []
    for at in range(len(words) - 2, 0, -1):
        last = at + 1 + is_word(words[at + 1], "KEY")
        if not (is_word(words[at], "UNIQUE") and last < len(words) and is_word(words[last], "GLOBAL")):
            continue
        stop, name = words[_end(words, at)].origin, words[_begin(words, at)].text
        quoted = f"`{name.replace('`', '``')}`"
        behind = words[last + 1].origin
        sql = f"{sql[: words[at].origin]}{sql[behind:stop]},INDEX {quoted}({quoted}){sql[stop:]}"
        notes.insert(0, _note(f"index {name!r}"))
    return sql, notes


def _begin(words: Sequence[Word], at: int) -> int:
    """Where the element begins that holds a word: behind the bracket that is open there, or a comma in it."""
    depth = 0
    for before in range(at - 1, -1, -1):
        if not depth and is_word(words[before], ",", "("):
            return before + 1
        depth += is_word(words[before], ")") - is_word(words[before], "(")
    return 0


def _indexes(words: Sequence[Word]) -> Iterator[tuple[Sequence[Word], Sequence[Word]]]:
    """The words of each unique index from UNIQUE up to its columns, and those behind them."""
    for at, word in enumerate(words):
        if not is_word(word, "UNIQUE"):
            continue
        opening = next((i for i in range(at, len(words)) if is_word(words[i], "(", ",", ")")), len(words))
        if opening < len(words) and is_word(words[opening], "("):
            yield words[at:opening], words[_end(words, opening, "(") : _end(words, opening)]


def _end(words: Sequence[Word], first: int, *only: str) -> int:
    """Behind which word the brackets that open here close; without `only`, where the clause ends."""
    depth = 0
    for at in range(first, len(words)):
        if not depth and is_word(words[at], ",", ")"):
            return at
        depth += is_word(words[at], "(") - is_word(words[at], ")")
        if only and not depth:
            return at + 1
    return len(words)


def _makes_primary_key(words: Sequence[Word]) -> bool:
    """Whether a CREATE TABLE makes one that the server can have, too."""
    at = next((i for i, word in enumerate(words) if is_word(word, "PRIMARY")), None)
    return at is not None and not any(is_word(word, "GLOBAL") for word in words[at : _end(words, at)])


def _named(head: Sequence[Word]) -> str:
    """The index, by its name if it has one."""
    name = next(
        (word.text for word in head[1:] if not is_word(word, "INDEX", "KEY", "IF", "NOT", "EXISTS", "USING")), ""
    )
    return f"index {name!r}" if name else "an index"
