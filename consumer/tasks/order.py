"""The two stages of a window's Spark job: read and reduce, then order and encode.

    (ranges) -> [read, decode, reduce] -> (bucket, block) -> shuffle -> [net effect or commitTs order, encode] -> chunks

Both are plain picklable objects; errors travel as values, so that the driver raises them as they are.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import islice

from consumer.kafka.reader import RangeReader, Readers
from consumer.large_messages.reference import is_reference
from consumer.native import Wanted
from consumer.storage.line_run import located
from consumer.tasks.encoding.chunk_encoder import CHUNK_BYTES, ChunkEncoder, RowError
from consumer.tasks.encoding.compiled_rows import CompiledRows, compiled_rows
from consumer.tasks.read_spec import ReadSpec
from consumer.tasks.report import Report, digest_of, is_in_doubt
from consumer.tasks.scans.choose_scan import reduction_of, scan_of
from consumer.tasks.shuffle_blocks import REPORTS, Block, Intake, Record, manifests, refusals
from ordering.errors import InputError, ReconcilerError
from ordering.rows.manifest import Accounts
from ordering.rows.net_effect import KeyChange, net_effect
from ordering.rows.transactions import in_order, transactions
from ordering.timestamps import CommitTs
from ordering.window import Range, Window
from sinks.rows.chunk import Chunk


@dataclass(frozen=True, slots=True)
class Part:
    """Chunks of (a part of) one upstream transaction, in `transaction` consistency."""

    commit_ts: CommitTs
    chunks: tuple["Chunk | Unfetched", ...]


@dataclass(frozen=True, slots=True)
class Failure:
    """What a task met while ordering rows: it counts once it is known that these rows are to be applied."""

    error: ReconcilerError
    row: int | None = None
    """Fingerprint of the message at fault, whose position the shuffle does not carry."""

    @property
    def raised(self) -> "ReconcilerError | RowError":
        """What to raise of it on the driver."""
        return self.error if self.row is None else RowError(self.error, self.row)


@dataclass(frozen=True, slots=True)
class Answered:
    """The end of a bucket that was complete: so many outcomes came of its rows."""

    bucket: int
    outcomes: int


@dataclass(frozen=True, slots=True)
class Unfetched:
    """Rows that are not in their message, left to the driver: they may be too large to pass through Spark's memory."""

    names: Mapping[str, tuple[str, ...]]
    halves: list[KeyChange]


@dataclass(frozen=True, slots=True)
class ReadTask:
    """First stage: reads its ranges from Kafka, decodes, reduces; yields blocks for the shuffle, manifests, reports.

    An error goes into every bucket: where the stage is done again, nobody looks at the reports once more.
    """

    spec: ReadSpec
    readers: Readers

    def __call__(self, groups: Iterable[tuple[int, tuple[Range, ...]]]) -> Iterator[Record]:
        """Run in a Spark task, for groups of ranges, each with its number among all groups of the window."""
        for number, ranges in groups:
            try:
                yield from self._read(number, ranges)
            except ReconcilerError as error:
                self.readers.forget()
                yield from refusals(self.spec.buckets, number, error)
                yield REPORTS, error

    def _read(self, number: int, ranges: tuple[Range, ...]) -> Iterator[Record]:
        reduction, without_core = reduction_of(self.spec, number)
        scans = {r.partition: scan_of(self.spec, r, reduction) for r in ranges}
        client = self.readers.get()
        if isinstance(client, RangeReader):
            without_core = without_core or client.without_core
        reader = self.spec.format.reading(client, self.spec.message_bytes)
        for partition, run in reader.read([(r.partition, r.start, r.stop) for r in ranges]):
            try:
                goes_on = scans[partition].take(run)
            except InputError as error:
                raise located(error, run, self.spec.message_bytes) from None
            if not goes_on:
                reader.done(partition)
            if reduction.full():
                yield from reduction.blocks()
        yield from reduction.blocks()
        for partition, scan in scans.items():
            scan.account(reader.reached(partition))
        for scan in [*scans.values()][:1]:
            scan.report.schemas = self.spec.format.learned(reader)
        reports = [replace(report, without_core=without_core) for scan in scans.values() for report in scan.reports()]
        yield from manifests(self.spec.buckets, number, digest_of(reports), reduction.sent)
        yield from ((REPORTS, report) for report in reports)


