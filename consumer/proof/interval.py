"""The events between two checkpoints, read once more from Kafka: what they add to each table's sums.

It is another way than the one by which rows reach the target: no reduction, no net effect, no target. Whatever that
way loses, doubles or changes shows as a difference.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field

from consumer.codec import canal_json
from consumer.codec.canal_json import KINDS, Envelope, Image, decode_image
from consumer.proof.pieces import TablePass
from ordering.events import Kind, Partition, Position, RowOp, TableName
from ordering.rows.content_sums import IntervalSums
from ordering.rows.identity import ordinal, row_key
from ordering.timestamps import CommitTs
from sinks.compare.canonical import CanonicalRows
from sinks.rows.schema import spelled


@dataclass(slots=True)
class TableInterval:
    """A table's events. `unproven`: why they do not tell its sums; "" while they do. `passing`: what they carry on."""

    rows: CanonicalRows
    sums: IntervalSums = field(default_factory=IntervalSums)
    unproven: str = ""
    passing: TablePass | None = None

    def take(self, kind: Kind, commit_ts: CommitTs, image: Image, old: Image | None) -> None:
        """Take a row event: the row that it found, and the one that it left."""
        try:
            for half, side in _halves(kind, image, old):
                key = row_key(self.rows.schema.name, [side[column] for column in self.rows.schema.handle_key])
                order = ordinal(commit_ts, half)
                digest = self.sums.take(key, order, lambda side=side: self.rows.digest(side))  # type: ignore[misc]
                if digest is not None and self.passing is not None:
                    self.passing.carry(side, order, digest)
        except KeyError as missing:
            self.unproven = f"an event lacks the column {missing.args[0]!r}"
        except ValueError as wrong:
            self.unproven = f"an event has a value that the target's column can't hold: {str(wrong)[:200]}"


@dataclass(frozen=True, slots=True)
class IntervalReading:
    """The tables of an interval (low, high], and which events count."""

    low: int
    high: int
    tables: Mapping[TableName, TableInterval]
    accepts: Callable[[str, str], bool]
    above: dict[Partition, int] = field(default_factory=dict)
    """Partition -> offset of its first row event above the interval."""
    unknown: set[TableName] = field(default_factory=set)
    """Tables that rows came for, and that the target lacks."""

    def take(self, messages: Iterable[tuple[Position, bytes | None]]) -> None:
        """Take messages. Raises InputError with the position."""
        for position, value in messages:
            message = canal_json.decode(value, position)
            if message.type != canal_json.WATERMARK and not message.is_ddl:
                canal_json.check_row(message, position)
                self._take_row(message, position)

    def _take_row(self, message: Envelope, position: Position) -> None:
        extension = message.tidb
        if extension is not None and extension.commit_ts > self.high:
            self.above.setdefault(Partition(position.topic, position.partition), position.offset)
        if extension is None or not self.low < extension.commit_ts <= self.high:
            return
        if not self.accepts(message.database, message.table):
            return
        name = TableName(message.database, message.table)
        table = self.tables.get(spelled(name, self.tables))
        if table is None:
            self.unknown.add(name)
        if table is None or table.unproven:
            return
        if extension.only_handle_key or extension.claim_check_location:
            table.unproven = "a row was too large for its message: its values are elsewhere"
            return
        kind = KINDS[message.type]
        image = decode_image(message.data[0])  # type: ignore[index]  # `check_row` has looked
        old = decode_image(message.old[0]) if kind is Kind.UPDATE else None  # type: ignore[index]
        table.take(kind, extension.commit_ts, image, old)


def _halves(kind: Kind, image: Image, old: Image | None) -> Iterator[tuple[RowOp, Image]]:
    """What is gone, and what is there: an `old` with changed columns only means the new values for the others."""
    if kind is not Kind.INSERT:
        yield RowOp.DELETE, image if old is None else {**image, **old}
    if kind is not Kind.DELETE:
        yield RowOp.WRITE, image
