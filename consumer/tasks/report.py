"""What a task tells the driver of one range, rows apart; and whether its rows were read with their schema (R14).

A reading task knows the target's tables as they are before the window. Behind a DDL that nobody had seen yet they are
others: such a window is cut at the DDL and read again, and nothing that was said of the rows above counts. Only what is
left is judged (`refused_rows`), and only that is encoded.
"""

from array import array
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import NamedTuple

import msgspec
import xxhash

from consumer.formats.message_format import WaitingRow
from consumer.formats.sent_schema import SentSchema
from consumer.kafka.account import Epochs
from ordering.errors import InputError
from ordering.events import Position, TableName, ddl_identity
from ordering.rows.equal_rows import EqualRows
from ordering.rows.keyless_rows import Copies
from ordering.rows.manifest import Accounts
from ordering.timestamps import CommitTs
from ordering.window import Histogram, Range, Window
from sinks.ddl.parse.statement import as_meant

_Keys = Mapping[tuple[str, ...], Position]
_HISTOGRAM_STEPS = 256


@dataclass(frozen=True, slots=True)
class RawDdl:
    """A DDL message as it came."""

    position: Position
    commit_ts: int
    type: str
    database: str
    table: str
    sql: str

    @property
    def identity(self) -> str:
        """See `ddl_identity`; that of the event which `understood` makes of it."""
        return ddl_identity(self.commit_ts, self.database, self.table, as_meant(self.sql, self.database))


@dataclass(frozen=True, slots=True)
class Unreadable:
    """A message that can't be used, and why."""

    offset: int
    fact: str
    hint: str


class UnfitRow(NamedTuple):
    """A row that the schema known to the task does not fit: an error if the window that is applied holds it (R14)."""

    commit_ts: int
    offset: int
    fact: str
    hint: str


class SentTypes(NamedTuple):
    """The types of a table's columns (`mysqlType`), as the row event at this offset names them."""

    table: TableName
    offset: int
    types: dict[str, str]


class AwaitedRow(NamedTuple):
    """A row of the window whose schema the task did not know."""

    commit_ts: int
    position: Position
    row: WaitingRow


class RepeatedOf(NamedTuple):
    """Of what table an event at or below the checkpoint is, and what its fingerprint rests on.

    `own_key`: the message names its handle key; else the key, or that there is none, was known from the target.
    `filtered`: a condition of an event filter let it pass.
    """

    table: TableName
    own_key: bool
    filtered: bool


@dataclass(slots=True)
class Report:
    """What the driver must know of one range. Arrays are bytes of 64-bit integers in native order."""

    range: Range
    stop: int
    read: int = 0
    """Messages that were taken, of whatever kind. The other offsets before `stop` hold nothing."""
    counted_to: int = 0
    """Where looking ahead met the first event above the checkpoint: what follows is counted by a later window."""
    ended_early: bool = False
    """Whether a watermark above the window ended it before the range's stop."""
    watermark: int | None = None
    marked_at: int | None = None
    """The offset of that watermark, the first of several."""
    first_above: int | None = None
    next_row_ts: CommitTs | None = None
    events: int = 0
    released: int = 0
    deletes: int = 0
    """Of what the window releases: rows that went, keys that rows left."""
    filtered: int = 0
    """Events that event filters leave out."""
    size: int = 0
    messages: int = 0
    fingerprints: bytes = b""
    contents: bytes = b""
    more_fingerprints: bytes = b""
    repeated: bytes = b""
    """Events at or below the checkpoint, five numbers each: fingerprint, another that proves it, commitTs, offset, and
    the index of what it is of in `repeated_of`."""
    repeated_of: list[RepeatedOf] = field(default_factory=list)
    unjudged: int = 0
    """Events at or below the checkpoint that the schema known now does not fit: their table is gone, or has changed."""
    unfit: UnfitRow | None = None
    """Of the rows above the checkpoint that the schema does not fit, the one with the lowest commitTs."""
    histogram: Histogram = ()
    ddls: list[RawDdl] = field(default_factory=list)
    earlier_ddl: bool = False
    """Whether a DDL below the checkpoint is among the messages."""
    tables: dict[TableName, Position] = field(default_factory=dict)
    handle_keys: dict[TableName, dict[tuple[str, ...], Position]] = field(default_factory=dict)
    """With which handle keys the rows of `tables` were read, and where first: one for each table, or a DDL is missing.
    """
    unnamed: dict[TableName, Position] = field(default_factory=dict)
    """Those of `tables` whose messages name no key, so that it is the target's."""
    types: list[SentTypes] = field(default_factory=list)
    """Of each table that the window releases rows of: from the first whole row, and from the first that may be a part.
    """
    above: dict[TableName, CommitTs] = field(default_factory=dict)
    """Tables of row events that stay in Kafka, with the highest commitTs of each."""
    keyless: dict[TableName, Position] = field(default_factory=dict)
    """Tables whose handle key nobody knows, where that is an error."""
    blurred: dict[TableName, tuple[str, Position]] = field(default_factory=dict)
    """Of tables without a key: a column without whose values rows that differ may be equal, and where."""
    copies: list[Copies] = field(default_factory=list)
    equal_rows: list[EqualRows] = field(default_factory=list)
    """Of tables without a key: commitTs that have equal rows in one pass."""
    unreadable: list[Unreadable] = field(default_factory=list)
    """Where the quarantine is asked for: messages that can't be used."""
    touched: dict[bytes, int] = field(default_factory=dict)
    """Of rows that are missing while an event of theirs is held: the highest commitTs of a later event."""
    schemas: list[SentSchema] = field(default_factory=list)
    """Schemas of upstream tables that the messages told and the tasks were not given."""
    awaited: list[AwaitedRow] = field(default_factory=list)
    """Of each schema that rows of the window wait for, the first of them."""
    watermarks: bytes = b""
    """With `force_replicate`: all of them, two numbers each: offset, watermark."""
    epochs: Epochs = ()
    """The leaders that wrote what was read, and behind which offset the messages of each end (`epochs_upto`)."""
    content: int = 0
    """Bytes of the files that were read, where the source is files."""
    segment: int = 0
    """Which segment of the reading it tells of (`ordering.rows.segments`)."""
    task: int = 0
    """The reading task that made it."""
    digest: bytes = b""
    """Of all the rest: what the range held, as far as the driver judges it."""
    without_core: str = ""
    """Why the task could not use the compiled core, where it was to; not of the digest: it changes no report."""

    @property
    def empty_offsets(self) -> int:
        """Offsets that hold no message: marks of transactions, what was aborted, or what compaction took away."""
        return self.stop - self.range.start - self.read


