"""Tables, columns and indexes as upstream defines them, in no target's dialect.

What a target's DDL is written from. `parse.tables` makes these values out of statements.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from enum import Enum
from itertools import chain, count

from sinks.ddl.parse.partitions import Partitioning


@dataclass(frozen=True, slots=True)
class TypeDef:
    """A MySQL type: `base` is its name in lower case without synonyms, `numbers` what stands in brackets behind it."""

    base: str
    numbers: tuple[int, ...] = ()
    unsigned: bool = False
    members: tuple[str, ...] = ()
    charset: str = ""
    collation: str = ""

    def number(self, at: int, otherwise: int) -> int:
        """A number in brackets: a length, precision or scale."""
        return self.numbers[at] if at < len(self.numbers) else otherwise

    def __str__(self) -> str:
        """The type as MySQL spells it, for people."""
        inner = ", ".join(repr(m) for m in self.members) or ", ".join(map(str, self.numbers))
        return self.base + (f"({inner})" if inner else "") + (" unsigned" if self.unsigned else "")


@dataclass(frozen=True, slots=True)
class Default:
    """A literal (`value`; None is NULL, bytes come from bit and hexadecimal literals) or an expression's source."""

    value: str | bytes | None = None
    expression: str = ""


@dataclass(frozen=True, slots=True)
class Generated:
    """How a column is computed: the expression's source, and whether its values are stored (and so sent)."""

    expression: str
    stored: bool


@dataclass(frozen=True, slots=True)
class ColumnDef:
    """A column; `on_update` is an expression's source, `automatic` an AUTO_INCREMENT or AUTO_RANDOM."""

    name: str
    type: TypeDef
    nullable: bool = True
    default: Default | None = None
    on_update: str = ""
    generated: Generated | None = None
    automatic: bool = False
    comment: str = ""

    @property
    def virtual(self) -> bool:
        """Whether its values are computed when read, and never sent."""
        return self.generated is not None and not self.generated.stored

    @property
    def fills_rows(self) -> bool:
        """Whether rows that are there show something else than NULL in it once it is added."""
        default = self.default
        has_default = default is not None and (default.value is not None or bool(default.expression))
        return has_default or not self.nullable or self.generated is not None


class IndexKind(Enum):
    """What an index is for."""

    PRIMARY = "primary key"
    UNIQUE = "unique index"
    PLAIN = "index"
    OTHER = "special index"
    """FULLTEXT, SPATIAL, VECTOR, COLUMNAR: to search, never to constrain. Or unique for a part of the rows (WHERE)."""

    @property
    def unique(self) -> bool:
        """Whether no two rows share a key."""
        return self in {IndexKind.PRIMARY, IndexKind.UNIQUE}


@dataclass(frozen=True, slots=True)
class IndexPart:
    """A column, maybe only the first `length` of its characters or bytes; or an expression's source."""

    column: str = ""
    length: int | None = None
    expression: str = ""
    descending: bool = False


@dataclass(frozen=True, slots=True)
class IndexDef:
    """An index; `name` is "" where upstream chooses one."""

    kind: IndexKind
    name: str
    parts: tuple[IndexPart, ...]
    if_missing: bool = field(default=False, compare=False)
    """Whether upstream has left it out if it had an index of this name: a clause with IF NOT EXISTS among others."""

    @property
    def known_as(self) -> str:
        """Its name, also where upstream chose it: that of its first column (MySQL documentation, "CREATE INDEX")."""
        if self.kind is IndexKind.PRIMARY:
            return "PRIMARY"
        return self.name or next((part.column for part in self.parts if part.column), "expression_index")

    def named(self, is_taken: Callable[[str], bool]) -> "IndexDef":
        """The index with a name: if it has none, that of its first column, with _2, _3 ... if that is taken."""
        if self.kind is IndexKind.PRIMARY:
            return replace(self, name=self.known_as)
        if self.name:
            return self
        names = chain([self.known_as], (f"{self.known_as}_{number}" for number in count(2)))
        return replace(self, name=next(name for name in names if not is_taken(name)))

    def with_columns(self, spelled: Mapping[str, str]) -> "IndexDef":
        """The index with its columns as the table spells them; `spelled` goes by lower case."""
        parts = tuple(replace(part, column=spelled.get(part.column.lower(), part.column)) for part in self.parts)
        return replace(self, parts=parts)


@dataclass(frozen=True, slots=True)
class Passed:
    """A part of a definition that no target needs: foreign keys, checks, storage. `text` is its source."""

    text: str


@dataclass(frozen=True, slots=True)
class TableDef:
    """A table."""

    columns: tuple[ColumnDef, ...]
    indexes: tuple[IndexDef, ...] = ()
    comment: str = ""
    passed: tuple[Passed, ...] = field(default=())
    collation: str = ""
    """The table's own; "" where none is named."""
    partitions: Partitioning | None = None

    @property
    def primary_key(self) -> tuple[str, ...]:
        """The columns of the primary key."""
        return tuple(part.column for index in self._of(IndexKind.PRIMARY) for part in index.parts)

    def _of(self, kind: IndexKind) -> Iterator[IndexDef]:
        return (index for index in self.indexes if index.kind is kind)


@dataclass(frozen=True, slots=True)
class AddColumn:
    """ADD COLUMN. `if_missing`: see `IndexDef`; `moved`: FIRST or AFTER says where, which matters to views alone."""

    column: ColumnDef
    if_missing: bool = False
    moved: bool = False


@dataclass(frozen=True, slots=True)
class DropColumn:
    """DROP COLUMN."""

    name: str


@dataclass(frozen=True, slots=True)
class ChangeColumn:
    """MODIFY or CHANGE COLUMN: the column `old` becomes this one. `moved`: see `AddColumn`."""

    old: str
    column: ColumnDef
    moved: bool = False


@dataclass(frozen=True, slots=True)
class RenameColumn:
    """RENAME COLUMN."""

    old: str
    new: str


@dataclass(frozen=True, slots=True)
class SetDefault:
    """ALTER COLUMN SET DEFAULT, or DROP DEFAULT (None)."""

    name: str
    default: Default | None


@dataclass(frozen=True, slots=True)
class AddIndex:
    """ADD INDEX, ADD UNIQUE, ADD PRIMARY KEY, CREATE INDEX."""

    index: IndexDef


@dataclass(frozen=True, slots=True)
class DropIndex:
    """DROP INDEX, DROP PRIMARY KEY (`PRIMARY`)."""

    name: str


@dataclass(frozen=True, slots=True)
class RenameIndex:
    """RENAME INDEX."""

    old: str
    new: str


@dataclass(frozen=True, slots=True)
class SetComment:
    """COMMENT = of a table."""

    text: str


@dataclass(frozen=True, slots=True)
class ChangePartitions:
    """A clause about partitions, see `sinks.ddl.parse.partitions`."""

    text: str


@dataclass(frozen=True, slots=True)
class Unknown:
    """A clause that is not known here."""

    text: str


Change = (
    AddColumn
    | DropColumn
    | ChangeColumn
    | RenameColumn
    | SetDefault
    | AddIndex
    | DropIndex
    | RenameIndex
    | SetComment
    | ChangePartitions
    | Passed
    | Unknown
)
"""A clause of ALTER TABLE."""


def alone(change: Change) -> Change:
    """A clause that is all of its statement: had upstream left it out by its condition, there were no message."""
    match change:
        case AddIndex(index):
            return AddIndex(replace(index, if_missing=False))
        case AddColumn():
            return replace(change, if_missing=False)
    return change
