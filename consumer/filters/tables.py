"""Which tables count: TiCDC's `filter.rules`, the table filter of TiDB's tools (TiDB documentation, "Table Filter").

A rule is `schema.table`. Either part is a name of letters, digits, `$`, `_` and what is not ASCII, with the wildcards
`*`, `?`, `[a-z]` and `[!a-z]`, and a backslash before any other character; or a name in backticks or double quotes,
taken literally (doubled quotes inside); or a `/regular expression/`, which matches anywhere unless anchored. `!` in
front excludes. The last rule that matches decides; no match excludes. Empty rules and those that begin with `#` are
comments. System schemas never count (TiCDC, `pkg/filter`).
"""

import os
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import xxhash

from consumer.go_regex import compiled, literally
from ordering.errors import ConfigError

SYSTEM_SCHEMAS = frozenset({
    "dm_heartbeat", "information_schema", "inspection_schema", "lightning_task_info", "metrics_schema", "mysql",
    "performance_schema", "sys", "tidb_cdc", "workload_schema",
})  # fmt: skip
"""TiDB's and TiCDC's own (tidb `pkg/util/filter`, tiflow `pkg/filter`), in lower case."""

_QUOTED = {'"': re.compile(r'"((?:""|[^"])+)"'), "`": re.compile(r"`((?:``|[^`])+)`")}
_REGULAR = re.compile(r"/((?:\\.|[^/])+)/")
_CLASS = re.compile(r"\[(!?)((?:\\[^0-9a-zA-Z]|[^\\\]])+)\]")
_PLAIN = re.compile(r"([$_0-9A-Za-z\u0080-\U0010ffff]+)")
_ESCAPED = re.compile(r"\\([^0-9a-zA-Z])")
_WILDCARDS = {"*": ".*", "?": "."}
_TELLS_CASE = re.compile(r"[\[/]")
"""What may mean capitals alone: `[A-Z]*`."""
_EVERYTHING = "(?s)^.*$"


@dataclass(frozen=True, slots=True)
class _Rule:
    accepts: bool
    schema: Any
    table: Any
    whole_schema: bool
    """Whether the table's part is `*`."""
    text: str = ""
    uncased: "_Rule | None" = None
    """The same in any case, where case counts, and the rule does not tell capitals from others by itself."""

    def matches(self, database: str, table: str) -> bool:
        """Whether it is about the table."""
        return bool(self.schema.search(database)) and bool(self.table.search(table))


