"""A table's definition as SQLite keeps it, in clauses that can be exchanged: what its ALTER TABLE can't do.

Whoever made the table wrote the text, so only what is to be changed is understood; the rest stays as it is.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from sinks.sqlite.ddl.schema_text import TOKEN, quoted

_CONSTRAINTS = {"CONSTRAINT", "PRIMARY", "UNIQUE", "CHECK", "FOREIGN"}
_DEFAULT = re.compile(r"""(?i:x)?'(?:[^']|'')*'|"(?:[^"]|"")*"|[-+]?\s*[\w.]+(?:[eE][-+]?\d+)?""")
_KEY_WORDS = {"KEY", "ASC", "DESC", "AUTOINCREMENT"}


@dataclass(frozen=True, slots=True)
class Token:
    """A token of a clause and where it stands."""

    text: str
    start: int
    stop: int

    @property
    def word(self) -> str:
        """In upper case, "" for what is quoted."""
        return self.text.upper() if self.text[0] not in "'\"`[" else ""


def _tokens(text: str) -> list[Token]:
    found = (Token(match[0], match.start(), match.end()) for match in TOKEN.finditer(text))
    return [token for token in found if not token.text.startswith(("--", "/*"))]


@dataclass(frozen=True, slots=True)
class TableText:
    """Clauses of columns and constraints, in order, and what follows the closing bracket."""

    clauses: tuple[str, ...]
    tail: str

    def body(self) -> str:
        """All from the opening bracket on."""
        return f"({', '.join(self.clauses)}){self.tail}"

    def changed(self, column: str, clause: str) -> "TableText":
        """With another definition of a column; keys that its own held become constraints of the table."""
        kept = [*_keys_in(self.clause(column), column)]
        return replace(self, clauses=(*(clause if _names(c, column) else c for c in self.clauses), *kept))

    def clause(self, column: str) -> str:
        """A column's definition; "" for one that is not there."""
        return next((clause for clause in self.clauses if _names(clause, column)), "")

    def with_column(self, clause: str) -> "TableText":
        """With one column more."""
        columns = sum(not _is_constraint(_tokens(c)) for c in self.clauses)
        return replace(self, clauses=(*self.clauses[:columns], clause, *self.clauses[columns:]))

    def with_default(self, column: str, default: str) -> "TableText":
        """With this DEFAULT clause ("" for none)."""
        return replace(self, clauses=tuple(_with_default(c, default) if _names(c, column) else c for c in self.clauses))

    def with_not_null(self, column: str) -> "TableText":
        """With a column that takes no NULL."""
        clause = self.clause(column)
        words = [token.word for token in _tokens(clause)]
        told = "NOT" in words and words[words.index("NOT") + 1 : words.index("NOT") + 2] == ["NULL"]
        changed = clause if told else f"{clause} NOT NULL"
        return replace(self, clauses=tuple(changed if _names(c, column) else c for c in self.clauses))

    def with_primary_key(self, columns: Sequence[str]) -> "TableText":
        """With these columns as the primary key; none for no primary key."""
        kept = (_without_key(clause) for clause in self.clauses)
        key = (f"PRIMARY KEY ({', '.join(map(quoted, columns))})",) if columns else ()
        return replace(self, clauses=(*filter(None, kept), *key))


def read_table_text(sql: str) -> TableText:
    """The clauses of a CREATE TABLE."""
    tokens = _tokens(sql)
    opening = next(at for at, token in enumerate(tokens) if token.text == "(")
    clauses, depth, start = [], 0, tokens[opening].stop
    for token in tokens[opening:]:
        depth += (token.text == "(") - (token.text == ")")
        if (depth == 1 and token.text == ",") or not depth:
            clauses.append(sql[start : token.start].strip())
            start = token.stop
        if not depth:
            break
    return TableText(tuple(clauses), sql[start:])


def _unquoted(text: str) -> str:
    if text[0] == "[":
        return text[1:-1]
    return text[1:-1].replace(text[0] * 2, text[0]) if text[0] in "'\"`" else text


def _is_constraint(tokens: Sequence[Token]) -> bool:
    return tokens[0].word in _CONSTRAINTS


def _names(clause: str, column: str) -> bool:
    """Whether a clause defines this column."""
    tokens = _tokens(clause)
    return not _is_constraint(tokens) and _unquoted(tokens[0].text).lower() == column.lower()


def _keys_in(clause: str, column: str) -> Iterator[str]:
    words = [token.word for token in _tokens(clause)]
    if "PRIMARY" in words:
        yield f"PRIMARY KEY ({quoted(column)})"
    if "UNIQUE" in words:
        yield f"UNIQUE ({quoted(column)})"


def _with_default(clause: str, default: str) -> str:
    tokens = _tokens(clause)
    at = next((i for i, token in enumerate(tokens) if token.word == "DEFAULT"), None)
    if at is not None:
        start = tokens[at].start
        clause = f"{clause[:start].rstrip()} {clause[_value_end(clause, tokens, at) :].lstrip()}"
    return f"{clause.rstrip()}{default}"


def _value_end(clause: str, tokens: Sequence[Token], at: int) -> int:
    """Where the value of a DEFAULT ends."""
    if tokens[at + 1].text != "(":
        value = _DEFAULT.match(clause, tokens[at + 1].start)
        return value.end() if value else tokens[at + 1].stop
    depth = 0
    for token in tokens[at + 1 :]:
        depth += (token.text == "(") - (token.text == ")")
        if not depth:
            return token.stop
    return len(clause)


def _without_key(clause: str) -> str:
    """The clause without PRIMARY KEY; "" if it is nothing else."""
    tokens = _tokens(clause)
    at = next((i for i, token in enumerate(tokens) if token.word == "PRIMARY"), None)
    if at is None:
        return clause
    if _is_constraint(tokens):
        return ""
    end = at + 1
    while end < len(tokens) and (tokens[end].word in _KEY_WORDS or tokens[end - 1].word in {"ON", "CONFLICT"}):
        end += 1
    rest = clause[tokens[end].start :] if end < len(tokens) else ""
    return f"{clause[: tokens[at].start].rstrip()} {rest}".rstrip()
