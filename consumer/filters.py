"""Which tables count: TiCDC's `filter.rules`, the table filter of TiDB's tools (TiDB documentation, "Table Filter").

A rule is `schema.table` with the wildcards `*`, `?` and `[a-z]`, names in backticks or double quotes taken literally,
`/regular expression/` for either part, `!` in front to exclude. The last rule that matches decides; no match excludes.
"""

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

import xxhash

from ordering.errors import ConfigError


@dataclass(frozen=True, slots=True)
class _Rule:
    accepts: bool
    schema: re.Pattern[str]
    table: re.Pattern[str]


@dataclass(slots=True)
class TableFilter:
    """Compiled rules; remembers its answers, for it is asked once a message."""

    texts: tuple[str, ...]
    rules: tuple[_Rule, ...]
    _known: dict[tuple[str, str], bool] = field(default_factory=dict)

    def __call__(self, database: str, table: str) -> bool:
        """Whether the table counts."""
        key = (database, table)
        answer = self._known.get(key)
        if answer is None:
            answer = self._known[key] = self._decide(database, table)
        return answer

    def _decide(self, database: str, table: str) -> bool:
        for rule in reversed(self.rules):
            if rule.schema.fullmatch(database) and rule.table.fullmatch(table):
                return rule.accepts
        return False

    def accepts_database(self, database: str) -> bool:
        """Whether some table of the database can count."""
        return any(rule.accepts and rule.schema.fullmatch(database) for rule in self.rules)

    @property
    def digest(self) -> str:
        """Short text that differs when the rules differ; kept with the progress."""
        return str(xxhash.xxh3_64_hexdigest("\n".join(self.texts).encode()))


def table_filter(rules: Iterable[str]) -> TableFilter:
    """Compile rules. Raises ConfigError."""
    texts = tuple(rules)
    return TableFilter(texts, tuple(_compiled(text.strip()) for text in texts))


def _compiled(text: str) -> _Rule:
    accepts = not text.startswith("!")
    body = text.removeprefix("!")
    parts = list(_parts(body, text))
    if len(parts) != 2:  # noqa: PLR2004 schema and table
        raise ConfigError(f"filter.rules: {text!r} is not of the form schema.table", hint="e.g. test.t*, !test.tmp_*")
    return _Rule(accepts, re.compile(parts[0]), re.compile(parts[1]))


def _parts(body: str, text: str) -> Iterator[str]:
    """The regular expressions of schema and table."""
    at, current = 0, ""
    while at < len(body):
        char = body[at]
        if char == ".":
            yield current
            current, at = "", at + 1
            continue
        piece, at = _piece(body, at, text)
        current += piece
    yield current


def _piece(body: str, at: int, text: str) -> tuple[str, int]:
    char = body[at]
    if char in '`"/[':
        closing = {"[": "]"}.get(char, char)
        end = body.find(closing, at + 1)
        if end < 0:
            raise ConfigError(f"filter.rules: {text!r} lacks a closing {closing}")
        inner = body[at + 1 : end]
        if char == "/":
            return f"(?:{_regular(inner, text)})", end + 1
        if char == "[":
            return f"[{'^' + inner[1:] if inner.startswith('!') else inner}]", end + 1
        return re.escape(inner), end + 1
    if char == "\\" and at + 1 < len(body):
        return re.escape(body[at + 1]), at + 2
    return {"*": ".*", "?": "."}.get(char, re.escape(char)), at + 1


def _regular(inner: str, text: str) -> str:
    try:
        re.compile(inner)
    except re.error as error:
        raise ConfigError(f"filter.rules: {text!r} holds no regular expression: {error}") from error
    return inner
