"""Reads CREATE TABLE, ALTER TABLE and CREATE / DROP INDEX, as TiDB prints them, into definitions.

An own grammar instead of a general parser: TiDB rewrites every statement in few forms (pingcap/tidb, pkg/parser/ast,
`Restore`), and a general one fails on some of them (FLOAT UNSIGNED) and hands others back as unread text.
"""

from collections.abc import Callable, Iterator
from dataclasses import replace
from itertools import chain

from ordering.events import folded
from sinks.ddl.collations import of_charset
from sinks.ddl.model import (
    AddColumn,
    AddIndex,
    Change,
    ChangeColumn,
    ChangePartitions,
    ColumnDef,
    DropColumn,
    DropIndex,
    IndexDef,
    IndexKind,
    IndexPart,
    Passed,
    RenameColumn,
    RenameIndex,
    SetComment,
    SetDefault,
    TableDef,
    Unknown,
    alone,
)
from sinks.ddl.parse.columns import TEXTUAL, of_bytes, read_column, read_type
from sinks.ddl.parse.defaults import read_default
from sinks.ddl.parse.lexer import Canonical
from sinks.ddl.parse.options import STORAGE, table_options
from sinks.ddl.parse.partitions import read_partitioning
from sinks.ddl.parse.words import WordKind, Words

_KEYS = {"PRIMARY", "UNIQUE", "KEY", "INDEX", "FULLTEXT", "SPATIAL", "VECTOR", "COLUMNAR"}
_CONSTRAINTS = {"FOREIGN", "CHECK"}


def read_table(sql: str) -> TableDef:
    """The table of a CREATE TABLE with a list of columns. Raises InputError."""
    words = Words(sql)
    words.skip_to("(")
    columns: list[tuple[ColumnDef, tuple[IndexDef, ...]]] = []
    indexes: list[IndexDef] = []
    passed: list[Passed] = []
    while True:
        if at_constraint(words):
            part = read_constraint(words)
            (indexes if isinstance(part, IndexDef) else passed).append(part)  # type: ignore[arg-type]
        else:
            columns.append(read_column(words))
        if not words.skip(","):
            break
    words.expect(")")
    own = list(chain.from_iterable(keys for _, keys in columns))
    named = _named([*own, *indexes])
    # TiDB makes those of the table's list before those that columns ask for: their order decides about handle keys
    named = (*named[len(own) :], *named[: len(own)])
    comment, collation = table_options(words)
    partitions = read_partitioning(words)
    made = (column_in(column, collation) for column, _ in columns)
    return TableDef(tuple(made), named, comment, tuple(passed), collation, partitions)


def in_database(table: TableDef, collation: str) -> TableDef:
    """A table as it is in a database with this collation, which it and its columns have unless they name their own."""
    if table.collation:
        return table
    return replace(table, collation=collation, columns=tuple(column_in(c, collation) for c in table.columns))


def column_in(column: ColumnDef, collation: str) -> ColumnDef:
    """A column as it is in a table with this collation: it has the same, and under `binary` texts are bytes."""
    kind = column.type
    if kind.collation or kind.base not in TEXTUAL:
        return column
    own = replace(kind, collation=of_charset(kind.charset) if kind.charset else collation)
    return replace(column, type=of_bytes(own) if own.collation == "binary" else own)


def _named(indexes: list[IndexDef]) -> tuple[IndexDef, ...]:
    """Give each nameless index the name that upstream chooses: its first column's, with _2, _3 ... where taken."""
    taken = {index.name.lower() for index in indexes if index.name}
    named = []
    for index in indexes:
        named.append(index.named(lambda name: name.lower() in taken))
        taken.add(named[-1].name.lower())
    return tuple(named)


def at_constraint(words: Words) -> bool:
    """Whether an index or a constraint comes next in a table's list, and no column."""
    return words.peek() in _KEYS | _CONSTRAINTS | {"CONSTRAINT"}


def read_constraint(words: Words) -> IndexDef | Passed:
    """An index, or a constraint that is passed over."""
    start = words.at
    name = ""
    if words.skip("CONSTRAINT") and words.peek() not in _KEYS | _CONSTRAINTS:
        name = words.name()
    if words.peek() in _CONSTRAINTS:
        words.at = start
        return Passed(words.skip_clause())
    return _index(words, name)


def _index(words: Words, name: str = "") -> IndexDef:
    """From PRIMARY, UNIQUE, INDEX ... on, up to the end of the clause."""
    kind = _index_kind(words)
    words.skip_any("KEY", "INDEX")
    if_missing = words.skip("IF", "NOT", "EXISTS")
    if words.peek() != "(" and not words.skip("USING"):
        name = words.name()
    while words.peek() != "(":  # an index type: USING BTREE
        words.take()
    parts = _parts(words)
    return IndexDef(_kind_over(kind, words), name, parts, if_missing)


