"""Columns of DDL as MySQL and MariaDB are given them, where they would read or compute another thing than TiDB.

A literal default is spelled as the value that it is upstream; JSON that may not be NULL fills rows as upstream; a
STORED generated column is a plain one, for its values are sent: the server would compute others (time zone, scale of
divisions, rounding of fractions). A dump does not hold them, so a table that is loaded has them computed, where that
gives the same.
"""

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass

from ordering.errors import InputError, TargetError
from sinks.ddl.model import ColumnDef, Default, TableDef, TypeDef
from sinks.ddl.parse.columns import read_column
from sinks.ddl.parse.defaults import Number, read_default
from sinks.ddl.parse.lexer import Canonical
from sinks.ddl.parse.words import Word, WordKind, Words
from sinks.ddl.rows.default_values import BYTES, DATES, REALS, held, spelled
from sinks.mysql.ddl.virtual_columns import unlike
from sinks.rows.values import member_name, set_names

Edit = tuple[int, int, str]
"""Positions in the statement from and up to, and what stands there instead."""
_INTRODUCTIONS = ("ADD", "MODIFY", "CHANGE", "COLUMN", "IF", "NOT", "EXISTS")
_CHARSETS = ("CHARACTER", "CHARSET", "COLLATE", "ASCII", "UNICODE", "BINARY")
_SEQUENCE = "NEXTVAL"
_ONLY_IN_MYSQL, _ONLY_IN_TIDB = {"UUID_TO_BIN"}, {"VEC_FROM_TEXT"}
"""Functions that TiDB takes in a default; MySQL has the first."""
_OF_ZONES = frozenset({"from_unixtime", "unix_timestamp"})
"""Functions whose values go by the session's time zone."""
_NULL_JSON = "rows that are there show JSON's null, as upstream: MariaDB would give them an empty text"


def lasting_members(sql: str, charset: str, holds: Callable[[str, str], bool]) -> tuple[str, list[str]]:
    """A statement whose new ENUMs and SETs keep their members, and what the DDL log says of it.

    Messages do not name the character set of such a column, only a table's. Of a member that this one lacks, servers
    make a question mark without a word. `charset`: the table's; `holds`: whether a character set has a text.
    """
    words, edits = Words(sql), list[Edit]()
    for members, end in _member_lists(words.words):
        lost = [word.text for word in members if not word.text.isascii() and not holds(charset, word.text)]
        following = words.words[end + 1 : end + 2]
        if lost and not (following and is_word(following[0], *_CHARSETS)):
            edits.append((words.words[end].stop, words.words[end].stop, " CHARACTER SET utf8mb4 COLLATE utf8mb4_bin"))
    if not edits:
        return sql, []
    text = str(words.sql)
    for start, stop, instead in reversed(edits):
        text = text[:start] + instead + text[stop:]
    return Canonical(text), [f"members of ENUM or SET that {charset} lacks: utf8mb4"]


def _member_lists(words: Sequence[Word]) -> Iterator[tuple[list[Word], int]]:
    """The members of each ENUM and SET, and the place of the bracket behind them."""
    for at, word in enumerate(words[:-2]):
        if is_word(word, "ENUM", "SET") and is_word(words[at + 1], "(") and words[at + 2].kind is WordKind.STRING:
            end = next(i for i in range(at + 2, len(words)) if is_word(words[i], ")"))
            yield [one for one in words[at + 2 : end] if one.kind is WordKind.STRING], end


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
    sql: str,
    clause: Sequence[Word],
    notes: list[str],
    types: Mapping[str, TypeDef],
    *,
    fills: bool,
    mariadb: bool,
    computes: bool = False,
) -> Iterator[Edit]:
    """What a clause about a column needs. Raises TargetError for a default whose value is not known.

    `types`: see `unlike`.
    """
    found = _read(sql, clause, fills=fills)
    if found is None:
        return
    if found.column.generated is not None:
        if found.column.virtual or computes:
            _check_computed(found.column, types, mariadb=mariadb)
        yield from _generated(found, notes, mariadb=mariadb, computes=computes)
    elif mariadb and fills and _fills_with_json(found.column):
        notes.append(_NULL_JSON)
        yield end_of_options(clause), end_of_options(clause), " DEFAULT 'null'"
    elif not fills and (function := _unknown_function(found.column.default, mariadb=mariadb)):
        notes.append(f"left out: the default of column {found.column.name}, {function} is unknown to the server")
        yield from _without_default(found)
    else:
        yield from _default(found, notes)


def zoned_columns(table: TableDef) -> frozenset[str]:
    """The stored columns, in lower case, whose values go by the time zone of the session that computes them."""
    zoned = {column.name.lower() for column in table.columns if column.type.base == "timestamp"} | _OF_ZONES
    computed = [column for column in table.columns if column.generated is not None]
    while found := {c.name.lower() for c in computed if c.name.lower() not in zoned and _reads(c, zoned)}:
        zoned |= found  # of virtual ones too, which others may read
    return frozenset(c.name.lower() for c in computed if not c.virtual and c.name.lower() in zoned)


def _reads(column: ColumnDef, names: Collection[str]) -> bool:
    words = Words(Canonical(column.generated.expression if column.generated else "")).words
    return any(word.text.lower() in names for word in words if word.kind in {WordKind.PLAIN, WordKind.NAME})