def sealed(report: Report, task: int) -> Report:
    """The report, signed by its task. Two readings of one range agree if and only if their digests do."""
    report = replace(report, task=task, digest=b"")
    report.digest = xxhash.xxh3_128_digest(msgspec.msgpack.encode(report))
    return report


def digest_of(reports: Iterable[Report]) -> bytes:
    """One digest for the reports of one task."""
    return xxhash.xxh3_128_digest(b"".join(sorted(report.digest for report in reports)))


def accounts_of(reports: Iterable[Report]) -> Accounts:
    """What each reading task has to have delivered, by the reports as they came."""
    by_task: dict[int, list[Report]] = {}
    for report in reports:
        by_task.setdefault(report.task, []).append(report)
    return {task: digest_of(some) for task, some in by_task.items()}


def histogram_of(commits: "array[int]", large_transaction: int) -> Histogram:
    """Some steps of the commitTs of rows, and a point right before and at each transaction with so many rows."""
    if not commits:
        return ()
    import numpy as np  # noqa: PLC0415 it takes long to load, and this file is loaded by every command

    stamps, counts = np.unique(np.frombuffer(commits, dtype=np.uint64), return_counts=True)
    upto = np.cumsum(counts)
    step = max(1, len(stamps) // _HISTOGRAM_STEPS)
    large = np.flatnonzero(counts >= large_transaction)
    chosen = np.unique(np.concatenate([np.arange(step - 1, len(stamps), step), large, [len(stamps) - 1]]).astype(int))
    before = {int(stamps[i]) - 1: int(upto[i] - counts[i]) for i in large}
    return sorted((before | {int(stamps[i]): int(upto[i]) for i in chosen}).items())


def refused_rows(reports: Sequence[Report]) -> None:
    """Raise InputError for a row that can't be read, though its schema is the one that is known.

    Asked once the window's end is known: no DDL lies within, so each table has one handle key.
    """
    unfit = [(r.unfit, Position(*r.range.partition, r.unfit.offset)) for r in reports if r.unfit is not None]
    if unfit:
        found, position = min(unfit)
        raise InputError(found.fact, where=str(position), hint=found.hint)
    for name, keys in _handle_keys(reports).items():
        if len(keys) > 1:
            raise _two_keys(name, keys)


def is_in_doubt(reports: Sequence[Report], window: Window) -> bool:
    """Whether these rows of a window are none to be encoded: it will be cut at a DDL, or refused."""
    cut = any(window.low < ddl.commit_ts < window.high for report in reports for ddl in report.ddls)
    unfit = any(report.unfit is not None for report in reports)
    return cut or unfit or any(len(keys) > 1 for keys in _handle_keys(reports).values())


def _handle_keys(reports: Sequence[Report]) -> dict[TableName, _Keys]:
    """The keys with which each table's rows were read."""
    keys: dict[TableName, _Keys] = {}
    for report in reports:
        for name, found in report.handle_keys.items():
            keys[name] = {**found, **keys.get(name, {})}
    return keys


def _two_keys(name: TableName, keys: _Keys) -> InputError:
    told = " and ".join(f"{list(key)} ({position})" for key, position in sorted(keys.items(), key=lambda one: one[1]))
    return InputError(
        f"rows of {name} have two handle keys, and no DDL lies between them: {told}",
        where=str(min(keys.values())),
        hint="a DDL is missing in the topic, or something other than TiCDC wrote to it",
    )
