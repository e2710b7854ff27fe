"""Reads a column's definition: type, then options in any order (TiDB's grammar, `ColumnDef`)."""

from collections.abc import Callable
from dataclasses import replace

from sinks.ddl.model import ColumnDef, Generated, IndexDef, IndexKind, IndexPart, TypeDef
from sinks.ddl.parse.defaults import read_default, read_expression
from sinks.ddl.parse.words import WordKind, Words

_SYNONYMS = {
    "integer": "int", "int4": "int", "int8": "bigint", "bool": "tinyint", "boolean": "tinyint", "numeric": "decimal",
    "dec": "decimal", "fixed": "decimal", "real": "double", "float8": "double", "float4": "float", "character": "char",
    "nchar": "char", "nvarchar": "varchar",
}  # fmt: skip
_MEMBERS = {"enum", "set"}
_OF_BYTES = {
    "char": "binary", "varchar": "varbinary", "tinytext": "tinyblob", "text": "blob", "mediumtext": "mediumblob",
    "longtext": "longblob",
}  # fmt: skip
TEXTUAL = _OF_BYTES.keys() | _MEMBERS
"""Types that have a collation."""
_DOUBLE_FROM = 25
"""FLOAT(p) is a DOUBLE from this precision on (MySQL documentation, "Floating-Point Types")."""

_ACTIONS = {"RESTRICT", "CASCADE", "SET", "NO"}
"""What the actions of a foreign key begin with."""

Option = Callable[[Words, ColumnDef], ColumnDef]


def read_type(words: Words) -> TypeDef:
    """The type that comes next."""
    words.skip("NATIONAL")
    base = words.name().lower()
    if base == "double":
        words.skip("PRECISION")
    boolean = base in {"bool", "boolean"}
    base = _SYNONYMS.get(base, base)
    numbers: tuple[int, ...] = (1,) if boolean else ()
    members: tuple[str, ...] = ()
    if words.peek() == "(" and base in _MEMBERS:
        members = _strings(words)
    elif words.peek() == "(":
        numbers = tuple(int(text) for text in words.in_brackets().split(",") if text.strip().isdigit())
    if base == "float" and len(numbers) == 1:
        base, numbers = ("double" if numbers[0] >= _DOUBLE_FROM else "float"), ()
    return _with_attributes(words, TypeDef(base, numbers, members=members))


def _strings(words: Words) -> tuple[str, ...]:
    words.expect("(")
    found = []
    while not words.skip(")"):
        word = words.take()
        if word.kind is WordKind.STRING:
            found.append(word.text)
    return tuple(found)


def _with_attributes(words: Words, kind: TypeDef) -> TypeDef:
    while True:
        if words.skip_any("UNSIGNED", "ZEROFILL"):
            kind = replace(kind, unsigned=True)
        elif words.skip("CHARACTER", "SET") or words.skip("CHARSET"):
            words.skip("=")
            kind = replace(kind, charset=words.name().lower())
        elif words.skip("COLLATE"):
            words.skip("=")
            kind = replace(kind, collation=words.name().lower())
        elif not words.skip_any("SIGNED", "BINARY", "ASCII", "UNICODE"):
            return of_bytes(kind) if "binary" in {kind.charset, kind.collation} else kind


def of_bytes(kind: TypeDef) -> TypeDef:
    """What upstream makes of a text's type whose character set is `binary`: the type of bytes of that length."""
    base = _OF_BYTES.get(kind.base)
    return kind if base is None else replace(kind, base=base, charset="", collation="")


def read_column(words: Words) -> tuple[ColumnDef, tuple[IndexDef, ...]]:
    """A column and the indexes that its options make."""
    column = ColumnDef(words.name(), read_type(words))
    indexes: list[IndexDef] = []
    while (option := words.peek()) not in {",", ")", ""} and option not in {"FIRST", "AFTER"}:
        kind = read_key(words)
        if kind is not None:
            indexes.append(IndexDef(kind, "", (IndexPart(column.name),)))
            continue
        rule = _OPTIONS.get(option)
        if rule is None:
            raise words.unexpected(f"unknown option of column {column.name!r}")
        words.take()
        column = rule(words, column)
    if any(index.kind is IndexKind.PRIMARY for index in indexes):
        column = replace(column, nullable=False)
    return column, tuple(indexes)


