"""One file of rows on its way into the target: a batch a transaction, which also says how far the file has got.

After a crash the rows that are in the target are read over, and the rest follows; nothing is written twice.
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass, field, replace
from enum import Enum
from itertools import islice
from typing import IO

import xxhash

from consumer.filters.columns import Mask, TableColumns
from consumer.load.column_tokens import Convert, Notation, Row, numbers
from consumer.load.csv_rows import CsvForm, SeparatedRows
from consumer.load.decompress import UNREADABLE, opened
from consumer.load.dump import DataFile
from consumer.load.sql_rows import InsertRows
from consumer.load.stream import Pieces
from consumer.load.values import converter, may_be_rounded, plain_of
from consumer.proof.loaded import FileSums
from consumer.proof.present import SumRules
from ordering.errors import InputError
from ordering.events import RowOp
from sinks.bookkeeping.load_files import Loaded, Mark
from sinks.ddl.model import ColumnDef
from sinks.rows.bisect_refused import RowRefusedError
from sinks.rows.chunk import Chunk, writable
from sinks.rows.schema import Column, TableSchema
from sinks.rows.spool import Spool
from sinks.rows.values import zone_of
from sinks.target import Target

BATCH_ROWS = 20_000
BATCH_BYTES = 8 << 20
"""Of a file, plain: what one transaction writes."""


class LoadStep(Enum):
    """Where a load is; each is announced when it has been done. Crash tests kill between any two."""

    BEGUN = "begun"
    DEFINED = "defined"
    READ = "read"
    WRITTEN = "written"
    FILE_DONE = "file-done"
    FILES_DONE = "files-done"
    VIEWS_DONE = "views-done"
    DONE = "done"


Observe = Callable[[LoadStep], None]
Tell = Callable[[int], bool]


def observe_nothing(_: LoadStep) -> None:
    """Pass over every step; can be pickled, as all that goes to workers."""


@dataclass(frozen=True, slots=True)
class FileWork:
    """A file, the table that it goes to, and how it is to be read. Can be pickled.

    `defined`: the columns upstream, as far as their definition was dumped; `time_zone`: of TIMESTAMP values.
    """

    file: DataFile
    schema: TableSchema
    defined: tuple[ColumnDef, ...]
    form: CsvForm = field(default_factory=CsvForm)
    time_zone: str = "UTC"
    columns: TableColumns | None = None
    """Which of its columns are taken, and which are masked, where not all are as upstream."""
    sums: SumRules | None = None
    """How its rows are summed up for a proof; None: they are not."""

    @property
    def spelling(self) -> bytes:
        """What tells other options, by which the same bytes are other rows, from these; nothing of the defaults."""
        matters = self.form if self.file.form == "csv" else CsvForm(escapes=self.form.escapes)
        return b"" if matters == CsvForm() else repr(matters).encode()


@dataclass(frozen=True, slots=True)
class _Batch:
    """Rows that are written together: the names of their columns, how values are written, how many rows lie before."""

    names: tuple[str, ...]
    rows: Sequence[Row]
    notation: Notation
    first: int


@dataclass(frozen=True, slots=True)
class _Cell:
    """Where a row has a value that is written, into which column, and how it is told."""

    at: int
    column: Column
    convert: Convert
    quoted: bool = False
    """Whether Dumpling puts its values into delimiters, where there are any."""
    mask: Mask | None = None
    """What stands for its values."""


class _Batches:
    """A file's rows, some at a time."""

    def __init__(self, work: FileWork, pieces: Pieces) -> None:
        self._work, self._pieces = work, pieces
        sent = tuple(column.name for column in work.defined if column.generated is None)
        if work.file.form == "csv":
            self._reader: InsertRows | SeparatedRows = SeparatedRows(pieces, sent, work.form)
        else:
            self._reader = InsertRows(pieces, work.file.table.table, sent, escapes=work.form.escapes)
        self._read = self._reader.rows()
        self._digest = xxhash.xxh3_64(work.spelling)
        self.at = 0

    @property
    def seen(self) -> str:
        """What tells the rows so far from others."""
        return self._digest.hexdigest()

    def skip(self, done: Loaded) -> None:
        """Step over rows that are written. Raises InputError where they are not those that were loaded."""
        while self.at < done.rows and (rows := list(islice(self._read, min(BATCH_ROWS, done.rows - self.at)))):
            self._take(rows)
        what = "" if self.at == done.rows else f"it has {self.at} rows, but {done.rows} of it were loaded"
        if not what and done.seen and self.seen != done.seen.partition("/")[0]:
            what = f"its first {done.rows} rows are not those that were loaded"
        if not what and done.whole and next(self._read, None) is not None:
            what = f"it has more than the {done.rows} rows that were loaded"
        if what:
            error = self._pieces.wrong(f"{what}: it is another file now, or other options --csv-... read it")
            error.hint = "put file and options back as they were; to start over see `reconciler help load`"
            raise error

    def _take(self, rows: Sequence[Row]) -> None:
        self.at += len(rows)
        self._digest.update(b"\n".join(map(b"\0".join, rows)) + b"\n")  # however many are taken together

    def __iter__(self) -> Iterator[_Batch]:
        """The batches that follow."""
        for first in self._read:
            rows, begun = [first], self._pieces.position
            if self.at == 0:
                self._check_zone()
                self._check_header(first)
            for row in self._read:
                rows.append(row)
                if len(rows) >= BATCH_ROWS or self._pieces.position - begun >= BATCH_BYTES:
                    break
            self._check_one_file(rows)
            self._take(rows)
            yield _Batch(self._reader.columns, rows, self._reader.notation, self.at - len(rows))

    def _check_header(self, first: Row) -> None:
        """The columns are those upstream, each once, and the first row is none that names them."""
        names, work = self._reader.columns, self._work
        lacking = [column.name for column in work.defined if column.generated is None and column.name not in names]
        if lacking or len(set(names)) < len(names):
            what = f"lacks the column {lacking[0]!r}" if lacking else "names a column twice"
            hint = "dump all columns; files of CSV without names need --no-header"
            raise InputError(f"the file {what} of {work.file.table}", where=f"file={work.file.name}", hint=hint)
        if work.file.form == "csv" and not work.form.header:
            values = [self._reader.notation.value(token) for token in first]
            if values == [name.encode() for name in names]:
                raise InputError(
                    "the file's first line names its columns", where=f"file={work.file.name}", hint="omit --no-header"
                )

    def _check_one_file(self, rows: Sequence[Row]) -> None:
        head = self._reader.head
        if head is not None and head in rows:
            raise self._pieces.wrong("its first line, which names the columns, comes again: two files are in one")

    def _check_zone(self) -> None:
        told = self._reader.time_zone
        if told is not None and zone_of(told) != zone_of(self._work.time_zone):
            raise InputError(
                f"the file's TIMESTAMP values are in the time zone {told}, not in {self._work.time_zone}",
                where=f"file={self._work.file.name}",
                hint=f"use --time-zone={told}",
            )