def _kind_over(kind: IndexKind, words: Words) -> IndexKind:
    """The kind, by an index's options, which are stepped over: with WHERE it is unique for a part of the rows."""
    start = words.at
    words.skip_clause()
    options = words.words[start : words.at]
    partial = any(word.kind is WordKind.PLAIN and word.text.upper() == "WHERE" for word in options)
    return IndexKind.OTHER if partial and kind.unique else kind


def _index_kind(words: Words) -> IndexKind:
    if words.skip("PRIMARY"):
        return IndexKind.PRIMARY
    if words.skip("UNIQUE"):
        return IndexKind.UNIQUE
    return IndexKind.OTHER if words.skip_any("FULLTEXT", "SPATIAL", "VECTOR", "COLUMNAR") else IndexKind.PLAIN


def _parts(words: Words) -> tuple[IndexPart, ...]:
    words.expect("(")
    parts = [_part(words)]
    while words.skip(","):
        parts.append(_part(words))
    words.expect(")")
    return tuple(parts)


def _part(words: Words) -> IndexPart:
    if words.peek() == "(":
        expression = words.in_brackets()
        return IndexPart(expression=expression, descending=_descending(words))
    if words.peek(1) == "(" and not words.peek(2).isdigit():  # VEC_COSINE_DISTANCE(`v`) and the like
        return IndexPart(expression=words.skip_clause())
    column = words.name()
    length = int(words.in_brackets()) if words.peek() == "(" else None
    return IndexPart(column, length, descending=_descending(words))


def _descending(words: Words) -> bool:
    return words.skip_any("ASC", "DESC") == "DESC"


def read_index(sql: str) -> IndexDef:
    """The index of a CREATE INDEX. Raises InputError."""
    words = Words(sql)
    words.expect("CREATE")
    kind = _index_kind(words)
    words.expect("INDEX")
    words.skip("IF", "NOT", "EXISTS")
    name = words.name()
    words.skip_to("ON")
    words.skip_to("(")
    words.at -= 1
    parts = _parts(words)
    return IndexDef(_kind_over(kind, words), name, parts)


def read_dropped_index(sql: str) -> str:
    """The name in a DROP INDEX. Raises InputError."""
    words = Words(sql)
    words.expect("DROP", "INDEX")
    words.skip("IF", "EXISTS")
    return words.name()


def read_changes(sql: str) -> list[Change]:
    """The clauses of an ALTER TABLE that is no mere RENAME. Raises InputError."""
    found = [changes for _, changes in clauses(altering(sql))]
    columns = sum(isinstance(change, AddColumn) for changes in found for change in changes)
    is_alone = len(found) == 1 and columns <= 1
    return [alone(change) if is_alone else change for changes in found for change in changes]


def changed_columns(sql: str) -> Iterator[tuple[ChangeColumn, str]]:
    """The columns that an ALTER TABLE changes, and how the statement writes their types. Raises InputError."""
    for text, changes in clauses(altering(sql)):
        for change in changes:
            if isinstance(change, ChangeColumn):
                words = Words(Canonical(text))
                words.at = 1  # MODIFY or CHANGE
                words.skip("COLUMN")
                words.skip("IF", "EXISTS")
                words.at += 1 if text[:6].upper() == "MODIFY" else 2
                start = words.words[words.at].start
                read_type(words)
                yield change, Canonical(words.sql[start : words.words[words.at - 1].stop])


def altering(sql: str) -> Words:
    """The words of an ALTER TABLE behind the table's name. Raises InputError."""
    words = Words(sql)
    words.expect("ALTER", "TABLE")
    words.name()
    if words.skip("."):
        words.name()
    return words


def clauses(words: Words) -> Iterator[tuple[str, list[Change]]]:
    """Each clause as it is written, and what it does. Raises InputError."""
    while not words.ended:
        start = words.words[words.at].start
        changes = list(clause(words))
        yield words.sql[start : words.words[words.at - 1].stop], changes
        if not words.ended:
            words.expect(",")


def clause(words: Words) -> Iterator[Change]:
    """What the clause does that comes next; steps over it. Raises InputError."""
    first = words.peek()
    if words.peek(1) in {"PARTITION", "PARTITIONING"} or first == "PARTITION":
        start = words.at
        while not words.ended:  # commas inside belong to it, and nothing can follow
            words.take()
        text = words.sql[words.words[start].start :]
        yield ChangePartitions(text)
        return
    rule = _CLAUSES.get(first)
    if rule is not None:
        words.take()
        yield from rule(words)
    elif first in STORAGE:
        yield Passed(words.skip_clause())
    else:
        yield Unknown(words.skip_clause())


