"""Fits TiDB's DDL to a server that does not know all of it, word by word; the rest stays as it came.

What changes no value is replaced by its nearest (collations by case, accents and padding; VECTOR by its text) or left
out (indexes over expressions, CHECK's ENFORCED). The DDL log holds what was executed and why it differs.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from itertools import pairwise, takewhile

from sinks.ddl.collations import of_charset
from sinks.ddl.model import AddColumn, ChangeColumn, ColumnDef, TypeDef
from sinks.ddl.parse.lexer import Canonical
from sinks.ddl.parse.statement import DdlKind, read_statement
from sinks.ddl.parse.tables import column_in, in_database, read_changes, read_table, renames_nothing
from sinks.ddl.parse.words import Word, WordKind, Words
from sinks.mysql.connection import MysqlConnection
from sinks.mysql.ddl.columns import (
    Edit,
    column_edits,
    decimal_edits,
    end_of_options,
    not_dumped,
    plain_edits,
    sequence_edits,
    zoned_columns,
)
from sinks.mysql.ddl.constraints import automatic, named_here, why_constraint_left_out, without_check
from sinks.mysql.ddl.own_options import linear_edits, ttl_edits, value_of, why_left_out, without_own_options
from sinks.mysql.ddl.partitions import unvalidated
from sinks.mysql.ddl.virtual_columns import may_compute

NEAREST = {
    "utf8mb4_0900_ai_ci": ("utf8mb4_uca1400_nopad_ai_ci", "utf8mb4_unicode_520_nopad_ci", "utf8mb4_general_nopad_ci"),
    "utf8mb4_0900_bin": ("utf8mb4_nopad_bin",),
    "gb18030_bin": ("utf8mb4_bin",),
    "gb18030_chinese_ci": ("utf8mb4_general_ci",),
}
"""Collations of TiDB that some servers lack, and what comes nearest in case, accents and padding, best first."""

_FURTHER = {name: upstream for upstream, names in NEAREST.items() for name in names if "_nopad_" in name}
"""Those among them that TiDB has not: where a target's table has one, upstream's has the other."""
_OTHER_THERE = {"utf8mb4_0900_bin"}
"""Collations whose names MariaDB knows for others: since 11.4.5 this one is its utf8mb4_bin, which pads with blanks."""
_OTHER_ENGINES = {
    "MYISAM", "MEMORY", "HEAP", "ARIA", "CSV", "ARCHIVE", "BLACKHOLE", "MERGE", "MRG_MYISAM", "FEDERATED", "NDB",
    "NDBCLUSTER", "ROCKSDB", "TOKUDB", "COLUMNSTORE", "SPIDER", "CONNECT", "EXAMPLE",
}  # fmt: skip
_OTHER_FORMATS = {"FIXED", "PAGE"}
"""What InnoDB has not, and refuses in its strict mode."""


@dataclass(frozen=True, slots=True)
class Server:
    """What a server can do, as far as statements have to be fitted."""

    is_mariadb: bool
    null_timestamps: bool
    """Whether a TIMESTAMP column may be NULL if nothing is said (explicit_defaults_for_timestamp, as in TiDB)."""
    knows_collation: Callable[[str], bool]
    knows_charset: Callable[[str], bool]
    computes: bool = False
    """Whether it has to compute what upstream computes and stores: rows of a dump lack it."""
    types: Mapping[str, TypeDef] = field(default_factory=dict)
    """Of the columns of the table that a statement changes, by their names in lower case."""
    collation: str = ""
    """Of new columns of which nothing is said: the table's, or the database's."""
    foreign_keys: Sequence[str] | None = None
    """The names of those of the table that a statement changes; None where none of them is dropped."""
    automatic: frozenset[str] = frozenset()
    """See `sinks.mysql.ddl.constraints.automatic`."""


def server_of(connection: MysqlConnection) -> Server:
    """Ask a server."""
    collations = "SELECT COUNT(*) FROM information_schema.COLLATION_CHARACTER_SET_APPLICABILITY WHERE"
    column = "FULL_COLLATION_NAME" if connection.has_full_collation_names else "COLLATION_NAME"
    charsets = "SELECT COUNT(*) FROM information_schema.CHARACTER_SETS WHERE CHARACTER_SET_NAME = %s"
    others = _OTHER_THERE if connection.is_mariadb else set()
    return Server(
        connection.is_mariadb,
        connection.value("SELECT @@explicit_defaults_for_timestamp") == 1,
        cache(lambda name: name not in others and bool(connection.value(f"{collations} {column} = %s", (name,)))),
        cache(lambda name: name == "utf8" or bool(connection.value(charsets, (name,)))),
    )


def upstreams(collation: str) -> str:
    """The collation upstream, of a table that has this one in the target."""
    return _FURTHER.get(collation, collation)


@dataclass(slots=True)
class Adapted:
    """The statement to execute ("" for none) and what was changed in it."""

    sql: str
    notes: list[str] = field(default_factory=list)

    @property
    def logged(self) -> str:
        """The statement for the DDL log, with the notes behind it."""
        return f"{self.sql} -- {'; '.join(self.notes)}".strip() if self.notes else self.sql


def adapted(sql: str, server: Server) -> Adapted:
    """The statement as the server takes it. Raises InputError if it can't be read."""
    read = Words(sql)
    sql, words = read.sql, read.words
    result = Adapted(sql)
    verb = " ".join(word.text.upper() for word in words[:2])
    if verb.split(" ")[0] not in {"CREATE", "ALTER", "DROP"}:
        return result
    edits: list[Edit] = []
    server = replace(server, types={**server.types, **_types_in(sql, server.collation)})
    for clauses in _lists(words):
        kept, server = 0, replace(server, automatic=server.automatic | automatic(clauses))
        for at, clause in enumerate(clauses):
            reason = _left_out(clause, server, alters=_is(words[0], "ALTER"))
            if reason:
                result.notes.append(f"left out: {_source(sql, clause)} ({reason})")
                edits.append(_without(clauses, at, is_first_kept=not kept))
            else:
                kept += 1
                edits += _edits(sql, clause, server, result.notes)
        if not kept:
            result.sql = ""
            return result
    result.sql = _edited(sql, [*edits, *_definer(words), *linear_edits(words, result.notes)])
    if not server.is_mariadb:
        result.sql = unvalidated(read_statement(result.sql))
    return result