def _cell(at: int, column: Column, defined: ColumnDef | None, mask: Mask | None) -> _Cell:
    convert = converter(defined, column)
    return _Cell(at, column, convert, quoted=defined is not None and plain_of(convert) is not numbers, mask=mask)


def _texts(notation: Notation, tokens: Sequence[bytes], cell: _Cell) -> list[str | None]:
    """What messages would hold of a column. Raises ValueError, also for a text that should be in delimiters.

    Where `--csv-null-value` is not the dump's, NULL would be a text.
    """
    if cell.quoted and notation.delimited:
        bare = next((t for t in tokens if t[:1] != notation.quote and t != notation.null), None)
        if bare is not None:
            message = f"{bare[:50]!r} is neither in delimiters nor NULL: compare the options --csv-... with Dumpling's"
            raise ValueError(message)
    texts = notation.texts(tokens, cell.convert, plain_of(cell.convert))
    mask = cell.mask
    return texts if mask is None else [None if text is None else mask.of(text) for text in texts]


class FileLoad:
    """Writes one file."""

    def __init__(self, work: FileWork, mark: Mark, target: Target, observe: Observe) -> None:
        self._work, self._mark, self._target, self._observe = work, mark, target, observe
        self._plans: dict[tuple[str, ...], list[_Cell]] = {}
        self._sums: FileSums | None = None

    def run(self, tell: Tell) -> bool:
        """Write what of the file is not written; whether that is all of it now.

        `tell` is told of rows after each batch, and says whether to go on.
        """
        done = self._target.loads.reached(self._mark)
        rules, schema = self._work.sums, self._work.schema
        self._sums = None if rules is None else FileSums(rules.rows(schema, self._target.reader()), done)
        if not (done.whole and done.seen.partition("/")[2] in ("", self._stamp())):
            with closing(self._opened()) as stream:
                stamp = self._stamp()
                pieces = Pieces(stream, self._work.file.name)
                batches = _Batches(self._work, pieces)
                batches.skip(done)
                for batch in batches:
                    self._observe(LoadStep.READ)
                    done = self._write(done, Loaded(batches.at, whole=False, seen=batches.seen), batch)
                    if not tell(len(batch.rows)):
                        return False
                if not batches.at:
                    raise pieces.wrong("it holds no row, and Dumpling writes no file for a table without rows")
            self._write(done, Loaded(done.rows, whole=True, seen=f"{batches.seen}/{stamp}"))
        self._observe(LoadStep.FILE_DONE)
        return True

    def _stamp(self) -> str:
        """What a file shows without being read: the same says that nobody has touched it."""
        found = self._work.file.path.stat()
        return f"{found.st_size}/{found.st_mtime_ns}"

    def _opened(self) -> IO[bytes]:
        try:
            return opened(self._work.file.path)
        except UNREADABLE as error:
            raise InputError(f"a dump's file can't be read: {error}", where=f"file={self._work.file.name}") from error

    def _write(self, before: Loaded, after: Loaded, batch: _Batch | None = None) -> Loaded:
        with Spool() as spool:
            if batch is not None:
                spool.add(self._chunk(batch))
            after = replace(after, sums="" if self._sums is None else self._sums.kept)
            try:
                self._target.write_loaded(self._mark, before, after, spool)
            except RowRefusedError as error:
                if batch is None:
                    raise
                raise self._placed(error, batch) from error
        self._observe(LoadStep.WRITTEN)
        return after

    def _chunk(self, batch: _Batch) -> Chunk:
        cells = self._plan(batch.names)
        columns = tuple(cell.column.name for cell in cells) + tuple(column.name for column, _ in self._origin())
        try:
            told = self._told(cells, batch.rows, batch.notation)
            payload = self._encoded(cells, told, len(batch.rows))
        except ValueError as error:
            raise self._unfit(batch) from error
        if self._sums is not None:
            null = batch.notation.null
            is_rounded = any(may_be_rounded(c.convert, (row[c.at] for row in batch.rows), null) for c in cells)
            self._sums.add(dict(zip(columns, told, strict=True)), is_rounded=is_rounded)
        return Chunk(self._work.schema.name, RowOp.WRITE, columns, len(batch.rows), payload, plain_insert=True)

    def _told(self, cells: Sequence[_Cell], rows: Sequence[Row], notation: Notation) -> list[Sequence[str | None]]:
        """What messages would hold of each column. Raises ValueError."""
        tokens = list(zip(*rows, strict=True))
        told: list[Sequence[str | None]] = [_texts(notation, tokens[cell.at], cell) for cell in cells]
        return told + [[value] * len(rows) for _, value in self._origin()]

    def _encoded(self, cells: Sequence[_Cell], told: Sequence[Sequence[str | None]], rows: int) -> bytes:
        texts = list(zip(*told, strict=True)) if told else [()] * rows
        columns = [*(cell.column for cell in cells), *(column for column, _ in self._origin())]
        return self._target.encoder.encode(columns, texts)

    def _encoded_row(self, cells: Sequence[_Cell], row: Row, notation: Notation) -> bytes:
        return self._encoded(cells, self._told(cells, [row], notation), 1)

    def _origin(self) -> list[tuple[Column, str]]:
        """The columns that tell whose the rows are, where the table is merged with others, and what they hold."""
        told = () if self._work.columns is None else self._work.columns.origin
        found = [(self._work.schema.column(name), value) for name, value in told]
        return [(column, value) for column, value in found if column is not None]

    def _plan(self, names: tuple[str, ...]) -> list[_Cell]:
        """What of rows with these columns is written."""
        if names not in self._plans:
            schema, columns = self._work.schema, self._work.columns
            defined = {column.name: column for column in self._work.defined}
            taken = [at for at, name in enumerate(names) if columns is None or columns.takes(name)]
            own = () if columns is None else tuple(name for name, _ in columns.origin)
            places = writable(schema, (*(names[at] for at in taken), *own), deleted_first=False)
            places = [place for place in places if place < len(taken)]
            chosen = [(taken[place], schema.column(names[taken[place]])) for place in places]
            cells = [(at, column) for at, column in chosen if column is not None]
            masks = [None if columns is None else columns.mask(names[at]) for at, _ in cells]
            self._plans[names] = [
                _cell(at, c, defined.get(c.name), mask) for (at, c), mask in zip(cells, masks, strict=True)
            ]
        return self._plans[names]

    def _unfit(self, batch: _Batch) -> InputError:
        """Which row and column can't be encoded, and why."""
        for number, row in enumerate(batch.rows, batch.first + 1):
            for cell in self._plan(batch.names):
                try:
                    self._encoded_row([cell], row, batch.notation)
                except ValueError as error:
                    what = error if cell.mask is None else "a value that is to be masked can't be read, or its mask fit"
                    return self._named(f"column {cell.column.name!r}: {what}", number)
        return self._named("a value can't be encoded", batch.first + 1)

    def _named(self, what: str, row: int) -> InputError:
        return InputError(
            f"a row of {self._work.file.table} can't be loaded: {what}",
            where=f"file={self._work.file.name} row={row}",
            hint="the target's column has to be as upstream's; for zero dates see target.invalid-dates",
        )

    def _placed(self, error: RowRefusedError, batch: _Batch) -> RowRefusedError:
        """A refusal that names the file and the row's number."""
        cells, refused = self._plan(batch.names), error.row.payload
        payloads = (self._encoded_row(cells, row, batch.notation) for row in batch.rows)
        numbers = (number for number, payload in enumerate(payloads, batch.first + 1) if payload == refused)
        place = f"file={self._work.file.name} row={next(numbers, '?')}"
        hint = error.hint or "make the table's columns and keys as they are upstream, then run again"
        return RowRefusedError(
            error.fact, where="; ".join(filter(None, (place, error.where))), hint=hint, row=error.row
        )