@dataclass(slots=True)
class TableFilter:
    """Compiled rules; remembers its answers, for it is asked once a message."""

    texts: tuple[str, ...]
    rules: tuple[_Rule, ...]
    case_sensitive: bool
    _known: dict[tuple[str, str], bool] = field(default_factory=dict)
    _sent: dict[tuple[str, str], bool] = field(default_factory=dict)

    def __call__(self, database: str, table: str) -> bool:
        """Whether the table counts."""
        key = (database, table)
        answer = self._known.get(key)
        if answer is None:
            answer = self._known[key] = self._decide(database, table)
        return answer

    def of_message(self, database: str, table: str) -> bool:
        """Whether the table counts, by its name in a message. Raises ConfigError where case alone decides.

        TiDB's names do not tell case apart, and after a RENAME TiCDC spells a database in lower case.
        """
        key = (database, table)
        answer = self._sent.get(key)
        if answer is None:
            answer = self(database, table)
            self._check_case(database, table, answer=answer)
            self._sent[key] = answer
        return answer

    def _check_case(self, database: str, table: str, *, answer: bool) -> None:
        for rule in reversed(self.rules):
            if rule.matches(database, table):
                return
            if rule.accepts != answer and rule.uncased is not None and rule.uncased.matches(database, table):
                raise _by_case_alone(f"table {database}.{table}", rule)

    def _decide(self, database: str, table: str) -> bool:
        if database.lower() in SYSTEM_SCHEMAS:
            return False
        for rule in reversed(self.rules):
            if rule.matches(database, table):
                return rule.accepts
        return False

    def accepts_database(self, database: str) -> bool:
        """Whether statements about the database itself count: the last rule that takes it in, or leaves all of it."""
        if database.lower() in SYSTEM_SCHEMAS:
            return False
        for rule in reversed(self.rules):
            if rule.schema.search(database) and (rule.accepts or rule.whole_schema):
                return rule.accepts
        return False

    def database_of_message(self, database: str) -> bool:
        """See `accepts_database`, by its name in a message; raises as `of_message`."""
        answer = self.accepts_database(database)
        for rule in reversed(self.rules):
            if not (rule.accepts or rule.whole_schema):
                continue
            if rule.schema.search(database):
                break
            if rule.accepts != answer and rule.uncased is not None and rule.uncased.schema.search(database):
                raise _by_case_alone(f"database {database}", rule)
        return answer

    def may_take_of(self, database: str) -> bool:
        """Whether some table of the database may count."""
        return database.lower() not in SYSTEM_SCHEMAS and any(
            rule.accepts and rule.schema.search(database) for rule in self.rules
        )

    def takes_whole(self, database: str) -> bool:
        """Whether every table of the database counts."""
        last = next((rule for rule in reversed(self.rules) if rule.schema.search(database)), None)
        return last is not None and last.accepts and last.whole_schema

    @property
    def tells_case(self) -> bool:
        """Whether a rule tells capitals from others by itself, so that nothing stops at what case alone leaves out."""
        return any(map(_TELLS_CASE.search, self.texts))

    def digest_of(self, count: int, *, cased: bool | None = None) -> str:
        """Short text that differs when the first `count` rules differ in text or in how they take upper case."""
        flag = "cased" if (self.case_sensitive if cased is None else cased) else "uncased"
        return digest((flag, *self.texts[:count]))


def _by_case_alone(what: str, rule: _Rule) -> ConfigError:
    return ConfigError(
        f"messages name {what}, which {rule.text!r} would match but for case",
        where="filter.case-sensitive",
        hint="set filter.case-sensitive = false: TiCDC spells databases in lower case after a RENAME TABLE;"
        " or spell the rule as the messages do. A changefeed whose rules have `/` or `[` can't change either: use"
        " another id with its own start-ts",
    )


def digest(texts: Iterable[str]) -> str:
    """64 bits of some texts, in hexadecimal."""
    return str(xxhash.xxh3_64_hexdigest("\n".join(texts).encode()))


def table_filter(rules: Iterable[str], *, case_sensitive: bool = False, key: str = "filter.rules") -> TableFilter:
    """Compile rules. `key` names them in the ConfigError for what is no rule."""
    texts = tuple(text for rule in rules if (text := rule.strip(" \t")) and not text.startswith("#"))
    return TableFilter(texts, tuple(_Reading(text, key, case_sensitive).rule() for text in texts), case_sensitive)


def name_rule(text: str, key: str) -> tuple[bool, Any]:
    """A rule for names of one part, in any case: whether it takes what its expression matches. Raises ConfigError."""
    try:
        return _Reading(text.strip(" \t"), key, case_sensitive=False).name_rule()
    except ConfigError:
        hint = "e.g. *, !ssn, tmp_*, `odd name`, /^old_/"
        raise ConfigError(f"{key}: {text!r} is no rule for columns", hint=hint) from None


def with_files(rules: list[Any], folder: Path, key: str) -> list[Any]:
    """The rules, with the lines of each `@file` in its place; paths are relative to the config's folder."""
    found: list[Any] = []
    for rule in rules:
        name = rule_file(rule)
        found += [rule] if name is None else _lines(Path(os.path.normpath(folder / name)), key)
    return found


def rule_file(rule: Any) -> str | None:
    """The name of the file that an entry of a list of rules stands for; None if it is a rule itself."""
    text = rule.strip(" \t") if isinstance(rule, str) else ""
    return text[1:] if text.startswith("@") else None


