"""Puts other names of tables into a statement, at the places where the parser has found them: all else stays as it is.

Comments and escapes stay too, so the text is read again as the one that came.
"""

from collections.abc import Collection, Iterable

from ordering.events import TableName
from sinks.ddl.parse.lexer import Canonical, Word, WordKind
from sinks.ddl.parse.statement import NamedTable
from sinks.ddl.parse.words import Words

_OTHER_NAMES = (("NEXTVAL", "("), ("LASTVAL", "("), ("SETVAL", "("), ("VALUE", "FOR"), ("UNION", "="), ("UNION", "("))
"""What comes before the name of a sequence, or of tables that are one."""


def with_names(sql: str, tables: Iterable[NamedTable], places: Iterable[TableName]) -> str:
    """The statement with these names in the place of those that it has; a place without a table is a database."""
    text = str(sql)
    for table, place in sorted(zip(tables, places, strict=True), key=lambda pair: -pair[0].start):
        name = ".".join(f"`{part.replace('`', '``')}`" for part in place if part)
        text = f"{text[: table.start]}{name}{text[table.stop :]}"
    return Canonical(text) if isinstance(sql, Canonical) else text


def stray_name(sql: str, tables: Collection[NamedTable]) -> str:
    """What may name a table elsewhere in a statement that makes or changes tables; "" if there is nothing."""
    words, known = Words(sql).words, {table.start for table in tables}
    for at, word in enumerate(words):
        following = words[at + 1] if at + 1 < len(words) else None
        if following is not None and (word.text.upper(), following.text.upper()) in _OTHER_NAMES:
            return word.text
        if following is None or word.origin in known or not _is_name(word):
            continue
        if following.kind is WordKind.PLAIN and following.text.startswith(".") and following.start == word.stop:
            return "".join(one.text for one in words[at : at + 3])
    return ""


def _is_name(word: Word) -> bool:
    plain = word.kind is WordKind.PLAIN and (word.text[0].isalpha() or word.text[0] in "_$")
    return plain or word.kind is WordKind.NAME