def _types_in(sql: str, collation: str) -> dict[str, TypeDef]:
    """Of the columns that a statement defines, where some are generated: what they read may be among them."""
    statement = read_statement(sql)
    if not may_compute(sql):
        return {}
    columns: list[ColumnDef] = []
    if statement.kind is DdlKind.CREATE_TABLE and statement.like is None:
        columns += in_database(read_table(sql), collation).columns
    elif statement.kind is DdlKind.ALTER_TABLE and not statement.renames:
        changes = (change for change in read_changes(sql) if isinstance(change, AddColumn | ChangeColumn))
        columns += [column_in(change.column, collation) for change in changes]
    return {column.name.lower(): column.type for column in columns}


def for_tidb(sql: str, *, dumped: bool = False) -> Adapted:
    """The statement for TiDB: a view runs under the user that makes it, new DECIMALs have defaults of their own scale.

    Stored columns that go by the session's time zone are plain ones. Raises InputError if it can't be read, TargetError
    for such a column of a dump, which lacks its values.
    """
    read = Words(sql)
    result = Adapted(read.sql)
    result.sql = _edited(read.sql, [*_definer(read.words), *_of_tidb(read, result.notes, dumped=dumped)])
    return result


def _of_tidb(read: Words, notes: list[str], *, dumped: bool) -> Iterator[Edit]:
    statement = read_statement(read.sql)
    clauses = [clause for some in _lists(read.words) for clause in some if clause]
    stores = any(_is(word, "STORED", "PERSISTENT") for word in read.words)
    if statement.kind is DdlKind.CREATE_TABLE and statement.like is None and stores:
        names = zoned_columns(read_table(read.sql))
        if names and dumped:
            raise not_dumped("TiDB", min(names), "it goes by the time zone of a session")
        for clause in clauses if names else ():
            yield from plain_edits(read.sql, clause, names, notes)
    if statement.kind is DdlKind.ALTER_TABLE:
        for column in (column for clause in clauses if _is(clause[0], "ADD") for column in _columns(clause)):
            yield from decimal_edits(read.sql, column)
    if statement.kind in {DdlKind.CREATE_TABLE, DdlKind.ALTER_TABLE}:
        yield from ttl_edits(read.words, notes)
        for clause in clauses:
            yield from sequence_edits(read.sql, clause, notes)


def _definer(words: Sequence[Word]) -> Iterator[Edit]:
    """Upstream's user may not be there, and to name another one needs more rights than a run has, or gives them."""
    head = list(takewhile(lambda word: not _is(word, "VIEW"), words))
    for at, word in enumerate(head[:-2] if _is(words[0], "CREATE") else []):
        if _is(word, "DEFINER") and _is(head[at + 1], "="):
            has_more = _is(words[at + 3], "@", "(")
            yield words[at + 2].start, words[at + 4 if has_more else at + 2].stop, "CURRENT_USER"