def read_key(words: Words) -> IndexKind | None:
    """Step over a key among a column's options, if one comes next."""
    kind = None
    if words.skip("PRIMARY", "KEY") or words.skip("KEY"):
        kind = IndexKind.PRIMARY
    elif words.skip("UNIQUE"):
        words.skip("KEY")
        kind = IndexKind.UNIQUE
    if kind is not None:  # TiDB's own, which other targets are not told
        words.skip_any("CLUSTERED", "NONCLUSTERED")
        words.skip_any("GLOBAL", "LOCAL")
    return kind


def _not(words: Words, column: ColumnDef) -> ColumnDef:
    if words.skip("NULL"):
        return replace(column, nullable=False)
    words.expect("ENFORCED")
    return column


def _null(_words: Words, column: ColumnDef) -> ColumnDef:
    return replace(column, nullable=True)


def _default(words: Words, column: ColumnDef) -> ColumnDef:
    return replace(column, default=read_default(words))


def _on(words: Words, column: ColumnDef) -> ColumnDef:
    if not words.skip("UPDATE"):
        words.expect("DELETE")
    elif words.peek() not in _ACTIONS:
        return replace(column, on_update=read_expression(words))
    return _action(words, column)


def _action(words: Words, column: ColumnDef) -> ColumnDef:
    """What a foreign key does: two words for SET NULL, SET DEFAULT and NO ACTION."""
    if words.skip_any("SET", "NO"):
        words.take()
    else:
        words.take()
    return column


def _comment(words: Words, column: ColumnDef) -> ColumnDef:
    return replace(column, comment=words.take().text)


def _generated(words: Words, column: ColumnDef) -> ColumnDef:
    words.skip("ALWAYS")
    words.skip("AS")
    expression = words.in_brackets()
    stored = words.skip_any("STORED", "VIRTUAL", "PERSISTENT") in {"STORED", "PERSISTENT"}
    return replace(column, generated=Generated(expression, stored))


def _automatic(words: Words, column: ColumnDef) -> ColumnDef:
    if words.peek() == "(":
        words.in_brackets()
    return replace(column, automatic=True)


def _collate(words: Words, column: ColumnDef) -> ColumnDef:
    kind = replace(column.type, collation=words.name().lower())
    return replace(column, type=of_bytes(kind) if kind.collation == "binary" else kind)


def _check(words: Words, column: ColumnDef) -> ColumnDef:
    words.in_brackets()
    words.skip("ENFORCED")
    return column


def _constraint(words: Words, column: ColumnDef) -> ColumnDef:
    if words.peek() != "CHECK":
        words.name()
    return column


def _references(words: Words, column: ColumnDef) -> ColumnDef:
    words.name()
    if words.skip("."):
        words.name()
    if words.peek() == "(":
        words.in_brackets()
    if words.skip("MATCH"):
        words.take()
    return column


def _with_word(words: Words, column: ColumnDef) -> ColumnDef:
    words.take()
    return column


_OPTIONS: dict[str, Option] = {
    "NOT": _not,
    "NULL": _null,
    "DEFAULT": _default,
    "ON": _on,
    "COMMENT": _comment,
    "GENERATED": _generated,
    "AS": _generated,
    "AUTO_INCREMENT": _automatic,
    "AUTO_RANDOM": _automatic,
    "COLLATE": _collate,
    "CHECK": _check,
    "CONSTRAINT": _constraint,
    "REFERENCES": _references,
    "COLUMN_FORMAT": _with_word,
    "STORAGE": _with_word,
}
