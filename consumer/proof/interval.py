"""The events between two checkpoints, read once more from Kafka: what they add to each table's sums.

It is another way than the one by which rows reach the target: no reduction, no net effect, no target. Whatever that
way loses, doubles or changes shows as a difference.
"""

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field

from consumer.codec import canal_json
from consumer.codec.canal_json import KINDS, Envelope, Extension, Image, decode_image
from consumer.proof.keyless import KeylessCopies, PassOrder, Place, content
from consumer.proof.pieces import TablePass
from ordering.events import Kind, Partition, Position, RowOp, TableName
from ordering.rows.content_sums import IntervalSums, step
from ordering.rows.identity import ordinal, row_key
from ordering.timestamps import CommitTs
from sinks.compare.canonical import CanonicalRows
from sinks.rows.schema import spelled

_LACKS = "as DELETEs do if the changefeed has delete-only-output-handle-key-columns: let it send whole rows"
_OWN = "so upstream has none: the next proof leaves it out of the sums"


@dataclass(slots=True)
class TableInterval:
    """A table's events. `unproven`: why they do not tell its sums; "" while they do. `passing`: what they carry on."""

    rows: CanonicalRows
    unsent: Callable[[Iterable[str]], Collection[str]] = lambda _: ()
    """Which columns of a message are left out on the way."""
    sums: IntervalSums = field(default_factory=IntervalSums)
    unproven: str = ""
    passing: TablePass | None = None
    copies: KeylessCopies = field(default_factory=KeylessCopies)
    has_other_key: bool = False
    """Whether an event came with another key than the table has at the end, or with none."""
    lost_column: str = ""
    """A column that an event has, and the table lacks; "" if there is none."""
    own_columns: frozenset[str] = frozenset()
    """Columns of the sums that a whole row of upstream's lacks: the target alone has them."""
    shown_columns: frozenset[str] = frozenset()
    """Columns that are in no sum, and that an event has."""
    _names: frozenset[str] = field(init=False)
    _summed: frozenset[str] = field(init=False)

    def __post_init__(self) -> None:
        self._names = frozenset(column.name for column in self.rows.schema.columns)
        self._summed = frozenset(one.column.name for one in self.rows.columns)

    def look(self, kind: Kind, image: Image) -> None:
        """Note a column that the table lacks, and those that upstream lacks."""
        if kind is not Kind.DELETE and not self._summed <= image.keys():
            self.own_columns |= self._summed - image.keys()
        if self.rows.left_out:
            self.shown_columns |= self.rows.left_out.keys() & image.keys()
        if not self._names.issuperset(image) and not self.lost_column:
            lost = [name for name in image if name not in self._names]
            self.lost_column = next(iter(sorted({*lost} - {*self.unsent(lost)})), "")

    def take(self, kind: Kind, commit_ts: CommitTs, image: Image, old: Image | None) -> None:
        """Take a row event: the row that it found, and the one that it left."""
        with self._telling(kind):
            for half, side in _halves(kind, image, old):
                key = row_key(self.rows.schema.name, self._key_of(side))
                order = ordinal(commit_ts, half)
                digest = self.sums.take(key, order, lambda side=side: self.rows.digest(side))  # type: ignore[misc]
                if digest is not None and self.passing is not None:
                    self.passing.carry(self.passing.piece_of(side), order, digest)

    def _key_of(self, image: Image) -> list[str | None]:
        """What tells the row apart, however its texts are spelled: an ENUM comes as a number, or as a name."""
        if not self.rows.keys:
            return [image[column] for column in self.rows.schema.handle_key]
        texts = ((one, image[one.column.name]) for one in self.rows.keys)
        return [None if text is None else one.spell(text) or text for one, text in texts]

    def count(self, kind: Kind, commit_ts: CommitTs, image: Image, old: Image | None, place: Place) -> None:
        """Take a row event of a table without a key; what it comes to is known by `settle`."""
        with self._telling(kind):
            sides, name = list(_halves(kind, image, old)), self.rows.schema.name
            halves = [(half, content(name, self.rows.digest(side), side)) for half, side in sides]
            for (half, row), (_, other) in zip(halves, reversed(halves), strict=True):
                self.copies.add(row, ordinal(commit_ts, half), place, other if len(halves) > 1 else b"")

    def settle(self) -> None:
        """Take the rows without a key that were counted."""
        for digest, order, times in self.copies.found():
            step(self.sums.sums, digest, order, times)
            if self.passing is not None:
                self.passing.carry(0, order, digest, times)

    @contextmanager
    def _telling(self, kind: Kind) -> Iterator[None]:
        """Note why an event does not tell the sums."""
        try:
            yield
        except KeyError as missing:
            why = _LACKS if kind is Kind.DELETE else _OWN
            self.unproven = f"an event lacks the column {missing.args[0]!r}, {why}"
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
    order: PassOrder = field(default_factory=PassOrder)
    ignored_marks: Collection[Position] = ()
    """Where watermarks lie that do not count."""

    def take(self, messages: Iterable[tuple[Position, bytes | None]]) -> None:
        """Take messages, all that there are. Raises InputError with the position."""
        for position, value in messages:
            message = canal_json.decode(value, position)
            partition = Partition(position.topic, position.partition)
            if message.type == canal_json.WATERMARK and position in self.ignored_marks:
                continue
            if message.type == canal_json.WATERMARK:
                self.order.watermark(partition, message, is_kept=partition not in self.above)
            elif not message.is_ddl:
                canal_json.check_row(message, position)
                self._take_row(message, position)
        for table in self.tables.values():
            table.settle()

    def _take_row(self, message: Envelope, position: Position) -> None:
        extension = message.tidb
        partition = Partition(position.topic, position.partition)
        if extension is not None and extension.commit_ts > self.high:
            self.above.setdefault(partition, position.offset)
        if extension is None or not self.accepts(message.database, message.table):
            return
        name = TableName(message.database, message.table)
        known = spelled(name, self.tables)
        place = self.order.row(partition, known, message)
        if not self.low < extension.commit_ts <= self.high:
            return
        table = self.tables.get(known)
        if table is None:
            self.unknown.add(name)
        if table is None or (table.unproven and table.own_columns):
            return
        if why := _why_not_whole(extension):
            table.unproven = why
            return
        table.has_other_key |= (message.primary_key or ()) != table.rows.schema.handle_key
        kind = KINDS[message.type]
        image = decode_image(message.data[0])  # type: ignore[index]  # `check_row` has looked
        table.look(kind, image)
        if table.unproven:
            return
        old = decode_image(message.old[0]) if kind is Kind.UPDATE else None  # type: ignore[index]
        if table.rows.schema.handle_key:
            table.take(kind, extension.commit_ts, image, old)
        elif extension.blurred:
            table.unproven = f"without column {extension.blurred!r}, rows that differ upstream may be equal"
        else:
            table.count(kind, extension.commit_ts, image, old, place)


def _why_not_whole(extension: Extension) -> str:
    """Why an event does not hold the rows; "" if it does."""
    if extension.only_handle_key or extension.claim_check_location:
        return "a row was too large for its message: its values are elsewhere"
    return "an UPDATE lacks its old row: the changefeed does not send old values" if extension.only_new else ""


def _halves(kind: Kind, image: Image, old: Image | None) -> Iterator[tuple[RowOp, Image]]:
    """What is gone, and what is there: an `old` with changed columns only means the new values for the others."""
    if kind is not Kind.INSERT:
        yield RowOp.DELETE, image if old is None else {**image, **old}
    if kind is not Kind.DELETE:
        yield RowOp.WRITE, image