def _lists(words: Sequence[Word]) -> Iterator[list[list[Word]]]:
    """The statement's comma-separated lists of clauses: the columns and keys of a table, its options, its changes."""
    if [word.text.upper() for word in words[:2]] == ["CREATE", "TABLE"]:
        opening = next((i for i, word in enumerate(words) if _is(word, "(")), len(words))
        closing = _partner(words, opening)
        yield _split(words[opening + 1 : closing]) or [[]]
        yield [list(words[closing + 1 :])]
    elif [word.text.upper() for word in words[:2]] == ["ALTER", "TABLE"]:
        qualified = any(_is(word, ".") for word in words[3:4])
        yield _split(words[5 if qualified else 3 :])
    else:
        yield [list(words)]


def _is(word: Word, *texts: str) -> bool:
    return word.kind is WordKind.PLAIN and word.text.upper() in texts


def _partner(words: Sequence[Word], opening: int) -> int:
    """The place of the bracket that closes this one."""
    depth = 0
    for at in range(opening, len(words)):
        depth += _is(words[at], "(") - _is(words[at], ")")
        if not depth:
            return at
    return len(words)


def _split(words: Sequence[Word]) -> list[list[Word]]:
    """Clauses between commas outside of brackets."""
    clauses: list[list[Word]] = [[]]
    depth = 0
    for word in words:
        depth += _is(word, "(") - _is(word, ")")
        if _is(word, ",") and not depth:
            clauses.append([])
        else:
            clauses[-1].append(word)
    return [clause for clause in clauses if clause]


def _source(sql: str, clause: Sequence[Word]) -> str:
    return sql[clause[0].start : clause[-1].stop]


def _without(clauses: list[list[Word]], at: int, *, is_first_kept: bool) -> Edit:
    """Takes out a clause and the comma on the side where a kept one is."""
    if is_first_kept and at + 1 < len(clauses):
        return clauses[at][0].start, clauses[at + 1][0].start, ""
    before = clauses[at - 1][-1].stop if at else clauses[at][0].start
    return before, clauses[at][-1].stop, ""


def _left_out(clause: Sequence[Word], server: Server, *, alters: bool) -> str:
    """Why a clause is left out; "" if it is not."""
    texts = [word.text.upper() if word.kind is WordKind.PLAIN else "" for word in clause]
    if alters and (reason := why_left_out(clause)):
        return reason
    if alters and texts[:2] == ["RENAME", "COLUMN"] and renames_nothing(*(clause[at].text for at in (2, -1))):
        return "upstream keeps the name as it is"
    if reason := why_constraint_left_out(clause, server.foreign_keys, server.automatic):
        return reason
    if "VECTOR" in texts and "INDEX" in texts and texts.index("INDEX") == texts.index("VECTOR") + 1:
        return "vector indexes are TiDB's own"
    return _why_no_such_index(texts, server) if _is_index(texts) else ""


def _why_no_such_index(texts: Sequence[str], server: Server) -> str:
    if "WHERE" in texts:
        return "the server has no indexes over a part of the rows"
    computes = server.is_mariadb and any(b == "(" and a in {"(", ","} for a, b in pairwise(texts))
    return "MariaDB has no indexes over expressions" if computes else ""


def _is_index(texts: Sequence[str]) -> bool:
    """Whether a clause makes an index."""
    start = texts[1:4] if texts[:1] == ["ADD"] else texts[:3]
    kinds = {"KEY", "INDEX", "UNIQUE"}
    return bool(kinds & set(start)) and start[0] in kinds | {"CONSTRAINT", "CREATE"}


def _edits(sql: str, clause: Sequence[Word], server: Server, notes: list[str]) -> Iterator[Edit]:
    fills = bool(clause) and _is(clause[0], "ADD")
    clause, checks = without_check(clause, server.automatic)
    yield from checks
    for column in _columns(clause):
        yield from column_edits(
            sql, column, notes, server.types, fills=fills, mariadb=server.is_mariadb, computes=server.computes
        )
        yield from _of_types(column, server, notes)
    yield from without_own_options(sql, clause, notes)
    yield from named_here(clause, server.foreign_keys, notes)
    yield from _of_clause(clause, server, notes)


def _columns(clause: Sequence[Word]) -> list[list[Word]]:
    """The clause itself, or what stands in the brackets of ADD COLUMN (...), each for itself."""
    if [word.text.upper() for word in clause[:3]] == ["ADD", "COLUMN", "("]:
        return _split(clause[3:-1])
    return [list(clause)] if clause else []


def _of_types(clause: Sequence[Word], server: Server, notes: list[str]) -> Iterator[Edit]:
    yield from _collations(clause, server, notes)
    yield from _types(clause, server, notes)


def _of_clause(clause: Sequence[Word], server: Server, notes: list[str]) -> Iterator[Edit]:
    yield from _engines(clause, notes)
    if not server.is_mariadb:
        yield from _unenforced(clause)
        return
    for at, word in enumerate(clause):
        if _is(word, "ENFORCED"):
            first = clause[at - 1] if _is(clause[at - 1], "NOT") else word
            yield first.start, word.stop, ""
        elif _is(word, "INVISIBLE"):
            yield word.start, word.stop, "IGNORED"
        elif _is(word, "VISIBLE"):
            yield word.start, word.stop, "NOT IGNORED"
        elif _is(word, "INDEX", "KEY") and at and _is(clause[at - 1], "DROP", "RENAME", "ALTER"):
            yield word.stop, word.stop, " IF EXISTS"  # it may be one that was left out