@dataclass(frozen=True, slots=True, kw_only=True)
class OrderTask(ChunkEncoder):
    """Second stage: one bucket's rows in order, encoded for the target."""

    whole_transactions: bool
    doubtful: Window | None = None
    """The window, where it may yet be cut: with its reports at hand, nothing is encoded that will not be applied."""
    accounts: Accounts | None = None
    """What the reading tasks have to have delivered; None: there is one, and its reports come along."""
    first: int = 0
    """The bucket before the first of those that are asked for."""
    native: Wanted = "auto"
    """Whether the compiled core encodes what it can."""

    def __call__(
        self, records: Iterable[Record]
    ) -> Iterator[Report | ReconcilerError | Chunk | Part | Unfetched | Failure | Answered]:
        """Run in a Spark task. Reports come first, for the driver decides by them what to do with the rows."""
        intake, reports = Intake(), []
        for bucket, payload in records:
            if bucket != REPORTS:
                intake.take((bucket, payload))
                continue
            if isinstance(payload, Report):
                reports.append(payload)
            yield payload
        if intake.bucket == REPORTS:
            return
        if self.doubtful is not None and is_in_doubt(reports, self.doubtful):
            yield Failure(ReconcilerError("rows of a window that has to be cut were asked for"))  # nobody asks for it
            return
        count = 0
        try:
            accounts = {0: digest_of(reports)} if self.accounts is None else self.accounts
            for count, outcome in enumerate(self._ordered(intake.blocks(accounts)), 1):  # noqa: B007 the last counts
                yield outcome
        except (ReconcilerError, RowError) as error:
            yield failure_of(error)
        else:
            yield Answered(intake.bucket - self.first, count)

    def _ordered(self, blocks: list[Block]) -> Iterator[Chunk | Part | Unfetched]:
        names = names_in(blocks)
        if self.whole_transactions:
            return self._transactions([block.halves() for block in blocks], names)
        rows = self.netted(blocks)
        return rows.chunks(self, names) if isinstance(rows, CompiledRows) else self._to_driver(rows, names)

    def netted(self, blocks: list[Block]) -> CompiledRows | list[KeyChange]:
        """What is left of each row. Raises CoreError."""
        compiled = compiled_rows([block.packed for block in blocks], self.encoder, self.native)
        return net_effect(half for block in blocks for half in block.halves()) if compiled is None else compiled

    def chunks_of(self, rows: CompiledRows | list[KeyChange], names: Mapping[str, tuple[str, ...]]) -> Iterator[Chunk]:
        """The chunks of netted rows; those that are elsewhere are fetched. Raises as `chunks`."""
        return rows.chunks(self, names) if isinstance(rows, CompiledRows) else self.chunks(rows, names)

    def _transactions(self, runs: list[list[KeyChange]], names: Mapping[str, tuple[str, ...]]) -> Iterator[Part]:
        for commit_ts, halves in transactions(in_order(runs)):
            while some := list(islice(halves, self.chunk_rows)):
                for chunks in _grouped(self._to_driver(some, names)):
                    yield Part(commit_ts, chunks)

    def _to_driver(self, halves: list[KeyChange], names: Mapping[str, tuple[str, ...]]) -> Iterator[Chunk | Unfetched]:
        later = [half for half in halves if is_reference(half[2])]
        yield from self.chunks([half for half in halves if not is_reference(half[2])] if later else halves, names)
        if later:
            yield Unfetched(names, later)

    def encoded(self, outcome: object) -> Iterable[Chunk]:
        """The chunks of what a task left to the driver; nothing of anything that is no rows. Raises as `chunks`."""
        if isinstance(outcome, Unfetched):
            return self.chunks(outcome.halves, outcome.names)
        return (outcome,) if isinstance(outcome, Chunk) else ()


@dataclass(frozen=True, slots=True)
class RowsOnly:
    """A second stage that passes the reports' bucket over."""

    order: OrderTask

    def __call__(self, records: Iterable[Record]) -> Iterator[Chunk | Part | Unfetched | Failure | Answered]:
        """Run in a Spark task."""
        return self.order(record for record in records if record[0] != REPORTS)  # type: ignore[return-value]


def names_in(blocks: Iterable[Block]) -> dict[str, tuple[str, ...]]:
    """The handle key columns of the tables in blocks."""
    return {table: tuple(key) for block in blocks for table, key in block.keys.items()}


def failure_of(error: ReconcilerError | RowError) -> Failure:
    """What a task tells of an error that it met while ordering."""
    return Failure(error.error, error.row) if isinstance(error, RowError) else Failure(error)


def _grouped(chunks: Iterable[Chunk | Unfetched]) -> Iterator[tuple[Chunk | Unfetched, ...]]:
    """Chunks that travel together: several small ones, or one that is large."""
    some: list[Chunk | Unfetched] = []
    for chunk in chunks:
        some.append(chunk)
        if sum(len(one.payload) for one in some if isinstance(one, Chunk)) >= CHUNK_BYTES:
            yield tuple(some)
            some = []
    if some:
        yield tuple(some)
