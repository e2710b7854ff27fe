"""Columns of DDL as MySQL and MariaDB are given them, where they would read or compute another thing than TiDB.

A literal default is spelled as the value that it is upstream; JSON that may not be NULL fills rows as upstream; a
STORED generated column is a plain one, for its values are sent: the server would compute others (time zone, scale of
divisions, rounding of fractions). A dump does not hold them, so a table that is loaded has them computed.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from ordering.errors import InputError, TargetError
from sinks.ddl.columns import read_column
from sinks.ddl.defaults import BYTES, DATES, spelled
from sinks.ddl.definition import ColumnDef, TypeDef
from sinks.ddl.lexer import Canonical
from sinks.ddl.literals import Number, read_default
from sinks.ddl.words import Word, WordKind, Words
from sinks.values import member_name, set_names

Edit = tuple[int, int, str]
"""Positions in the statement from and up to, and what stands there instead."""
_INTRODUCTIONS = ("ADD", "MODIFY", "CHANGE", "COLUMN", "IF", "NOT", "EXISTS")
_SEQUENCE = "NEXTVAL"
_NULL_JSON = "rows that are there show JSON's null, as upstream: MariaDB would give them an empty text"


@dataclass(frozen=True, slots=True)
class _Clause:
    """A column's words, from its (new) name on. `fills`: whether rows that are there get its default."""

    sql: str
    words: Sequence[Word]
    column: ColumnDef
    fills: bool

    def outside(self) -> Iterator[int]:
        """The places of the plain words outside of brackets."""
        depth = 0
        for at, word in enumerate(self.words):
            depth += is_word(word, "(") - is_word(word, ")")
            if not depth and word.kind is WordKind.PLAIN:
                yield at

    def find(self, *texts: str) -> int | None:
        """The place of the first of these words outside of brackets."""
        return next((at for at in self.outside() if is_word(self.words[at], *texts)), None)

    def not_null(self) -> Iterator[Edit]:
        """Takes out NOT NULL."""
        for at in self.outside():
            if is_word(self.words[at], "NULL") and at and is_word(self.words[at - 1], "NOT"):
                yield self.words[at - 1].start, self.words[at].stop, ""


def is_word(word: Word, *texts: str) -> bool:
    """Whether it is one of these, and no name or text."""
    return word.kind is WordKind.PLAIN and word.text.upper() in texts


def end_of_options(clause: Sequence[Word]) -> int:
    """Where another option of the last column of a clause may stand: before its place in the table."""
    for at in (-1, -2):
        if len(clause) > -at and is_word(clause[at], "FIRST" if at == -1 else "AFTER"):
            return clause[at - 1].stop
    return clause[-1].stop


def column_edits(
    sql: str, clause: Sequence[Word], notes: list[str], *, fills: bool, mariadb: bool, computes: bool = False
) -> Iterator[Edit]:
    """What a clause about a column needs. Raises TargetError for a default whose value is not known."""
    found = _read(sql, clause, fills=fills)
    if found is None:
        return
    if found.column.generated is not None:
        yield from _generated(found, notes, mariadb=mariadb, computes=computes)
    elif mariadb and fills and _fills_with_json(found.column):
        notes.append(_NULL_JSON)
        yield end_of_options(clause), end_of_options(clause), " DEFAULT 'null'"
    else:
        yield from _default(found, notes)


def _read(sql: str, clause: Sequence[Word], *, fills: bool) -> _Clause | None:
    """The column of a clause; None for a clause that is about something else, or not known: the server reads it."""
    at = next((i for i, word in enumerate(clause) if not is_word(word, *_INTRODUCTIONS)), len(clause))
    at += is_word(clause[0], "CHANGE")  # behind the old name
    if at >= len(clause) or clause[at].kind is not WordKind.NAME:
        return None
    try:
        column, _ = read_column(Words(Canonical(sql[clause[at].start : clause[-1].stop])))
    except InputError:
        return None
    return _Clause(sql, clause[at:], column, fills)


def _fills_with_json(column: ColumnDef) -> bool:
    """Whether rows get the type's zero: MariaDB's JSON is a text."""
    return column.type.base == "json" and not column.nullable and column.default is None


def _generated(clause: _Clause, notes: list[str], *, mariadb: bool, computes: bool) -> Iterator[Edit]:
    name = clause.column.name
    if clause.column.virtual or computes:
        if mariadb and not clause.column.nullable:
            notes.append(f"column {name} may be NULL: MariaDB knows no NOT NULL of what is generated")
            yield from clause.not_null()
        return
    first, last = clause.find("GENERATED", "AS"), clause.find("STORED", "PERSISTENT")
    if first is not None and last is not None:
        notes.append(f"column {name} is a plain one: upstream computes its values and sends them")
        yield clause.words[first].start, clause.words[last].stop, ""


def _default(clause: _Clause, notes: list[str]) -> Iterator[Edit]:
    at = clause.find("DEFAULT")
    if at is None or at + 1 >= len(clause.words):
        return
    start = clause.words[at + 1].start
    words = Words(Canonical(clause.sql[start : clause.words[-1].stop]))
    default, stop = read_default(words), start + words.words[words.at - 1].stop
    if default.expression.upper().startswith(_SEQUENCE):
        notes.append(f"left out: the default of column {clause.column.name}, a sequence upstream")
        yield clause.words[at].start, stop, ""
    elif default.value is not None and clause.column.type.base not in BYTES:
        yield from _spelled(clause, default.value, start, stop)


def _spelled(clause: _Clause, value: str | bytes, start: int, stop: int) -> Iterator[Edit]:
    kind = clause.column.type
    try:
        text = _shown(kind, spelled(kind, value))
    except TargetError:
        if clause.fills:
            raise
        return
    if text != value or (kind.members and isinstance(value, Number)):
        yield start, stop, _literal(kind, text)


def _shown(kind: TypeDef, text: str) -> str:
    """A value as a message spells it, members by their names."""
    if kind.base == "enum":
        return member_name(kind.members, text)
    return set_names(kind.members, text) if kind.base == "set" else text


def _literal(kind: TypeDef, text: str) -> str:
    if kind.base == "bit":
        return f"b'{int(text):b}'"
    return quoted_text(text) if kind.base in DATES | {"time", "char", "varchar", "enum", "set"} else text


def quoted_text(text: str) -> str:
    """A text as a literal."""
    body = text.replace("\\", "\\\\").replace("'", "''")
    return f"'{body}'"
