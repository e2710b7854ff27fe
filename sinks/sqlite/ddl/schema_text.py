"""Reads the SQL text that SQLite keeps of tables and indexes, as far as PRAGMAs don't tell: checks, bodies.

The members of an ENUM or SET, and that a text is JSON, are CHECK constraints: `checked` writes, `checks_in` reads them.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass

from sinks.rows.schema import Shape

TOKEN = re.compile(r"""'(?:[^']|'')*'|"(?:[^"]|"")*"|`(?:[^`]|``)*`|\[[^\]]*\]|--[^\n]*|/\*.*?\*/|\w+|\S""", re.DOTALL)


def quoted(name: str) -> str:
    """A name as an identifier. SQLite doubles the quotes inside."""
    return '"' + name.replace('"', '""') + '"'


def literal(value: str | float | bytes | None) -> str:
    """A value as SQL."""
    if value is None:
        return "NULL"
    if isinstance(value, bytes):
        return f"x'{value.hex()}'"
    return "'" + value.replace("'", "''") + "'" if isinstance(value, str) else repr(value)


@dataclass(frozen=True, slots=True)
class Check:
    """What a CHECK constraint of ours says of a column."""

    column: str
    shape: Shape
    members: tuple[str, ...] = ()


def checked(column: str, shape: Shape, members: tuple[str, ...]) -> str:
    """The constraint of a column of this shape; "" for shapes without one.

    An ENUM may also be '', the invalid value, which stands first. A SET is as long as those members that it names;
    where '' is one of them, an empty text may be that one.
    """
    name = quoted(column)
    if shape is Shape.JSON:
        return f"CHECK ({name} IS NULL OR json_valid({name}))"
    if shape is Shape.ENUM:
        return f"CHECK ({name} IN ({', '.join(map(literal, ('', *members)))}))"
    if shape is Shape.SET:
        named = [f"(instr(',' || {name} || ',', {literal(f',{m},')}) > 0) * {len(m) + 1}" for m in members]
        or_empty = " OR 1" if "" in members else ""
        return f"CHECK (length({name}) + ({name} <> ''{or_empty}) = {' + '.join(named)})"
    return ""


def checks_in(sql: str) -> Iterator[Check]:
    """Our constraints in a table's text. Others are not ours to read."""
    tokens = _tokens(sql)
    for at, token in enumerate(tokens):
        if token.upper() == "CHECK" and tokens[at + 1 : at + 2] == ["("]:
            inside = tokens[at + 2 : _closing(tokens, at + 1)]
            found = _check(inside)
            if found is not None:
                yield found


def _check(tokens: list[str]) -> Check | None:
    names = [_unquoted(token) for token in tokens if token[0] == '"']
    texts = [_unquoted(token) for token in tokens if token[0] == "'"]
    if len(set(names)) != 1:
        return None
    words = {token.upper() for token in tokens}
    if "JSON_VALID" in words:
        return Check(names[0], Shape.JSON)
    if "IN" in words and texts[:1] == [""]:
        return Check(names[0], Shape.ENUM, tuple(texts[1:]))
    if "INSTR" in words and texts[:3] == ["", ",", ","]:
        return Check(names[0], Shape.SET, tuple(text[1:-1] for text in texts[3::3]))
    return None


def body_of(sql: str) -> str:
    """The bracketed part of a CREATE TABLE or CREATE INDEX, with all that follows it."""
    for match in TOKEN.finditer(sql):
        if match[0] == "(":
            return sql[match.start() :]
    return ""


def _tokens(sql: str) -> list[str]:
    return [token for token in TOKEN.findall(sql) if not token.startswith(("--", "/*"))]


def _closing(tokens: list[str], opening: int) -> int:
    depth = 0
    for at in range(opening, len(tokens)):
        depth += (tokens[at] == "(") - (tokens[at] == ")")
        if not depth:
            return at
    return len(tokens)


def _unquoted(token: str) -> str:
    return token[1:-1].replace(token[0] * 2, token[0])
