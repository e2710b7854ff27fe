"""Tasks read files as if each were a message that holds a batch of rows: its number is the offset.

A range is one series of files, from one number to before another. Each file is read whole, its lines are brought into
the form that tasks read, and what is wrong with one is told with file and line.
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass
from functools import partial
from typing import Any

from consumer.kafka.account import Reached
from consumer.native import Core, CoreCrash, Wanted, chosen, crash_error
from consumer.storage.ahead import FilesAhead, Runs, made_ahead
from consumer.storage.csv_file import CsvRules, CsvTable
from consumer.storage.csv_lines import LINES_AT_ONCE, CsvFile
from consumer.storage.layout import RowFile, directory_of, listing_of, table_places
from consumer.storage.line_run import FileLines, LineRun, lines_joined
from consumer.storage.place import GoneError, StorageRoot
from consumer.storage.schema_file import TableFile, table_file
from ordering.errors import InputError, SourceUnreachableError
from ordering.events import Partition

LENGTH = (
    "it is still written, or the store answers with an old one: nothing is applied, and all is listed and read again"
)


class FileReader:
    """Reads series of files. See `Messages`."""

    def __init__(self, root: StorageRoot, rules: CsvRules | None, core: Core | None = None) -> None:
        self._root, self._rules, self._core = root, rules, core
        self._tables: dict[str, TableFile] = {}
        self._at: dict[Partition, int] = {}
        self._given: dict[Partition, int] = {}
        self._sizes: dict[Partition, int] = {}
        self._done: set[Partition] = set()

    def read(self, spans: Sequence[tuple[Partition, int, int]]) -> Iterator[tuple[Partition, Sequence[Any]]]:
        """See `Messages.read`. Raises InputError and SourceError, with the file and the line."""
        return made_ahead(self._read(spans))

    def _read(self, spans: Sequence[tuple[Partition, int, int]]) -> Runs:
        self._at = {partition: start for partition, start, _ in spans}
        self._given, self._sizes, self._done = dict.fromkeys(self._at, 0), dict.fromkeys(self._at, 0), set()
        for partition, start, stop in spans:
            files = self._files(partition.topic) if start < stop else {}
            with closing(FilesAhead(self._root.read)) as ahead:
                for number in range(start, stop):
                    if partition in self._done:
                        break
                    following = files.get(number + 1) if number + 1 < stop else None
                    yield from self._lines(partition, number, files, partial(ahead.content, following=following))
                    self._at[partition] = number + 1
                    self._given[partition] += 1

    def _files(self, series: str) -> dict[int, RowFile]:
        return listing_of(self._root.paths(directory_of(series))).series.get(series, {})

    def _lines(
        self, partition: Partition, number: int, files: dict[int, RowFile], content_of: Callable[[RowFile], bytes]
    ) -> Runs:
        file = files.get(number)
        if file is None:
            hint = (
                "files may expire (file-expiration-days) only after they were applied: rebuild the target from a dump"
            )
            raise InputError(
                "a file is gone that was to be read", where=f"{partition.topic} number={number}", hint=hint
            )
        where = self._root.where(file.path)
        try:
            content = content_of(file)
            self._sizes[partition] += len(content)
            if len(content) != file.size:
                fact = f"a file of {file.size} bytes was read as {len(content)}"
                raise SourceUnreachableError(fact, where=where, hint=LENGTH)
            for lines in self._canal(file, content, where):
                if partition in self._done:
                    return
                yield partition, LineRun(lines, number, where)
        except GoneError:
            raise SourceUnreachableError("a file is gone while it is read", where=where) from None
        except CoreCrash as crash:
            raise crash_error("file", where) from crash
        except InputError as error:
            if error.where.startswith("line "):
                error = InputError(error.fact, where=f"{where}, {error.where}", hint=error.hint)
            if "ends within a line" in error.fact and number + 1 not in files:
                raise SourceUnreachableError(error.fact, where=error.where, hint="it may be still written") from None
            raise error from None

    def _canal(self, file: RowFile, content: bytes, where: str) -> Iterator[FileLines]:
        """The lines in the form that tasks read, in runs."""
        is_csv = self._rules is not None
        if (file.extension == "csv") != is_csv:
            hint = f'set source.protocol = "{"canal-json" if is_csv else "csv"}", as in the changefeed\'s sink URI'
            raise InputError(f"a file of source.protocol's other kind: .{file.extension}", where=where, hint=hint)
        if not content:
            raise InputError("the file ends within a line: it is empty", where=where, hint="half written, or truncated")
        return self._of_csv(file, content) if is_csv else _of_json(content)

    def _of_csv(self, file: RowFile, content: bytes) -> Iterator[FileLines]:
        rules = self._rules or CsvRules()
        table = CsvTable(self._table(directory_of(file.series)), rules)
        return CsvFile(content, table, rules, self._core).runs()

    def _table(self, directory: str) -> TableFile:
        """The schema of a directory's rows. Raises InputError where there is none, or where there are several."""
        if directory not in self._tables:
            self._tables[directory] = self._found_table(directory)
        return self._tables[directory]

    def _found_table(self, directory: str) -> TableFile:
        for place, version in table_places(directory):
            names = [name for name in listing_of(self._root.paths(f"{place}/meta")).schemas if name.version == version]
            files = [(name.path, self._schema_file(name.path)) for name in names if name.directory == place]
            if not files:
                continue
            path, found = files[0]
            if any(other.columns != found.columns for _, other in files):
                where = self._root.where(path)
                raise InputError("two schema files of one version have different columns", where=where)
            return found
        where = self._root.where(directory)
        raise InputError("rows have no schema file", where=where, hint="it was deleted, or is another directory's")

    def _schema_file(self, path: str) -> TableFile:
        try:
            return table_file(self._root.read_schema(path), self._root.where(path))
        except GoneError:
            raise SourceUnreachableError("a schema file is gone while it is read", where=path) from None

    def done(self, partition: Partition) -> None:
        """See `Messages.done`."""
        self._done.add(partition)

    def reached(self, partition: Partition) -> Reached:
        """See `Messages.reached`."""
        return Reached(self._at[partition], self._given[partition], content=self._sizes[partition])


def _of_json(content: bytes) -> Iterator[FileLines]:
    lines = content.split(b"\n")
    if half := lines.pop():
        where = f"line {len(lines) + 1}"
        raise InputError(f"the file ends within a line: {half[:80]!r}", where=where, hint="half written, or truncated")
    for start in range(0, len(lines), LINES_AT_ONCE):
        some = [line.removesuffix(b"\r") for line in lines[start : start + LINES_AT_ONCE]]
        yield lines_joined(some, range(start + 1, start + 1 + len(some)))


@dataclass(frozen=True, slots=True)
class FileReaders:
    """Readers of files. See `Readers`."""

    root: StorageRoot
    rules: CsvRules | None
    native: Wanted = "auto"
    """Whether the compiled core reads lines of CSV."""

    def get(self) -> FileReader:
        """See `Readers.get`."""
        return FileReader(self.root, self.rules, chosen(self.native).core if self.rules else None)

    def forget(self) -> None:
        """See `Readers.forget`: nothing is kept."""