def _lines(path: Path, key: str) -> Iterator[str]:
    try:
        lines = path.read_text(encoding="utf-8-sig").splitlines()
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is no UTF-8 text, or its name is no file's"
        raise ConfigError(f"{key}: can't read the rules file {path}: {reason}") from None
    for number, line in enumerate(lines, 1):
        try:
            yield from table_filter([line], key=key).texts
        except ConfigError as error:  # without the line: the file may be one that nobody should see
            what = "is no rule" if rule_file(line) is None else "names a file, which only the config itself may do"
            raise ConfigError(f"{key}: this line {what}", where=f"{path}, line {number}", hint=error.hint) from None


class _Reading:
    """One rule being read, left to right."""

    def __init__(self, text: str, key: str, case_sensitive: bool) -> None:
        self.text, self.key, self.case_sensitive = text, key, case_sensitive
        self.at = 1 if text.startswith("!") else 0

    def rule(self) -> _Rule:
        if self.text.startswith("@"):
            raise self._wrong("names a file, which only a rule of the config itself may do")
        schema = self._pattern()
        if not self.text.startswith(".", self.at):
            raise self._wrong("is not of the form schema.table")
        self.at += 1
        table = self._pattern()
        if self.at < len(self.text):
            raise self._wrong(f"is not of the form schema.table: {self.text[self.at :]!r} is left over")
        whole = table == _EVERYTHING
        uncased = None
        if self.case_sensitive and not _TELLS_CASE.search(self.text):
            uncased = _Reading(self.text, self.key, case_sensitive=False).rule()
        accepts = not self.text.startswith("!")
        return _Rule(accepts, self._compiled(schema), self._compiled(table), whole, self.text, uncased)

    def name_rule(self) -> tuple[bool, Any]:
        name = self._pattern()
        if self.at < len(self.text):
            raise self._wrong(f"is no name of a column: {self.text[self.at :]!r} is left over")
        return not self.text.startswith("!"), self._compiled(name)

    def _wrong(self, what: str) -> ConfigError:
        return ConfigError(f"{self.key}: {self.text!r} {what}", hint="e.g. test.t*, !test.tmp_*, `a.b`.c, /^shop_/.*")

    def _compiled(self, pattern: str) -> Any:
        return compiled(pattern, whose=f"{self.key}: {self.text!r}", case_sensitive=self.case_sensitive)

    def _pattern(self) -> str:
        """The next part of the rule as a regular expression."""
        quote = self.text[self.at : self.at + 1]
        if quote == "/":
            return self._matched(_REGULAR, "lacks a closing /")
        if quote in _QUOTED:
            name = self._matched(_QUOTED[quote], f"lacks a closing {quote}").replace(quote * 2, quote)
            return f"^{literally(name)}$"
        return f"(?s)^{self._wildcards()}$"

    def _matched(self, expression: re.Pattern[str], otherwise: str) -> str:
        match = expression.match(self.text, self.at)
        if match is None:
            raise self._wrong(otherwise)
        self.at = match.end()
        return match[1]

    def _wildcards(self) -> str:
        found, start = "", self.at
        while self.at < len(self.text) and self.text[self.at] != ".":
            found += self._piece(self.text[self.at])
        if self.at == start:
            raise self._wrong("lacks a schema or a table: it is not of the form schema.table")
        return found

    def _piece(self, char: str) -> str:
        if char in _WILDCARDS:
            self.at += 1
            return _WILDCARDS[char]
        if char == "[":
            return self._class()
        if char == "\\":
            return literally(self._matched(_ESCAPED, "escapes a letter, a digit or nothing with \\"))
        return literally(self._matched(_PLAIN, f"holds {char!r}, which has to be quoted or escaped"))

    def _class(self) -> str:
        match = _CLASS.match(self.text, self.at)
        if match is None:
            raise self._wrong("holds a [character class] that is empty or lacks its end")
        self.at = match.end()
        inner = f"\\{match[2]}" if match[2].startswith("^") else match[2]
        return f"[{'^' if match[1] else ''}{inner}]"