def _add(words: Words) -> Iterator[Change]:
    if at_constraint(words):
        yield _added(read_constraint(words))
        return
    if words.peek() == "STATS_EXTENDED":
        yield Passed(words.skip_clause())
        return
    words.skip("COLUMN")
    if_missing = words.skip("IF", "NOT", "EXISTS")
    several = words.skip("(")
    yield from (added_element if several else added_column)(words, if_missing=if_missing)
    while several and words.skip(","):
        yield from added_element(words, if_missing=if_missing)
    if several:
        words.expect(")")


def added_element(words: Words, *, if_missing: bool) -> Iterator[Change]:
    """What an ADD COLUMN (...) holds between two commas: a column, an index or a constraint. Raises InputError."""
    if at_constraint(words):
        yield _added(read_constraint(words))
    else:
        yield from added_column(words, if_missing=if_missing)


def _added(part: IndexDef | Passed) -> Change:
    return AddIndex(part) if isinstance(part, IndexDef) else part


def added_column(words: Words, *, if_missing: bool) -> Iterator[Change]:
    """A column of an ADD COLUMN, and the keys that are made with it. Raises InputError."""
    column, keys = read_column(words)
    yield AddColumn(column, if_missing, moved=_skip_place(words))
    yield from (AddIndex(key) for key in keys)


def _skip_place(words: Words) -> bool:
    """Whether a place was named."""
    if words.skip("AFTER"):
        words.name()
        return True
    return words.skip("FIRST")


def _drop(words: Words) -> Iterator[Change]:
    if words.skip("PRIMARY", "KEY"):
        yield DropIndex("PRIMARY")
    elif words.skip_any("INDEX", "KEY"):
        words.skip("IF", "EXISTS")
        yield DropIndex(words.name())
    elif words.peek() in {*_CONSTRAINTS, "CONSTRAINT", "STATS_EXTENDED"}:
        yield Passed(f"DROP {words.skip_clause()}")
    else:
        words.skip("COLUMN")
        words.skip("IF", "EXISTS")
        yield DropColumn(words.name())
        words.skip_any("RESTRICT", "CASCADE")


def _modify(words: Words) -> Iterator[Change]:
    words.skip("COLUMN")
    words.skip("IF", "EXISTS")
    column, keys = read_column(words)
    yield ChangeColumn(column.name, column, moved=_skip_place(words))
    yield from (AddIndex(key) for key in keys)


def _change(words: Words) -> Iterator[Change]:
    words.skip("COLUMN")
    words.skip("IF", "EXISTS")
    old = words.name()
    column, keys = read_column(words)
    yield ChangeColumn(old, column, moved=_skip_place(words))
    yield from (AddIndex(key) for key in keys)


def _rename(words: Words) -> Iterator[Change]:
    what = words.skip_any("COLUMN", "INDEX", "KEY")
    if not what:
        yield Unknown(f"RENAME {words.skip_clause()}")
        return
    words.skip("IF", "EXISTS")
    old = words.name()
    words.expect("TO")
    new = words.name()
    if what != "COLUMN":
        yield RenameIndex(old, new)
    elif renames_nothing(old, new):
        yield Passed(f"RENAME COLUMN {old!r} TO {new!r}: upstream keeps the name as it is")
    else:
        yield RenameColumn(old, new)


def renames_nothing(old: str, new: str) -> bool:
    """Whether a RENAME COLUMN changes nothing in TiDB: the case of a name. CHANGE and MODIFY COLUMN change that too."""
    return folded(old) == folded(new)


def _alter(words: Words) -> Iterator[Change]:
    if words.peek() in {"INDEX", "CHECK", "CONSTRAINT"}:
        yield Passed(f"ALTER {words.skip_clause()}")
        return
    words.skip("COLUMN")
    name = words.name()
    if words.skip("DROP", "DEFAULT"):
        yield SetDefault(name, None)
    else:
        words.expect("SET", "DEFAULT")
        yield SetDefault(name, read_default(words))


def _comment(words: Words) -> Iterator[Change]:
    words.skip("=")
    word = words.take()
    if word.kind is not WordKind.STRING:
        raise words.unexpected("expected a comment's text")
    yield SetComment(word.text)
    if words.peek() in STORAGE:  # options may stand side by side
        yield Passed(words.skip_clause())


def _set(words: Words) -> Iterator[Change]:
    text = words.skip_clause()
    yield Passed(f"SET {text}") if text.upper().startswith(("TIFLASH", "HYPO")) else Unknown(f"SET {text}")


_CLAUSES: dict[str, Callable[[Words], Iterator[Change]]] = {
    "ADD": _add,
    "DROP": _drop,
    "MODIFY": _modify,
    "CHANGE": _change,
    "RENAME": _rename,
    "ALTER": _alter,
    "COMMENT": _comment,
    "SET": _set,
}
