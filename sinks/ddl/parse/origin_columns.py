"""A CREATE TABLE of a table in which others are merged: with columns that tell whose a row is, part of every key."""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from sinks.ddl.model import IndexDef, IndexKind
from sinks.ddl.parse.columns import read_column, read_key
from sinks.ddl.parse.lexer import Canonical
from sinks.ddl.parse.tables import at_constraint, read_constraint
from sinks.ddl.parse.words import Words

_TYPE = "VARCHAR(64) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NOT NULL"
"""Names tell no case apart in TiDB, yet what a user takes out of them may differ in blanks or accents alone."""
_KEYS = {IndexKind.PRIMARY: "PRIMARY KEY", IndexKind.UNIQUE: "UNIQUE KEY"}


class _Edit(NamedTuple):
    """What comes in the place of a part of the text."""

    start: int
    stop: int
    text: str


def with_origin_columns(sql: str, columns: Sequence[str]) -> str:
    """A CREATE TABLE with a list of columns. Raises InputError.

    The columns stand behind all others, also in keys: a counter (AUTO_INCREMENT) has to come first in MySQL's.
    """
    words = Words(sql)
    words.skip_to("(")
    edits, added = list[_Edit](), [f"{_quoted(column)} {_TYPE}" for column in columns]
    own = ", ".join(map(_quoted, columns))
    while True:
        if at_constraint(words):
            edits += _of_index(words, own)
        else:
            for edit, key in _of_column(words, own):
                edits.append(edit)
                added.append(key)
        if not words.skip(","):
            break
    words.expect(")")
    end = words.words[words.at - 1].start
    text = str(words.sql)
    for edit in sorted([*edits, _Edit(end, end, ", " + ", ".join(added))], reverse=True):
        text = f"{text[: edit.start]}{edit.text}{text[edit.stop :]}"
    return Canonical(text)


def _quoted(name: str) -> str:
    return f"`{name.replace('`', '``')}`"


def _of_index(words: Words, own: str) -> Iterator[_Edit]:
    """The origin at the end of a key's columns; an index that is not unique stays."""
    start = words.at
    part = read_constraint(words)
    stop = words.at
    if isinstance(part, IndexDef) and part.kind in _KEYS:
        words.at = start
        words.skip_to("(")
        words.at -= 1
        words.in_brackets()
        last = words.words[words.at - 1].start
        yield _Edit(last, last, f", {own}")
    words.at = stop


def _of_column(words: Words, own: str) -> Iterator[tuple[_Edit, str]]:
    """Keys among a column's options: they go, and stand in the table's list instead."""
    start = words.at
    column, keys = read_column(words)
    stop = words.at
    words.at = start + 1
    while keys and words.at < stop:
        if words.peek() == "(":
            words.in_brackets()
            continue
        at = words.at
        kind = read_key(words)
        if kind is None:
            words.at += 1
            continue
        edit = _Edit(words.words[at].start, words.words[words.at - 1].stop, "")
        yield edit, f"{_KEYS[kind]} ({_quoted(column.name)}, {own})"
    words.at = stop
