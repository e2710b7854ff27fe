"""Netted rows to chunks with the compiled core: the same chunks and errors as `ChunkEncoder` makes.

A slice that is not usual, or whose columns have no rule, is left to `ChunkEncoder`, which says what is right.
"""

from array import array
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import msgspec

from consumer.codec import canal_json
from consumer.native import CoreCrash, Wanted, chosen
from consumer.native.net_rows import LineRules, NetRows
from consumer.tasks.encoding.chunk_encoder import (
    CHUNK_BYTES,
    ChunkEncoder,
    RowError,
    UnencodedError,
    WhichRows,
)
from ordering.errors import CoreError, TargetError
from ordering.events import RowOp
from ordering.rows.identity import table_of
from ordering.rows.net_effect import KeyChange
from sinks.rows.chunk import Chunk, Encoder, writable
from sinks.rows.field_rules import SKIPPED, FieldRule
from sinks.rows.schema import TableSchema
from sinks.rows.tsv import TabbedRows, is_framed

_Columns = tuple[tuple[str, ...], tuple[str, ...]]
"""Those that rows have, and those of them that are written."""
_IN_PYTHON = "set spark.native = false, which encodes them in Python, and report this"
_decode = msgspec.msgpack.Decoder(list[KeyChange]).decode


def compiled_rows(blocks: Sequence[msgspec.Raw], encoder: Encoder, wanted: Wanted) -> "CompiledRows | None":
    """The rows in the core; None where it is not there, or they are not usual. Raises ConfigError and CoreError."""
    if not isinstance(encoder, TabbedRows) or (core := chosen(wanted).core) is None:
        return None
    rows = NetRows(core)
    try:
        return CompiledRows(rows, encoder) if rows.take([bytes(block) for block in blocks]) else None
    except CoreCrash as crash:
        raise _crash_in("a bucket") from crash


@dataclass(frozen=True, slots=True)
class CompiledRows:
    """A bucket's netted rows in the core."""

    rows: NetRows
    lines: TabbedRows
    """What rules the rows' columns have."""

    def chunks(self, encoder: ChunkEncoder, names: Mapping[str, tuple[str, ...]]) -> Iterator[Chunk]:
        """See `ChunkEncoder.chunks`. Raises as that, and CoreError."""
        for number in range(self.rows.tables):
            first = self.halves(next(self.rows.slices(number, WhichRows.ALL, 1, CHUNK_BYTES)))[0]
            name = table_of(first[0])
            key = names[f"{name.database}\0{name.table}"]
            table = _CompiledTable(self, number, encoder, encoder.schema(name, key, first), key)
            try:
                yield from table.chunks()
            except CoreCrash as crash:
                raise _crash_in(f"table {name}") from crash

    def halves(self, some: "array[int]") -> list[KeyChange]:
        """Some rows, for Python."""
        return _decode(self.rows.halves(some))


@dataclass(slots=True)
class _CompiledTable:
    """The rows of one table, on their way into chunks."""

    whole: CompiledRows
    number: int
    encoder: ChunkEncoder
    schema: TableSchema
    key: tuple[str, ...]
    _rules: dict[_Columns, LineRules | None] = field(default_factory=dict)

    def chunks(self) -> Iterator[Chunk]:
        rows, plain = self.whole.rows, self.schema.deletes_first(self.key)
        for half, which in self.encoder.steps(plain=plain):
            for some in rows.slices(self.number, which, self.encoder.chunk_rows, CHUNK_BYTES):
                chunk = self._deletes(some, plain=plain) if half is RowOp.DELETE else self._writes(some, plain=plain)
                if chunk is not None:
                    yield chunk
                else:
                    yield from self._in_python(half, some)

    def _in_python(self, half: RowOp, some: "array[int]") -> Iterator[Chunk]:
        try:
            yield from self.encoder.slice_chunks(self.schema, self.key, half, self.whole.halves(some))
        except UnencodedError as error:
            all_halves = self.whole.halves(array("I", self._numbers()))
            raise RowError(error.refusal, error.found_in(all_halves, self.key)) from error

    def _numbers(self) -> Iterator[int]:
        for some in self.whole.rows.slices(self.number, WhichRows.ALL, self.encoder.chunk_rows, CHUNK_BYTES):
            yield from some

    def _deletes(self, some: "array[int]", *, plain: bool) -> Chunk | None:
        payload = self._lines(some, (self.key, self.key), images=False)
        if payload is None:
            return None
        return Chunk(self.schema.name, RowOp.DELETE, self.key, len(some), payload, plain, met=self._met(some))

    def _writes(self, some: "array[int]", *, plain: bool) -> Chunk | None:
        columns = self._columns(some, plain=plain)
        payload = None if columns is None else self._lines(some, columns, images=True)
        if columns is None or payload is None:
            return None
        met = None if plain else self._met(some)
        return Chunk(self.schema.name, RowOp.WRITE, columns[1], len(some), payload, plain, met=met)

    def _met(self, some: "array[int]") -> int | None:
        return len(some) - self.whole.rows.missed(some) if self.encoder.judged else None

    def _columns(self, some: "array[int]", *, plain: bool) -> _Columns | None:
        """Those of the first row; the core takes no others."""
        try:
            sent = tuple(canal_json.decode_image(self.whole.halves(some[:1])[0][2]))
            return sent, tuple(sent[i] for i in writable(self.schema, sent, deleted_first=plain))
        except (*canal_json.UNREADABLE, TargetError):
            return None  # Python says of what

    def _lines(self, some: "array[int]", columns: _Columns, *, images: bool) -> bytes | None:
        if columns not in self._rules:
            self._rules[columns] = self._made_rules(*columns)
        rules = self._rules[columns]
        lines = None if rules is None else self.whole.rows.lines(some, rules, images=images)
        if rules is not None and lines is not None and not is_framed(lines, len(some), rules.fields):
            fact = f"the compiled core made other rows of table {self.schema.name} than it was given"
            raise CoreError(fact, hint=_IN_PYTHON)
        return lines

    def _made_rules(self, sent: tuple[str, ...], written: tuple[str, ...]) -> LineRules | None:
        rules = []
        for name in sent:
            column = self.schema.column(name)
            rule = SKIPPED if name not in written else column and self.whole.lines.rule(column)
            if not isinstance(rule, FieldRule):
                return None
            rules.append(rule)
        return LineRules(rules)


def _crash_in(what: str) -> CoreError:
    return CoreError(
        f"the compiled core crashed while it encoded rows of {what}",
        hint=_IN_PYTHON,
    )