def _unenforced(clause: Sequence[Word]) -> Iterator[Edit]:
    """TiDB parses CHECK and by default does not enforce it; MariaDB is told so by its session."""
    for at, word in enumerate(clause):
        following = clause[at + 1] if at + 1 < len(clause) else None
        if _is(word, "ENFORCED") and not _is(clause[at - 1], "NOT"):
            yield word.start, word.start, "NOT "
        elif _is(word, "CHECK") and following is not None and _is(following, "("):
            last = _partner(clause, at + 1)
            if not any(_is(then, "ENFORCED") for then in clause[last + 1 : last + 3]):
                yield clause[last].stop, clause[last].stop, " NOT ENFORCED"


def _collations(clause: Sequence[Word], server: Server, notes: list[str]) -> Iterator[Edit]:
    depth, named = 0, any(_is(word, "COLLATE") for word in clause)
    for at, word in enumerate(clause):
        depth += _is(word, "(") - _is(word, ")")
        if depth:
            continue  # within an expression
        value = value_of(clause, at)
        if value is not None and _is(word, "COLLATE"):
            nearest = _nearest(value.text.lower(), server)
            if nearest != value.text.lower():
                notes.append(f"collation {value.text} is unknown to the server: {nearest}")
                yield value.start, value.stop, nearest
        elif value is not None and (_is(word, "CHARSET") or (_is(word, "SET") and _is(clause[at - 1], "CHARACTER"))):
            yield from _charset(value, server, notes, named=named)


def _charset(value: Word, server: Server, notes: list[str], *, named: bool) -> Iterator[Edit]:
    """A character set that the server lacks becomes utf8mb4; one without collation gets TiDB's."""
    charset = value.text.lower()
    if not server.knows_charset(charset):
        notes.append(f"character set {charset} is unknown to the server: utf8mb4")
        yield value.start, value.stop, "utf8mb4"
    default = of_charset(charset)
    if not named and default and default != charset:
        yield value.stop, value.stop, f" COLLATE {_nearest(default, server)}"


def _nearest(collation: str, server: Server) -> str:
    if server.knows_collation(collation):
        return collation
    known = (name for name in NEAREST.get(collation, ()) if server.knows_collation(name))
    return next(known, collation)


def _types(clause: Sequence[Word], server: Server, notes: list[str]) -> Iterator[Edit]:
    """Types that the server lacks, or takes for something else."""
    for before, word in pairwise(clause):
        if _is(word, "ZEROFILL"):  # the server would take its zeros along into a text
            yield word.start, word.stop, "" if _is(before, "UNSIGNED") else "UNSIGNED"
        if before.kind is not WordKind.NAME:
            continue
        if _is(word, "VECTOR"):
            at = clause.index(word)
            last = clause[_partner(clause, at + 1)] if at + 1 < len(clause) and _is(clause[at + 1], "(") else word
            notes.append(f"column {before.text} is kept as text: VECTOR is TiDB's own type")
            yield word.start, last.stop, "LONGTEXT"
        if _is(word, "TIMESTAMP") and not server.null_timestamps and not _says_null(clause):
            yield end_of_options(clause), end_of_options(clause), " NULL"


def _engines(clause: Sequence[Word], notes: list[str]) -> Iterator[Edit]:
    """TiDB knows one storage engine, whatever a statement names; here only InnoDB's rows are in a transaction."""
    depth = 0
    for at, word in enumerate(clause):
        depth += _is(word, "(") - _is(word, ")")
        value = value_of(clause, at)
        if value is None:
            continue
        name = value.text.strip("'\"").upper()
        is_option = not depth and _is(clause[at + 1], "=")
        if _is(word, "ENGINE") and name != "INNODB" and (is_option or name in _OTHER_ENGINES):
            notes.append(f"storage engine {name}: InnoDB, for TiDB's tables are transactional")
            yield value.start, value.stop, "InnoDB"
        elif _is(word, "ROW_FORMAT") and name in _OTHER_FORMATS:
            yield value.start, value.stop, "DEFAULT"


def _says_null(clause: Sequence[Word]) -> bool:
    return any(_is(word, "NULL") and not _is(clause[at - 1], "DEFAULT") for at, word in enumerate(clause))


def _edited(sql: str, edits: Sequence[Edit]) -> Canonical:
    for start, stop, text in sorted(edits, reverse=True):
        sql = sql[:start] + text + sql[stop:]
    return Canonical(sql)