def plain_edits(sql: str, clause: Sequence[Word], names: Collection[str], notes: list[str]) -> Iterator[Edit]:
    """For TiDB: makes plain columns of these, for upstream's session may have had another zone; values are sent."""
    found = _read(sql, clause, fills=False)
    if found is not None and found.column.name.lower() in names:
        yield from _generated(found, notes, mariadb=False, computes=False)


def decimal_edits(sql: str, clause: Sequence[Word]) -> Iterator[Edit]:
    """For TiDB: a DECIMAL's default that it would round again, with a warning, whenever it reads a row that was there.

    Raises TargetError for a default whose value is not known.
    """
    found = _read(sql, clause, fills=True)
    if found is not None and found.column.type.base == "decimal" and found.column.generated is None:
        yield from _default(found, [])


def sequence_edits(sql: str, clause: Sequence[Word], notes: list[str]) -> Iterator[Edit]:
    """For TiDB: leaves out a default from a sequence, for TiCDC does not replicate these."""
    found = _read(sql, clause, fills=False)
    if found is not None and _is_of_sequence(found.column.default):
        yield from _default(found, notes)


def _is_of_sequence(default: Default | None) -> bool:
    """TiDB sends it with and without brackets."""
    return default is not None and default.expression.lstrip("( ").upper().startswith(_SEQUENCE)


def _unknown_function(default: Default | None, *, mariadb: bool) -> str:
    """The function of TiDB's in a default that the server has not; "" if it has all. Messages bring whole rows."""
    words = Words(Canonical(default.expression)).words if default is not None and default.expression else []
    unknown = _ONLY_IN_MYSQL | _ONLY_IN_TIDB if mariadb else _ONLY_IN_TIDB
    return next((word.text.upper() for word in words if is_word(word, *unknown)), "")


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


def _check_computed(column: ColumnDef, types: Mapping[str, TypeDef], *, mariadb: bool) -> None:
    """Raise TargetError for a column that the server may compute otherwise, and whose values nothing has."""
    reason = unlike(column, types, mariadb=mariadb)
    server = "MariaDB" if mariadb else "MySQL"
    if reason and not column.virtual:
        raise not_dumped(server, column.name, reason)
    if reason:
        raise TargetError(
            f"{server} may compute VIRTUAL column {column.name!r} otherwise than TiDB ({reason})",
            hint="make it STORED upstream: its values are then sent; or make the change in the target by hand",
        )


def not_dumped(server: str, column: str, reason: str) -> TargetError:
    """The error for a STORED column of a dump that the server may compute otherwise than upstream did."""
    return TargetError(
        f"{server} may compute STORED column {column!r} otherwise than upstream did ({reason}), and a dump lacks its"
        " values",
        hint="make the table in the target by hand, with an expression that gives the same values there, then go on; or"
        " leave it out with filter.rules",
    )


def _without_default(clause: _Clause) -> Iterator[Edit]:
    if (place := _place_of_default(clause)) is not None:
        at, _, _, stop = place
        yield clause.words[at].start, stop, ""


def _place_of_default(clause: _Clause) -> tuple[int, Default, int, int] | None:
    """The place of the word, what stands behind it, and from and up to where that stands in the statement."""
    at = clause.find("DEFAULT")
    if at is None or at + 1 >= len(clause.words):
        return None
    start = clause.words[at + 1].start
    words = Words(Canonical(clause.sql[start : clause.words[-1].stop]))
    default = read_default(words)
    return at, default, start, start + words.words[words.at - 1].stop


def _default(clause: _Clause, notes: list[str]) -> Iterator[Edit]:
    place = _place_of_default(clause)
    if place is None:
        return
    _, default, start, stop = place
    if _is_of_sequence(default):
        notes.append(f"left out: the default of column {clause.column.name}, a sequence upstream")
        yield from _without_default(clause)
    elif isinstance(default.value, bytes) and clause.column.type.base in BYTES:
        yield from _of_bytes(clause, default.value, start, stop)
    elif default.value is not None and clause.column.type.base not in BYTES:
        yield from _spelled(clause, default.value, start, stop)


def _of_bytes(clause: _Clause, value: bytes, start: int, stop: int) -> Iterator[Edit]:
    """What is no UTF-8 is another value upstream; one that is cut within a letter is refused."""
    kind = clause.column.type
    text = held(kind, value)
    if text == spelled(kind, value):
        return
    made = text.encode("latin-1")
    is_text = made.decode(errors="ignore").encode() == made
    if clause.fills and not is_text:
        raise TargetError(
            f"the default of column {clause.column.name!r}, {value!r}, is cut upstream to what is no text",
            hint="add the column in the target by hand, filled as it is upstream",
        )
    yield start, stop, f"x'{made.hex()}'" if is_text else "x''"


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
    if kind.base in REALS:
        return repr(float(text))  # with its exponent: a long row of digits is a DECIMAL to the server
    return quoted_text(text) if kind.base in DATES | {"time", "char", "varchar", "enum", "set"} else text


def quoted_text(text: str) -> str:
    """A text as a literal."""
    body = text.replace("\\", "\\\\").replace("'", "''")
    return f"'{body}'"
