"""How a table is partitioned upstream, what clauses of ALTER TABLE change about it, and which rows they concern.

Targets without partitions do to rows what upstream does by partitions: TRUNCATE and DROP PARTITION delete, EXCHANGE
swaps; the others move rows between partitions only. So the definition is kept with the progress
(`sinks.ddl.kept_definitions`) and a partition's rows are found by a condition (`sinks.ddl.rows.partition_condition`).
Grammar and numbers of partitions: TiDB documentation, "Partitioning"; MySQL documentation, "Partition Management".
"""

from dataclasses import dataclass, replace
from itertools import count

from ordering.errors import InputError
from sinks.ddl.parse.statement import TableReference
from sinks.ddl.parse.words import WordKind, Words

MAXVALUE = "MAXVALUE"
DEFAULT = "DEFAULT"
UNLOGGED = "NO_WRITE_TO_BINLOG"
"""May stand behind ADD, COALESCE and REORGANIZE PARTITION; TiDB reads it and does nothing about it."""


@dataclass(frozen=True, slots=True)
class PartitionDef:
    """A partition: its name, and its bounds as source texts.

    RANGE: one row, the first that it does not hold; LIST: a row for each that it holds, or `DEFAULT` alone.
    """

    name: str
    rows: tuple[tuple[str, ...], ...] = ()


@dataclass(frozen=True, slots=True)
class Partitioning:
    """`method`: RANGE, LIST, HASH or KEY. By `columns`, or by an `expression` (its source)."""

    method: str
    columns: tuple[str, ...]
    expression: str
    parts: tuple[PartitionDef, ...]

    def place(self, name: str) -> int:
        """Which partition is called so, from 0. Raises InputError if none is."""
        names = [part.name.lower() for part in self.parts]
        if name.lower() not in names:
            raise InputError(f"there is no partition {name!r}; the table has {', '.join(names)}")
        return names.index(name.lower())


@dataclass(frozen=True, slots=True)
class PartitionChange:
    """What a clause does: the definition after it (None: no partitions, or not known), rows that go or are swapped.

    `removed`: partitions whose rows go, None for all of them. `exchanged`: a partition, and the table that it swaps
    rows with.
    """

    after: Partitioning | None
    removed: tuple[str, ...] | None = ()
    exchanged: tuple[str, TableReference] | None = None


def read_partitioning(words: Words) -> Partitioning | None:
    """From PARTITION BY on; None where there is none, or in a form that is not known here (INTERVAL)."""
    if not words.skip("PARTITION", "BY"):
        return None
    words.skip("LINEAR")
    method = words.skip_any("RANGE", "LIST", "HASH", "KEY")
    if not method:
        return None
    if words.skip("ALGORITHM"):
        words.skip("=")
        words.take()
    by_columns = words.skip("COLUMNS") or method == "KEY"
    source = words.in_brackets()
    inner = Words(source)
    single = len(inner.words) == 1 and inner.words[0].kind is WordKind.NAME
    columns = tuple(_names(source)) if by_columns or single else ()
    hashed = method in {"HASH", "KEY"}
    number = int(words.take().text) if hashed and words.skip("PARTITIONS") else 1
    if words.peek() == "(":
        parts = _parts(words.in_brackets())
    elif hashed:
        parts = tuple(PartitionDef(f"p{i}") for i in range(number))
    else:
        return None
    return Partitioning(method, columns, "" if columns or by_columns else source, parts)


def read_change(text: str, before: Partitioning | None) -> PartitionChange:
    """What a clause of ALTER TABLE that is about partitions does. Raises InputError."""
    words = Words(text)
    if words.peek() == "PARTITION":
        return PartitionChange(read_partitioning(words) if words.peek(1) == "BY" else before)
    verb = words.take().text.upper()
    words.skip_any("PARTITION", "PARTITIONING")
    if verb == "FIRST":
        raise words.unexpected("which partitions it removes is not known")
    if verb == "REMOVE":
        return PartitionChange(None)
    if verb == "EXCHANGE":
        name = words.name()
        words.expect("WITH", "TABLE")
        first = words.name()
        table = TableReference(first, words.name()) if words.skip(".") else TableReference(None, first)
        return PartitionChange(before, exchanged=(name, table))
    if verb in {"TRUNCATE", "DROP"}:
        return _removal(verb, words, before)
    return PartitionChange(None if before is None else _divided(verb, words, before))


