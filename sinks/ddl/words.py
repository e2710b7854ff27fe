r"""A cursor over the words of a DDL statement: what every reader of DDL steps along.

sqlglot's MySQL tokenizer does the lexing: quoting, escapes, introducers, comments. TiDB's `/*T![feature] ... */`
comments hold storage options and are passed over like any other comment (TiDB documentation, "Comment Syntax").
Members of ENUM and SET are printed by TiDB with their backslashes as they are, other strings with each one doubled.
"""

import re
from dataclasses import dataclass
from enum import Enum

import sqlglot
from sqlglot.errors import TokenError
from sqlglot.tokenizer_core import Token, TokenType

from ordering.errors import InputError


class WordKind(Enum):
    """What a word is: `PLAIN` covers keywords, bare names, punctuation and numbers."""

    PLAIN = "plain"
    NAME = "quoted name"
    STRING = "string"
    BITS = "bit string"
    HEX = "hexadecimal string"


_KINDS = {
    TokenType.IDENTIFIER: WordKind.NAME,
    TokenType.STRING: WordKind.STRING,
    TokenType.NATIONAL_STRING: WordKind.STRING,
    TokenType.BIT_STRING: WordKind.BITS,
    TokenType.HEX_STRING: WordKind.HEX,
}
_MEMBER = "'(?:[^']|'')*'"
_QUOTED = re.compile(
    rf"`(?:[^`]|``)*`|'(?:[^'\\]|\\.|'')*'|\b(?P<members>(?:ENUM|SET)\s*\(\s*{_MEMBER}(?:\s*,\s*{_MEMBER})*)",
    re.IGNORECASE | re.DOTALL,
)
_SHOWN = 200
_FRONT = "DDL "
"""A word in front: at the start of a text sqlglot takes some verbs for commands and reads no further."""


@dataclass(frozen=True, slots=True)
class Word:
    """One word: its text without quotes and escapes, and where it stands in the statement."""

    kind: WordKind
    text: str
    start: int
    stop: int


def _words(token: Token) -> list[Word]:
    """The words of a token: sqlglot joins some keywords, such as PRIMARY KEY."""
    kind = _KINDS.get(token.token_type, WordKind.PLAIN)
    start, stop = token.start - len(_FRONT), token.end + 1 - len(_FRONT)
    parts = [token.text] if kind is not WordKind.PLAIN else token.text.split() or [token.text]
    return [Word(kind, part, start, stop) for part in parts]


def _escaped(match: "re.Match[str]") -> str:
    """What is quoted, with the backslashes of members doubled."""
    return match[0].replace("\\", "\\\\") if match["members"] else match[0]


class Words:
    """The statement's words and a position among them."""

    def __init__(self, sql: str) -> None:
        self.sql, self.at = _QUOTED.sub(_escaped, sql), 0
        try:
            tokens = sqlglot.tokenize(f"{_FRONT}{self.sql}", read="mysql")[1:]
        except TokenError as error:
            raise InputError(f"DDL statement can't be read: {sql[:_SHOWN]}", hint=str(error)) from error
        self.words = [word for token in tokens for word in _words(token)]

    @property
    def ended(self) -> bool:
        """Whether nothing is left."""
        return self.at >= len(self.words)

    def peek(self, ahead: int = 0) -> str:
        """A coming word in upper case; "" at the end or before a quoted one."""
        place = self.at + ahead
        if place >= len(self.words) or self.words[place].kind is not WordKind.PLAIN:
            return ""
        return self.words[place].text.upper()

    def skip(self, *wanted: str) -> bool:
        """Step over these words if they come next."""
        if all(self.peek(i) == word for i, word in enumerate(wanted)):
            self.at += len(wanted)
            return True
        return False

    def skip_any(self, *wanted: str) -> str:
        """Step over the next word if it is one of these; which it was, or ""."""
        word = self.peek()
        if word in wanted:
            self.at += 1
            return word
        return ""

    def skip_to(self, *wanted: str) -> str:
        """Step over everything up to and including one of these words; which it was, or ""."""
        while not self.ended:
            word = self.peek()
            self.at += 1
            if word in wanted:
                return word
        return ""

    def take(self) -> Word:
        """The next word, whatever it is. Raises InputError at the end."""
        if self.ended:
            raise InputError(f"DDL statement ends too early: {self.sql[:_SHOWN]}")
        self.at += 1
        return self.words[self.at - 1]

    def name(self) -> str:
        """The next word as a name, quoted or not."""
        return self.take().text

    def expect(self, *wanted: str) -> None:
        """Step over these words. Raises InputError if others come."""
        if not self.skip(*wanted):
            raise self.unexpected(f"expected {' '.join(wanted)}")

    def unexpected(self, detail: str) -> InputError:
        """What to raise where the statement is not as known."""
        rest = self.sql[self.words[self.at].start :][:_SHOWN] if not self.ended else "its end"
        return InputError(f"DDL statement can't be read: {detail} at {rest!r}")

    def in_brackets(self) -> str:
        """The source text between the bracket that comes next and its partner, brackets left out."""
        first = self.take()
        depth = 1
        while depth:
            word = self.take()
            if word.kind is WordKind.PLAIN:
                depth += (word.text == "(") - (word.text == ")")
        return self.sql[first.stop : word.start].strip()

    def skip_clause(self) -> str:
        """Step over everything up to the next comma outside of brackets, or the end; its source text."""
        start = self.at
        while not self.ended and self.peek() not in {",", ")"}:
            if self.peek() == "(":
                self.in_brackets()
            else:
                self.at += 1
        return self.sql[self.words[start].start : self.words[self.at - 1].stop] if self.at > start else ""
