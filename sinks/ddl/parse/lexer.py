r"""Cuts a DDL statement into words as TiDB does, in one pass and in time linear in its length.

What is judged has to be what a server executes, so no comment reaches one: the text that is handed on holds the words
and the white space between them, and a blank for each comment. TiDB reads what stands in `/*! ... */`, and in
`/*T![feature] ... */` where it knows the feature (TiDB documentation, "Comment Syntax"; the features: `parser/tidb` of
pingcap/tidb); comments do not nest. TiDB prints members of ENUM and SET, and comments of tables, indexes and
partitions, with their backslashes as they are, other strings with each one doubled (`RestoreCtx.WriteString` of
pingcap/tidb): in the text they all are doubled. SHOW CREATE TABLE, and so a dump, doubles in comments of tables and
indexes too.

Each pattern begins at the cursor, can't match nothing and gives nothing back (possessive): there is no backtracking.
"""

import re
from dataclasses import dataclass
from enum import Enum
from functools import lru_cache
from typing import NamedTuple

from ordering.errors import InputError

LONGEST = 4 << 20
"""Characters of a statement. The longest that TiDB makes, a table of 8,192 partitions, takes a quarter of it."""
FEATURES = frozenset({
    "affinity", "auto_id_cache", "auto_rand", "auto_rand_base", "clustered_index", "force_inc", "forced_auto_inc",
    "global_index", "placement", "pre_split", "ttl",
})  # fmt: skip
"""Features that TiDB's own comments name."""
_KEPT, _KEPT_LENGTH = 32, 16 << 10
"""How many statements are kept as words, of at most so many characters: 15 MB of words if all are that long."""
_SHOWN = 200
_NAME = r"[0-9A-Za-z_$\x80-\U0010ffff]"
_SPACE = re.compile(r"[ \t\n\v\f\r]++")
_LINE = re.compile(r"(?:#|--(?=[\x00-\x20]|\Z))[^\n]*+")
_SPECIAL = re.compile(r"/\*(?:!\d*+|T!(?:\[(?P<features>[\w,]*+)\])?)")
_STRINGS = {
    quote: re.compile(rf"{quote}((?:[^{quote}\\]++|\\.|{quote}{quote})*+){quote}", re.DOTALL) for quote in ("'", '"')
}
_SHOWN_TABLE = re.compile(r"CREATE TABLE `(?:[^`]++|``)++` \(\n")
"""As SHOW CREATE TABLE begins."""
_INDEXES = frozenset({"PRIMARY", "UNIQUE", "KEY", "INDEX", "FULLTEXT", "CONSTRAINT", "VECTOR", "COLUMNAR"})
"""What the definition of an index begins with."""
_MEMBER = re.compile(r"'((?:[^']++|'')*+)'")
_NATIONAL = re.compile(r"[nN]'((?:[^'\\]++|\\.|'')*+)'", re.DOTALL)
_QUOTED = re.compile(r"`((?:[^`]++|``)*+)`")
_RADIX = re.compile(r"[xX]'(?P<hex>[0-9A-Fa-f]*+)'|[bB]'(?P<bits>[01]*+)'")
_ZERO = re.compile(rf"0(?:x(?P<hex>[0-9A-Fa-f]++)|b(?P<bits>[01]++))(?!{_NAME})")
_NUMBER = re.compile(rf"(?:[0-9]++(?:\.[0-9]*+)?|\.[0-9]++)(?:[eE][-+]?[0-9]++)?+(?!{_NAME})")
_WORD = re.compile(rf"{_NAME}++")
_SIGN = re.compile(r"<=>|->>|->|<=|>=|<>|!=|:=|\|\||&&|<<|>>|@@|.", re.DOTALL)
_ESCAPES = {"0": "\0", "b": "\b", "n": "\n", "r": "\r", "t": "\t", "Z": "\x1a", "%": "\\%", "_": "\\_"}
_ESCAPED = re.compile(r"\\(.)|(['\"])\2", re.DOTALL)


class WordKind(Enum):
    """What a word is: `PLAIN` covers keywords, bare names, punctuation and numbers."""

    PLAIN = "plain"
    NAME = "quoted name"
    STRING = "string"
    BITS = "bit string"
    HEX = "hexadecimal string"


class Canonical(str):
    """A statement, or a part of one, as this module hands it on: read again, it means the same."""

    __slots__ = ()