def _removal(verb: str, words: Words, before: Partitioning | None) -> PartitionChange:
    words.skip("IF", "EXISTS")
    names = None if words.skip("ALL") else tuple(_listed(words))
    if before is None or verb == "TRUNCATE" or names is None:
        return PartitionChange(before, removed=names)
    gone = {before.place(name) for name in names}
    left = tuple(part for at, part in enumerate(before.parts) if at not in gone)
    return PartitionChange(replace(before, parts=left), removed=names)


def _divided(verb: str, words: Words, before: Partitioning) -> Partitioning | None:
    """The definition after ADD, COALESCE or REORGANIZE; others leave it as it is, or it is not known any more."""
    words.skip("IF", "NOT", "EXISTS")
    words.skip_any(UNLOGGED)
    if verb == "COALESCE":
        return replace(before, parts=before.parts[: -int(words.take().text)])
    if verb == "ADD":
        if words.skip("PARTITIONS"):
            return replace(before, parts=before.parts + _numbered(int(words.take().text), before))
        return replace(before, parts=before.parts + _parts(words.in_brackets()))
    if verb == "REORGANIZE":
        if words.ended:
            return before
        names = _listed(words)
        words.expect("INTO")
        places = [before.place(name) for name in names]
        new = _parts(words.in_brackets())
        return replace(before, parts=before.parts[: min(places)] + new + before.parts[max(places) + 1 :])
    return before if verb in {"REBUILD", "OPTIMIZE", "ANALYZE", "CHECK", "REPAIR"} else None


def _numbered(number: int, before: Partitioning) -> tuple[PartitionDef, ...]:
    """New hashed partitions, by names that upstream chooses: their places."""
    start = len(before.parts)
    return tuple(PartitionDef(f"p{at}") for at in range(start, start + number))


def _listed(words: Words) -> list[str]:
    found = [words.name()]
    while words.skip(","):
        found.append(words.name())
    return found


def _names(source: str) -> list[str]:
    words = Words(source)
    return [] if words.ended else _listed(words)


def _parts(source: str) -> tuple[PartitionDef, ...]:
    """The definitions of partitions that a bracket holds."""
    words = Words(source)
    found = []
    for _ in count():
        if words.ended:
            break
        words.expect("PARTITION")
        found.append(PartitionDef(words.name(), _rows(words)))
        words.skip_clause()  # comments, placement
        words.skip(",")
    return tuple(found)


def _rows(words: Words) -> tuple[tuple[str, ...], ...]:
    if words.skip("VALUES", "LESS", "THAN"):
        if words.skip(MAXVALUE):
            return ((MAXVALUE,),)
        return (values_in(words.in_brackets()),)
    if words.skip("VALUES", "IN"):
        return tuple(_row(text) for text in values_in(words.in_brackets()))
    return ((DEFAULT,),) if words.skip(DEFAULT) else ()


def _row(text: str) -> tuple[str, ...]:
    """A value of LIST, or several in brackets."""
    words = Words(text)
    if words.peek() != "(":
        return (text.upper(),) if text.upper() == DEFAULT else (text,)
    inner = words.in_brackets()
    return values_in(inner) if words.ended else (text,)


def values_in(source: str) -> tuple[str, ...]:
    """The texts between commas outside of brackets; MAXVALUE in upper case."""
    words = Words(source)
    found = []
    while not words.ended:
        text = words.skip_clause()
        found.append(MAXVALUE if text.upper() == MAXVALUE else text)
        words.skip(",")
    return tuple(found)