@dataclass(frozen=True, slots=True)
class Word:
    """One word: its text without quotes and escapes, and where it stands in the text that is handed on.

    `origin`: where it begins in the text that was read.
    """

    kind: WordKind
    text: str
    start: int
    stop: int
    origin: int = -1


class Lexer:
    """Reads one statement; `text` and `words` are what came of it. Raises InputError.

    `features`: whether what stands in TiDB's own comments counts.
    """

    def __init__(self, sql: str, *, features: bool) -> None:
        if len(sql) > LONGEST:
            raise InputError(
                f"a DDL statement has {len(sql)} characters, more than the {LONGEST} that are read: {sql[:_SHOWN]!r}"
            )
        self._sql, self._features = sql, features
        self._at = self._made = 0
        self._pieces: list[str] = []
        self._special = False
        self._doubles = not isinstance(sql, Canonical)
        self._shown = _SHOWN_TABLE.match(sql) is not None
        self._clauses = [0]
        self.words: list[Word] = []
        while self._at < len(sql):
            if not self._passed_over():
                self._word()
        if self._special:
            raise self._wrong("a comment has no end")
        self.text = Canonical("".join(self._pieces))

    def _wrong(self, what: str) -> InputError:
        return InputError(f"DDL statement can't be read: {what} at {self._sql[self._at : self._at + _SHOWN]!r}")

    def _emit(self, text: str) -> None:
        self._pieces.append(text)
        self._made += len(text)

    def _passed_over(self) -> bool:
        """Step over white space or a comment."""
        sql, at = self._sql, self._at
        if match := _SPACE.match(sql, at):
            self._emit(match[0])
            self._at = match.end()
        elif match := _LINE.match(sql, at):
            self._blank(match.end())
        elif sql.startswith("/*", at):
            self._comment()
        elif self._special and sql.startswith("*/", at):
            self._special = False
            self._blank(at + 2)
        else:
            return False
        return True

    def _blank(self, upto: int) -> None:
        self._emit(" ")
        self._at = upto

    def _comment(self) -> None:
        match = None if self._special else _SPECIAL.match(self._sql, self._at)
        if match is not None and self._counts(match):
            self._special = True
            self._blank(match.end())
            return
        end = self._sql.find("*/", self._at + 2)
        if end < 0:
            raise self._wrong("a comment has no end")
        self._blank(end + 2)

    def _counts(self, opening: "re.Match[str]") -> bool:
        """Whether TiDB reads what a special comment holds: it knows all of its features, or none is named."""
        if not opening[0].startswith("/*T"):
            return True
        named = [name for name in (opening["features"] or "").split(",") if name]
        return self._features and FEATURES.issuperset(named)

    def _word(self) -> None:
        kind, text, source = self._read()
        if source[0] == "-" and self._pieces and self._pieces[-1].endswith("-"):
            self._emit(" ")  # two signs may be a comment to a server, by what follows them there
        start = self._made
        self._emit(source)
        self.words.append(Word(kind, text, start, self._made, self._at))
        self._at += len(source)
        if self._doubles and kind is WordKind.PLAIN:
            self._follow(text)

    def _follow(self, sign: str) -> None:
        """Remember where the clause began that the cursor is in; read what is printed in its own way."""
        if sign == "(":
            self._clauses.append(len(self.words))
            if self._opens_members():
                self._members()
        elif sign == ")" and len(self._clauses) > 1:
            self._clauses.pop()
        elif sign == ",":
            self._clauses[-1] = len(self.words)
        elif sign.upper() == "COMMENT" or sign == "=":
            self._comment_of(sign)

    def _read(self) -> tuple[WordKind, str, str]:
        """Kind, text and source of the word at the cursor."""
        char = self._sql[self._at]
        if char in _STRINGS:
            match = self._whole(_STRINGS[char], "a string has no end")
            return WordKind.STRING, _unescaped(match[1], char), match[0]
        if char == "`":
            match = self._whole(_QUOTED, "a name has no end")
            return WordKind.NAME, match[1].replace("``", "`"), match[0]
        for pattern in (_RADIX, _ZERO):
            if radix := pattern.match(self._sql, self._at):
                found = radix["hex"]
                return (WordKind.BITS, radix["bits"], radix[0]) if found is None else (WordKind.HEX, found, radix[0])
        if char in "nN" and self._sql.startswith("'", self._at + 1):
            match = self._whole(_NATIONAL, "a string has no end")
            return WordKind.STRING, _unescaped(match[1], "'"), match[0]
        pattern = _NUMBER if char.isascii() and (char.isdigit() or (char == "." and not self._qualifies())) else _WORD
        match = pattern.match(self._sql, self._at) or _WORD.match(self._sql, self._at) or self._sign()
        return WordKind.PLAIN, match[0], match[0]

    def _sign(self) -> "re.Match[str]":
        return self._whole(_SIGN, "a sign is missing")

    def _whole(self, pattern: "re.Pattern[str]", otherwise: str) -> "re.Match[str]":
        match = pattern.match(self._sql, self._at)
        if match is None:
            raise self._wrong(otherwise)
        return match

    def _qualifies(self) -> bool:
        """Whether a point at the cursor stands behind a name, so that digits behind it are a name too."""
        before = self.words[-1] if self.words else None
        return before is not None and before.stop == self._made and before.text not in ("(", ",", "=")

    def _opens_members(self) -> bool:
        """Whether the members of an ENUM or SET follow."""
        last = self.words[-2:]
        plain = [word.text.upper() if word.kind is WordKind.PLAIN else "" for word in last]
        return len(plain) > 1 and plain[0] in ("ENUM", "SET") and plain[1] == "("

    def _comment_of(self, sign: str) -> None:
        """The comment of a table, an index or a partition; that of a column is as all strings are."""
        if not self._behind_comment(sign):
            return
        while self._at < len(self._sql) and self._passed_over():
            pass
        if match := _MEMBER.match(self._sql, self._at):
            self._plain_string(match)

    def _behind_comment(self, sign: str) -> bool:
        """Whether a string at the cursor would be one whose backslashes are as they are."""
        if self._shown:
            return sign != "=" and self._clause()[:1] == ["PARTITION"]
        if sign == "=":
            of, last = self.words[-2:] if len(self.words) > 1 else self.words * 2
            return of.kind is WordKind.PLAIN and of.text.upper() == "COMMENT" and of.stop < last.start
        words = self._clause()
        if words[:1] == ["CREATE"]:
            return "INDEX" in words[1:4]
        if words[:1] == ["ALTER"] and "ADD" in words[2:6]:
            words = words[words.index("ADD", 2) :]
        return not _INDEXES.isdisjoint(words[1:2] if words[:1] == ["ADD"] else words[:1])

    def _clause(self) -> list[str]:
        """The first words of the clause that the cursor is in, in capitals; names and strings are empty."""
        first = self._clauses[-1]
        return [w.text.upper() if w.kind is WordKind.PLAIN else "" for w in self.words[first : first + 8]]

    def _members(self) -> None:
        """Strings with commas between them, in which a backslash is one."""
        while True:
            while self._at < len(self._sql) and self._passed_over():
                pass
            match = _MEMBER.match(self._sql, self._at)
            if match is None:
                return
            self._plain_string(match)
            while self._at < len(self._sql) and self._passed_over():
                pass
            if not self._sql.startswith(",", self._at):
                return
            self._emit(",")
            self.words.append(Word(WordKind.PLAIN, ",", self._made - 1, self._made))
            self._at += 1

    def _plain_string(self, match: "re.Match[str]") -> None:
        """A string in which a backslash is one."""
        start = self._made
        self._emit(match[0].replace("\\", "\\\\"))
        self.words.append(Word(WordKind.STRING, match[1].replace("''", "'"), start, self._made))
        self._at = match.end()


class CutStatement(NamedTuple):
    """A statement as it is handed on, and its words."""

    text: Canonical
    words: tuple[Word, ...]


def words_of(sql: str, *, features: bool) -> CutStatement:
    """What a `Lexer` makes of a statement, kept for the next who asks: each DDL is read some thirty times."""
    if len(sql) > _KEPT_LENGTH:
        return _cut(sql, features)
    return _kept(sql, features, isinstance(sql, Canonical))


@lru_cache(_KEPT)
def _kept(sql: str, features: bool, _canonical: bool) -> CutStatement:
    """`_canonical`: texts that are equal may be read in two ways."""
    return _cut(sql, features)


def _cut(sql: str, features: bool) -> CutStatement:
    read = Lexer(sql, features=features)
    return CutStatement(read.text, tuple(read.words))


def _unescaped(text: str, quote: str) -> str:
    """A string's content: escapes replaced, the doubled quote one."""

    def value(match: "re.Match[str]") -> str:
        if match[1] is not None:
            return _ESCAPES.get(match[1], match[1])
        return match[0] if match[2] != quote else quote

    return _ESCAPED.sub(value, text) if "\\" in text or quote * 2 in text else text
